package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/fleet"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/selector"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Inputs is an environment of which it is known what is assigned where, and what each
// assignment is configured by: what all steps of its build read.
type Inputs struct {
	Name   string
	Source tree.Source
	// Model is nil where nothing of the environment can be read. Then Schedule and Plan
	// are nil too.
	Model    *model.Environment
	Schedule *schedule.Schedule
	// Plan says what the assignments of the schedule are configured by.
	Plan *compose.Plan

	request  *Request
	split    []string                   // cluster types whose clusters are told apart, and must not be
	digests  bool                       // whether Source is known by the digests of files
	clusters map[string][]model.Cluster // by cluster type, sorted by name
	spans    []span                     // by cluster type of the model
	// rings are those of the request, by cluster type; one that is in several or none
	// is absent.
	rings map[string]string
	// declared are all rings of the environment, as rings are.
	declared map[string]string
	// bounded are the cluster types that workspaces may be on which select them, by workspace.
	bounded map[string]map[string]bool
}

// Ring returns the ring of a cluster type, or of a class of one; "" where it is in none, or
// in several.
func (p *Inputs) Ring(clusterType string) string { return p.declared[clusterType] }

// OCI returns where the environment's gitops keeps its tree; nil where that is no
// OCI registry, or not known.
func (p *Inputs) OCI() *tree.OCI {
	if p.Model == nil || p.Model.GitOps == nil || p.Model.GitOps.OCI == "" {
		return nil
	}
	g := p.Model.GitOps
	return &tree.OCI{Repository: g.OCI, Tag: g.Tag, Path: g.Path}
}

// Git returns where the environment's gitops keeps its tree; nil where that is no git repository,
// or not known.
func (p *Inputs) Git() *tree.Git {
	if p.Model == nil || p.Model.GitOps == nil || p.Model.GitOps.Repo == "" {
		return nil
	}
	g := p.Model.GitOps
	return &tree.Git{Repository: g.Repo, Branch: g.Branch, Path: g.Path}
}

// Formerly returns the earlier names of the environment.
func (p *Inputs) Formerly() []string {
	out := p.request.Formerly
	for i := range p.request.Declarations {
		if d := &p.request.Declarations[i]; d.Name == p.Name {
			out = append(slices.Clip(out), d.Formerly...)
		}
	}
	return out
}

// plan evaluates and schedules the environment, and plans its configuration.
func (p *Inputs) plan(ctx context.Context, out *reports) error {
	r := p.request
	start := time.Now()
	pkg, ds, err := evaluate.Environment(ctx, r.Platform, p.Name, r.Declarations,
		evaluate.Options{Cache: r.Meter.Packages(), Registry: r.Registry, Workers: r.Workers, Supervisor: r.Supervisor})
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
	p.rings, ds = p.ringsOf(r, satisfies)
	out.add(ds...)
	p.bounded = schedule.Bounded(p.Model, satisfies)
	p.Schedule, ds = schedule.Assign(p.Model, satisfies)
	out.add(ds...)
	if r.Ring == "" {
		out.add(p.checkRings(satisfies)...)
	}
	if p.Plan, ds, err = compose.NewPlan(ctx, p.Model, p.Schedule, functions{p, pkg}, satisfies, elsewhere); err != nil {
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

// byFolder returns clusters by the folders that they follow, in one piece of memory: there may
// be a million.
func byFolder(clusters []model.Cluster) map[string][]model.Cluster {
	sizes := map[string]int{}
	for i := range clusters {
		sizes[clusters[i].Folder]++
	}
	all, out := make([]model.Cluster, len(clusters)), make(map[string][]model.Cluster, len(sizes))
	for folder, size := range sizes {
		out[folder], all = all[:0:size], all[size:]
	}
	for i := range clusters {
		out[clusters[i].Folder] = append(out[clusters[i].Folder], clusters[i])
	}
	return out
}

// readFleet reads the inventories, so that the model has all clusters. What they hold is
// a part of the source, where that is known by the digests of files.
func (p *Inputs) readFleet(satisfies selector.Satisfier) []diag.Diagnostic {
	f, ds := fleet.Read(p.request.Platform.Files(), p.pinned, p.Model, satisfies)
	p.Model.Clusters, p.Model.ClustersIncomplete = f.Clusters, f.Incomplete
	p.Model.ClusterTypes, p.split = f.ClusterTypes, f.Split
	p.Model.Incomplete = p.Model.Incomplete || len(f.Split) > 0 // what is for which cluster is not known
	for _, ref := range f.Invalid {
		p.Model.Invalid[ref] = true
	}
	if p.digests {
		p.Source.Base = with(p.Source.Base, f.Base)
		p.Source.Environment = with(p.Source.Environment, f.Environment)
	}
	return ds
}

// pinned returns what the lock pins of the source of an inventory.
func (p *Inputs) pinned(m model.Manifests) (tree *archive.Tree, revision string, ds []diag.Diagnostic) {
	source, _ := dependency.SourceOf(m)
	entry, ds := p.request.Library.Pinned(source)
	if len(ds) == 0 {
		tree, ds = p.request.Library.Tree(entry)
	}
	return tree, entry.Revision, ds
}

// with returns a digest of files with that of others; a zero one is of none.
func with(files tree.Revision, others [sha256.Size]byte) tree.Revision {
	if others == [sha256.Size]byte{} {
		return files
	}
	return tree.Revision(model.DigestBytes(append([]byte(files), others[:]...)))
}

// sourceOf returns what the environment is compiled from: the commits that the
// request names, or else digests of the files.
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

// ringsOf returns the ring of each cluster type of the request: what the request's members say, or else
// what labels say.
func (p *Inputs) ringsOf(r *Request, satisfies selector.Satisfier) (map[string]string, []diag.Diagnostic) {
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
	return rings, slices.DeleteFunc(ds, func(d diag.Diagnostic) bool { return d.Severity == diag.Warning })
}

// checkRings reports cluster types that are not in one ring of those that the
// environment has.
func (p *Inputs) checkRings(satisfies selector.Satisfier) []diag.Diagnostic {
	declarations := p.request.Declarations
	n := slices.IndexFunc(declarations, func(s model.Declaration) bool { return s.Name == p.Name })
	if n < 0 || declarations[n].Invalid {
		return nil
	}
	rings := declarations[n].Promotion.Rings
	if p.Model.Rings != nil { // its own files have others
		rings = p.Model.Rings
	}
	var ds []diag.Diagnostic
	p.declared, ds = schedule.Rings(p.Name, rings, p.Model.ClusterTypes, satisfies)
	if p.Model.Incomplete { // a ring may have what is not known
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

// checkNumbers warns of a bound on removals that is a number, since it counts each listed
// cluster for itself. Budgets of promotion have no other form.
func (p *Inputs) checkNumbers() []diag.Diagnostic {
	if n, err := strconv.Atoi(p.Model.MaxRemovals); err != nil || n == 0 || len(p.Model.Clusters) == 0 {
		return nil
	}
	ref := model.Ref{Collection: "environments", Name: p.Name}.At("removals.max")
	return []diag.Diagnostic{diag.New(diag.NumberOfPairs,
		fmt.Sprintf("removals.max of environment %s is a number, and counts an assignment on each "+
			"cluster for itself", p.Name)).
		At(ref, "").On(ref.String()).Hinting("write a percentage, or check the number")}
}

// checkClusterValues reports values of single clusters that reach nothing.
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
					"%[2]q, add that to the policies that name %[1]s, and write clusters: %[2]q: clusterType: %[2]q "+
					"without values and configs: %[2]q: {match: clusterType: %[2]q, values: {...}}", ct.TypeName(), c.Name)))
			}
		}
	}
	return ds
}

// checkClusterKeys warns of values of single clusters whose names look like one that configs or
// config schemas have, each name once.
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
			near := slices.IndexFunc(known, func(name string) bool { return spelling.Misspelt(f.Name, name) })
			if _, there := slices.BinarySearch(known, f.Name); there || near < 0 {
				continue
			}
			ref := model.Ref{Collection: clusters, Name: c.Name, Path: model.JoinPath("values", model.Label(f.Name))}
			ds = append(ds, diag.New(diag.LikelyMisspelt,
				fmt.Sprintf("no config has a value %s, which cluster %s has, and it looks like %s", f.Name,
					c.Name, known[near])).
				At(ref, "").On(ref.String()).Suggesting(f.Name, known[near:near+1]))
		}
	}
	return ds
}

// span is a range of assignments by number: from first, up to next.
type span struct{ first, next int }

// spansOf returns the assignments of each cluster type: the schedule sorts them by
// cluster type.
func spansOf(m *model.Environment, s *schedule.Schedule) []span {
	out := make([]span, len(m.ClusterTypes))
	first := 0
	for i := range m.ClusterTypes {
		next := first
		for next < len(s.Assignments) && s.Assignments[next].ClusterType.Name == m.ClusterTypes[i].Name {
			next++
		}
		out[i] = span{first, next}
		first = next
	}
	return out
}

// hold fails the assignments of a cluster type, so that they keep their folders.
func (p *Inputs) hold(n int) {
	for i := p.spans[n].first; i < p.spans[n].next; i++ {
		p.Plan.Failed[i] = true
	}
}

// id returns the id of the assignment with this number.
func (p *Inputs) id(assignment int) string { return p.Schedule.Assignments[assignment].ID(p.Name) }

// reconciler returns the cluster type's reconciler; nil where it is sick.
func (p *Inputs) reconciler(ct *model.ClusterType) *model.Reconciler {
	i, found := slices.BinarySearchFunc(p.Model.Reconcilers, ct.Reconciler, func(r model.Reconciler, name string) int {
		return strings.Compare(r.Name, name)
	})
	if !found {
		return nil
	}
	return &p.Model.Reconcilers[i]
}

// backend returns the backend of a cluster type; nil where its reconciler is sick.
func (p *Inputs) backend(ct *model.ClusterType) backends.Backend {
	if r := p.reconciler(ct); r != nil {
		return p.request.Backends[r.Backend]
	}
	return nil
}

// BackendOf returns the name of the backend of a cluster type; "" where its reconciler is
// not known.
func (p *Inputs) BackendOf(clusterType string) string {
	for i := range p.Model.ClusterTypes {
		if ct := &p.Model.ClusterTypes[i]; ct.Name == clusterType && p.reconciler(ct) != nil {
			return p.reconciler(ct).Backend
		}
	}
	return ""
}

// delivered is a cluster type as its backend sees it.
func (p *Inputs) delivered(ct *model.ClusterType) *backends.ClusterType {
	return &backends.ClusterType{
		Environment: p.Name,
		Name:        ct.TypeName(),
		Folder:      ct.Name,
		Entries:     ct.Entries == model.ClusterEntries,
		Description: ct.Description,
		GitOps:      p.Model.GitOps,
		Clusters:    p.clusters[ct.Name],
		Reconciler:  backends.Spec{Ref: reconcilerRef(ct), Value: p.Plan.Shared[ct.Name]},
		Ref:         ct.Ref(),
	}
}

func reconcilerRef(ct *model.ClusterType) model.Ref {
	return model.Ref{Collection: "reconcilers", Name: ct.Reconciler}
}

// clusterNames returns the names of the clusters of a type, sorted.
func (p *Inputs) clusterNames(clusterType string) []string {
	var names []string
	for _, c := range p.clusters[clusterType] {
		names = append(names, c.Name)
	}
	return names
}

// Bootstrap returns what a cluster of a type needs to pull its folder, as a YAML stream:
// the named one of clusters, or any of them where cluster is "". folders are those of the
// cluster type. It returns nothing where the reconciler is not known.
func (p *Inputs) Bootstrap(ct *model.ClusterType, cluster string, folders []tree.Folder) ([]byte, []diag.Diagnostic) {
	of := p.delivered(ct)
	of.Cluster = cluster
	objects, ds := p.backend(ct).Bootstrap(of, infos(folders))
	diag.Resolve(ds, p.Model.Positions)
	return objects, ds
}

// Reconciled says whether the reconciler of a cluster type is known.
func (p *Inputs) Reconciled(ct *model.ClusterType) bool {
	_, known := p.Plan.Shared[ct.Name]
	return known && p.reconciler(ct) != nil
}

// key begins the key of a result in the cache: of everything that kalypso itself
// adds to what a result is made of.
func (p *Inputs) key(kind string) *cache.Hash { return p.begin(cache.NewHash(""), kind) }

// begin is key with a Hash that there is.
func (p *Inputs) begin(h *cache.Hash, kind string) *cache.Hash {
	h.Reset(kind).Key(p.request.Meter.identity)
	if p.Model.PlaintextFails {
		h.String("plaintext fails")
	}
	return h
}

// strict makes warnings of secrets in plain text errors, where the environment wants that.
// It changes what it is given.
func (p *Inputs) strict(ds []diag.Diagnostic) []diag.Diagnostic {
	for i := range ds {
		if p.Model.PlaintextFails && ds[i].Code == diag.Plaintext {
			ds[i].Severity = diag.Error
		}
	}
	return ds
}
