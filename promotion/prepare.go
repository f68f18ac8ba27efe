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
func (s *Session) prepare(ctx context.Context, st *stop, step *Step, c change) (err error) {
	compiled, remove, err := s.compile(ctx, st, step.Source, step.Kind == RollBack)
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
	if p.obstacle, err = s.setsBack(st, step, compiled.Tree); err != nil || p.obstacle != "" {
		return err
	}
	o := compiled.Options
	o.Adopt, o.Files, o.Clock = s.request.Adopt, c.files, s.clock()
	o.Ring, o.Rings = st.ringName(), st.rings(step.Source, c.hold)
	if st.ring == nil {
		o.Hold = c.hold
	}
	pack := st.out.repository.staging.NewPack()
	defer pack.Abort() //nolint:errcheck // a temporary file is left
	placement := tree.Placement{Folder: st.out.folder, Tree: compiled.Tree, Options: o}
	result, ds, err := st.out.at.Make([]tree.Placement{placement}, pack, s.commitInfo(st, step.Source, s.message(st, step, &c), c.decided))
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
	return s.inspect(ctx, st, step)
}

// setsBack says which cluster type of another ring, which the policy has in this one by
// now, would get an older base commit than it has; "" for none. Only a person brings
// something back.
func (s *Session) setsBack(st *stop, step *Step, t *tree.Tree) (string, error) {
	if st.ring == nil || st.out.record == nil || step.Kind == RollBack {
		return "", nil
	}
	newer, found, err := s.platform.bases.until(step.Source.Base.Hash())
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

// compile compiles a stop at some commits. What it gives is made of a temporary folder,
// which remove deletes. back is that of CompileRequest.
func (s *Session) compile(ctx context.Context, st *stop, of tree.Source, back bool) (out *Compiled, remove func() error, err error) {
	var own map[string]source.Own
	if of.Environment != "" {
		own = map[string]source.Own{st.stage.Name: {Commit: of.Environment.Hash(), Path: s.platform.ownPath(st.stage)}}
	}
	dir, remove, err := s.platform.assemble(ctx, of.Base.Hash(), own)
	if err != nil {
		return nil, nil, err
	}
	r := CompileRequest{Dir: dir, Environment: st.stage.Name, Source: of, Previous: st.out.record, Back: back}
	if st.ring != nil {
		r.Ring, r.Rings = st.ring.Name, st.stage.Promotion.Rings
	}
	if out, err = s.subject.Compile(ctx, r); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return out, remove, nil
}

// rings are those of the record after a step: this one has what it gets, and the others
// what they have.
func (st *stop) rings(gets tree.Source, hold *tree.Hold) []tree.Ring {
	if st.ring == nil {
		return nil
	}
	out := slices.DeleteFunc(st.out.ringsIn(st.out.record), func(r tree.Ring) bool { return r.Name == st.ring.Name })
	out = append(out, tree.Ring{Name: st.ring.Name, Source: gets, Hold: hold})
	slices.SortFunc(out, func(a, b tree.Ring) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// commitInfo is what makes a commit the same whoever makes it: its time is that of the
// newest commit that goes into it. Only what a person decides has a time of its own,
// which nothing else tells.
func (s *Session) commitInfo(st *stop, of tree.Source, message string, decided time.Time) tree.CommitInfo {
	when := time.Unix(0, 0)
	if decided.After(when) {
		when = decided
	}
	later := func(r *repository, id git.Hash) {
		if id.IsZero() {
			return
		}
		if c, err := r.staging.Commit(id); err == nil && c.Committer.When.After(when) {
			when = c.Committer.When
		}
	}
	later(s.platform.repository, of.Base.Hash())
	later(s.platform.repository, of.Environment.Hash())
	later(st.out.repository, st.out.tip)
	by := s.committer(when)
	return tree.CommitInfo{Message: message, RecordTrailer: recordTrailer, Name: by.Name, Email: by.Email, When: by.When, Sign: s.sign()}
}

// clock is what records say of the clock.
func (s *Session) clock() string {
	if s.request.ClockSet {
		return tree.ClockSet
	}
	return ""
}

// sign returns what signs commits; nil for nothing.
func (s *Session) sign() func([]byte) (string, error) {
	if s.request.Signer == nil {
		return nil
	}
	return s.request.Signer.Sign
}

// committer is who makes commits: the same for all who run this, unless they say
// otherwise.
func (s *Session) committer(when time.Time) git.Signature {
	by := git.Signature{Name: "kalypso", Email: "kalypso@localhost", When: when.UTC()}
	if s.request.Committer.Name != "" {
		by.Name, by.Email = s.request.Committer.Name, s.request.Committer.Email
	}
	return by
}

// message is that of a commit, with trailers that mirror the record.
func (s *Session) message(st *stop, step *Step, c *change) string {
	var b strings.Builder
	title := c.title
	if title == "" {
		title = s.title(st, step)
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
	trailer("Kalypso-Clock", s.clock())
	for _, line := range c.trailers {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// title says in a line what a step does.
func (s *Session) title(st *stop, step *Step) string {
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
