package compiler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Difference is what differs between two compiled platforms, or between a compiled
// platform and an output.
type Difference struct {
	// Before and After are the builds; nil for an output that was only read. Of two
	// builds, cluster types that are made of the same on both sides are not built.
	Before, After *Build
	// Report says what differs. What a build would keep, because of errors on either
	// side, is in none of its lists: an assignment with an error, what an uncertain
	// environment may only seem to have lost, and the own files of their cluster
	// types. LeftOut of it are the assignments that are left out for that, sorted.
	Report *compare.Report
}

// Diagnostics returns what there is to say of After, as far as it is built, that
// was not to say of Before: all errors, and the warnings that are new.
func (d *Difference) Diagnostics() []diag.Diagnostic {
	switch {
	case d.After == nil && d.Before == nil:
		return nil // two outputs
	case d.After == nil:
		return d.Before.Diagnostics
	case d.Before == nil:
		return d.After.Diagnostics
	}
	type said struct {
		code    diag.Code
		path    string
		message string
	}
	before := map[said]bool{}
	for _, b := range d.Before.Diagnostics {
		before[said{b.Code, b.Path, b.Message}] = true
	}
	var out []diag.Diagnostic
	for _, a := range d.After.Diagnostics {
		if a.Severity == diag.Error || !before[said{a.Code, a.Path, a.Message}] {
			out = append(out, a)
		}
	}
	return out
}

// Side is one side of a comparison: a platform, as it is in its folder or at a git
// revision of it, or an output.
type Side struct {
	Revision string // of the platform; "" for its folder as it is
	Output   string // the folder of an output, instead of the platform
}

// Compare compiles or reads two sides and compares what they give. The request
// names the platform; its Previous is not used.
func Compare(ctx context.Context, r Request, before, after Side) (d *Difference, err error) {
	r.Previous = nil
	sides := [2]*side{{Side: before}, {Side: after}}
	for _, s := range sides {
		s.request = r
		defer func() { err = errors.Join(err, s.close()) }()
		if err := s.open(ctx); err != nil {
			return nil, err
		}
	}
	if sides[0].build != nil && sides[1].build != nil {
		if err := leaveOutEqual(ctx, sides[0].build, sides[1].build); err != nil {
			return nil, err
		}
	}
	for _, s := range sides {
		if err := s.finish(ctx); err != nil {
			return nil, err
		}
	}
	d = &Difference{Before: sides[0].build, After: sides[1].build}
	leftOut := narrow(sides[0], sides[1])
	if d.Report, err = compare.Compare(sides[0].folders, sides[1].folders); err != nil {
		return nil, err
	}
	d.Report.LeftOut = leftOut
	return d, nil
}

// side is a side while it is compared.
type side struct {
	Side
	request Request
	remove  func() error // removes the checked out revision
	build   *Build       // nil for an output
	folders []compare.Folder
	// unknown are the names of environments of which nothing is known, and the ids of
	// folders with errors.
	unknown map[string]bool
	// uncertain are the environments in which errors hide which folders there are.
	uncertain map[string]bool
}

func (s *side) open(ctx context.Context) (err error) {
	s.unknown, s.uncertain = map[string]bool{}, map[string]bool{}
	if s.Output != "" {
		s.folders, err = compare.ReadDir(s.Output)
		return err
	}
	if s.Revision != "" {
		if s.request.Dir, s.remove, err = source.Checkout(ctx, s.request.Dir, s.Revision); err != nil {
			return err
		}
		for _, dir := range source.Outside(s.request.Dir) {
			if rel, err := filepath.Rel(s.request.Dir, dir); err != nil || !filepath.IsLocal(rel) {
				return fmt.Errorf("revision %s of the platform replaces a module by a folder outside of it (cue.mod/local-module.cue), of which the revision has nothing: compare folders of outputs instead", s.Revision)
			}
		}
	}
	s.build, err = plan(ctx, s.request)
	var unknown *UnknownEnvironmentError
	if errors.As(err, &unknown) && s.Revision != "" {
		// It is new, or gone: then there is nothing on this side.
		s.request.Environments = slices.DeleteFunc(slices.Clone(s.request.Environments), func(name string) bool { return !slices.Contains(unknown.Known, name) })
		if len(s.request.Environments) > 0 {
			s.build, err = plan(ctx, s.request)
		} else {
			err = nil
		}
	}
	return err
}

func (s *side) close() error {
	err := s.build.Close()
	if s.remove != nil {
		err = errors.Join(err, s.remove())
	}
	return err
}

// finish builds what is to be compared.
func (s *side) finish(ctx context.Context) error {
	if s.build == nil {
		return nil
	}
	if err := s.build.finish(ctx); err != nil {
		return err
	}
	for _, e := range s.build.Environments {
		if e.Tree == nil {
			s.unknown[e.Name] = true
			continue
		}
		folders, err := e.compared(s.unknown)
		if err != nil {
			return err
		}
		s.folders = append(s.folders, folders...)
		for i := range e.rows {
			if e.rows[i].failed && e.mine(i) {
				a := &e.Schedule.Assignments[i]
				s.unknown[a.ID(e.Name)], s.unknown[e.Name+"/"+a.ClusterType.Name] = true, true
			}
		}
		if e.Model.Incomplete {
			s.uncertain[e.Name] = true
		}
	}
	return nil
}

// leaveOutEqual finds the cluster types that are made of the same on both sides.
func leaveOutEqual(ctx context.Context, before, after *Build) error {
	for _, b := range []*Build{before, after} {
		if err := b.each(ctx, func(ctx context.Context, e *Environment) error { return e.identifyAll(ctx) }); err != nil {
			return err
		}
	}
	for _, e := range after.Environments {
		i := slices.IndexFunc(before.Environments, func(b *Environment) bool { return b.Name == e.Name })
		if i < 0 || e.Model == nil || before.Environments[i].Model == nil {
			continue
		}
		old := before.Environments[i]
		keys := old.clusterTypeKeys()
		e.same, old.same = map[string]bool{}, map[string]bool{}
		for name, key := range e.clusterTypeKeys() {
			if keys[name] == key {
				e.same[name], old.same[name] = true, true
			}
		}
	}
	return nil
}

// identifyAll makes the keys of all rows of this build.
func (e *Environment) identifyAll(ctx context.Context) error {
	if e.Model == nil {
		return nil
	}
	composer := e.Plan.NewComposer()
	for n, s := range e.spans {
		if e.builds(e.Model.ClusterTypes[n].Name) {
			if err := e.identify(ctx, s, composer); err != nil {
				return err
			}
		}
	}
	return nil
}

// clusterTypeKeys returns the keys of cluster types without errors.
func (e *Environment) clusterTypeKeys() map[string]cache.Key {
	out := map[string]cache.Key{}
	for n, s := range e.spans {
		ct := &e.Model.ClusterTypes[n]
		whole := e.reconciler(ct) != nil && e.request.Shard.Has(ct.Name)
		for i := s.first; i < s.next; i++ {
			whole = whole && !e.rows[i].failed
		}
		if whole {
			out[ct.Name] = e.clusterTypeKey(n)
		}
	}
	return out
}

// compared returns the folders of the environment's tree for a comparison. Those
// of cluster types that were left out, because both sides have them, get ids that
// are equal as well. The ids of those that cannot be made become unknown.
func (e *Environment) compared(unknown map[string]bool) ([]compare.Folder, error) {
	var out []compare.Folder
	for _, ct := range e.Tree.ClusterTypes {
		if e.same[ct.Name] {
			out = append(out, e.leftOut(ct.Name)...)
		}
		if ct.Outside {
			continue
		}
		content, err := ct.Content()
		if err != nil {
			return nil, err
		}
		if content.Kept != "" {
			unknown[e.Name+"/"+ct.Name] = true
		} else {
			out = append(out, compare.Folder{
				Environment: e.Name, ClusterType: ct.Name, Tree: treeOf(content.Files),
				Files: func() ([]backends.File, error) {
					content, err := ct.Content()
					if err != nil {
						return nil, err
					}
					return content.Files, nil
				},
			})
		}
		for _, f := range content.Folders {
			blobs := map[string]tree.Blob{}
			for _, file := range f.Files {
				blobs[file.Path] = file.Blob()
			}
			out = append(out, compare.Folder{
				Environment: e.Name, ClusterType: ct.Name, Assignment: f.Info.DeploymentTarget,
				Tree: tree.TreeID(blobs), Files: f.Content,
			})
		}
	}
	return out, nil
}

func (e *Environment) leftOut(clusterType string) []compare.Folder {
	same := tree.TreeID(nil)
	out := []compare.Folder{{Environment: e.Name, ClusterType: clusterType, Tree: same}}
	for n, s := range e.spans {
		if e.Model.ClusterTypes[n].Name != clusterType {
			continue
		}
		for i := s.first; i < s.next; i++ {
			out = append(out, compare.Folder{
				Environment: e.Name, ClusterType: clusterType, Assignment: e.Schedule.Assignments[i].Target.FullName, Tree: same,
			})
		}
	}
	return out
}

// narrow leaves out what is not known on either side, and, beside an output, the
// environments that the output does not have. It returns the ids of the assignments
// that are not known, sorted.
func narrow(before, after *side) []string {
	pairs := [][2]*side{{before, after}, {after, before}}
	for _, p := range pairs {
		p[0].seemsGone(p[1])
	}
	leftOut := map[string]bool{}
	for _, p := range pairs {
		s, other := p[0], p[1]
		for id := range s.unknown {
			leftOut[id] = true
		}
		has := map[string]bool{}
		for _, f := range s.folders {
			has[f.Environment] = true
		}
		other.folders = slices.DeleteFunc(other.folders, func(f compare.Folder) bool {
			id := f.ID()
			if s.unknown[f.Environment] || s.unknown[id] || other.unknown[id] {
				leftOut[id] = true
				return true
			}
			return s.Output != "" && !has[f.Environment]
		})
	}
	maps.DeleteFunc(leftOut, func(id string, _ bool) bool { return strings.Count(id, "/") < 2 })
	return slices.Sorted(maps.Keys(leftOut))
}

// seemsGone makes what only the other side has unknown where errors may hide it on
// this one, and with it the own files of its cluster type, which list it.
func (s *side) seemsGone(other *side) {
	if len(s.uncertain) == 0 {
		return
	}
	has := map[string]bool{}
	for _, f := range s.folders {
		has[f.ID()] = true
	}
	for _, f := range other.folders {
		if s.uncertain[f.Environment] && !has[f.ID()] {
			s.unknown[f.ID()], s.unknown[f.Environment+"/"+f.ClusterType] = true, true
		}
	}
}
