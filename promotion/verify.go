package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/git"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Verification says whether an environment's tree is what its record says.
type Verification struct {
	Environment string `json:"environment"`
	Commit      string `json:"commit"` // of the GitOps repository
	OK          bool   `json:"ok"`
	// Problems are what is not as it should be, a line each.
	Problems []string `json:"problems,omitempty"`
	// Tree is the id of the tree that the record says, without .kalypso.
	Tree  tree.ID        `json:"tree,omitempty"`
	Rings []VerifiedRing `json:"rings,omitempty"`

	Diagnostics []diag.Diagnostic `json:"-"`
}

// VerifiedRing is what was compiled again.
type VerifiedRing struct {
	Ring   string      `json:"ring,omitempty"`
	Source tree.Source `json:"source"`
}

// Verify compiles what the records of environments say, and compares the ids of the
// trees. head is a branch or a commit of the GitOps repository to look at, such as that
// of a change request; "" for the environments' own branches. Kept folders are compared
// with what their own commits give. Nothing is written.
func (s *Session) Verify(ctx context.Context, head string) ([]*Verification, error) {
	var out []*Verification
	for _, o := range s.askedOutputs() {
		if o.repository == nil {
			continue
		}
		v, err := s.verify(ctx, o, head)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.stage.Name, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func (s *Session) verify(ctx context.Context, o *output, head string) (*Verification, error) {
	at, err := o.atHead(ctx, head)
	if err != nil {
		return nil, err
	}
	v := &Verification{Environment: o.stage.Name, Commit: string(revision(at.tip))}
	switch {
	case at.tip.IsZero():
		v.problem("branch %s does not exist", o.branch)
		return v, nil
	case len(at.problems) > 0:
		v.problem("%s", at.problems[0].Message)
		return v, nil
	case at.record == nil:
		v.problem("there is no record in branch %s, so that nothing says what its tree is", o.branch)
		return v, nil
	}
	v.Tree = at.record.Tree
	drift, err := at.at.Drift(at.folder)
	if err != nil {
		return nil, err
	}
	for _, d := range drift {
		v.problem("%s is not what the record says", d.Path)
	}
	if err := s.recompile(ctx, at, v); err != nil {
		return nil, err
	}
	v.OK = len(v.Problems) == 0
	return v, nil
}

func (v *Verification) problem(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

// atHead returns the output as it is at another head; "" for its branch.
func (o *output) atHead(ctx context.Context, head string) (*output, error) {
	if head == "" {
		return o, nil
	}
	id := git.Hash{}
	for _, ref := range []string{branchRef(head), "refs/tags/" + head, head} {
		if known, ok := o.repository.refs[ref]; ok {
			id = known
		}
	}
	if id.IsZero() {
		id = hashOf(tree.Revision(head))
	}
	if id.IsZero() {
		return nil, fmt.Errorf("%s has no branch, tag or commit %s", o.repository.url, head)
	}
	other := &output{stage: o.stage, repository: o.repository, branch: o.branch, folder: o.folder, own: o.own, tip: id, orders: o.orders}
	other.history = &history{out: other}
	return other, other.look(ctx)
}

// recompile compiles every ring at its recorded commits, on top of each other, and
// compares the records.
func (s *Session) recompile(ctx context.Context, at *output, v *Verification) error {
	for _, st := range s.stopsAt(at) {
		has := at.has(st.ringName())
		if has == (tree.Source{}) {
			continue
		}
		if !isID(string(has.Base)) {
			v.problem("%s was built from files, not from commits: %s", st.id(), short(has.Base))
			continue
		}
		v.Rings = append(v.Rings, VerifiedRing{st.ringName(), has})
		if err := s.platform.repository.remote.Fetch(ctx, commitsOf(has), 0); err != nil {
			return fmt.Errorf("commit %s: %w", short(has.Base), err)
		}
		if err := s.compareStop(ctx, st, has, v); err != nil {
			return err
		}
	}
	return nil
}

func commitsOf(of tree.Source) []git.Hash {
	out := []git.Hash{hashOf(of.Base)}
	if own := hashOf(of.Environment); !own.IsZero() {
		out = append(out, own)
	}
	return out
}

// stopsAt are the stops of an environment, at another state of it.
func (s *Session) stopsAt(at *output) []*stop {
	var out []*stop
	for _, st := range s.stopsOf(at.stage.Name) {
		out = append(out, &stop{stage: st.stage, ring: st.ring, out: at})
	}
	return out
}

// compareStop compiles a stop from nothing, so that nothing is taken from what is there
// but folders that are kept.
func (s *Session) compareStop(ctx context.Context, st *stop, has tree.Source, v *Verification) (err error) {
	compiled, remove, err := s.compile(ctx, st, has)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	v.Diagnostics = append(v.Diagnostics, compiled.Diagnostics...)
	if compiled.Tree == nil {
		v.problem("%s does not compile at %s", st.id(), describe(has))
		return nil
	}
	for i := range compiled.Tree.ClusterTypes {
		ct := &compiled.Tree.ClusterTypes[i]
		if ct.Outside {
			continue
		}
		if err := s.compareClusterType(ctx, st, ct, v); err != nil {
			return err
		}
	}
	listed := map[string]bool{}
	for i := range compiled.Tree.ClusterTypes {
		listed[compiled.Tree.ClusterTypes[i].Name] = true
	}
	for _, e := range st.out.record.ClusterTypes {
		if !listed[e.Name] && e.Ring == st.ringName() {
			v.problem("cluster type %s is in the tree, and not in what %s compiles to", e.Name, describe(has))
		}
	}
	return nil
}

// compareClusterType compares the ids of a cluster type's folders with those of the
// record.
func (s *Session) compareClusterType(ctx context.Context, st *stop, ct *tree.ClusterType, v *Verification) error {
	recorded, err := st.out.record.ClusterType(ct.Name)
	if err != nil {
		return err
	}
	if recorded == nil {
		v.problem("cluster type %s is compiled, and not in the tree", ct.Name)
		return nil
	}
	content, err := ct.Content()
	if err != nil {
		return err
	}
	switch {
	case content.Kept != "" && recorded.Kept == "":
		v.problem("%s has errors at its commits, and the record does not say that it is kept", ct.Name)
	case content.Kept != "" && s.subject.Form().Targets:
		if err := s.compareKeptTarget(ctx, st, recorded, v); err != nil {
			return err
		}
	case content.Kept == "" && ownTree(content) != tree.TreeID(recorded.Files):
		v.problem("%s: its own files are not what is compiled", ct.Name)
	}
	there := map[string]bool{}
	for i := range content.Folders {
		f := &content.Folders[i]
		there[f.Info.DeploymentTarget] = true
		if err := s.compareFolder(ctx, st, ct.Name, f, recorded.Assignment(f.Info.DeploymentTarget), v); err != nil {
			return err
		}
	}
	for _, a := range recorded.Assignments {
		if !there[a.DeploymentTarget] {
			v.problem("%s/%s is in the tree, and not compiled", ct.Name, a.DeploymentTarget)
		}
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

// compareKeptTarget compares the files of a target that are kept with what the commits
// give that wrote them, which the branch's history tells.
func (s *Session) compareKeptTarget(ctx context.Context, st *stop, recorded *tree.ClusterTypeRecord, v *Verification) (err error) {
	if len(recorded.Files) == 0 {
		return nil // there never was a good one
	}
	of, err := st.out.wrote(ctx, recorded)
	if err != nil {
		return err
	}
	if !isID(string(of.Base)) {
		v.problem("%s is kept, and nothing in the branch's history says from which commit", recorded.Name)
		return nil
	}
	if err := s.platform.repository.remote.Fetch(ctx, commitsOf(of), 0); err != nil {
		return fmt.Errorf("commit %s, which %s is kept from: %w", short(of.Base), recorded.Name, err)
	}
	alone := &stop{stage: st.stage, out: &output{stage: st.stage, repository: st.out.repository}}
	compiled, remove, err := s.compile(ctx, alone, of)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if compiled.Tree != nil {
		for i := range compiled.Tree.ClusterTypes {
			ct := &compiled.Tree.ClusterTypes[i]
			if ct.Name != recorded.Name {
				continue
			}
			if content, err := ct.Content(); err != nil || content.Kept == "" && ownTree(content) == tree.TreeID(recorded.Files) {
				return err
			}
		}
	}
	v.problem("%s is kept, and not what %s gives, which it is said to be of", recorded.Name, describe(of))
	return nil
}

// wrote returns what the files of a cluster type were compiled from that are kept: the
// newest state of the branch in which they were not; the zero Source for none.
func (o *output) wrote(ctx context.Context, kept *tree.ClusterTypeRecord) (tree.Source, error) {
	var of tree.Source
	var failed error
	err := o.history.each(ctx, func(p past) bool {
		if p.record == nil {
			return true
		}
		i := slices.IndexFunc(p.record.ClusterTypes, func(e tree.ClusterTypeEntry) bool { return e.Name == kept.Name })
		if i < 0 {
			return false
		}
		e := &p.record.ClusterTypes[i]
		if failed = o.repository.remote.Prefetch(ctx, []git.Hash{hashOf(tree.Revision(e.Record))}); failed != nil {
			return false
		}
		data, err := o.repository.staging.Blob(hashOf(tree.Revision(e.Record)))
		if err != nil {
			failed = err
			return false
		}
		ct, err := tree.ParseClusterTypeRecord(data)
		switch {
		case err != nil || tree.TreeID(ct.Files) != tree.TreeID(kept.Files):
			return false
		case ct.Kept != "":
			return true
		case e.Source != nil:
			of = *e.Source
		default:
			of = sourceIn(p.record, e.Ring)
		}
		return false
	})
	return of, errors.Join(err, failed)
}

func (s *Session) compareFolder(ctx context.Context, st *stop, clusterType string, f *tree.Folder, recorded *tree.AssignmentRecord, v *Verification) error {
	id := clusterType + "/" + f.Info.DeploymentTarget
	switch {
	case recorded == nil:
		v.problem("%s is compiled, and not in the tree", id)
	case recorded.Kept != nil:
		return s.compareKept(ctx, st, id, recorded, v)
	case f.Kept != nil:
		v.problem("%s has errors at its commits, and the record does not say that it is kept", id)
	default:
		blobs := map[string]tree.Blob{}
		for _, file := range f.Files {
			blobs[file.Path] = file.Blob()
		}
		if tree.TreeID(blobs) != recorded.Tree {
			v.problem("%s is not what is compiled", id)
		}
	}
	return nil
}

// compareKept compares a kept folder with what the commits gave that it is of.
func (s *Session) compareKept(ctx context.Context, st *stop, id string, recorded *tree.AssignmentRecord, v *Verification) (err error) {
	of := recorded.Kept.Source
	if !isID(string(of.Base)) {
		v.problem("%s is kept from a build of files, not of commits", id)
		return nil
	}
	if err := s.platform.repository.remote.Fetch(ctx, commitsOf(of), 0); err != nil {
		return fmt.Errorf("commit %s, which %s is kept from: %w", short(of.Base), id, err)
	}
	alone := &stop{stage: st.stage, out: &output{stage: st.stage, repository: st.out.repository}}
	compiled, remove, err := s.compile(ctx, alone, of)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	name, target, _ := strings.Cut(id, "/")
	if compiled.Tree != nil {
		i := slices.IndexFunc(compiled.Tree.ClusterTypes, func(ct tree.ClusterType) bool { return ct.Name == name })
		if i >= 0 {
			content, err := compiled.Tree.ClusterTypes[i].Content()
			if err != nil {
				return err
			}
			for _, f := range content.Folders {
				if f.Info.DeploymentTarget != target || f.Kept != nil {
					continue
				}
				blobs := map[string]tree.Blob{}
				for _, file := range f.Files {
					blobs[file.Path] = file.Blob()
				}
				if tree.TreeID(blobs) == recorded.Tree {
					return nil
				}
			}
		}
	}
	v.problem("%s is kept, and not what %s gives, which it is said to be of", id, describe(of))
	return nil
}
