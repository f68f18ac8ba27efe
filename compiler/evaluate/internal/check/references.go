// Package check makes the checks that need several entities at once: of references, of names,
// and of the order in which environments get commits. It uses no CUE values, so that it checks
// cached and new entities alike.
package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Use is a reference to an environment by its name.
type Use struct {
	Ref  model.Ref
	Name string
	// Elsewhere reports whether the environment may be missing from this platform.
	Elsewhere bool
}

// Entities are the entities of a package, with the information for checks across several
// entities. They contain no CUE values, so the checks treat cached and new results alike.
type Entities struct {
	*finding.Set
	All  []model.Ref // invalid ones included
	Uses []Use
	// Unread are registrations whose entities are unknown because of an error.
	Unread []*model.Registration
}

// Finish adds the findings to the model. If an entity with errors may hide assignments, the
// environment is incomplete.
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
	if way := declaring(name); kind == "reconciler" && way != "" &&
		d.Suggestion == (diag.Suggestion{}) {
		d = d.Hinting(strings.Trim(way+"; "+d.Hint, "; "))
	}
	x.Fail(ref, d)
}

// declaring returns a hint on how to declare a reconciler whose name is the name of a backend,
// or close to one. It returns "" for any other name.
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

// References reports references to missing entities, and full names that two deployment targets
// share.
func (x *Entities) References(env *model.Environment) {
	environments := x.names("environments")
	for _, u := range x.Uses {
		if u.Elsewhere && !slices.Contains(environments, u.Name) {
			d := diag.New(diag.UnknownReference,
				"there is no environment "+u.Name+": the deployment target is left out").At(u.Ref,
				"").On(u.Ref.String()).
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

// place warns about a deployment target in the folder of a different environment: the target's
// own environment does not see it.
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

// tooMany is the number of fields above which CUE's time for a struct grows quadratically.
const tooMany = 10_000

// Many warns about collections that are too large for CUE.
func (x *Entities) Many() {
	for _, collection := range model.CollectionNames {
		if names := x.names(collection); len(names) > tooMany {
			first := model.Ref{Collection: collection, Name: names[0]}
			x.Report(diag.New(diag.ManyEntities,
				fmt.Sprintf("%s has %d entities, and CUE becomes slow above %d", collection, len(names),
					tooMany)).
				InEach(x.Positions.Of(first)...).On(collection).Hinting(
				"split the environment, or give what is alike one name"))
		}
	}
}

// workspaces warns about workloads of an undeclared workspace, if other workspaces are
// declared.
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

// Holder returns which of several claimants holds a name, and why. It returns -1 if no claimant
// holds it. A claimant is a registration, or nil for the platform's own files. The platform
// holds a name that it declares exactly once. Otherwise the only registration whose names cover
// the name holds it. If no names cover it, a single claimant holds it, unless an unreadable
// registration may also bring it.
func (x *Entities) Holder(name string, claimants []*model.Registration) (int, string) {
	var own, covering []int
	for i, r := range claimants {
		switch {
		case r == nil:
			own = append(own, i)
		case r.Names.Allow(name):
			covering = append(covering, i)
		}
	}
	unread := slices.IndexFunc(x.Unread,
		func(r *model.Registration) bool { return r.Names.Allow(name) })
	switch {
	case len(own) == 1:
		return own[0], "the platform declares it itself"
	case len(own) > 1:
		return -1, ""
	case len(covering) == 1:
		return covering[0], "its names cover " + name
	case len(covering) == 0 && unread >= 0:
		return -1, fmt.Sprintf("registration %s, whose names cover %s, cannot be read",
			x.Unread[unread].Name, name)
	case len(claimants) == 1:
		return 0, ""
	case len(covering) == 0:
		return -1, "the names of none cover " + name
	}
	of := make([]*model.Registration, len(covering))
	for i, n := range covering {
		of[i] = claimants[n]
	}
	return -1, "the names of " + Registrations(of) + " cover " + name
}

// Registrations lists registrations for messages, as "registrations a, b and c".
func Registrations(of []*model.Registration) string {
	var list []string
	for _, r := range of {
		if r != nil {
			list = append(list, r.Name)
		}
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) == 1 {
		return "registration " + list[0]
	}
	last := len(list) - 1
	return "registrations " + strings.Join(list[:last], ", ") + " and " + list[last]
}

// ClaimHint returns a hint on how the platform decides which registration holds a name.
func ClaimHint(name string) string {
	return fmt.Sprintf("to say whose it is, write %q into names of that registration, and leave it "+
		"out of the names of the others", name)
}

// target is a deployment target with a full name that other targets may share.
type target struct {
	workload     *model.Workload
	registration *model.Registration // nil for the platform's own
	name         string
}

func (t *target) ref() model.Ref { return t.workload.TargetRef(t.name) }

func (t *target) String() string {
	text := fmt.Sprintf("target %s of workload %s", t.name, t.workload.Name)
	if t.registration != nil {
		text += " of registration " + t.registration.Name
	}
	return text
}

// fullNames reports full names that several deployment targets share. It removes all of these
// targets except the holder of the name.
func (x *Entities) fullNames(env *model.Environment) {
	registrations := map[string]*model.Registration{}
	for i := range env.Registrations {
		registrations[env.Registrations[i].Name] = &env.Registrations[i]
	}
	claims := map[string][]target{}
	for i := range env.Workloads {
		w := &env.Workloads[i]
		for _, t := range w.Targets {
			claims[t.FullName] = append(claims[t.FullName], target{w, registrations[w.Registration], t.Name})
		}
	}
	for _, fullName := range slices.Sorted(maps.Keys(claims)) {
		by := claims[fullName]
		claimants := make([]*model.Registration, len(by))
		for i := range by {
			claimants[i] = by[i].registration
		}
		holder, why := x.Holder(fullName, claimants)
		if len(by) == 1 && holder == 0 {
			continue
		}
		hint := "rename one of the workloads or targets"
		if slices.ContainsFunc(by, func(t target) bool { return t.registration != nil }) {
			hint += "; " + ClaimHint(fullName)
		}
		var list []string
		for i := range by {
			list = append(list, by[i].String())
		}
		text, have := strings.Join(list, " and "), "have"
		if len(by) == 1 {
			have = "has"
		}
		text = fmt.Sprintf("%s %s the full name %s", text, have, fullName)
		switch {
		case holder >= 0:
			text += fmt.Sprintf(", which is that of the %s: %s", by[holder].String(), why)
		case why != "":
			text += ", and " + why
		}
		d := diag.New(diag.DuplicateTarget, text)
		for i := range by {
			d = d.At(by[i].ref(), "")
		}
		for i := range by {
			if i != holder {
				x.Fail(by[i].ref(), d.On(by[i].ref().String()).Hinting(hint))
			}
		}
		for i, t := range by {
			if i != holder {
				t.workload.Targets = slices.DeleteFunc(t.workload.Targets,
					func(of model.DeploymentTarget) bool { return of.Name == t.name })
			}
		}
	}
}
