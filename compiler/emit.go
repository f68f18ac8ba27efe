package compiler

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/argocd"
	"github.com/kalypso-io/kalypso/backends/flux"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// allBackends are the backends, by their key in #Reconciler.
var allBackends = func() map[string]backends.Backend {
	all := map[string]backends.Backend{}
	for _, b := range []backends.Backend{flux.New(), argocd.New()} {
		all[b.Name()] = b
	}
	return all
}()

// emission is what the backend made of one assignment.
type emission struct {
	backends.Emission
	folder backends.Folder
	ds     []diag.Diagnostic
	failed bool
}

// emit makes the environment's tree. What failed, here or before, keeps its
// folder of the record.
func (e *Environment) emit(ctx context.Context, record *tree.Record) {
	if e.Model.Sick[model.Ref{Collection: "environments", Name: e.Name}] {
		return // its gitops is not known: the output stays as it is
	}
	emissions := e.emitAll(ctx)
	for i := range emissions {
		e.report(emissions[i].ds)
	}
	e.checkObjects(emissions)
	k := newKeeper(e, record)
	e.settle(emissions, k)
	for i := range emissions {
		e.failed[i] = emissions[i].failed
	}
	k.explain(e.diagnostics)
	e.Tree = &tree.Tree{}
	for ct, s := range e.spans {
		e.Tree.ClusterTypes = append(e.Tree.ClusterTypes, e.clusterType(ct, s.first, emissions[s.first:s.next], k))
	}
	e.Tree.ClusterTypes = append(e.Tree.ClusterTypes, k.clusterTypes()...)
	slices.SortFunc(e.Tree.ClusterTypes, func(a, b tree.ClusterType) int { return strings.Compare(a.Name, b.Name) })
	e.reportNamespaces(record)
	e.reportIndexes(record)
}

// span is a range of assignments by number: from first, up to next.
type span struct{ first, next int }

// spans iterates over the cluster types with the assignments of each, which the
// schedule sorts by cluster type.
func (e *Environment) spans(yield func(*model.ClusterType, span) bool) {
	all := e.Schedule.Assignments
	first := 0
	for i := range e.Model.ClusterTypes {
		ct := &e.Model.ClusterTypes[i]
		next := first
		for next < len(all) && all[next].ClusterType.Name == ct.Name {
			next++
		}
		if !yield(ct, span{first, next}) {
			return
		}
		first = next
	}
}

// emitAll emits every healthy assignment.
func (e *Environment) emitAll(ctx context.Context) []emission {
	out := make([]emission, len(e.Schedule.Assignments))
	var group errgroup.Group
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() error {
			for i := w; i < len(out) && ctx.Err() == nil; i += workers {
				out[i] = e.emitOne(&e.Schedule.Assignments[i], &e.Compositions[i])
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return out
}

func (e *Environment) emitOne(a *schedule.Assignment, c *compose.Composition) emission {
	if a.Failed || c.Failed {
		return emission{failed: true}
	}
	r := e.reconciler(a.ClusterType)
	in := e.assignment(a, c)
	out := emission{folder: backends.Folder{
		DeploymentTarget: in.DeploymentTarget,
		Workspace:        in.Workspace,
		Workload:         in.Workload,
		Namespace:        in.Namespace,
		Version:          in.Version,
		Orphan:           orphans(c),
		DependsOn:        in.DependsOn,
		Wave:             in.Wave,
		Backend:          r.Backend,
	}}
	out.Emission, out.ds = allBackends[r.Backend].Emit(in)
	out.folder.Shared = out.Shared
	for i := range out.ds {
		out.ds[i] = locate(out.ds[i], c.Graph).For(in.ID())
	}
	out.failed = diag.Errors(out.ds)
	return out
}

// orphans says whether the namespace outlives the assignment.
func orphans(c *compose.Composition) bool {
	deletion, _ := c.NamespaceService.Lookup("deletion")
	return deletion.Text() == "orphan"
}

// locate adds where the values come from to a diagnostic about one of them.
func locate(d diag.Diagnostic, g *compose.Graph) diag.Diagnostic {
	for _, leaf := range g.Leaves {
		if d.Path != "" && leaf.Path == d.Path {
			for _, o := range leaf.From {
				d.Sites = append([]diag.Site{{Ref: o.Ref}}, d.Sites...)
			}
		}
	}
	return d
}

// assignment is everything that was decided, as a backend sees it.
func (e *Environment) assignment(a *schedule.Assignment, c *compose.Composition) *backends.Assignment {
	out := &backends.Assignment{
		Environment:      e.Name,
		ClusterType:      a.ClusterType.Name,
		Workspace:        a.Workload.Workspace,
		Application:      a.Workload.Application,
		Workload:         a.Workload.Name,
		Target:           a.Target.Name,
		DeploymentTarget: a.Target.FullName,
		Namespace:        c.Namespace,
		Version:          a.Version,
		GitOps:           e.Model.GitOps,
		Manifests:        a.Manifests,
		ConfigFormat:     a.ClusterType.ConfigFormat,
		Values:           c.Graph.Plain,
		NamespaceService: backends.Spec{Ref: model.Ref{Collection: "namespaceServices", Name: a.ClusterType.NamespaceService}, Value: c.NamespaceService},
		Reconciler:       backends.Spec{Ref: reconcilerRef(a.ClusterType), Value: c.Reconciler},
		DependsOn:        a.DependsOn,
		Wave:             a.Wave,
		Ref:              a.Workload.TargetRef(a.Target.Name),
	}
	for _, s := range c.Graph.Secrets {
		out.Secrets = append(out.Secrets, secretOf(s))
	}
	return out
}

func secretOf(s compose.Secret) backends.Secret {
	text := func(name string) string {
		v, there := s.Ref.Lookup(name)
		if !there {
			return ""
		}
		return v.Text()
	}
	return backends.Secret{Name: s.Path, Store: text("store"), Key: text("key"), Property: text("property"), Version: text("version")}
}

// reconciler returns the cluster type's reconciler; nil where it is sick.
func (e *Environment) reconciler(ct *model.ClusterType) *model.Reconciler {
	i, found := slices.BinarySearchFunc(e.Model.Reconcilers, ct.Reconciler, func(r model.Reconciler, name string) int {
		return strings.Compare(r.Name, name)
	})
	if !found {
		return nil
	}
	return &e.Model.Reconcilers[i]
}

func reconcilerRef(ct *model.ClusterType) model.Ref {
	return model.Ref{Collection: "reconcilers", Name: ct.Reconciler}
}

// mayShareCluster says whether objects of several cluster types may land on one
// cluster: those of Argo CD, which may serve them all.
func mayShareCluster(o backends.Object) bool { return o.Group == "argoproj.io" }

// checkObjects reports objects that two assignments of a cluster type create.
func (e *Environment) checkObjects(emissions []emission) {
	type key struct {
		clusterType string
		backends.Object
	}
	first := map[key]int{}
	for i := range emissions {
		if emissions[i].failed {
			continue
		}
		a := &e.Schedule.Assignments[i]
		for _, o := range emissions[i].Objects {
			k := key{a.ClusterType.Name, o}
			if mayShareCluster(o) {
				k.clusterType = ""
			}
			j, taken := first[k]
			if !taken {
				first[k] = i
				continue
			}
			if j == i {
				continue
			}
			other := &e.Schedule.Assignments[j]
			hint := "let the name use what tells them apart: #assignment.deploymentTarget"
			if a.ClusterType.Name != other.ClusterType.Name {
				hint = "one Argo CD may serve both cluster types: let the name use #assignment.clusterType as well"
			}
			d := diag.New(diag.NameCollision, fmt.Sprintf("two assignments create the %s %s", o.Kind, o.Name)).
				At(a.Workload.TargetRef(a.Target.Name), "").At(other.Workload.TargetRef(other.Target.Name), "").
				Hinting(hint).
				For(a.ID(e.Name), other.ID(e.Name))
			e.report([]diag.Diagnostic{d})
			emissions[i].failed, emissions[j].failed = true, true
		}
	}
}

// clusterType makes the folder of a cluster type from the emissions of its
// assignments, the first of which is number first.
func (e *Environment) clusterType(ct *model.ClusterType, first int, emissions []emission, k *keeper) tree.ClusterType {
	out := tree.ClusterType{Name: ct.Name}
	for i := range emissions {
		a := &e.Schedule.Assignments[first+i]
		if emissions[i].failed {
			if folder, kept := k.assignment(a); kept {
				out.Folders = append(out.Folders, folder)
			}
			continue
		}
		out.Folders = append(out.Folders, tree.Folder{Info: emissions[i].folder, Files: emissions[i].Files, Values: e.Compositions[first+i].Graph.Digest})
	}
	out.Folders = append(out.Folders, k.others(ct.Name, out.Folders)...)
	var kept []backends.Folder
	there := map[string]bool{}
	for _, f := range out.Folders {
		there[f.Info.DeploymentTarget] = true
		if f.Kept != nil {
			kept = append(kept, f.Info)
		}
	}
	for _, f := range k.needed(ct.Name, kept, there) {
		out.Folders = append(out.Folders, tree.Folder{Info: f, Kept: &tree.Kept{Reason: "a folder that is kept depends on it"}})
	}
	slices.SortFunc(out.Folders, func(a, b tree.Folder) int {
		return strings.Compare(a.Info.DeploymentTarget, b.Info.DeploymentTarget)
	})
	out.Files, out.Kept = e.index(ct, out.Folders)
	return out
}

// index makes the files at a cluster type's root; kept is the reason why it cannot.
func (e *Environment) index(ct *model.ClusterType, folders []tree.Folder) (files []backends.File, kept string) {
	r := e.reconciler(ct)
	if _, known := e.shared[ct.Name]; r == nil || !known {
		return nil, "the reconciler " + ct.Reconciler + " has errors"
	}
	if slices.ContainsFunc(folders, func(f tree.Folder) bool { return f.Info.Backend != r.Backend }) {
		return nil, "folders of another reconciler are kept" // settle has reported it
	}
	files, ds := allBackends[r.Backend].Index(e.backendClusterType(ct), infos(folders))
	e.report(ds)
	if diag.Errors(ds) {
		return nil, "errors: " + codes(ds)
	}
	return files, ""
}

func (e *Environment) backendClusterType(ct *model.ClusterType) *backends.ClusterType {
	return &backends.ClusterType{
		Environment: e.Name,
		Name:        ct.Name,
		Description: ct.Description,
		GitOps:      e.Model.GitOps,
		Reconciler:  backends.Spec{Ref: reconcilerRef(ct), Value: e.shared[ct.Name]},
		Ref:         model.Ref{Collection: "clusterTypes", Name: ct.Name},
	}
}

func infos(folders []tree.Folder) []backends.Folder {
	out := make([]backends.Folder, len(folders))
	for i, f := range folders {
		out[i] = f.Info
	}
	return out
}

// codes lists the codes of the errors among diagnostics.
func codes(ds []diag.Diagnostic) string {
	var out []string
	for _, d := range ds {
		if d.Severity == diag.Error {
			out = append(out, string(d.Code))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}
