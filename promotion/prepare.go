package promotion

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
)

// prepared is a commit that was made for a stop and not pushed yet.
type prepared struct {
	commit git.Hash // zero where nothing at all differs
	packs  []string
	record *tree.Record
	report *compare.Report
	// diagnostics are what the compiler has to say of the environment.
	diagnostics []diag.Diagnostic
	message     string
	// obstacle is why there is nothing that could be written, whatever the policy allows;
	// "" where there is.
	obstacle string
	missing  bool // the commit does not have the environment: a later one may
}

// change says what is different in a record beside what is compiled.
type change struct {
	hold     *tree.Hold // of the stop
	verdicts []gate.Verdict
	files    map[string][]byte // beside the tree
	trailers []string          // beside those of every commit
	title    string
	// decided is when a person decided it; the zero Time for what policies let through.
	decided time.Time
}

// prepare compiles a stop at its commits, and makes the GitOps commit on top of the
// branch's tip. Nothing is pushed. Where there is nothing that could be written, the step's
// obstacle says why.
func (m *maker) prepare(ctx context.Context, st *stop, step *Step, c change) (err error) {
	compiled, remove, err := m.state.platform.compile(ctx, st, step.Source, step.Kind == RollBack)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	p := &prepared{diagnostics: compiled.Diagnostics}
	step.prepared = p
	step.Change = &gate.Change{
		Environment: st.stage.Name, Ring: st.ringName(), Base: step.Source.Base.Hash(), Own: step.Source.Environment.Hash(),
		Errors: compiled.Errors, Kept: compiled.Kept, Removals: compiled.Removals,
	}
	if compiled.Tree == nil {
		step.Change.Errors = max(1, compiled.Errors)
		p.obstacle = "nothing of it compiles at " + step.Source.Describe()
		if p.missing = compiled.Missing; p.missing {
			p.obstacle = step.Source.Base.Short() + " does not have environment " + st.stage.Name
		}
		return nil
	}
	if p.obstacle, err = m.setsBack(st, step, compiled.Tree); err != nil || p.obstacle != "" {
		return err
	}
	o := compiled.Options
	o.Adopt, o.Files, o.Clock = m.state.request.Adopt, c.files, m.state.request.clock()
	o.Ring, o.Rings = st.ringName(), st.rings(step.Source, c.hold)
	if st.ring == nil {
		o.Hold = c.hold
	}
	pack := st.out.repository.staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	placement := tree.Placement{Folder: st.out.folder, Tree: compiled.Tree, Options: o}
	result, ds, err := st.out.at.Make([]tree.Placement{placement}, pack, m.commitInfo(st, step.Source, m.message(st, step, &c), c.decided))
	if err != nil {
		return err
	}
	if result == nil {
		p.diagnostics = append(p.diagnostics, ds...)
		step.Change.Errors += len(ds)
		p.obstacle = "its files cannot be written to branch " + st.out.branch
		if len(ds) > 0 {
			p.obstacle += ": " + ds[0].Message
		}
		return nil
	}
	if err := pack.Finish(); err != nil {
		return err
	}
	p.commit, p.packs, p.message = tree.Revision(result.Commit).Hash(), packsOf(pack), result.Message
	p.record = result.Changes[0].Record
	step.Tree, step.Commit = p.record.Tree, string(result.Commit)
	step.NoOp = st.out.restored.IsZero() && len(result.Changes[0].Written) == 0 && len(result.Changes[0].Removed) == 0 && sameTree(st.out.record, p.record)
	return m.inspect(ctx, st, step)
}

// setsBack says which cluster type of another ring, which the policy has in this one by
// now, would get an older base commit than it has; "" for none. Only a person brings
// something back.
func (m *maker) setsBack(st *stop, step *Step, t *tree.Tree) (string, error) {
	if st.ring == nil || st.out.record == nil || step.Kind == RollBack {
		return "", nil
	}
	newer, found, err := m.state.platform.bases.until(step.Source.Base.Hash())
	if err != nil || !found {
		return "", err
	}
	newer = newer[:len(newer)-1]
	for i := range st.out.record.ClusterTypes {
		e := &st.out.record.ClusterTypes[i]
		is := st.out.record.SourceOf(e)
		here := slices.ContainsFunc(t.ClusterTypes, func(ct tree.ClusterType) bool { return ct.Name == e.Name && !ct.Outside })
		if here && e.Ring != st.ring.Name && slices.ContainsFunc(newer, func(b source.Base) bool { return tree.RevisionOf(b.Commit) == is.Base }) {
			return fmt.Sprintf("cluster type %s came from ring %s with %s, which is newer: promote that, or a later one", e.Name, e.Ring, is.Base.Short()), nil
		}
	}
	return "", nil
}

func sameTree(before, after *tree.Record) bool { return before != nil && before.Tree == after.Tree }

func packsOf(pack *git.PackWriter) []string {
	if pack.Path() == "" {
		return nil
	}
	return []string{pack.Path()}
}

// message is that of a commit, with trailers that mirror the record.
func (m *maker) message(st *stop, step *Step, c *change) string {
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
	trailer("Kalypso-Environment", st.stage.Name)
	trailer("Kalypso-Ring", st.ringName())
	trailer("Kalypso-Source-Commit", string(step.Source.Base))
	trailer("Kalypso-Config-Commit", string(step.Source.Environment))
	if len(c.verdicts) > 0 {
		trailer("Kalypso-Gates-Digest", gate.Digest(c.verdicts))
	}
	trailer("Kalypso-Clock", m.state.request.clock())
	for _, line := range c.trailers {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// title says in a line what a step does.
func (m *maker) title(st *stop, step *Step) string {
	switch step.Kind {
	case Configure:
		return fmt.Sprintf("Configure %s as of %s", st.id(), step.Source.Environment.Short())
	case RollBack:
		return fmt.Sprintf("Roll %s back to %s", st.id(), step.Source.Base.Short())
	case RestoreKind:
		return fmt.Sprintf("Restore %s at %s", st.id(), step.Source.Base.Short())
	}
	return fmt.Sprintf("Promote %s to %s", step.Source.Base.Short(), st.id())
}

// prepareExact makes a commit with the tree of an earlier one.
func (m *maker) prepareExact(st *stop, step *Step, target past, c change) error {
	if st.ring != nil && len(st.stage.Promotion.Rings) > 1 {
		return errors.New("--exact brings the files of the whole environment back, and it has several rings: leave it out, so that the ring alone is compiled")
	}
	view, err := st.out.repository.view(st.out.branch, target.ID)
	if err != nil {
		return err
	}
	message := m.message(st, step, &c)
	pack := st.out.repository.staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	result, err := st.out.at.Restore(st.out.folder, view, func(r *tree.Record) error {
		r.Clock = m.state.request.clock()
		st.setHold(r, c.hold)
		return nil
	}, pack, m.commitInfo(st, step.Source, message, c.decided))
	if err != nil {
		return err
	}
	if err := pack.Finish(); err != nil {
		return err
	}
	step.prepared = &prepared{commit: tree.Revision(result.Commit).Hash(), packs: packsOf(pack), message: result.Message}
	step.Commit, step.Tree = string(result.Commit), target.record.Tree
	return nil
}

// restate makes a commit that changes nothing but the hold of a stage; nil where the record
// says that already, unless there is to be one always.
func (m *maker) restate(st *stop, c change, always bool) (*prepared, error) {
	message := m.message(st, &Step{Kind: Configure, Source: st.has()}, &c)
	pack := st.out.repository.staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	info := m.commitInfo(st, st.has(), message, c.decided)
	info.Always = always
	result, err := st.out.at.Restate(st.out.folder, func(r *tree.Record) error {
		if !sameHold(st.ownHold(), c.hold) {
			r.Clock = m.state.request.clock()
		}
		st.setHold(r, c.hold)
		return nil
	}, pack, info)
	if err != nil || result.Commit == "" {
		return nil, err
	}
	if err := pack.Finish(); err != nil {
		return nil, err
	}
	return &prepared{commit: tree.Revision(result.Commit).Hash(), packs: packsOf(pack)}, nil
}

// commitInfo is what makes a commit the same whoever makes it.
func (m *maker) commitInfo(st *stop, of tree.Source, message string, decided time.Time) tree.CommitInfo {
	by := m.state.request.author(m.state.commitTime(st, of, decided))
	return tree.CommitInfo{Message: message, RecordTrailer: recordTrailer, Name: by.Name, Email: by.Email, When: by.When, Sign: by.sign}
}
