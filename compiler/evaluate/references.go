package evaluate

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// entities are those of a package, with what the checks of several at once need. They
// have no CUE: what comes from a cache is checked like what was evaluated.
type entities struct {
	*findings
	all  []model.Ref // invalid ones included
	uses []Use
}

// finish makes the findings a part of the model. What hides assignments with its errors
// makes the environment incomplete.
func (x *entities) finish(env *model.Environment) *model.Environment {
	for ref := range x.invalid {
		switch ref.Collection {
		case "clusterTypes", "workloads", "schedulingPolicies", "registrations":
			x.incomplete = true
		}
	}
	env.Positions, env.Invalid, env.Incomplete = x.positions, x.invalid, x.incomplete
	return env
}

// names returns the names of a collection's entities, sick ones included.
func (x *entities) names(collection string) []string {
	var names []string
	for _, ref := range x.all {
		if ref.Collection == collection {
			names = append(names, ref.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (x *entities) reference(kind, name string, among []string, ref model.Ref) {
	if !slices.Contains(among, name) {
		x.fail(ref, diag.New(diag.UnknownReference, fmt.Sprintf("there is no %s %s", kind, name)).On(ref.String()).
			Hinting(diag.DidYouMean(name, among)))
	}
}

// impliedKeys are the facts that labels must not be named like.
var impliedKeys = []string{"environment", "workspace", "workload", "deploymentTarget", "clusterType"}

func (x *exporter) checkLabels(labels map[string]string, ref model.Ref) {
	for _, key := range impliedKeys {
		if _, there := labels[key]; there {
			at := ref.At(model.Label(key))
			x.fail(at, diag.New(diag.ImpliedLabel, "label "+key+" is named like an implied key").On(at.String()).
				Hinting("give the label another name"))
		}
	}
}

// checkReferences reports references to what is not there, and full names that
// two deployment targets have.
func (x *entities) checkReferences(env *model.Environment) {
	environments := x.names("environments")
	for _, u := range x.uses {
		if u.Elsewhere && !slices.Contains(environments, u.Name) {
			d := diag.New(diag.UnknownReference, "there is no environment "+u.Name+": the deployment target is left out").At(u.Ref, "").On(u.Ref.String()).
				Hinting(diag.DidYouMean(u.Name, environments))
			d.Severity = diag.Warning
			x.fail(u.Ref, d)
			continue
		}
		x.reference("environment", u.Name, environments, u.Ref)
	}
	reconcilers, services := x.names("reconcilers"), x.names("namespaceServices")
	if !slices.Contains(services, defaultNamespaceService) {
		services = append(services, defaultNamespaceService)
	}
	for _, c := range env.ClusterTypes {
		ref := model.Ref{Collection: "clusterTypes", Name: c.Name}
		x.reference("reconciler", c.Reconciler, reconcilers, ref.At("reconciler"))
		x.reference("namespace service", c.NamespaceService, services, ref.At("namespaceService"))
	}
	clusterTypes := x.names("clusterTypes")
	for _, c := range env.Clusters {
		x.reference("cluster type", c.ClusterType, clusterTypes, model.Ref{Collection: "clusters", Name: c.Name, Path: "clusterType"})
	}
	env.ClusterTypes = slices.DeleteFunc(env.ClusterTypes, func(c model.ClusterType) bool {
		return x.invalid[model.Ref{Collection: "clusterTypes", Name: c.Name}]
	})
	x.checkFullNames(env)
}

func (x *entities) checkFullNames(env *model.Environment) {
	first := map[string]model.Ref{}
	twice := map[string]bool{}
	for i := range env.Workloads {
		w := &env.Workloads[i]
		for _, t := range w.Targets {
			ref := w.TargetRef(t.Name)
			other, there := first[t.FullName]
			if !there {
				first[t.FullName] = ref
				continue
			}
			twice[t.FullName] = true
			d := diag.New(diag.DuplicateTarget, fmt.Sprintf("deployment target %s of workload %s and one of workload %s have the full name %s", t.Name, w.Name, other.Name, t.FullName)).
				At(other, "").At(ref, "").On(ref.String()).Hinting("rename one of the workloads or targets")
			x.fail(ref, d)
			x.invalid[other.Entity()] = true
		}
	}
	for i := range env.Workloads {
		env.Workloads[i].Targets = slices.DeleteFunc(env.Workloads[i].Targets, func(t model.DeploymentTarget) bool { return twice[t.FullName] })
	}
}

// checkFolders reports folders of environments without an entry.
func (x *stageChecker) checkFolders(p *source.Platform) {
	names := x.names("environments")
	for _, folder := range p.Folders {
		if slices.Contains(names, folder) {
			continue
		}
		hint := fmt.Sprintf("declare it in the base: environments: %s: {}", model.Label(folder))
		if !model.IsName(folder) {
			hint = "rename the folder: the name of an environment has at most 63 lower case letters, digits and dashes"
		}
		x.report(diag.New(diag.UndeclaredEnvironment, fmt.Sprintf("environments/%s is no environment: the base does not declare it", folder)).
			In(p.FirstFile(folder), "").Hinting(hint))
	}
}

// checkStages reports entries that wait for what is not there, entries that wait for
// each other, and policies that cannot be followed. What has an error is then sick.
func (x *stageChecker) checkStages(stages []model.Stage) {
	names := x.names("environments")
	after := map[string][]string{}
	for _, s := range stages {
		after[s.Name] = s.After
		for i, name := range s.After {
			x.reference("environment", name, names, model.Ref{Collection: "environments", Name: s.Name, Path: fmt.Sprintf("after[%d]", i)})
		}
	}
	if cycle := findCycle(after); cycle != nil {
		d := diag.New(diag.EnvironmentCycle, "environments wait for each other: "+strings.Join(cycle, " after ")).
			Hinting("remove one of the after entries")
		for _, name := range cycle[1:] {
			d = d.At(model.Ref{Collection: "environments", Name: name, Path: "after"}, "")
		}
		x.fail(model.Ref{Collection: "environments", Name: cycle[0]}, d)
	}
	x.checkPolicies(stages)
	for i := range stages {
		s := &stages[i]
		s.Invalid = x.invalid[model.Ref{Collection: "environments", Name: s.Name}]
	}
}

// checkOwnStages reports environments that only the environment's own files
// declare: what counts is what the base says, for all.
func (x *stageChecker) checkOwnStages(stages []model.Stage, name string) {
	if stages == nil {
		return
	}
	for _, key := range x.names("environments") {
		if model.IsName(key) && !slices.ContainsFunc(stages, func(s model.Stage) bool { return s.Name == key }) {
			ref := model.Ref{Collection: "environments", Name: key}
			x.report(x.atEntity(diag.New(diag.UndeclaredEnvironment, fmt.Sprintf("environment %s is declared in the files of %s only", key, name)), ref).On(ref.String()).
				Hinting("declare it in the base, which all environments share"))
		}
	}
}

// tooMany is the number of fields from which on CUE's time for one struct grows
// with its square.
const tooMany = 10_000

// checkMany warns of collections that are too large for CUE.
func (x *entities) checkMany() {
	for _, collection := range model.CollectionNames {
		if names := x.names(collection); len(names) > tooMany {
			x.report(x.atEntity(diag.New(diag.ManyEntities, fmt.Sprintf("%s has %d entities, and CUE becomes slow above %d", collection, len(names), tooMany)),
				model.Ref{Collection: collection, Name: names[0]}).On(collection).
				Hinting("split the environment, or give what is alike one name"))
		}
	}
}

// findCycle returns the nodes of a cycle, the first one again at the end; nil
// where there is none. It is the same whatever the order of the map.
func findCycle(edges map[string][]string) []string {
	var names []string
	for n := range edges {
		names = append(names, n)
	}
	slices.Sort(names)
	done := map[string]bool{}
	var path []string
	var visit func(n string) []string
	visit = func(n string) []string {
		if i := slices.Index(path, n); i >= 0 {
			return append(slices.Clone(path[i:]), n)
		}
		if done[n] {
			return nil
		}
		path = append(path, n)
		for _, m := range edges[n] {
			if c := visit(m); c != nil {
				return c
			}
		}
		path = path[:len(path)-1]
		done[n] = true
		return nil
	}
	for _, n := range names {
		if c := visit(n); c != nil {
			return c
		}
	}
	return nil
}

const defaultNamespaceService = "default"

// defaultNamespaceService returns the namespace service that exists even where
// the platform does not declare the collection: the schema's.
func (x *exporter) defaultNamespaceService() model.NamespaceService {
	if services, ok := x.shapes.schema("#NamespaceServices"); ok {
		ref := model.Ref{Collection: "namespaceServices", Name: defaultNamespaceService}
		if value, ok := x.read.entity(field(services, defaultNamespaceService), ref); ok {
			return model.NamespaceService{Name: defaultNamespaceService, Spec: &value}
		}
	}
	return model.NamespaceService{Name: defaultNamespaceService}
}

// schema returns a definition of the schema, where the platform imports it.
func (x *checker) schema(definition string) (cue.Value, bool) {
	for _, dep := range x.inst.Dependencies() {
		if dep.ImportPath == "kalypso.io/schema" {
			v := x.ctx.BuildInstance(dep).LookupPath(cue.MakePath(cue.Def(definition)))
			return v, v.Exists()
		}
	}
	return cue.Value{}, false
}
