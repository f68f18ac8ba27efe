package compiler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Difference is the difference between two sides, each of which is a compiled platform or an
// output.
type Difference struct {
	// Before and After are the builds; nil for an output, which is only read. If both are builds,
	// cluster types with equal inputs on both sides are not built. After is built on top of
	// Before, as if Before was an output. So it keeps the same parts as a build would, and
	// reports the same problems.
	Before, After *Build
	// Report is the change on clusters. If errors of Before hide assignments, no list has them.
	// Report.LeftOut has the ids of the assignments that errors concern, sorted.
	Report *compare.Report
}

// Diagnostics returns the diagnostics of After, if it is a build: all errors, the lack of
// environments to compare, and the warnings that Before does not have.
func (d *Difference) Diagnostics() []diag.Diagnostic {
	switch {
	case d.After == nil && d.Before == nil:
		return nil // both sides are outputs
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
		if a.Severity == diag.Error || a.Code == diag.NoEnvironments ||
			!before[finding{a.Code, a.Path, a.Message}] {
			out = append(out, a)
		}
	}
	return out
}

// Side is one side of a comparison. It is a platform, in its folder or at a git revision, or an
// output.
type Side struct {
	Revision string // of the platform; "" for its folder
	Output   string // the folder of an output, instead of a platform
}

// Compare compiles or reads two sides and compares their results. The request names the platform,
// and says whether removals are allowed. Compare ignores its Previous. The second side is built
// on top of the first one. If against names a folder or a branch of a repository, the second side
// is built on top of the records there instead.
func Compare(ctx context.Context, r Request, before, after Side, against Output) (d *Difference,
	err error) {
	r.Previous, r.preview = nil, true
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
	if err := sides[0].finish(ctx, sides[1], nil); err != nil {
		return nil, err
	}
	records := maps.Clone(sides[0].outputs(ctx))
	if records == nil {
		records = map[string]*tree.Record{}
	}
	if against.Dir+against.Git != "" {
		others, err := against.records(sides[1].build)
		if err != nil {
			return nil, err
		}
		maps.Copy(records, others)
	}
	if err := sides[1].finish(ctx, nil, records); err != nil {
		return nil, err
	}
	for n, previous := range []map[string]*tree.Record{nil, records} {
		if err := sides[n].list(ctx, sides[1-n], previous); err != nil {
			return nil, err
		}
	}
	d = &Difference{Before: sides[0].build, After: sides[1].build}
	leftOut := narrow(sides[0], sides[1])
	if d.Report, err = compare.Compare(sides[0].folders, sides[1].folders,
		sides[1].build.asksPolicies()); err != nil {
		return nil, err
	}
	d.Report.LeftOut = leftOut
	return d, nil
}

// records returns the records of the output by environment. b is the planned build, which may be
// nil.
func (o Output) records(b *Build) (map[string]*tree.Record, error) {
	if o.Dir != "" || b == nil {
		records, err := compare.RecordsIn(o.Dir)
		if err == nil && len(records) == 0 {
			err = fmt.Errorf("%s has no output: kalypso build --to DIR writes one", o.Dir)
		}
		return records, err
	}
	repository, err := tree.OpenRepository(o.Git)
	if err != nil {
		return nil, err
	}
	branch, err := repository.Branch(o.Branch)
	if err != nil {
		return nil, errors.Join(err, repository.Close())
	}
	records := map[string]*tree.Record{}
	for _, e := range b.Environments {
		folder := e.Name
		if g := b.gitOps(e); g != nil && strings.TrimPrefix(g.Branch, "refs/heads/") == o.Branch {
			folder = strings.TrimPrefix(path.Clean("/"+g.Path), "/")
		}
		record, ds, failed := branch.Record(folder)
		if err = errors.Join(err, failed); record != nil {
			records[e.Name] = record
		}
		b.report(e.Name, ds)
	}
	if err == nil && len(records) == 0 {
		err = fmt.Errorf("branch %s of %s has no output of the platform's environments", o.Branch, o.Git)
	}
	return records, errors.Join(err, repository.Close())
}

// gitOps returns the gitops of an environment, which is the location of its output. It returns
// nil if the environment has none.
func (b *Build) gitOps(e *engine.Environment) *model.GitOps {
	if e.Model == nil {
		return nil
	}
	return e.Model.GitOps
}

// side is one side during a comparison.
type side struct {
	Side
	request Request
	remove  func() error // removes the checked out revision
	build   *Build       // nil for an output
	folders []compare.Folder
	// unknown has the names of environments that are not known, and the ids of folders with
	// errors.
	unknown map[string]bool
	// uncertain has the environments with errors that hide folders. hidesClusters has the
	// environments with errors that hide clusters.
	uncertain, hidesClusters map[string]bool
	unknownClusters          map[string]bool         // the ids of clusters with errors
	records                  map[string]*tree.Record // of an output, by environment
}

func (s *side) open(ctx context.Context) (err error) {
	s.unknown, s.uncertain = map[string]bool{}, map[string]bool{}
	s.hidesClusters, s.unknownClusters = map[string]bool{}, map[string]bool{}
	if s.Output != "" {
		s.folders, s.records, err = compare.ReadDir(s.Output)
		return err
	}
	if s.Revision != "" {
		if s.request.Dir, s.remove, err = source.Checkout(ctx, s.request.Dir, s.Revision); err != nil {
			return err
		}
		for _, dir := range source.Outside(s.request.Dir) {
			if rel, err := filepath.Rel(s.request.Dir, dir); err != nil || !filepath.IsLocal(rel) {
				return fmt.Errorf("revision %s of the platform replaces a module by a folder outside of it "+
					"(cue.mod/local-module.cue), of which the revision has nothing: compare folders of outputs "+
					"instead", s.Revision)
			}
		}
	}
	s.build, err = plan(ctx, s.request)
	var unknown *UnknownEnvironmentError
	if errors.As(err, &unknown) && s.Revision != "" {
		// The environment is new or removed, so it is not on this side.
		s.request.Environments = slices.DeleteFunc(slices.Clone(s.request.Environments),
			func(name string) bool { return !slices.Contains(unknown.Known, name) })
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

// finish builds the side, on top of records that may be nil. If errors hide clusters, it takes
// the clusters from the other side, which is planned. If other is nil, it takes them from the
// records.
func (s *side) finish(ctx context.Context, other *side, previous map[string]*tree.Record) error {
	if s.build == nil {
		return nil
	}
	if other != nil {
		for _, e := range s.build.Environments {
			e.SetBeside(other.clustersOf(e.Name))
		}
	}
	return s.build.finish(ctx, previous)
}

// outputs returns the records of the side by environment, as if the side was an output.
func (s *side) outputs(ctx context.Context) map[string]*tree.Record {
	if s.build == nil {
		return s.records
	}
	out := map[string]*tree.Record{}
	for _, e := range s.build.Environments {
		out[e.Name] = e.Record(ctx, s.build.Options(e))
	}
	return out
}

// asksPolicies reports whether promotion has policies that check changes. Such policies see all
// objects.
func (b *Build) asksPolicies() bool {
	return b != nil && slices.ContainsFunc(b.Declarations,
		func(d model.Declaration) bool { return len(d.Promotion.Gates.Policy) > 0 })
}

// environments returns the environments of the build. It returns nil for an output.
func (s *side) environments() []*engine.Environment {
	if s.build == nil {
		return nil
	}
	return s.build.Environments
}

// clustersOf returns a function for an environment. The function returns the record of a cluster
// type with the clusters that pull its folder. clustersOf returns nil if the side does not have
// the environment.
func (s *side) clustersOf(environment string) func(clusterType string) (*tree.ClusterTypeRecord,
	error) {
	if r := s.records[environment]; r != nil {
		return r.ClusterType
	}
	if s.build == nil {
		return nil
	}
	for _, e := range s.build.Environments {
		if e.Name == environment {
			return func(clusterType string) (*tree.ClusterTypeRecord,
				error) {
				return e.Clusters(clusterType), nil
			}
		}
	}
	return nil
}

// list lists the folders of a finished build for a comparison with the other side.
func (s *side) list(ctx context.Context, other *side, previous map[string]*tree.Record) error {
	if s.build == nil {
		return nil
	}
	// Kept folders are as on the other side.
	kept := sync.OnceValue(func() map[string]compare.Folder {
		all := map[string]compare.Folder{}
		for _, f := range other.folders {
			all[f.ID()+clusterMark(&f)] = f
		}
		return all
	})
	for _, e := range s.build.Environments {
		if e.Tree == nil {
			s.unknown[e.Name] = true
			continue
		}
		l := &listing{e: e, side: s, kept: kept, shards: other.shards(e.Name),
			follows: make(map[string]string, len(e.Model.Clusters)),
			entries: make(map[string]entry, len(e.Model.Clusters))}
		if err := l.all(ctx); err != nil {
			return err
		}
		s.unknown[e.Name] = e.Model.Incomplete && other.Output != "" && previous[e.Name] == nil
		if previous[e.Name] == nil { // otherwise everything with errors is as it was
			for i := range e.AllFailed {
				a := &e.Schedule.Assignments[i]
				s.unknown[a.ID(e.Name)], s.unknown[e.Name+"/"+a.ClusterType.Name] = true, true
			}
		}
		s.uncertain[e.Name] = e.Model.Incomplete
		s.hidesClusters[e.Name] = e.Model.Incomplete || e.Model.ClustersIncomplete
		for of := range e.Model.Invalid {
			if of.Collection == "clusters" {
				s.unknownClusters[e.Name+"/"+of.Name] = true
			}
		}
	}
	compare.Sort(s.folders)
	return nil
}

// leaveOutEqual leaves out the cluster types that have equal inputs on both sides.
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
		i := slices.IndexFunc(before.Environments,
			func(b *engine.Environment) bool { return b.Name == e.Name })
		if i < 0 || e.Model == nil || before.Environments[i].Model == nil {
			continue
		}
		same := map[string]bool{}
		for name, key := range now[n] {
			if old[i][name] == key {
				same[name] = true
			}
		}
		// Folders that clusters leave or join are compared with another folder.
		was := before.Environments[i].Model
		for n := range e.Model.Clusters {
			c := &e.Model.Clusters[n]
			if b := was.Cluster(c.Name); b != nil && b.Folder != c.Folder {
				delete(same, b.Folder)
				delete(same, c.Folder)
			}
		}
		e.LeaveOut(same)
		before.Environments[i].LeaveOut(same)
	}
	return nil
}

// keysOf returns the keys of the cluster types of a build's environments, by number of the
// environment.
func keysOf(ctx context.Context, b *Build) ([]map[string]cache.Key, error) {
	keys := make([]map[string]cache.Key, len(b.Environments))
	return keys, each(ctx, b.Environments, func(ctx context.Context, i int) (err error) {
		keys[i], err = b.Environments[i].Keys(ctx)
		return err
	})
}
