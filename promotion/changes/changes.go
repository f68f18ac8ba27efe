// Package changes reads what the commits of GitOps branches changed: from the records that
// they have, and without compiling anything.
package changes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/query/tables"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Each calls f with what each of the newest commits of the requested environments' branches
// changed, environment by environment, newest first. most is how many commits of each branch
// it looks at. A commit whose record cannot be read is taken for the one before it.
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

func eachOf(ctx context.Context, env *session.Environment, most int, f func(tables.Change) error) error {
	for i := range most {
		now, there, err := env.History.At(ctx, i)
		if err != nil || !there {
			return err
		}
		before, _, err := env.History.At(ctx, i+1) // of the first commit there is none
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
		c := comparison{env, now, i, entries(before.Record), entries(now.Record)}
		if err := c.each(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// unreadable says whether there is a record that is not known.
func unreadable(p session.Past) bool { return p.Record == nil && !p.RecordID.IsZero() }

// comparison compares an environment in a commit with what it was before.
type comparison struct {
	env     *session.Environment
	now     session.Past
	number  int
	was, is map[string]tree.ClusterTypeEntry
}

// each calls f with what differs, by cluster type and deployment target.
func (c *comparison) each(ctx context.Context, f func(tables.Change) error) error {
	differ := maps.Clone(c.was)
	maps.Copy(differ, c.is)
	var ids []git.Hash
	for name := range differ {
		if c.was[name].Record == c.is[name].Record {
			delete(differ, name)
			continue
		}
		for _, id := range []tree.ID{c.was[name].Record, c.is[name].Record} {
			if id != "" {
				ids = append(ids, tree.Revision(id).Hash())
			}
		}
	}
	err := c.env.Repository.Remote.Prefetch(ctx, ids)
	if err != nil && !errors.As(err, new(*remote.NotFoundError)) { // somebody may have written an id of nothing
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(differ)) {
		before, err := c.assignments(c.was[name])
		if err != nil {
			return err
		}
		now, err := c.assignments(c.is[name])
		if err != nil {
			return err
		}
		if before == nil || now == nil {
			continue // it is not known what changed
		}
		if err := c.clusterType(name, before, now, f); err != nil {
			return err
		}
	}
	return nil
}

// clusterType calls f with the assignments of a cluster type that differ.
func (c *comparison) clusterType(name string, before, now map[string]*tree.AssignmentRecord, f func(tables.Change) error) error {
	of := c.source(name)
	either := maps.Clone(before)
	maps.Copy(either, now)
	for _, target := range slices.Sorted(maps.Keys(either)) {
		change := tables.Change{
			Environment: c.env.Name(), ClusterType: name, DeploymentTarget: target, Workload: either[target].Workload,
			Number: c.number, Commit: c.now.ID.String(), Time: c.now.Author.When,
			Author: terminal.Line(c.now.Author.Name), Subject: message.FirstLine(c.now.Message),
			Base: string(of.Base), Own: string(of.Environment),
		}
		switch was, is := before[target], now[target]; {
		case was == nil:
			change.Kind, change.Version, change.Configured = tables.Added, is.Version, true
		case is == nil:
			change.Kind, change.VersionBefore, change.Configured = tables.Removed, was.Version, true
		case was.Tree != is.Tree || was.Version != is.Version || was.Values != is.Values:
			change.Kind, change.VersionBefore, change.Version, change.Configured = tables.Changed, was.Version, is.Version, was.Values != is.Values
		default:
			continue
		}
		if err := f(change); err != nil {
			return err
		}
	}
	return nil
}

// source returns what a cluster type is compiled from, or the environment where the cluster
// type is gone; the zero Source where that is gone too.
func (c *comparison) source(clusterType string) tree.Source {
	if c.now.Record == nil {
		return tree.Source{}
	}
	e, there := c.is[clusterType]
	if !there {
		return c.now.Record.Source
	}
	return c.now.Record.SourceOf(&e)
}

// entries returns the cluster types of a record, which may be nil, by name.
func entries(r *tree.Record) map[string]tree.ClusterTypeEntry {
	out := map[string]tree.ClusterTypeEntry{}
	if r != nil {
		for _, e := range r.ClusterTypes {
			out[e.Name] = e
		}
	}
	return out
}

// assignments returns the assignments of a cluster type by deployment target: none for the
// zero entry, and nil where the cluster type's record is not as kalypso writes it.
func (c *comparison) assignments(of tree.ClusterTypeEntry) (map[string]*tree.AssignmentRecord, error) {
	out := map[string]*tree.AssignmentRecord{}
	if of.Record == "" {
		return out, nil
	}
	data, err := c.env.Repository.Staging.Blob(tree.Revision(of.Record).Hash())
	if missing := (*git.MissingError)(nil); errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	record, err := tree.ParseClusterTypeRecord(data)
	if err != nil {
		return nil, nil
	}
	for i := range record.Assignments {
		out[record.Assignments[i].DeploymentTarget] = &record.Assignments[i]
	}
	return out, nil
}
