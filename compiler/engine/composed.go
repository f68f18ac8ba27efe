package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// clusterValues is the result of a tuple on one cluster.
type clusterValues struct {
	// the values that differ from the shared ones; null for a removed value
	Values      model.Value
	Diagnostics []diag.Diagnostic // unresolved, without an assignment, and without the shared ones
}

func (c *clusterValues) failed() bool { return diag.Errors(c.Diagnostics) }

// composeClusters composes the values of single clusters if configs use facts of clusters. A
// cluster is invalid if this fails for it, like a cluster with an unreadable row. If it fails for
// all clusters of a class, the assignments fail too.
func (p *Inputs) composeClusters(ctx context.Context) ([]diag.Diagnostic, error) {
	var ds []diag.Diagnostic
	invalid := map[string]bool{}
	composer := p.Plan.NewComposer()
	table := p.request.Meter.table(cache.Tuple, p.request.Platform.Module+" "+p.Name+" clusters")
	of := map[*compose.Tuple][]clusterValues{}
	reported := &onClusters{same: map[string]*onCluster{}}
	unlisted := unlistedTypes{}
	for n := range p.Plan.Tuples {
		t := &p.Plan.Tuples[n]
		if !t.PerCluster {
			continue
		}
		if len(t.Clusters) == 0 && p.Model.HidesClusters() {
			p.fail(t) // errors may hide its clusters
		} else if len(t.Clusters) == 0 {
			unlisted.add(p, n)
		}
		if len(t.Clusters) == 0 ||
			slices.ContainsFunc(t.Assignments, func(i int32) bool { return p.Plan.Failed[i] }) {
			continue
		}
		if d, refused := p.refuseComposed(n); refused {
			ds = append(ds, d)
			continue
		}
		found, err := p.composeOn(ctx, int32(n), composer, table)
		if err != nil {
			return nil, err
		}
		of[t] = found
		failed := 0
		for k, c := range t.Clusters {
			if found[k].failed() {
				invalid[c.Name] = true
				failed++
			}
		}
		if failed == len(t.Clusters) {
			p.fail(t)
		}
		reported.add(t, found, p.idsOf(t))
	}
	ds = append(append(ds, reported.diagnostics()...), unlisted.diagnostics(p.Name)...)
	_ = table.Flush() // a failed write only costs time
	table.Release()
	for n := range p.Plan.Tuples { // in the order of the tuples, which affects the clusters' digests
		t := &p.Plan.Tuples[n]
		for k, c := range of[t] {
			for _, i := range t.Assignments {
				t.Clusters[k].Compose(p.Schedule.Assignments[i].Target.FullName, c.Values)
			}
		}
	}
	if len(invalid) == 0 {
		return ds, nil
	}
	for name := range invalid {
		p.Model.Invalid[model.Ref{Collection: clusters, Name: name}] = true
	}
	// The tuples point into the old slice.
	p.Model.Clusters = slices.DeleteFunc(slices.Clone(p.Model.Clusters),
		func(c model.Cluster) bool { return invalid[c.Name] })
	return ds, nil
}

// refuseComposed reports a tuple with values that depend on facts of single clusters, if the
// reconciler cannot deliver different values to each cluster. All its assignments are of one
// class.
func (p *Inputs) refuseComposed(tuple int) (d diag.Diagnostic, refused bool) {
	t := &p.Plan.Tuples[tuple]
	ct := p.Schedule.Assignments[t.Assignments[0]].ClusterType
	if b := p.backend(ct); b == nil || b.Traits().PerCluster {
		return d, false
	}
	config := p.Plan.OfClusters(tuple)[0]
	d = diag.New(diag.ClusterValues,
		fmt.Sprintf("config %s has other values on each cluster, and the reconciler %s gives all "+
			"clusters of %s the same", config.Name, ct.Reconciler, ct.Name)).
		On(config.String()).At(config, "").At(reconcilerRef(ct), "").
		Hinting(fmt.Sprintf("use other facts of the assignment, or leave the cluster type out: "+
			"configs: %s: match: clusterType: !=%q", model.Label(config.Name), ct.TypeName()))
	p.fail(t)
	return d.For(p.idsOf(t)...), true
}

// fail fails the assignments of a tuple.
func (p *Inputs) fail(t *compose.Tuple) {
	for _, i := range t.Assignments {
		p.Plan.Failed[i] = true
	}
}

// idsOf returns the ids of a tuple's assignments, for diagnostics.
func (p *Inputs) idsOf(t *compose.Tuple) []string {
	out := make([]string, len(t.Assignments))
	for n, i := range t.Assignments {
		out[n] = p.id(int(i))
	}
	return out
}

// composeOn composes a tuple on its clusters, in their order. It caches the results by the
// folders of the clusters' entries, so that a change to one cluster recomposes only a few of
// them.
func (p *Inputs) composeOn(ctx context.Context, n int32, composer *compose.Composer,
	table table) ([]clusterValues, error) {
	t := &p.Plan.Tuples[n]
	parts := map[string][]int{} // numbers in t.Clusters
	for k, c := range t.Clusters {
		name := tree.ShardName(c.Name)
		parts[name] = append(parts[name], k)
	}
	out := make([]clusterValues, len(t.Clusters))
	var shared *compose.Graph
	typeLabels := model.Encode(p.Schedule.Assignments[t.Assignments[0]].ClusterType.Labels)
	for _, part := range parts {
		h := p.key("clusters").Bytes(t.Digest[:]).Bytes(typeLabels)
		some := make([]*model.Cluster, len(part))
		for j, k := range part {
			some[j] = t.Clusters[k]
			h.String(some[j].Name).String(string(some[j].Digest))
		}
		key := h.Sum()
		var made []clusterValues
		if text, known := table.Get(key); !known || model.Decode(text, &made) != nil ||
			len(made) != len(part) {
			if shared == nil {
				with, err := p.Plan.Prepare(ctx, []int32{n})
				if err != nil {
					return nil, err
				}
				shared = composer.Compose(n, with)
			}
			with, err := p.Plan.PrepareOn(ctx, n, some)
			if err != nil {
				return nil, err
			}
			made = made[:0]
			for _, c := range some {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				made = append(made, onOne(shared, composer.ComposeOn(n, c, with)))
			}
			if !slices.ContainsFunc(made,
				func(c clusterValues) bool { return diag.Passing(c.Diagnostics) }) {
				table.Put(key, model.Encode(made))
			}
		}
		for j, k := range part {
			out[k] = made[j]
			out[k].Diagnostics = p.strict(out[k].Diagnostics)
		}
	}
	return out, nil
}

// onOne returns the values and the diagnostics of a graph on one cluster that differ from the
// shared graph.
func onOne(shared, g *compose.Graph) clusterValues {
	var out clusterValues
	for _, d := range g.Diagnostics() {
		if !slices.ContainsFunc(shared.Diagnostics(),
			func(s diag.Diagnostic) bool {
				return s.Code == d.Code && s.Path == d.Path &&
					s.Message == d.Message
			}) {
			out.Diagnostics = append(out.Diagnostics, d)
		}
	}
	if g.Failed || shared.Failed {
		return out
	}
	for _, s := range slices.Concat(g.Secrets, shared.Secrets) {
		is := func(other compose.Secret) bool { return s.Path == other.Path && s.Ref.Equal(other.Ref) }
		if !slices.ContainsFunc(g.Secrets, is) || !slices.ContainsFunc(shared.Secrets, is) {
			d := diag.New(diag.ClusterValues, "the secret "+s.Path+" cannot be another one on each "+
				"cluster: all clusters of a class have the same").On(s.Path)
			out.Diagnostics = append(out.Diagnostics,
				locate(d, g).Hinting("give the secret one name on all clusters"))
			return out
		}
	}
	out.Values = model.Difference(shared.Plain, g.Plain)
	return out
}

// onClusters are the diagnostics of tuples on clusters. Equal diagnostics of several clusters
// become one.
type onClusters struct {
	all  []*onCluster // in the order of their first occurrence
	same map[string]*onCluster
}

type onCluster struct {
	diag.Diagnostic
	of                    string // the first of clusters by name; the diagnostic is about this one
	clusters, assignments []string
}

// add adds the diagnostics of a tuple on its clusters. assignments are the ids of the tuple's
// assignments.
func (o *onClusters) add(t *compose.Tuple, found []clusterValues, assignments []string) {
	for k, c := range t.Clusters {
		for _, d := range found[k].Diagnostics {
			key := string(d.Code) + "\x00" + d.Path + "\x00" + strings.ReplaceAll(d.Message, c.Name, "\x00")
			g := o.same[key]
			if g == nil {
				g = &onCluster{Diagnostic: d, of: c.Name}
				o.same[key], o.all = g, append(o.all, g)
			} else if c.Name < g.of {
				g.Diagnostic, g.of = d, c.Name
			}
			g.clusters = append(g.clusters, c.Name)
			if !slices.Contains(g.assignments, assignments[0]) {
				g.assignments = append(g.assignments, assignments...)
			}
		}
	}
}

func (o *onClusters) diagnostics() []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, g := range o.all {
		names := slices.Compact(slices.Sorted(slices.Values(g.clusters)))
		which := g.of
		if more := len(names) - 1; more > 0 {
			which = fmt.Sprintf("%s and %d more", which, more)
		}
		d := g.Diagnostic
		d.Message = "on cluster " + which + ": " + d.Message
		for _, name := range names[:min(len(names), 3)] {
			d = d.At(model.Ref{Collection: clusters, Name: name}, "the cluster")
		}
		out = append(out, d.For(slices.Compact(slices.Sorted(slices.Values(g.assignments)))...))
	}
	return out
}

// locate adds the origins of a value to a diagnostic about the value.
func locate(d diag.Diagnostic, g *compose.Graph) diag.Diagnostic {
	if d.Path == "" {
		return d
	}
	for _, leaf := range g.Leaves() {
		if leaf.Path == d.Path {
			for _, o := range leaf.From {
				d.Sites = append([]diag.Site{{Ref: o.Ref}}, d.Sites...)
			}
		}
	}
	return d
}

// unlistedTypes are the cluster types that have configs for single clusters but no listed
// clusters. They map each config to its cluster types, and these to their assignments.
type unlistedTypes map[model.Ref]map[string][]string

// add adds the configs for single clusters of a tuple that has no clusters.
func (u unlistedTypes) add(p *Inputs, tuple int) {
	for _, config := range p.Plan.OfClusters(tuple) {
		if u[config] == nil {
			u[config] = map[string][]string{}
		}
		for _, i := range p.Plan.Tuples[tuple].Assignments {
			ct := p.Schedule.Assignments[i].ClusterType.TypeName()
			u[config][ct] = append(u[config][ct], p.id(int(i)))
		}
	}
}

// diagnostics warns of each config. If an assignment fails, its error is the cause of the
// warning.
func (u unlistedTypes) diagnostics(environment string) (ds []diag.Diagnostic) {
	for config, of := range u {
		types := slices.Sorted(maps.Keys(of))
		var assignments []string
		for _, ct := range types {
			assignments = append(assignments, of[ct]...)
		}
		which := "cluster type " + types[0]
		if last := len(types) - 1; last > 0 {
			which = "cluster types " + strings.Join(types[:last], ", ") + " and " + types[last]
		}
		d := diag.New(diag.NoClusters,
			fmt.Sprintf("config %s has values for single clusters, and no cluster of %s is listed",
				config.Name, which)).
			At(config, "").On(config.String()).Following(assignments...).
			Hinting(fmt.Sprintf("list them: clusters: NAME: clusterType: %q, or in an inventory; or leave "+
				"the cluster type out of the config's match", types[0]))
		d.Environment = environment
		ds = append(ds, d)
	}
	return ds
}
