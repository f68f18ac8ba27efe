// Package check checks what needs several entities at once: references, names, and how
// commits come from environment to environment. It has no CUE, so that entities from a cache
// are checked like those that were evaluated.
package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Use is where something is referred to by its name.
type Use struct {
	Ref  model.Ref
	Name string
	// Elsewhere says that it need not be one of this platform.
	Elsewhere bool
}

// Entities are those of a package, with what the checks of several at once need. They
// have no CUE: what comes from a cache is checked like what was evaluated.
type Entities struct {
	*finding.Set
	All  []model.Ref // invalid ones included
	Uses []Use
	// Unread are registrations of which an error hides what they bring.
	Unread []*model.Registration
}

// Finish makes the findings a part of the model. What hides assignments with its errors
// makes the environment incomplete.
func (x *Entities) Finish(env *model.Environment) *model.Environment {
	for ref := range x.Invalid {
		switch ref.Collection {
		case "clusterTypes", "workloads", "schedulingPolicies", "registrations":
			x.Incomplete = true
		}
	}
	env.Positions, env.Invalid, env.Incomplete = x.Positions, x.Invalid, x.Incomplete
	return env
}

// names returns the names of a collection's entities, invalid ones included, sorted.
func (x *Entities) names(collection string) []string {
	var names []string
	for _, ref := range x.All {
		if ref.Collection == collection {
			names = append(names, ref.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (x *Entities) reference(kind, name string, among []string, ref model.Ref) {
	if slices.Contains(among, name) {
		return
	}
	d := diag.New(diag.UnknownReference,
		fmt.Sprintf("there is no %s %s", kind, name)).On(ref.String()).Suggesting(name, among)
	if way := declaring(name); kind == "reconciler" && way != "" && d.Suggestion == (diag.Suggestion{}) {
		d = d.Hinting(strings.Trim(way+"; "+d.Hint, "; "))
	}
	x.Fail(ref, d)
}

// declaring says how to declare a reconciler that is called as what it is a configuration of; ""
// for another.
func declaring(name string) string {
	backends := shape.Of("reconcilers")
	backend := name
	if !slices.Contains(backends.OneOf[0], name) {
		backend = spelling.Meant(name, backends.OneOf[0])
	}
	if backend == "" {
		return ""
	}
	fields := "{}"
	if of := backends.Fields[backend].Shape; slices.ContainsFunc(of.Names(),
		func(name string) bool { return of.Fields[name].Required }) || len(of.OneOf) > 0 {
		fields = "{…}"
	}
	return fmt.Sprintf("declare it: reconcilers: %s: %s: %s", model.Label(name), backend, fields)
}

// References reports references to what is not there, and full names that
// two deployment targets have.
func (x *Entities) References(env *model.Environment) {
	environments := x.names("environments")
	for _, u := range x.Uses {
		if u.Elsewhere && !slices.Contains(environments, u.Name) {
			d := diag.New(diag.UnknownReference,
				"there is no environment "+u.Name+": the deployment target is left out").At(u.Ref, "").On(u.Ref.String()).
				Suggesting(u.Name, environments)
			d.Severity = diag.Warning
			x.Fail(u.Ref, d)
			continue
		}
		x.reference("environment", u.Name, environments, u.Ref)
		if slices.Contains(environments, u.Name) && u.Name != env.Name {
			x.place(u, env.Name)
		}
	}
	reconcilers, services := x.names("reconcilers"), x.names("namespaceServices")
	if !slices.Contains(services, shape.DefaultNamespaceService) {
		services = append(services, shape.DefaultNamespaceService)
	}
	for _, c := range env.ClusterTypes {
		ref := c.Ref()
		x.reference("reconciler", c.Reconciler, reconcilers, ref.At("reconciler"))
		x.reference("namespace service", c.NamespaceService, services, ref.At("namespaceService"))
	}
	x.workspaces(env)
	clusterTypes := x.names("clusterTypes")
	for _, c := range env.Clusters {
		if c.ClusterType != "" {
			x.reference("cluster type", c.ClusterType, clusterTypes,
				model.Ref{Collection: "clusters", Name: c.Name, Path: "clusterType"})
		}
	}
	for _, i := range env.Inventories {
		if i.ClusterType != "" {
			x.reference("cluster type", i.ClusterType, clusterTypes,
				model.Ref{Collection: "inventories", Name: i.Name, Path: "clusterType"})
		}
	}
	env.ClusterTypes = slices.DeleteFunc(env.ClusterTypes, func(c model.ClusterType) bool {
		return x.Invalid[c.Ref()]
	})
	x.fullNames(env)
}

// place warns of a deployment target that is written in the folder of an environment that
// it is not for: its own does not see it.
func (x *Entities) place(u Use, environment string) {
	ref := u.Ref
	ref.Path = strings.TrimSuffix(ref.Path, ".environment")
	at := x.Positions.Of(ref)
	if len(at) == 0 || slices.ContainsFunc(at, func(p model.Position) bool {
		return !strings.HasPrefix(p.File, source.Environments+"/"+environment+"/")
	}) {
		return
	}
	target := ref.Path[strings.LastIndexByte(ref.Path, '.')+1:]
	fullName := model.FullName(ref.Name, strings.Trim(target, `"`))
	x.Report(diag.New(diag.Unassigned,
		fmt.Sprintf("deployment target %s is for environment %s, which does not load the files of %s",
			fullName, u.Name, environment)).
		At(ref, "").On(ref.String()).Hinting(fmt.Sprintf("move it to a file at the platform's root or "+
		"in %s/%s", source.Environments, u.Name)))
}

// tooMany is the number of fields from which on CUE's time for one struct grows
// with its square.
const tooMany = 10_000

// Many warns of collections that are too large for CUE.
func (x *Entities) Many() {
	for _, collection := range model.CollectionNames {
		if names := x.names(collection); len(names) > tooMany {
			first := model.Ref{Collection: collection, Name: names[0]}
			x.Report(diag.New(diag.ManyEntities,
				fmt.Sprintf("%s has %d entities, and CUE becomes slow above %d", collection, len(names), tooMany)).
				InEach(x.Positions.Of(first)...).On(collection).Hinting("split the environment, or give what is alike one name"))
		}
	}
}

// workspaces warns of workloads of a workspace that is not declared, where others are.
func (x *Entities) workspaces(env *model.Environment) {
	declared := x.names("workspaces")
	if len(declared) == 0 {
		return
	}
	for _, w := range env.Workloads {
		if slices.Contains(declared, w.Workspace) {
			continue
		}
		ref := model.Ref{Collection: "workloads", Name: w.Name, Path: "workspace"}
		d := diag.New(diag.UnknownReference,
			"there is no workspace "+w.Workspace+": what the workload may bring follows from where it is "+
				"declared").On(ref.String()).At(ref, "").
			Suggesting(w.Workspace, declared)
		d.Severity = diag.Warning
		x.Report(d)
	}
}
