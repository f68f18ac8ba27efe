package promotion

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// verifier compares what is at one head with what it is said to be compiled from.
type verifier struct {
	state *sessionState
	*Verification
	at *output
	// checked are the cluster types that were compared, or of which a problem was said.
	checked map[string]bool
}

func newVerifier(state *sessionState, v *Verification, at *output) *verifier {
	return &verifier{state, v, at, map[string]bool{}}
}

// recompile compiles every ring at its recorded commits, and compares the records. What a
// policy that has changed since puts into another ring is compared with what it was
// compiled from.
func (v *verifier) recompile(ctx context.Context) error {
	record := v.at.record
	if record.Environment != v.at.stage.Name {
		v.problem("the record is that of environment %s", terminal.Line(record.Environment))
	}
	if _, err := v.known(ctx, "the record", record.Source); err != nil {
		return err
	}
	for _, r := range record.Rings { // what a ring had that has another name now is what that has
		if v.at.stage.Promotion.Ring(r.Name) != nil {
			continue
		}
		if err := v.formerRing(ctx, r); err != nil {
			return err
		}
	}
	for _, st := range v.state.stopsOf(v.at.stage.Name) {
		at := &stop{stage: st.stage, ring: st.ring, out: v.at}
		has := at.has()
		if has == (tree.Source{}) {
			continue
		}
		v.Rings = append(v.Rings, VerifiedRing{at.ringName(), has})
		if known, err := v.known(ctx, at.id(), has); err != nil {
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

// known says whether the commits are ones that can be promoted: those of branches that
// are reviewed. What they are not, is a problem.
func (v *verifier) known(ctx context.Context, what string, of tree.Source) (bool, error) {
	if !of.Base.IsCommit() {
		v.problem("%s was built from files, not from commits: %s", what, cmp.Or(of.Base.Short(), "none is named"))
		return false, nil
	}
	if _, found, err := v.state.platform.bases.until(of.Base.Hash()); err != nil {
		return false, err
	} else if !found {
		v.problem("%s is compiled from %s, which is no base commit in the history of branch %s", what, of.Base.Short(), v.state.platform.branch)
		return false, nil
	}
	own := of.Environment.Hash()
	if own.IsZero() {
		if of.Environment != "" {
			v.problem("%s has the environment's own files of %s, which is no commit", what, terminal.Line(string(of.Environment)))
		}
		return of.Environment == "", nil
	}
	branch := v.state.platform.branch
	if from := v.at.stage.Promotion.Source; from != nil {
		branch = from.Branch
	}
	found, err := v.state.platform.has(ctx, branch, own)
	if err == nil && !found {
		v.problem("%s has the environment's own files of %s, which is not in the history of branch %s", what, of.Environment.Short(), branch)
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

// ring compiles a stop from nothing, so that nothing is taken from what is there but
// folders that are kept.
func (v *verifier) ring(ctx context.Context, st *stop, has tree.Source) (err error) {
	compiled, remove, err := v.state.platform.compile(ctx, st, has, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	v.Verification.Diagnostics = append(v.Verification.Diagnostics, compiled.Diagnostics...)
	if compiled.Tree == nil {
		v.problem("%s does not compile at %s", st.id(), has.Describe())
		return nil
	}
	if p := compiled.Options.Platform; p != v.at.record.Platform {
		v.problem("the record is of platform %s, and %s is compiled", terminal.Line(v.at.record.Platform), p)
	}
	own, moved := 0, false // the policy has a cluster type in another ring than it was built for
	for i := range compiled.Tree.ClusterTypes {
		ct := &compiled.Tree.ClusterTypes[i]
		if ct.Outside {
			continue
		}
		own++
		e := v.entry(ct.Name)
		switch {
		case e == nil:
			v.problem("cluster type %s is compiled, and not in the tree", ct.Name)
		case v.at.record.SourceOf(e) == has && st.covers(e.Name):
			v.checked[ct.Name] = true
			if err := v.clusterType(ctx, st, ct, compiled.Options.Compiler); err != nil {
				return err
			}
		case e.Ring == st.ringName():
			v.checked[ct.Name] = true
			v.problem("cluster type %s is of %s, and not of %s as the record says of %s", ct.Name, v.at.record.SourceOf(e).Describe(), has.Describe(), st.id())
		default:
			moved = true
		}
	}
	// A ring whose cluster types came from others, and went to others, may have none yet.
	backed := func(e tree.ClusterTypeEntry) bool { return v.at.record.SourceOf(&e) == has && st.covers(e.Name) }
	if own > 0 && st.ring != nil && !moved && !slices.ContainsFunc(v.at.record.ClusterTypes, backed) {
		v.problem("the record says that %s has %s, and no cluster type has it", st.id(), has.Describe())
	}
	return nil
}

// formerRing makes sure that a ring that the policy does not have any more had what the
// record says: a cluster type had it, or a step brought it while the ring had none.
func (v *verifier) formerRing(ctx context.Context, r tree.Ring) error {
	found := false
	err := v.at.history.each(ctx, func(p past) bool {
		was := p.record.Ring(r.Name)
		found = was != nil && was.Source == r.Source && trailerOf(p.Message, "Kalypso-Ring") == r.Name ||
			p.record != nil && slices.ContainsFunc(p.record.ClusterTypes, func(e tree.ClusterTypeEntry) bool {
				return e.Ring == r.Name && p.record.SourceOf(&e) == r.Source
			})
		return !found
	})
	if err == nil && !found {
		v.problem("the record says that ring %s has %s, and no cluster type has it", terminal.Line(r.Name), r.Source.Describe())
	}
	return err
}

func (v *verifier) entry(clusterType string) *tree.ClusterTypeEntry {
	for i := range v.at.record.ClusterTypes {
		if e := &v.at.record.ClusterTypes[i]; e.Name == clusterType {
			return e
		}
	}
	return nil
}

// rest compares the cluster types that are in no ring that was compiled, with what they
// were compiled from.
func (v *verifier) rest(ctx context.Context) error {
	of := map[tree.Source][]string{}
	var sources []tree.Source
	for i := range v.at.record.ClusterTypes {
		e := &v.at.record.ClusterTypes[i]
		is := v.at.record.SourceOf(e)
		switch {
		case v.checked[e.Name]:
			continue
		case len(v.at.stage.Promotion.Rings) == 0 && len(v.at.record.Rings) == 0 && is != v.at.record.Source:
			v.problem("cluster type %s is of %s, and the environment of %s", e.Name, is.Describe(), v.at.record.Source.Describe())
			continue
		}
		if of[is] == nil {
			sources = append(sources, is)
		}
		of[is] = append(of[is], e.Name)
	}
	for _, source := range sources {
		if err := v.alone(ctx, source, of[source]); err != nil {
			return err
		}
	}
	return nil
}

// alone compares cluster types with what the environment as a whole is at some commits.
func (v *verifier) alone(ctx context.Context, of tree.Source, names []string) (err error) {
	if known, err := v.known(ctx, "cluster type "+names[0], of); err != nil || !known {
		return err
	}
	st := &stop{stage: v.at.stage, out: v.at}
	compiled, remove, err := v.state.platform.compile(ctx, st, of, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	for _, name := range names {
		i := -1
		if compiled.Tree != nil {
			i = slices.IndexFunc(compiled.Tree.ClusterTypes, func(ct tree.ClusterType) bool { return ct.Name == name })
		}
		if i < 0 {
			v.problem("cluster type %s is in the tree, and not in what %s compiles to", name, of.Describe())
			continue
		}
		if err := v.clusterType(ctx, st, &compiled.Tree.ClusterTypes[i], compiled.Options.Compiler); err != nil {
			return err
		}
	}
	return nil
}

// clusterType compares the ids of a cluster type's folders with those of the
// record.
func (v *verifier) clusterType(ctx context.Context, st *stop, ct *tree.ClusterType, by tree.Compiler) error {
	before := len(v.Problems)
	recorded, err := st.out.record.ClusterType(ct.Name)
	if err != nil {
		return err
	}
	content, err := ct.Content()
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
	case content.Kept == "" && ownTree(content) != tree.TreeID(recorded.Files):
		v.problem("%s: its own files are not what is compiled", ct.Name)
	}
	there := map[string]bool{}
	for i := range content.Folders {
		f := &content.Folders[i]
		there[f.Info.DeploymentTarget] = true
		if err := v.folder(ctx, st, ct.Name, f, recorded.Assignment(f.Info.DeploymentTarget)); err != nil {
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
	return v.recorded(ct, recorded, by)
}

// recorded compares all that is recorded of a cluster type with what a compiler would
// record now. Other versions of kalypso may record other things, and what is kept has reasons of
// its time.
func (v *verifier) recorded(ct *tree.ClusterType, before *tree.ClusterTypeRecord, by tree.Compiler) error {
	was := v.entry(ct.Name)
	compiler := v.at.record.Compiler
	if was.Compiler != nil {
		compiler = *was.Compiler
	}
	if was.Kept > 0 || was.Digest == "" || compiler != by {
		return nil
	}
	is, err := ct.Entry(before, v.at.record)
	if err == nil && (is.Record != was.Record || is.Digest != was.Digest || is.Assignments != was.Assignments) {
		v.problem("%s: its record is not what is compiled", ct.Name)
	}
	return err
}

func (v *verifier) folder(ctx context.Context, st *stop, clusterType string, f *tree.Folder, recorded *tree.AssignmentRecord) error {
	id := clusterType + "/" + f.Info.DeploymentTarget
	switch {
	case recorded == nil:
		v.problem("%s is compiled, and not in the tree", id)
	case recorded.Kept != nil && f.Kept == nil:
		v.problem("%s is kept from %s, and there is nothing wrong with it at its commits", id, recorded.Kept.Source.Describe())
	case recorded.Kept != nil:
		return v.kept(ctx, st, id, recorded)
	case f.Kept != nil:
		v.problem("%s has errors at its commits, and the record does not say that it is kept", id)
	case folderTree(f) != recorded.Tree:
		v.problem("%s is not what is compiled", id)
	}
	return nil
}

// ownTree is the id of a cluster type's own files.
func ownTree(content *tree.Content) tree.ID {
	blobs := map[string]tree.Blob{}
	for _, f := range content.Files {
		blobs[f.Path] = tree.BlobOf(f)
	}
	return tree.TreeID(blobs)
}

// folderTree is the id of an assignment's files.
func folderTree(f *tree.Folder) tree.ID {
	blobs := map[string]tree.Blob{}
	for _, file := range f.Files {
		blobs[file.Path] = file.Blob()
	}
	return tree.TreeID(blobs)
}
