package promotion

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/tree"
)

// keptFiles compares a cluster type's own files that are kept with what the commits
// give that wrote them, which the branch's history tells.
func (v *verifier) keptFiles(ctx context.Context, st *stop, recorded *tree.ClusterTypeRecord) (err error) {
	if len(recorded.Files) == 0 {
		return nil // there never was a good one
	}
	of, err := st.out.wrote(ctx, recorded)
	if err != nil {
		return err
	}
	if known, err := v.known(ctx, recorded.Name+", which is kept,", of); err != nil || !known {
		return err
	}
	alone := &stop{stage: st.stage, out: &output{stage: st.stage, repository: st.out.repository}}
	compiled, remove, err := v.state.platform.compile(ctx, alone, of, false)
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
	v.problem("%s is kept, and not what %s gives, which it is said to be of", recorded.Name, of.Describe())
	return nil
}

// kept compares a kept folder with what the commits gave that it is of.
func (v *verifier) kept(ctx context.Context, st *stop, id string, recorded *tree.AssignmentRecord) (err error) {
	of := recorded.Kept.Source
	if known, err := v.known(ctx, id+", which is kept,", of); err != nil || !known {
		return err
	}
	alone := &stop{stage: st.stage, out: &output{stage: st.stage, repository: st.out.repository}}
	compiled, remove, err := v.state.platform.compile(ctx, alone, of, false)
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
			for i := range content.Folders {
				f := &content.Folders[i]
				if f.Info.DeploymentTarget == target && f.Kept == nil && folderTree(f) == recorded.Tree {
					return nil
				}
			}
		}
	}
	v.problem("%s is kept, and not what %s gives, which it is said to be of", id, of.Describe())
	return nil
}
