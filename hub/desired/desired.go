// Package desired reads the wanted state of clusters from git. It reads the records in the GitOps
// branches of a platform's environments, commit by commit.
package desired

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/changes"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// MaxCommits limits how many commits of a branch are read. The content of older ones counts as
// drift, unless the hub has seen it before.
const MaxCommits = 200

// maxDifferences limits, approximately, the digests in which all commits may differ.
const maxDifferences = 1_000_000

// Read calls f with the wanted state of each environment that has a GitOps branch, in the order of
// promotion. It returns the environments that cannot be read now, each with the reason. For those,
// the previous wanted state stays valid.
func Read(ctx context.Context, of *session.State,
	f func(*state.DesiredState) error) (unreadable map[string]error, err error) {
	unreadable = map[string]error{}
	seen := map[string]bool{}
	for _, st := range of.Stages {
		name := st.Policy.Name
		if seen[name] {
			continue
		}
		seen[name] = true
		env := of.Environments[name]
		switch {
		case env.Unreadable:
			unreadable[name] = errors.New(env.Absent)
			continue
		case env.Repository == nil:
			continue // it has no tree in git
		case env.Record == nil && len(env.Problems) > 0:
			unreadable[name] = errors.New(env.Problems[0].Message)
			continue
		}
		var w *state.DesiredState
		err := of.Bounded(ctx, env, func() (err error) {
			w, err = read(ctx, of.Platform, env, st)
			return err
		})
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			unreadable[name] = err
			continue
		}
		if err := f(w); err != nil {
			return nil, err
		}
	}
	return unreadable, nil
}

// reader reads the branch of one environment.
type reader struct {
	env    *session.Environment
	of     *session.Platform
	wanted *state.DesiredState
	parsed map[tree.ID]*tree.ClusterTypeRecord
}

func read(ctx context.Context, of *session.Platform, env *session.Environment,
	st *session.Stage) (*state.DesiredState, error) {
	gate := st.RolloutGate()
	r := &reader{env: env, of: of, parsed: map[tree.ID]*tree.ClusterTypeRecord{},
		wanted: &state.DesiredState{
			Environment: env.Name(), Repository: env.Repository.URL, Branch: env.Branch, Path: env.Folder,
			Mirrors:    env.Policy.GitOps.Mirrors,
			StaleAfter: gate.StaleAfter, Min: gate.Min, MaxFailed: gate.MaxFailed,
		}}
	if env.Record == nil {
		return r.wanted, nil
	}
	if err := r.now(ctx); err != nil {
		return nil, err
	}
	if err := r.history(ctx); err != nil {
		return nil, err
	}
	return r.wanted, r.wanted.Bound()
}

// now reads the wanted state of the newest commit.
func (r *reader) now(ctx context.Context) error {
	record := r.env.Record
	if err := r.prefetch(ctx, entriesOf(record)); err != nil {
		return err
	}
	listed := map[string]string{} // the folder of each cluster
	for i := range record.ClusterTypes {
		e := &record.ClusterTypes[i]
		c, err := r.clusterType(e)
		if err != nil {
			return err
		}
		if tree.IsShard(e.Name) {
			for _, entry := range c.Entries {
				r.wanted.Clusters = append(r.wanted.Clusters, state.Cluster{Name: entry.Cluster,
					Folder: entry.Folder, Entry: string(tree.TreeID(entry.Files))})
				listed[entry.Cluster] = entry.Folder
			}
			continue
		}
		r.wanted.Folders = append(r.wanted.Folders, folderOf(record, e, c))
		for _, name := range c.Clusters {
			if _, there := listed[name]; !there {
				listed[name] = e.Name
				r.wanted.Clusters = append(r.wanted.Clusters, state.Cluster{Name: name, Folder: e.Name})
			}
		}
	}
	r.sort()
	return nil
}

// sort sorts the clusters and folders. If an entry names a cluster, the cluster pulls the folder of
// that entry, even if a cluster type lists it too.
func (r *reader) sort() {
	slices.SortStableFunc(r.wanted.Clusters, func(a, b state.Cluster) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(b.Entry, a.Entry)
	})
	r.wanted.Clusters = slices.CompactFunc(r.wanted.Clusters,
		func(a, b state.Cluster) bool { return a.Name == b.Name })
	folders := map[string]bool{}
	for _, c := range r.wanted.Clusters {
		folders[c.Folder] = true
	}
	// If a cluster type lists a cluster in any of its classes, it lists all its clusters.
	types := map[string]bool{}
	for _, f := range r.wanted.Folders {
		if folders[f.Name] {
			types[f.ClusterType] = true
		}
	}
	for i := range r.wanted.Folders {
		r.wanted.Folders[i].Listed = types[r.wanted.Folders[i].ClusterType]
	}
}

var backends = all.Backends()

func folderOf(record *tree.Record, e *tree.ClusterTypeEntry,
	c *tree.ClusterTypeRecord) state.Folder {
	clusterType := model.TypeOfFolder(e.Name)
	f := state.Folder{Name: e.Name, ClusterType: clusterType, Ring: e.Ring,
		Base: string(sourceOf(record, e).Base)}
	for i := range c.Assignments {
		a := &c.Assignments[i]
		t := state.Target{
			Name: a.DeploymentTarget, Workload: a.Workload, Workspace: a.Workspace, Version: a.Version,
			VersionFrom: string(a.VersionFrom),
			Backend:     a.Backend, Namespace: a.Namespace, Digest: string(a.Tree),
		}
		if label := model.ShortName(t.Name, model.MaxLabel); label != t.Name {
			t.Label = label
		}
		if b := backends[a.Backend]; b != nil { // nil for one of a later version
			is := b.Reconciled(record.Environment, clusterType, a.Folder)
			t.Object, t.Objects = is.Object, is.Objects
		}
		f.Targets = append(f.Targets, t)
	}
	return f
}

// sourceOf returns the source from which a cluster type was compiled.
func sourceOf(record *tree.Record, e *tree.ClusterTypeEntry) tree.Source {
	if ring := record.Ring(e.Ring); ring != nil && e.Source == nil {
		return ring.Source
	}
	return record.SourceOf(e)
}

// history reads the commits, and the differences between each commit and the next newer one.
func (r *reader) history(ctx context.Context) error {
	newer, differ := r.env.Record, 0
	released := releases{of: changes.NewReader(r.env), seen: map[string]bool{}}
	for i := range MaxCommits {
		past, there, err := r.env.History.At(ctx, i)
		if err == nil {
			err = released.setEffect(ctx, r.wanted.Commits, past, r.ringsOf)
		}
		if err != nil || !there {
			return err
		}
		if past.Record == nil {
			return nil // the commits before this one have no record
		}
		c := state.Commit{
			ID: past.ID.String(), Time: past.Author.When.UTC(), Author: terminal.Line(past.Author.Name),
			Subject: message.FirstLine(past.Message), Rings: r.ringsOf(past.Record),
		}
		if i > 0 {
			if c.Was, err = r.differences(ctx, past.Record, newer); err != nil {
				return err
			}
		}
		if c.Edited, err = r.edited(ctx, past); err != nil {
			return err
		}
		if differ += len(c.Was) + len(c.Edited); i > 0 && differ > maxDifferences {
			break
		}
		if i > 0 {
			// Forget the records of cluster types that are not in a record.
			needed := map[tree.ID]bool{}
			for i := range past.Record.ClusterTypes {
				needed[past.Record.ClusterTypes[i].Record] = true
			}
			maps.DeleteFunc(r.parsed,
				func(id tree.ID, _ *tree.ClusterTypeRecord) bool { return !needed[id] })
		}
		r.wanted.Commits = append(r.wanted.Commits, c)
		newer = past.Record
	}
	r.wanted.Older = true // the changes of the oldest commit are not known
	return nil
}

// releases finds the newest release of each ring, and its effect on clusters.
type releases struct {
	of    *changes.Reader
	seen  map[string]bool // rings whose newest release is known
	newer session.Past
}

// setEffect sets the effect of the last of some commits, given the commit before it. If there is no
// earlier commit, past is the zero Past. It sets the effect only if the commit is the newest
// release of a ring.
func (r *releases) setEffect(ctx context.Context, commits []state.Commit, past session.Past,
	ringsOf func(*tree.Record) []state.Ring) error {
	newer := r.newer
	r.newer = past
	if len(commits) == 0 {
		return nil
	}
	var had []state.Ring
	if past.Record != nil {
		had = ringsOf(past.Record)
	}
	c, newest := &commits[len(commits)-1], false
	for _, ring := range c.Rings {
		same := func(was state.Ring) bool {
			return was.Name == ring.Name && was.Base == ring.Base && was.Own == ring.Own
		}
		if !r.seen[ring.Name] && !slices.ContainsFunc(had, same) {
			r.seen[ring.Name], newest = true, true
		}
	}
	if !newest {
		return nil
	}
	e, err := r.of.Effect(ctx, changes.Step{Before: past, Now: newer})
	if err != nil || e == nil {
		return err
	}
	counts := e.Counts()
	c.Effect = &state.Effect{Removed: counts.Removed, RemovedFrom: e.RemovedFrom(),
		Added: counts.Added, Changed: counts.Changed, Emptied: counts.Emptied}
	return nil
}

func (r *reader) ringsOf(record *tree.Record) []state.Ring {
	ring := func(name string, of tree.Source) state.Ring {
		return state.Ring{Name: name, Base: string(of.Base), Own: string(of.Environment),
			BaseTime: r.of.Committed(of.Base), OwnTime: r.of.Committed(of.Environment)}
	}
	if len(record.Rings) == 0 {
		return []state.Ring{ring("", record.Source)}
	}
	var out []state.Ring
	for _, is := range record.Rings {
		out = append(out, ring(is.Name, is.Source))
	}
	return out
}

// differences returns the digests of a record that the next newer one lacks.
func (r *reader) differences(ctx context.Context, was, is *tree.Record) (map[string]string, error) {
	before, after := byName(was), byName(is)
	var differ []*tree.ClusterTypeEntry
	for name, e := range before {
		if after[name] == nil || after[name].Record != e.Record {
			differ = append(differ, e)
		}
	}
	for name, e := range after {
		if before[name] == nil || before[name].Record != e.Record {
			differ = append(differ, e)
		}
	}
	if len(differ) == 0 {
		return nil, nil
	}
	if err := r.prefetch(ctx, differ); err != nil {
		return nil, err
	}
	out := map[string]string{}
	old, recent := map[string]string{}, map[string]string{}
	for _, e := range differ {
		into := recent
		if before[e.Name] == e {
			into = old
		}
		c, err := r.clusterType(e)
		if err != nil {
			return nil, err
		}
		for i := range c.Assignments {
			into[state.Key(e.Name, c.Assignments[i].DeploymentTarget)] = string(c.Assignments[i].Tree)
		}
		for _, entry := range c.Entries {
			into[state.EntryKey(entry.Cluster)] = string(tree.TreeID(entry.Files))
		}
	}
	for key, digest := range old {
		if recent[key] != digest {
			out[key] = digest
		}
	}
	for key := range recent {
		if _, there := old[key]; !there {
			out[key] = ""
		}
	}
	return out, nil
}

func byName(record *tree.Record) map[string]*tree.ClusterTypeEntry {
	out := make(map[string]*tree.ClusterTypeEntry, len(record.ClusterTypes))
	for i := range record.ClusterTypes {
		out[record.ClusterTypes[i].Name] = &record.ClusterTypes[i]
	}
	return out
}

func entriesOf(record *tree.Record) []*tree.ClusterTypeEntry {
	out := make([]*tree.ClusterTypeEntry, len(record.ClusterTypes))
	for i := range record.ClusterTypes {
		out[i] = &record.ClusterTypes[i]
	}
	return out
}

// prefetch downloads the missing records of cluster types in one request.
func (r *reader) prefetch(ctx context.Context, of []*tree.ClusterTypeEntry) error {
	var ids []git.Hash
	for _, e := range of {
		if r.parsed[e.Record] == nil {
			ids = append(ids, tree.Revision(e.Record).Hash())
		}
	}
	err := r.env.Repository.Remote.Prefetch(ctx, ids)
	if errors.As(err, new(*remote.NotFoundError)) { // a record may contain an id without an object
		return nil
	}
	return err
}

// clusterType reads the record of a cluster type, or of a folder of entries.
func (r *reader) clusterType(e *tree.ClusterTypeEntry) (*tree.ClusterTypeRecord, error) {
	if known := r.parsed[e.Record]; known != nil {
		return known, nil
	}
	data, err := r.env.Repository.Staging.BlobWithin(tree.Revision(e.Record).Hash(), tree.MaxRecord)
	if err != nil {
		return nil, fmt.Errorf("the record of %s: %w", e.Name, err)
	}
	c, err := tree.ParseClusterTypeRecord(data)
	if err != nil {
		return nil, fmt.Errorf("the record of %s: %w", e.Name, err)
	}
	for i := range c.Assignments {
		c.Assignments[i].Files = nil // most of the data, and not needed
	}
	r.parsed[e.Record] = c
	return c, nil
}
