package platform

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/view"
)

// Compare compares two environments.
func (p *Platform) Compare(ctx context.Context, before, after string) (*view.Comparison, error) {
	a, err := p.readable(before)
	if err != nil {
		return nil, err
	}
	b, err := p.readable(after)
	if err != nil {
		return nil, err
	}
	x, err := query.Compare(ctx, a.Environment, b.Environment)
	if err != nil {
		return nil, err
	}
	out := &view.Comparison{Before: before, After: after, Same: x.Same}
	for _, w := range x.Workloads {
		for _, d := range w.Differences {
			in := string(d.Kind)
			if d.Path != "" {
				in = d.Path
			}
			if d.ClusterType != "" {
				in += " on " + d.ClusterType
			}
			out.Workloads = append(out.Workloads,
				view.Difference{Workload: w.Workload, In: in, Before: d.Before, After: d.After})
		}
	}
	return out, nil
}

// Changes returns the differences from a revision. It is compiled once.
func (p *Platform) Changes(ctx context.Context, since string) (*view.Changes, error) {
	if since == "" {
		since = p.options.Since
	}
	if since == "" || p.options.Compare == nil {
		return nil, &view.NotFoundError{Message: "the platform is in no git repository: there is " +
			"nothing to count changes from"}
	}
	p.changes.Lock()
	defer p.changes.Unlock()
	if known := p.since[since]; known != nil {
		return known, nil
	}
	d, err := p.options.Compare(ctx, since)
	if err != nil && ctx.Err() == nil {
		return nil, &view.NotFoundError{Message: err.Error()}
	} else if err != nil {
		return nil, err
	}
	out := changesOf(d.Report)
	out.Since = since
	p.since[since] = out
	return out, nil
}

// maxClusters is how many clusters of a change a page names.
const maxClusters = 100

// changesOf returns a report as a page shows it.
func changesOf(r *compare.Report) *view.Changes {
	out := &view.Changes{
		Removed: r.Total.Removed, Added: r.Total.Added, Changed: r.Total.Changed,
		Unchanged: r.Assignments.Unchanged,
		TypesGone: r.ClusterTypes.Removed, TypesNew: r.ClusterTypes.Added, LeftOut: r.LeftOut,
	}
	if c := r.Clusters; c != nil {
		out.Clusters, out.Emptied, out.Unlisted, out.Listed = c.Concerned, c.Emptied, c.Unlisted, c.Listed
	}
	for i := range r.Removed {
		out.Gone = append(out.Gone, changedAssignment(&r.Removed[i]))
	}
	for i := range r.Added {
		out.New = append(out.New, changedAssignment(&r.Added[i]))
	}
	for i := range r.Changed {
		of := changedAssignment(&r.Changed[i])
		if len(of.Lost) > 0 {
			out.Replaced = append(out.Replaced, of)
		} else {
			out.Others = append(out.Others, of)
		}
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		c := view.Change{
			File: g.File, Path: g.Path, From: string(g.From), To: string(g.To), Count: g.Count,
			Assignments: g.Assignments, Others: slices.Concat(g.ClusterTypes, g.Clusters),
		}
		if g.Object != nil {
			c.Object = g.Object.Kind + " " + g.Object.Name
		}
		if g.Kind == compare.Text {
			c.Lines = strings.Split(strings.TrimSuffix(g.Diff, "\n"), "\n")
		}
		if g.Detail {
			out.Details = append(out.Details, c)
		} else {
			out.Groups = append(out.Groups, c)
		}
	}
	// Groups with lines are about files that people read. They come after files for
	// clusters.
	slices.SortStableFunc(out.Groups, func(a, b view.Change) int {
		return cmp.Compare(len(a.Lines), 0) - cmp.Compare(len(b.Lines), 0)
	})
	return out
}

func changedAssignment(e *compare.Entry) view.ChangedAssignment {
	names := e.Names()
	out := view.ChangedAssignment{
		ID: e.ID(), Clusters: names[:min(len(names), maxClusters)], Count: max(1, len(names)),
		RenamedTo: e.RenamedTo, RenamedFrom: e.RenamedFrom, Objects: e.Objects,
	}
	for _, name := range e.Namespaces {
		out.Lost = append(out.Lost, "namespace "+name)
	}
	if n := e.PersistentVolumeClaims; n > 0 {
		out.Lost = append(out.Lost, counted(n, "PersistentVolumeClaim"))
	}
	for _, name := range e.CustomResourceDefinitions {
		out.Lost = append(out.Lost, "CustomResourceDefinition "+name)
	}
	if n := e.CustomResources; n > 0 {
		out.Lost = append(out.Lost, counted(n, "custom resource"))
	}
	for _, v := range e.Values {
		out.Values = append(out.Values,
			view.ChangedValue{Path: v.Path, From: string(v.From), To: string(v.To)})
	}
	return out
}

func counted(n int, one string) string {
	if n != 1 {
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}

// CompareWith returns a function that compares a revision with the platform in its
// folder.
func CompareWith(r compiler.Request) func(context.Context, string) (*compiler.Difference, error) {
	return func(ctx context.Context, revision string) (*compiler.Difference, error) {
		return compiler.Compare(ctx, r, compiler.Side{Revision: revision}, compiler.Side{},
			compiler.Output{})
	}
}
