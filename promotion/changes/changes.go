// Package changes reads the changes by commits of GitOps branches from their records. It does not
// compile anything.
package changes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query/tables"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Each calls f with the changes on clusters by the newest commits of the requested environments'
// branches, environment by environment, newest first. It looks at up to most commits of each
// branch. If the record of a commit cannot be read, Each uses the record of the commit before. A
// commit has no changes if a folder's record cannot be read.
func Each(ctx context.Context, state *session.State, most int, f func(tables.Change) error) error {
	for _, env := range state.RequestedEnvironments() {
		if env.Unreadable {
			return fmt.Errorf("%s: %s", env.Name(), env.Absent)
		}
		if env.Repository == nil {
			continue
		}
		if err := eachOf(ctx, env, most, f); err != nil {
			return fmt.Errorf("%s: the history of branch %s: %w", env.Name(), env.Branch, err)
		}
	}
	return nil
}

func eachOf(ctx context.Context, env *session.Environment, most int,
	f func(tables.Change) error) error {
	reader := NewReader(env)
	for i := range most {
		now, there, err := env.History.At(ctx, i)
		if err != nil || !there {
			return err
		}
		before, _, err := env.History.At(ctx, i+1) // the first commit has no commit before it
		if err != nil {
			return err
		}
		if now.RecordID == before.RecordID || unreadable(now) {
			continue
		}
		for older := i + 2; unreadable(before); older++ {
			if before, _, err = env.History.At(ctx, older); err != nil {
				return err
			}
		}
		e, err := reader.Effect(ctx, Step{before, now})
		if err != nil {
			return err
		}
		if e == nil {
			continue // the changes are not known
		}
		c := comparison{env: env, now: now, number: i, was: entries(before.Record),
			is: entries(now.Record), read: map[tree.ID]map[string]*tree.AssignmentRecord{}}
		all, err := c.rows(ctx, e)
		if err != nil {
			return err
		}
		for _, change := range all {
			if err := f(change); err != nil {
				return err
			}
		}
	}
	return nil
}

// unreadable reports whether there is a record that is not known.
func unreadable(p session.Past) bool { return p.Record == nil && !p.RecordID.IsZero() }

// comparison compares an environment in a commit with its state before.
type comparison struct {
	env     *session.Environment
	now     session.Past
	number  int
	was, is map[string]tree.ClusterTypeEntry
	read    map[tree.ID]map[string]*tree.AssignmentRecord // by the id of a folder's record
}

// rows returns the changes of an effect, sorted by cluster type and deployment target. Equal
// changes of a deployment target on a cluster type share a row.
func (c *comparison) rows(ctx context.Context, e *effect.Effect) ([]tables.Change, error) {
	if err := c.prefetch(ctx, e); err != nil {
		return nil, err
	}
	type key struct {
		clusterType, target string
		kind                tables.ChangeKind
		before, after       string // versions
	}
	alike := map[key]*tables.Change{}
	add := func(w *effect.Way, kind tables.ChangeKind, was, is *tree.AssignmentRecord) {
		either := cmp.Or(is, was)
		k := key{w.ClusterType(), either.DeploymentTarget, kind, "", ""}
		if kind == tables.Removed {
			k.clusterType = model.TypeOfFolder(w.From)
		}
		if was != nil {
			k.before = versionOf(was)
		}
		if is != nil {
			k.after = versionOf(is)
		}
		row := alike[k]
		if row == nil {
			of := c.source(cmp.Or(w.To, w.From))
			row = &tables.Change{
				Environment: c.env.Name(), ClusterType: k.clusterType, DeploymentTarget: k.target,
				Workload: either.Workload, Kind: kind,
				Number: c.number, Commit: c.now.ID.String(), Time: c.now.Author.When,
				Author: terminal.Line(c.now.Author.Name), Subject: message.FirstLine(c.now.Message),
				Base: string(of.Base), Own: string(of.Environment), VersionBefore: k.before, Version: k.after,
			}
			alike[k] = row
		}
		row.Clusters += len(w.Clusters)
		row.Configured = row.Configured || kind != tables.Changed || was.Values != is.Values
	}
	for i := range e.Pairs {
		p := &e.Pairs[i]
		was, is := c.assignment(c.was[p.Way.From], p.Before), c.assignment(c.is[p.Way.To], p.After)
		switch {
		case p.Added() && is != nil:
			add(p.Way, tables.Added, nil, is)
		case p.Removed() && was != nil:
			add(p.Way, tables.Removed, was, nil)
		case was != nil && is != nil:
			add(p.Way, tables.Changed, was, is)
		}
	}
	// A version or values may differ without any file.
	for _, w := range e.Ways {
		was, is := c.assignments(c.was[w.From]), c.assignments(c.is[w.To])
		if c.was[w.From].Record == c.is[w.To].Record {
			continue
		}
		for target, before := range was {
			if now := is[target]; now != nil && now.Tree == before.Tree &&
				(versionOf(now) != versionOf(before) || now.Values != before.Values) {
				add(w, tables.Changed, before, now)
			}
		}
	}
	out := make([]tables.Change, 0, len(alike))
	for _, row := range alike {
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b tables.Change) int {
		return cmp.Or(strings.Compare(a.ClusterType, b.ClusterType),
			strings.Compare(a.DeploymentTarget, b.DeploymentTarget),
			strings.Compare(string(a.Kind), string(b.Kind)),
			strings.Compare(a.VersionBefore, b.VersionBefore), strings.Compare(a.Version, b.Version))
	})
	return out, nil
}

// versionOf returns the version of an assignment that is compared; "" if it has no such version.
func versionOf(a *tree.AssignmentRecord) string {
	if !a.VersionFrom.Compares() {
		return ""
	}
	return a.Version
}

// prefetch fetches the records at both ends of the ways on which something may differ.
func (c *comparison) prefetch(ctx context.Context, e *effect.Effect) error {
	var ids []git.Hash
	for _, w := range e.Ways {
		if was, is := c.was[w.From].Record, c.is[w.To].Record; was != is {
			for _, id := range []tree.ID{was, is} {
				if id != "" {
					ids = append(ids, tree.Revision(id).Hash())
				}
			}
		}
	}
	return prefetch(ctx, c.env, ids)
}

// source returns the source of a folder. If the folder is gone, it returns the environment's
// source. If the environment is gone too, it returns the zero Source.
func (c *comparison) source(folder string) tree.Source {
	if c.now.Record == nil {
		return tree.Source{}
	}
	e, there := c.is[folder]
	if !there {
		return c.now.Record.Source
	}
	return c.now.Record.SourceOf(&e)
}

// entries returns the folders of a record, which may be nil, by name.
func entries(r *tree.Record) map[string]tree.ClusterTypeEntry {
	out := map[string]tree.ClusterTypeEntry{}
	if r != nil {
		for _, e := range r.ClusterTypes {
			out[e.Name] = e
		}
	}
	return out
}

// assignment returns the record of an assignment, or nil.
func (c *comparison) assignment(of tree.ClusterTypeEntry,
	a *effect.Assignment) *tree.AssignmentRecord {
	if a == nil {
		return nil
	}
	return c.assignments(of)[a.DeploymentTarget]
}

// assignments returns the assignments of a folder by deployment target. It returns none for the
// zero entry, and if the folder's record is not in kalypso's form.
func (c *comparison) assignments(of tree.ClusterTypeEntry) map[string]*tree.AssignmentRecord {
	if out, known := c.read[of.Record]; known || of.Record == "" {
		return out
	}
	out := map[string]*tree.AssignmentRecord{}
	c.read[of.Record] = out
	data, err := c.env.Repository.Staging.BlobWithin(tree.Revision(of.Record).Hash(), tree.MaxRecord)
	if err != nil {
		return out
	}
	record, err := tree.ParseClusterTypeRecord(data)
	if err != nil {
		return out
	}
	for i := range record.Assignments {
		a := &record.Assignments[i]
		a.Files = nil // most of it, and not needed
		out[a.DeploymentTarget] = a
	}
	return out
}
