package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/fleet"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/selector"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// plan evaluates and schedules the environment, and plans its configuration.
func (p *Inputs) plan(ctx context.Context, out *reports) error {
	r := p.request
	start := time.Now()
	pkg, ds, err := evaluate.Environment(ctx, r.Platform, p.Name, r.Declarations,
		evaluate.Options{Cache: r.Meter.Packages(), Registry: r.Registry, Workers: r.Workers,
			Supervisor: r.Supervisor})
	r.Meter.took(cache.Model, start)
	if err != nil {
		return err
	}
	r.Meter.count(cache.Model, pkg.Stats.Evaluated, pkg.Stats.Units-pkg.Stats.Evaluated)
	p.Model, out.all = pkg.Model, ds
	p.Source = p.sourceOf(pkg)
	if p.Model == nil {
		return nil
	}
	p.Model.Incomplete = p.Model.Incomplete || r.Incomplete
	elsewhere := expr.In(r.Workers)
	satisfies := newSatisfier(elsewhere)
	out.add(p.readFleet(satisfies)...)
	p.addCharts()
	p.rings, ds = p.ringsOf(r, satisfies)
	out.add(ds...)
	p.bounded = schedule.Bounded(p.Model, satisfies)
	p.Schedule, ds = schedule.Assign(p.Model, satisfies)
	out.add(ds...)
	if r.Ring == "" {
		out.add(p.checkRings(satisfies)...)
	}
	if p.Plan, ds, err = compose.NewPlan(ctx, p.Model, p.Schedule, functions{p, pkg}, satisfies,
		elsewhere); err != nil {
		return err
	}
	out.add(ds...)
	out.add(p.checkContent()...)
	out.add(p.checkNumbers()...)
	if ds, err = p.composeClusters(ctx); err != nil {
		return err
	}
	out.add(ds...)
	p.clusters = byFolder(p.Model.Clusters)
	out.add(p.checkClusterValues()...)
	out.add(p.checkClusterKeys()...)
	p.spans = spansOf(p.Model, p.Schedule)
	for n := range p.spans {
		if slices.Contains(p.split, p.Model.ClusterTypes[n].Name) {
			p.hold(n)
		}
	}
	return nil
}

// functions calls the functions of the assignment in an environment's package, and caches their
// results. The result of a call depends only on the function's sources and the facts.
type functions struct {
	in  *Inputs
	pkg *evaluate.Package
}

// Apply returns the outcomes of calls. It makes only the calls that the cache does not have.
func (f functions) Apply(ctx context.Context, calls []function.Call) ([]function.Outcome, error) {
	out := make([]function.Outcome, len(calls))
	keys := make([]cache.Key, len(calls))
	table := f.in.request.Meter.table(cache.Model, f.in.request.Platform.Module+" "+f.in.Name)
	var missing []int
	var todo []function.Call
	for i, c := range calls {
		keys[i] = f.in.key("function").String(f.in.Name).String(string(f.digest(c.Entity))).Bytes(
			model.Encode(c)).Sum()
		if text, ok := table.Get(keys[i]); ok && model.Decode(text, &out[i]) == nil {
			continue
		}
		out[i] = function.Outcome{}
		missing, todo = append(missing, i), append(todo, c)
	}
	f.in.request.Meter.count(cache.Model, len(todo), len(calls)-len(todo))
	if len(todo) == 0 {
		return out, nil
	}
	defer f.in.request.Meter.took(cache.Model, time.Now())
	made, err := f.pkg.Apply(ctx, todo)
	if err != nil {
		return nil, err
	}
	for n, i := range missing {
		out[i] = made[n]
		if !diag.Passing(made[n].Diagnostics) {
			table.Put(keys[i], model.Encode(made[n]))
		}
	}
	return out, nil
}

// digest returns the digest of a function's entity.
func (f functions) digest(ref model.Ref) model.Digest {
	switch ref.Collection {
	case "configs":
		for i := range f.in.Model.Configs {
			if f.in.Model.Configs[i].Name == ref.Name {
				return f.in.Model.Configs[i].Digest
			}
		}
	case "namespaceServices":
		for i := range f.in.Model.NamespaceServices {
			if f.in.Model.NamespaceServices[i].Name == ref.Name {
				return f.in.Model.NamespaceServices[i].Digest
			}
		}
	case "reconcilers":
		for i := range f.in.Model.Reconcilers {
			if f.in.Model.Reconcilers[i].Name == ref.Name {
				return f.in.Model.Reconcilers[i].Digest
			}
		}
	}
	panic("compiler: there is no function " + ref.String()) // calls name entities of the model
}

// readFleet reads the inventories, so that the model has all clusters. If the source is
// identified by the digests of files, readFleet adds the digests of the inventories to it.
func (p *Inputs) readFleet(satisfies selector.Satisfier) []diag.Diagnostic {
	f, ds := fleet.Read(p.request.Platform.Files(), p.pinned, p.Model, satisfies)
	p.Model.Clusters, p.Model.ClustersIncomplete = f.Clusters, f.Incomplete
	p.Model.ClusterTypes, p.split = f.ClusterTypes, f.Split
	// the folders of some clusters are not known
	p.Model.Incomplete = p.Model.Incomplete || len(f.Split) > 0
	for _, ref := range f.Invalid {
		p.Model.Invalid[ref] = true
	}
	if p.digests {
		p.Source.Base = addDigest(p.Source.Base, f.Base)
		p.Source.Environment = addDigest(p.Source.Environment, f.Environment)
	}
	return ds
}

// pinned returns the files and the revision that the lock pins for the source of an inventory.
func (p *Inputs) pinned(m model.Manifests) (tree *archive.Tree, revision string,
	ds []diag.Diagnostic) {
	source, _ := dependency.SourceOf(m)
	entry, ds := p.request.Library.Pinned(source)
	if len(ds) == 0 {
		tree, ds = p.request.Library.Tree(entry)
	}
	return tree, entry.Revision, ds
}

// sourceOf returns the source of the environment: the commits that the request names, or
// otherwise digests of the files.
func (p *Inputs) sourceOf(pkg *evaluate.Package) tree.Source {
	if p.request.Source != nil {
		return *p.request.Source
	}
	if of, known := p.request.Sources[p.Name]; known {
		return of
	}
	p.digests = true
	s := tree.Source{Base: tree.Revision(pkg.Base), Environment: tree.Revision(pkg.Own)}
	if locked := p.request.Library.Digest(); locked != "" {
		s.Base = tree.Revision(model.DigestBytes([]byte(string(pkg.Base) + string(locked))))
	}
	return s
}

// ringsOf returns the ring of each cluster type, with the rings of the request. The members of
// the request take precedence over labels.
func (p *Inputs) ringsOf(r *Request, satisfies selector.Satisfier) (map[string]string,
	[]diag.Diagnostic) {
	if r.Members == nil {
		return schedule.Rings(p.Name, r.Rings, p.Model.ClusterTypes, satisfies)
	}
	rings, others := map[string]string{}, []model.ClusterType{}
	for i := range p.Model.ClusterTypes {
		ct := &p.Model.ClusterTypes[i]
		if ring, known := r.Members[ct.TypeName()]; known {
			rings[ct.Name] = ring
		} else {
			others = append(others, *ct)
		}
	}
	more, ds := schedule.Rings(p.Name, r.Rings, others, satisfies)
	maps.Copy(rings, more)
	return rings, slices.DeleteFunc(ds,
		func(d diag.Diagnostic) bool { return d.Severity == diag.Warning })
}

// checkRings sets the declared rings of the environment. It reports cluster types that are not in
// exactly one of them.
func (p *Inputs) checkRings(satisfies selector.Satisfier) []diag.Diagnostic {
	declarations := p.request.Declarations
	n := slices.IndexFunc(declarations, func(s model.Declaration) bool { return s.Name == p.Name })
	if n < 0 || declarations[n].Invalid {
		return nil
	}
	rings := declarations[n].Promotion.Rings
	if p.Model.Rings != nil { // the environment's own files override them
		rings = p.Model.Rings
	}
	var ds []diag.Diagnostic
	p.declared, ds = schedule.Rings(p.Name, rings, p.Model.ClusterTypes, satisfies)
	if p.Model.Incomplete { // errors may hide cluster types of a ring
		ds = slices.DeleteFunc(ds, func(d diag.Diagnostic) bool { return d.Severity == diag.Warning })
	}
	return ds
}

// checkContent reports an environment without cluster types.
func (p *Inputs) checkContent() []diag.Diagnostic {
	if len(p.Model.ClusterTypes) > 0 || p.Model.Incomplete {
		return nil
	}
	ref := model.Ref{Collection: "environments", Name: p.Name}
	return []diag.Diagnostic{diag.New(diag.NoContent,
		"environment "+p.Name+" has no cluster types").At(ref, "").On(ref.String()).
		Hinting("declare clusterTypes in environments/" + p.Name)}
}

// checkNumbers warns if the bound on removals is a number, because such a bound counts each
// listed cluster separately. Budgets of promotion have no other form.
func (p *Inputs) checkNumbers() []diag.Diagnostic {
	if n, err := strconv.Atoi(p.Model.MaxRemovals); err != nil || n == 0 ||
		len(p.Model.Clusters) == 0 {
		return nil
	}
	ref := model.Ref{Collection: "environments", Name: p.Name}.At("removals.max")
	return []diag.Diagnostic{diag.New(diag.NumberOfPairs,
		fmt.Sprintf("removals.max of environment %s is a number, and counts an assignment on each "+
			"cluster for itself", p.Name)).
		At(ref, "").On(ref.String()).Hinting("write a percentage, or check the number")}
}

// checkClusterValues reports values of single clusters that their reconciler does not deliver.
func (p *Inputs) checkClusterValues() (ds []diag.Diagnostic) {
	for i := range p.Model.ClusterTypes {
		ct := &p.Model.ClusterTypes[i]
		r := p.reconciler(ct)
		if r == nil || p.backend(ct).Traits().PerCluster {
			continue
		}
		for _, c := range p.clusters[ct.Name] {
			if c.Values != nil {
				ref := model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}
				ds = append(ds, diag.New(diag.ClusterValues,
					"the values of cluster "+c.Name+" reach nothing: the reconciler "+r.Name+
						" has one folder for all clusters of a type").
					On(ref.String()).At(ref, "").Hinting(fmt.Sprintf("copy cluster type %s to clusterTypes: "+
					"%[2]q, add that to the policies that name %[1]s, and write clusters: %[2]q: clusterType: "+
					"%[2]q without values and configs: %[2]q: {match: clusterType: %[2]q, values: {...}}",
					ct.TypeName(), c.Name)))
			}
		}
	}
	return ds
}

// checkClusterKeys warns of values of single clusters with names that look like misspelt names of
// configs' or config schemas' values. It warns of each name once.
func (p *Inputs) checkClusterKeys() []diag.Diagnostic {
	var known []string
	for i := range p.Model.Configs {
		c := &p.Model.Configs[i]
		for _, tree := range []model.Tree{c.Values, c.Defaults, c.Overrides} {
			for _, f := range tree.Fields {
				known = append(known, f.Name)
			}
		}
	}
	for i := range p.Model.ConfigSchemas {
		if schema := p.Model.ConfigSchemas[i].Schema; schema != nil {
			for _, f := range schema.Fields {
				known = append(known, model.Elements(f.Path)[0])
			}
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	var ds []diag.Diagnostic
	seen := map[string]bool{}
	for i := range p.Model.Clusters {
		c := &p.Model.Clusters[i]
		if c.Values == nil {
			continue
		}
		for _, f := range c.Values.Fields() {
			if seen[f.Name] {
				continue
			}
			seen[f.Name] = true
			near := slices.IndexFunc(known,
				func(name string) bool { return spelling.Misspelt(f.Name, name) })
			if _, there := slices.BinarySearch(known, f.Name); there || near < 0 {
				continue
			}
			ref := model.Ref{Collection: clusters, Name: c.Name,
				Path: model.JoinPath("values", model.Label(f.Name))}
			ds = append(ds, diag.New(diag.LikelyMisspelt,
				fmt.Sprintf("no config has a value %s, which cluster %s has, and it looks like %s", f.Name,
					c.Name, known[near])).
				At(ref, "").On(ref.String()).Suggesting(f.Name, known[near:near+1]))
		}
	}
	return ds
}
