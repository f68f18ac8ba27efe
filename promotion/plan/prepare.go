package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// maker makes the commits of steps, and does not push them.
type maker struct{ state *session.State }

// PreparedCommit is a commit that was made for a stage and not pushed yet.
type PreparedCommit struct {
	Commit git.Hash // zero if there are no differences at all
	Packs  []string
	record *tree.Record
	report *compare.Report
	// diagnostics are the diagnostics of the compiler, about the environment.
	diagnostics []diag.Diagnostic
	Message     string
	// obstacle is the reason why nothing can be written, whatever the policy allows; "" if
	// something can be written.
	obstacle string
	missing  bool // the commit does not have the environment: a later one may
}

// extra is the part of a commit that is not compiled.
type extra struct {
	hold     *tree.Hold // of the stage
	named    *tree.NamedPromotion
	verdicts []gate.Verdict
	files    map[string][]byte // outside of the tree
	trailers []string          // beside the trailers of every commit
	title    string
	// decided is the time of a person's decision; the zero Time if policies decided.
	decided time.Time
}

// prepare compiles a stage at its commits, and makes the GitOps commit on top of the branch's
// tip. It does not push it. If nothing can be written, the step's obstacle has the reason.
func (m *maker) prepare(ctx context.Context, st *session.Stage, step *Step, c extra) (err error) {
	compiled, remove, err := m.state.Platform.Compile(ctx, st, step.Source, step.Kind == RollBack)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	p := &PreparedCommit{diagnostics: compiled.Diagnostics}
	step.Prepared = p
	step.Change = &gate.Change{
		Environment: st.Policy.Name, Ring: st.RingName(), Base: step.Source.Base.Hash(),
		Own:    step.Source.Environment.Hash(),
		Errors: compiled.Errors, Kept: compiled.Kept, Removals: compiled.Removals,
	}
	if compiled.Tree == nil {
		step.Change.Errors = max(1, compiled.Errors)
		p.obstacle = "nothing of it compiles at " + step.Source.Describe()
		if p.missing = compiled.Missing; p.missing {
			p.obstacle = step.Source.Base.Short() + " does not have environment " + st.Policy.Name
		}
		return nil
	}
	if p.obstacle, err = m.setsBack(ctx, st, step, compiled.Tree); err != nil || p.obstacle != "" {
		return err
	}
	o := compiled.Options
	o.Adopt, o.Files, o.Clock = m.state.Request.Adopt, c.files, m.state.Request.Clock()
	if step.Source.Base == st.Has().Base && c.named == nil {
		c.named = st.OwnNamed()
	}
	o.Ring, o.Rings = st.RingName(), st.RecordRings(step.Source, c.hold, c.named)
	if st.Ring == nil {
		o.Hold, o.Named = c.hold, c.named
	}
	pack := st.Environment.Repository.Staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	placement := tree.Placement{Folder: st.Environment.Folder, Tree: compiled.Tree, Options: o}
	result, ds, err := st.Environment.Tree.Make(ctx, []tree.Placement{placement}, pack,
		m.commitInfo(st, step.Source, m.message(st, step, &c), c.decided))
	if err != nil {
		return err
	}
	if result == nil {
		p.diagnostics = append(p.diagnostics, ds...)
		step.Change.Errors += len(ds)
		p.obstacle = "its files cannot be written to branch " + st.Environment.Branch
		if len(ds) > 0 {
			p.obstacle += ": " + ds[0].Message
		}
		return nil
	}
	if err := pack.Finish(); err != nil {
		return err
	}
	p.Commit, p.Packs, p.Message = tree.Revision(result.Commit).Hash(), ledger.Packs(pack),
		result.Message
	p.record = result.Changes[0].Record
	step.Tree, step.Commit = p.record.Tree, string(result.Commit)
	step.NoOp = st.Environment.Restored.IsZero() && len(result.Changes[0].Written) == 0 &&
		len(result.Changes[0].Removed) == 0 && sameTree(st.Environment.Record, p.record)
	return m.inspect(ctx, st, step)
}

// setsBack returns an obstacle if a cluster type has moved to this ring from another one and
// would get an older base commit, or older own files. It returns "" if there is no obstacle. Only
// a person may roll back.
func (m *maker) setsBack(ctx context.Context, st *session.Stage, step *Step, t *tree.Tree) (string,
	error) {
	if st.Ring == nil || st.Environment.Record == nil || step.Kind == RollBack {
		return "", nil
	}
	newer, found, err := m.state.Platform.Bases.Until(step.Source.Base.Hash())
	if err != nil || !found {
		return "", err
	}
	newer = newer[:len(newer)-1]
	for i := range st.Environment.Record.ClusterTypes {
		e := &st.Environment.Record.ClusterTypes[i]
		is := st.Environment.Record.SourceOf(e)
		here := slices.ContainsFunc(t.ClusterTypes,
			func(ct tree.ClusterType) bool { return ct.Name == e.Name && !ct.Outside })
		if !here || tree.IsShard(e.Name) || e.Ring == st.Ring.Name {
			continue
		}
		if slices.ContainsFunc(newer,
			func(b source.Base) bool { return tree.RevisionOf(b.Commit) == is.Base }) {
			return fmt.Sprintf("cluster type %s came from ring %s with %s, which is newer: promote that, "+
				"or a later one", e.Name, e.Ring, is.Base.Short()), nil
		}
		ownNewer, err := m.state.OwnNewer(ctx, st, is.Environment, step.Source.Environment)
		if err != nil {
			return "", err
		}
		if ownNewer {
			return fmt.Sprintf("cluster type %s came from ring %s with own files of %s, which are newer: "+
					"they come when ring %[2]s has had them long enough", e.Name, e.Ring, is.Environment.Short()),
				nil
		}
	}
	return "", nil
}

func sameTree(before, after *tree.Record) bool { return before != nil && before.Tree == after.Tree }

// prepareExact makes a commit with the tree of an earlier one.
func (m *maker) prepareExact(st *session.Stage, step *Step, target session.Past, c extra) error {
	if st.Ring != nil && len(st.Policy.Promotion.Rings) > 1 {
		return errors.New("--exact brings the files of the whole environment back, and it has several " +
			"rings: leave it out, so that the ring alone is compiled")
	}
	view, err := st.Environment.Repository.View(st.Environment.Branch, target.ID)
	if err != nil {
		return err
	}
	text := m.message(st, step, &c)
	pack := st.Environment.Repository.Staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	result, err := st.Environment.Tree.Restore(st.Environment.Folder, view,
		func(r *tree.Record) error {
			r.Clock = m.state.Request.Clock()
			st.SetHold(r, c.hold)
			return nil
		}, pack, m.commitInfo(st, step.Source, text, c.decided))
	if err != nil {
		return err
	}
	if err := pack.Finish(); err != nil {
		return err
	}
	step.Prepared = &PreparedCommit{Commit: tree.Revision(result.Commit).Hash(),
		Packs:   ledger.Packs(pack),
		Message: result.Message}
	step.Commit, step.Tree = string(result.Commit), target.Record.Tree
	step.NoOp = st.Environment.Restored.IsZero() && sameTree(st.Environment.Record, target.Record)
	return nil
}

// restate makes a commit that changes only the hold of a stage. It returns nil if the record
// already has that hold, unless the caller always wants a commit.
func (m *maker) restate(st *session.Stage, c extra, always bool) (*PreparedCommit, error) {
	text := m.message(st, &Step{Kind: Configure, Source: st.Has()}, &c)
	pack := st.Environment.Repository.Staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	info := m.commitInfo(st, st.Has(), text, c.decided)
	info.Always = always
	result, err := st.Environment.Tree.Restate(st.Environment.Folder, func(r *tree.Record) error {
		if !session.SameHold(st.OwnHold(), c.hold) {
			r.Clock = m.state.Request.Clock()
		}
		st.SetHold(r, c.hold)
		return nil
	}, pack, info)
	if err != nil || result.Commit == "" {
		return nil, err
	}
	if err := pack.Finish(); err != nil {
		return nil, err
	}
	return &PreparedCommit{Commit: tree.Revision(result.Commit).Hash(), Packs: ledger.Packs(pack)}, nil
}

// decided returns the trailers of a step that somebody named, or for which gates were to be passed
// over.
func (step *Step) decided(intent Intent) (out []string) {
	trailer := func(name, value string) {
		if value = message.Fold(value); value != "" {
			out = append(out, name+": "+value)
		}
	}
	gates := slices.Clone(intent.Skip.Gates)
	if intent.Skip.OwnAtOnce {
		gates = append(gates, "rings of own files")
	}
	trailer(message.SkipTrailer, strings.Join(gates, ", "))
	if intent.Commit != "" {
		trailer(message.NamedTrailer, string(step.Source.Base))
	}
	if hold := step.EndsHold; hold != nil {
		trailer(message.EndsTrailer, describeHold(hold))
	}
	trailer(message.RejectedTrailer, strings.Join(step.contains, ", "))
	if intent.Commit != "" || !intent.Skip.IsZero() {
		trailer(message.ReasonTrailer, intent.reason())
		trailer(message.ByTrailer, intent.by())
	}
	return out
}

// describeHold returns the author and reason of a hold, as text.
func describeHold(
	hold *tree.Hold) string {
	return strings.TrimPrefix(hold.By+": "+hold.Reason, ": ")
}

// message returns the message of a commit, with trailers that mirror the record.
func (m *maker) message(st *session.Stage, step *Step, c *extra) string {
	var b strings.Builder
	title := c.title
	if title == "" {
		title = m.title(st, step)
	}
	fmt.Fprintf(&b, "%s\n\n", title)
	trailer := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	trailer("Kalypso-Environment", st.Policy.Name)
	trailer("Kalypso-Ring", st.RingName())
	trailer("Kalypso-Source-Commit", string(step.Source.Base))
	trailer("Kalypso-Config-Commit", string(step.Source.Environment))
	if len(c.verdicts) > 0 {
		trailer("Kalypso-Gates-Digest", gate.Digest(c.verdicts))
	}
	trailer("Kalypso-Clock", m.state.Request.Clock())
	for _, line := range c.trailers {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// title describes a step in a line.
func (m *maker) title(st *session.Stage, step *Step) string {
	switch step.Kind {
	case Configure:
		return fmt.Sprintf("Configure %s as of %s", st.ID(), step.Source.Environment.Short())
	case RollBack:
		if step.Source.Base == st.Has().Base {
			return fmt.Sprintf("Roll %s back to its own files of %s", st.ID(),
				step.Source.Environment.Short())
		}
		return fmt.Sprintf("Roll %s back to %s", st.ID(), step.Source.Base.Short())
	case Restore:
		return fmt.Sprintf("Restore %s at %s", st.ID(), step.Source.Base.Short())
	}
	return fmt.Sprintf("Promote %s to %s", step.Source.Base.Short(), st.ID())
}

// commitInfo returns author, time and message of a commit, which are the same whoever
// makes it.
func (m *maker) commitInfo(st *session.Stage, of tree.Source, text string,
	decided time.Time) tree.CommitInfo {
	by := m.state.Request.Author(m.state.CommitTime(st, of, decided))
	return tree.CommitInfo{Message: text, RecordTrailer: session.RecordTrailer, Name: by.Name,
		Email: by.Email, When: by.When, Sign: by.Sign}
}
