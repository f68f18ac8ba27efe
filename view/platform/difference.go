package platform

import (
	"cmp"
	"context"
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
			out.Workloads = append(out.Workloads, view.Difference{Workload: w.Workload, In: in, Before: d.Before, After: d.After})
		}
	}
	return out, nil
}

// Changes returns what differs from a revision. It is compiled once.
func (p *Platform) Changes(ctx context.Context, since string) (*view.Changes, error) {
	if since == "" {
		since = p.options.Since
	}
	if since == "" || p.options.Compare == nil {
		return nil, &view.NotFoundError{Message: "the platform is in no git repository: there is nothing to count changes from"}
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

func changesOf(r *compare.Report) *view.Changes {
	out := &view.Changes{
		Added: r.Assignments.Added, Removed: r.Assignments.Removed, Changed: r.Assignments.Changed, Unchanged: r.Assignments.Unchanged, LeftOut: r.LeftOut,
	}
	for _, g := range r.Groups {
		c := view.Change{File: g.File, Path: g.Path, From: string(g.From), To: string(g.To), Assignments: append(append(g.Assignments, g.ClusterTypes...), g.Clusters...)}
		if g.Object != nil {
			c.Object = g.Object.Kind + " " + g.Object.Name
		}
		if g.Kind == compare.Text {
			c.Lines = strings.Split(strings.TrimSuffix(g.Diff, "\n"), "\n")
		}
		out.Groups = append(out.Groups, c)
	}
	// What people read about the trees follows what clusters get.
	slices.SortStableFunc(out.Groups, func(a, b view.Change) int { return cmp.Compare(len(a.Lines), 0) - cmp.Compare(len(b.Lines), 0) })
	return out
}

// CompareWith returns what compares a revision with the platform in its folder.
func CompareWith(r compiler.Request) func(context.Context, string) (*compiler.Difference, error) {
	return func(ctx context.Context, revision string) (*compiler.Difference, error) {
		return compiler.Compare(ctx, r, compiler.Side{Revision: revision}, compiler.Side{}, compiler.Output{})
	}
}
