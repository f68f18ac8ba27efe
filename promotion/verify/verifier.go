package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// verifier compares the tree at one head with the source in its record.
type verifier struct {
	state *session.State
	*Verification
	at *session.Environment
	// checked are the cluster types that were compared, or have a problem.
	checked map[string]bool
}

// newVerifier returns a verifier that adds problems to a Verification.
func newVerifier(state *session.State, v *Verification, at *session.Environment) *verifier {
	return &verifier{state, v, at, map[string]bool{}}
}

// recompile compiles every ring at its recorded commits, and compares the records. A
// cluster type that the policy has moved to another ring since is compared with its own
// source.
func (v *verifier) recompile(ctx context.Context) error {
	record := v.at.Record
	if !v.at.IsNamed(record.Environment) {
		v.problem("the record is that of environment %s", terminal.Line(record.Environment))
	}
	if _, err := v.inHistories(ctx, "the record", record.Source); err != nil {
		return err
	}
	for _, r := range record.Rings { // the source of a renamed ring is the source of its new name
		if v.at.Policy.Promotion.Ring(r.Name) != nil {
			continue
		}
		if err := v.formerRing(ctx, r); err != nil {
			return err
		}
	}
	for _, st := range v.state.StagesOf(v.at.Policy.Name) {
		at := st.In(v.at)
		has := at.Has()
		if has == (tree.Source{}) {
			continue
		}
		v.Rings = append(v.Rings, VerifiedRing{at.RingName(), has})
		if known, err := v.inHistories(ctx, at.ID(), has); err != nil {
			return err
		} else if !known {
			continue
		}
		if err := v.ring(ctx, at, has); err != nil {
			return err
		}
	}
	return v.rest(ctx)
}

// inHistories reports whether commits are in the histories of the branches that they have to be
// in. If not, that is a problem.
func (v *verifier) inHistories(ctx context.Context, what string, of tree.Source) (bool, error) {
	if !of.Base.IsCommit() {
		v.problem("%s was built from files, not from commits: %s", what,
			cmp.Or(of.Base.Short(), "none is named"))
		return false, nil
	}
	if _, found, err := v.state.Platform.Bases.Until(of.Base.Hash()); err != nil {
		return false, err
	} else if !found {
		v.problem("%s is compiled from %s, which is no base commit in the history of branch %s", what,
			of.Base.Short(), v.state.Platform.Branch)
		return false, nil
	}
	own := of.Environment.Hash()
	if own.IsZero() {
		if of.Environment != "" {
			v.problem("%s has the environment's own files of %s, which is no commit", what,
				terminal.Line(string(of.Environment)))
		}
		return of.Environment == "", nil
	}
	branch := v.state.Platform.Branch
	if from := v.at.Policy.Promotion.Source; from != nil {
		branch = from.Branch
	}
	found, err := v.state.Platform.Has(ctx, branch, own)
	if err == nil && !found {
		v.problem("%s has the environment's own files of %s, which is not in the history of branch %s",
			what, of.Environment.Short(), branch)
	}
	return found, err
}

func commitsOf(of tree.Source) []git.Hash {
	out := []git.Hash{of.Base.Hash()}
	if own := of.Environment.Hash(); !own.IsZero() {
		out = append(out, own)
	}
	return out
}

// ring compiles a stage again. Nothing is taken from the tree but retained folders.
func (v *verifier) ring(ctx context.Context, st *session.Stage, has tree.Source) (err error) {
	compiled, remove, err := v.state.Platform.Compile(ctx, st, has, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	v.Verification.Diagnostics = append(v.Verification.Diagnostics, compiled.Diagnostics...)
	if compiled.Tree == nil {
		v.problem("%s does not compile at %s", st.ID(), has.Describe())
		return nil
	}
	if p := compiled.Options.Platform; p != v.at.Record.Platform {
		v.problem("the record is of platform %s, and %s is compiled", terminal.Line(v.at.Record.Platform),
			p)
	}
	own, moved := 0, false // the policy has a cluster type in a different ring from it was built for
	for i := range compiled.Tree.ClusterTypes {
		ct := &compiled.Tree.ClusterTypes[i]
		if ct.Outside {
			continue
		}
		if tree.IsShard(ct.Name) {
			err := v.entries(ctx, ct, compiled.Options.Compiler, func(folder string) bool {
				e := v.entry(folder)
				return e == nil || v.at.Record.SourceOf(e) == has && st.Covers(folder)
			})
			if err != nil {
				return err
			}
			continue
		}
		own++
		e := v.entry(ct.Name)
		switch {
		case e == nil:
			v.problem("cluster type %s is compiled, and not in the tree", ct.Name)
		case v.at.Record.SourceOf(e) == has && st.Covers(e.Name):
			v.checked[ct.Name] = true
			if err := v.clusterType(ctx, st, ct, compiled.Options.Compiler); err != nil {
				return err
			}
		case e.Ring == st.RingName():
			v.checked[ct.Name] = true
			v.problem("cluster type %s is of %s, and not of %s as the record says of %s", ct.Name,
				v.at.Record.SourceOf(e).Describe(), has.Describe(), st.ID())
		default:
			moved = true
		}
	}
	// A ring may have no cluster type yet, if its cluster types came from other rings or went to
	// others.
	backed := func(e tree.ClusterTypeEntry) bool {
		return !tree.IsShard(e.Name) && v.at.Record.SourceOf(&e) == has && st.Covers(e.Name)
	}
	if own > 0 && st.Ring != nil && !moved && !slices.ContainsFunc(v.at.Record.ClusterTypes, backed) {
		v.problem("the record says that %s has %s, and no cluster type has it", st.ID(), has.Describe())
	}
	return nil
}

// formerRing verifies the source of a ring that the policy no longer has. A cluster type must
// have had the source, or a commit must name the ring.
func (v *verifier) formerRing(ctx context.Context, r tree.Ring) error {
	found := false
	err := v.at.History.Each(ctx, func(p session.Past) bool {
		was := p.Record.Ring(r.Name)
		found = was != nil && was.Source == r.Source &&
			message.Trailer(p.Message, "Kalypso-Ring") == r.Name ||
			p.Record != nil &&
				slices.ContainsFunc(p.Record.ClusterTypes, func(e tree.ClusterTypeEntry) bool {
					return e.Ring == r.Name && p.Record.SourceOf(&e) == r.Source
				})
		return !found
	})
	if err == nil && !found {
		v.problem("the record says that ring %s has %s, and no cluster type has it",
			terminal.Line(r.Name), r.Source.Describe())
	}
	return err
}

// entry returns the record's entry of a cluster type, or nil.
func (v *verifier) entry(clusterType string) *tree.ClusterTypeEntry {
	for i := range v.at.Record.ClusterTypes {
		if e := &v.at.Record.ClusterTypes[i]; e.Name == clusterType {
			return e
		}
	}
	return nil
}

// rest compares the cluster types outside of all compiled rings with their own
// source.
func (v *verifier) rest(ctx context.Context) error {
	of := map[tree.Source][]string{}
	var sources []tree.Source
	for i := range v.at.Record.ClusterTypes {
		e := &v.at.Record.ClusterTypes[i]
		is := v.at.Record.SourceOf(e)
		switch {
		case v.checked[e.Name] || tree.IsShard(e.Name):
			continue
		case len(v.at.Policy.Promotion.Rings) == 0 && len(v.at.Record.Rings) == 0 &&
			is != v.at.Record.Source:
			v.problem("cluster type %s is of %s, and the environment of %s", e.Name, is.Describe(),
				v.at.Record.Source.Describe())
			continue
		}
		if of[is] == nil {
			sources = append(sources, is)
		}
		of[is] = append(of[is], e.Name)
	}
	if err := v.restOfEntries(of); err != nil {
		return err
	}
	for _, source := range sources {
		if err := v.alone(ctx, source, of[source]); err != nil {
			return err
		}
	}
	return nil
}

// alone compares cluster types with the whole environment at some commits.
func (v *verifier) alone(ctx context.Context, of tree.Source, names []string) (err error) {
	if known, err := v.inHistories(ctx, "cluster type "+names[0], of); err != nil || !known {
		return err
	}
	st := &session.Stage{Policy: v.at.Policy, Environment: v.at}
	compiled, remove, err := v.state.Platform.Compile(ctx, st, of, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	for _, name := range names {
		i := -1
		if compiled.Tree != nil {
			i = slices.IndexFunc(compiled.Tree.ClusterTypes,
				func(ct tree.ClusterType) bool { return ct.Name == name })
		}
		if i < 0 {
			v.problem("cluster type %s is in the tree, and not in what %s compiles to", name, of.Describe())
			continue
		}
		if tree.IsShard(name) {
			if err := v.entries(ctx, &compiled.Tree.ClusterTypes[i], compiled.Options.Compiler,
				func(folder string) bool { return slices.Contains(names, folder) }); err != nil {
				return err
			}
			continue
		}
		if err := v.clusterType(ctx, st, &compiled.Tree.ClusterTypes[i],
			compiled.Options.Compiler); err != nil {
			return err
		}
	}
	return nil
}

// clusterType compares the ids of a cluster type's folders with the ids in the record.
func (v *verifier) clusterType(ctx context.Context, st *session.Stage, ct *tree.ClusterType,
	by tree.Compiler) error {
	before := len(v.Problems)
	recorded, err := st.Environment.Record.ClusterType(ct.Name)
	if err != nil {
		return err
	}
	content, err := ct.Content(ctx)
	if err != nil {
		return err
	}
	switch {
	case content.Kept != "" && recorded.Kept == "":
		v.problem("%s has errors at its commits, and the record does not say that it is kept", ct.Name)
	case content.Kept != "":
		if err := v.keptFiles(ctx, st, recorded); err != nil {
			return err
		}
	case !content.Matches(recorded):
		v.problem("%s: its own files are not what is compiled", ct.Name)
	}
	there := map[string]bool{}
	for i := range content.Folders {
		f := &content.Folders[i]
		there[f.Info.DeploymentTarget] = true
		if err := v.folder(ctx, st, ct.Name, f,
			recorded.Assignment(f.Info.DeploymentTarget)); err != nil {
			return err
		}
	}
	for _, a := range recorded.Assignments {
		if !there[a.DeploymentTarget] {
			v.problem("%s/%s is in the tree, and not compiled", ct.Name, a.DeploymentTarget)
		}
	}
	if len(v.Problems) > before {
		return nil
	}
	return v.recorded(ctx, ct, recorded, by)
}

// recorded compares the record of a cluster type with the record that a build would write now.
// Other versions of kalypso may record other fields, and retained files have reasons of their
// time. recorded ignores both.
func (v *verifier) recorded(ctx context.Context, ct *tree.ClusterType,
	before *tree.ClusterTypeRecord, by tree.Compiler) error {
	was := v.entry(ct.Name)
	compiler := v.at.Record.Compiler
	if was.Compiler != nil {
		compiler = *was.Compiler
	}
	if was.Kept > 0 || was.Digest == "" || compiler != by {
		return nil
	}
	is, err := ct.Entry(ctx, before, v.at.Record)
	if err == nil &&
		(is.Record != was.Record || is.Digest != was.Digest || is.Assignments != was.Assignments) {
		v.problem("%s: its record is not what is compiled", ct.Name)
	}
	return err
}

// folder compares an assignment's folder with its record, which may be nil.
func (v *verifier) folder(ctx context.Context, st *session.Stage, clusterType string,
	f *tree.Folder, recorded *tree.AssignmentRecord) error {
	id := clusterType + "/" + f.Info.DeploymentTarget
	switch {
	case recorded == nil:
		v.problem("%s is compiled, and not in the tree", id)
	case recorded.Kept != nil && f.Kept == nil:
		v.problem("%s is kept from %s, and there is nothing wrong with it at its commits", id,
			recorded.Kept.Source.Describe())
	case recorded.Kept != nil:
		// Compare a retained folder with the output of the commits in the record.
		name, target, _ := strings.Cut(id, "/")
		return v.retained(ctx, st, id, name, recorded.Kept.Source, func(content *tree.Content) bool {
			return slices.ContainsFunc(content.Folders, func(f tree.Folder) bool {
				return f.Info.DeploymentTarget == target && f.Kept == nil &&
					tree.OfFiles(f.Files) == recorded.Tree
			})
		})
	case f.Kept != nil:
		v.problem("%s has errors at its commits, and the record does not say that it is kept", id)
	case tree.OfFiles(f.Files) != recorded.Tree:
		v.problem("%s is not what is compiled", id)
	}
	return nil
}

// keptFiles compares retained files of a cluster type with the output of the commits that
// they were compiled from, by the history of the branch.
func (v *verifier) keptFiles(ctx context.Context, st *session.Stage,
	recorded *tree.ClusterTypeRecord) error {
	if len(recorded.Files) == 0 {
		return nil // there never was a good one
	}
	of, err := st.Environment.CompiledFrom(ctx, recorded)
	if err != nil {
		return err
	}
	return v.retained(ctx, st, recorded.Name, recorded.Name, of, func(content *tree.Content) bool {
		return content.Kept == "" && tree.OfFiles(content.Files) == tree.TreeID(recorded.Files)
	})
}

// retained compiles a cluster type at some commits. Its retained files are a problem
// unless they are the same in the result.
func (v *verifier) retained(ctx context.Context, st *session.Stage, what, clusterType string,
	of tree.Source, same func(*tree.Content) bool) (err error) {
	if known, err := v.inHistories(ctx, what+", which is kept,", of); err != nil || !known {
		return err
	}
	alone := st.In(&session.Environment{Policy: st.Policy, Repository: st.Environment.Repository})
	alone.Ring = nil
	compiled, remove, err := v.state.Platform.Compile(ctx, alone, of, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if compiled.Tree != nil {
		i := slices.IndexFunc(compiled.Tree.ClusterTypes,
			func(ct tree.ClusterType) bool { return ct.Name == clusterType })
		if i >= 0 {
			if content, err := compiled.Tree.ClusterTypes[i].Content(ctx); err != nil || same(content) {
				return err
			}
		}
	}
	v.problem("%s is kept, and not what %s gives, which it is said to be of", what, of.Describe())
	return nil
}
