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
	"github.com/kalypso-io/kalypso/compiler/build"
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

// Diagnostics returns those of After, as far as it is built: all errors, that there are no
// environments to compare, and the warnings that Before does not have.
func (d *Difference) Diagnostics() []diag.Diagnostic {
	switch {
	case d.After == nil && d.Before == nil:
		return nil // two outputs
	case d.After == nil:
		return d.Before.Diagnostics
	case d.Before == nil:
		return d.After.Diagnostics
	}
	type finding struct {
		code    diag.Code
		path    string
		message string
	}
	before := map[finding]bool{}
	for _, b := range d.Before.Diagnostics {
		before[finding{b.Code, b.Path, b.Message}] = true
	}
	var out []diag.Diagnostic
	for _, a := range d.After.Diagnostics {
		if a.Severity == diag.Error || a.Code == diag.NoEnvironments || !before[finding{a.Code, a.Path, a.Message}] {
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
	for n, s := range sides {
		if err := s.finish(ctx, sides[1-n]); err != nil {
			return nil, err
		}
	}
	for n, s := range sides {
		if err := s.compared(ctx, sides[1-n]); err != nil {
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
	// hidesClusters are the environments in which errors hide which clusters there are, and
	// unknownClusters the ids of clusters with errors.
	hidesClusters, unknownClusters map[string]bool
	removedClusters                map[string]bool         // ids of those that are removed by name
	records                        map[string]*tree.Record // of an output, by environment
}

func (s *side) open(ctx context.Context) (err error) {
	s.unknown, s.uncertain = map[string]bool{}, map[string]bool{}
	s.hidesClusters, s.unknownClusters, s.removedClusters = map[string]bool{}, map[string]bool{}, map[string]bool{}
	if s.Output != "" {
		if s.folders, err = compare.ReadDir(s.Output); err == nil {
			s.records, err = compare.RecordsIn(s.Output)
		}
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

// finish builds what is to be compared with another side, which is planned. Clusters that
// errors hide are as they are there, as a build has them be as they were.
func (s *side) finish(ctx context.Context, other *side) error {
	if s.build == nil {
		return nil
	}
	for _, e := range s.build.Environments {
		e.Beside(other.clustersOf(e.Name))
	}
	return s.build.finish(ctx, nil)
}

// clustersOf returns what tells which clusters pull the folder of a cluster type of an
// environment; nil where nothing does.
func (s *side) clustersOf(environment string) func(clusterType string) (*tree.ClusterTypeRecord, error) {
	if r := s.records[environment]; r != nil {
		return r.ClusterType
	}
	if s.build == nil {
		return nil
	}
	for _, e := range s.build.Environments {
		if e.Name == environment {
			return func(clusterType string) (*tree.ClusterTypeRecord, error) { return e.Clusters(clusterType), nil }
		}
	}
	return nil
}

// compared lists the folders of a finished build for a comparison with another side.
func (s *side) compared(ctx context.Context, other *side) error {
	if s.build == nil {
		return nil
	}
	for _, e := range s.build.Environments {
		if e.Tree == nil {
			s.unknown[e.Name] = true
			continue
		}
		folders, err := compared(ctx, e, s.unknown)
		if err != nil {
			return err
		}
		clusters, err := clustersOf(ctx, e, other.entries(e.Name))
		if err != nil {
			return err
		}
		s.folders = append(append(s.folders, folders...), clusters...)
		for i := range e.AllFailed {
			a := &e.Schedule.Assignments[i]
			s.unknown[a.ID(e.Name)], s.unknown[e.Name+"/"+a.ClusterType.Name] = true, true
		}
		if e.Model.Incomplete {
			s.uncertain[e.Name] = true
		}
		if e.Model.Incomplete || e.Model.ClustersIncomplete {
			s.hidesClusters[e.Name] = true
		}
		for _, name := range e.Model.RemovedClusters {
			s.removedClusters[e.Name+"/"+name] = true
		}
		for of := range e.Model.Invalid {
			if of.Collection == "clusters" {
				s.unknownClusters[e.Name+"/"+of.Name] = true
			}
		}
	}
	compare.Sort(s.folders)
	return nil
}

// leaveOutEqual finds the cluster types that are made of the same on both sides.
func leaveOutEqual(ctx context.Context, before, after *Build) error {
	old, err := keysOf(ctx, before)
	if err != nil {
		return err
	}
	now, err := keysOf(ctx, after)
	if err != nil {
		return err
	}
	for n, e := range after.Environments {
		i := slices.IndexFunc(before.Environments, func(b *build.Environment) bool { return b.Name == e.Name })
		if i < 0 || e.Model == nil || before.Environments[i].Model == nil {
			continue
		}
		same := map[string]bool{}
		for name, key := range now[n] {
			if old[i][name] == key {
				same[name] = true
			}
		}
		e.LeaveOut(same)
		before.Environments[i].LeaveOut(same)
	}
	return nil
}

// keysOf returns the keys of the cluster types of a build's environments.
func keysOf(ctx context.Context, b *Build) ([]map[string]cache.Key, error) {
	keys := make([]map[string]cache.Key, len(b.Environments))
	return keys, each(ctx, b.Environments, func(ctx context.Context, i int) (err error) {
		keys[i], err = b.Environments[i].Keys(ctx)
		return err
	})
}

// compared returns the folders of the environment's tree for a comparison. Those
// of cluster types that were left out, because both sides have them, get ids that
// are equal as well. The ids of those that cannot be made become unknown.
func compared(ctx context.Context, e *build.Environment, unknown map[string]bool) ([]compare.Folder, error) {
	var out []compare.Folder
	for _, ct := range e.Tree.ClusterTypes {
		if tree.IsShard(ct.Name) {
			continue
		}
		if e.LeftOut(ct.Name) {
			out = append(out, leftOut(e, ct.Name)...)
		}
		if ct.Outside {
			continue
		}
		content, err := ct.Content(ctx)
		if err != nil {
			return nil, err
		}
		if content.Kept != "" {
			unknown[e.Name+"/"+ct.Name] = true
		} else {
			out = append(out, compare.Folder{
				Environment: e.Name, ClusterType: ct.Name, Tree: tree.OfFiles(content.Files), Backend: e.BackendOf(ct.Name),
				Files: func() ([]backends.File, error) { return content.One(ctx, tree.Root) },
			})
		}
		for i, f := range content.Folders {
			out = append(out, compare.Folder{
				Environment: e.Name, ClusterType: ct.Name, Assignment: f.Info.DeploymentTarget,
				Tree: tree.OfFiles(f.Files), Backend: f.Info.Backend, Files: func() ([]backends.File, error) { return content.One(ctx, i) },
			})
		}
	}
	return out, nil
}

func leftOut(e *build.Environment, clusterType string) []compare.Folder {
	same := tree.TreeID(nil)
	out := []compare.Folder{{Environment: e.Name, ClusterType: clusterType, Tree: same}}
	for i := range e.Schedule.Assignments {
		if a := &e.Schedule.Assignments[i]; a.ClusterType.Name == clusterType {
			out = append(out, compare.Folder{Environment: e.Name, ClusterType: clusterType, Assignment: a.Target.FullName, Tree: same})
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
		stays, followed := other.stays(s)
		other.folders = slices.DeleteFunc(other.folders, func(f compare.Folder) bool {
			id := f.ID()
			if f.Cluster != "" {
				return s.unknown[f.Environment] || s.unknownClusters[id] || stays[id] || s.Output != "" && !has[f.Environment]
			}
			if followed[id] {
				return true
			}
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
		if f.Cluster == "" {
			has[f.ID()] = true
		}
	}
	for _, f := range other.folders {
		if f.Cluster == "" && s.uncertain[f.Environment] && !has[f.ID()] {
			s.unknown[f.ID()], s.unknown[f.Environment+"/"+f.ClusterType] = true, true
		}
	}
}
