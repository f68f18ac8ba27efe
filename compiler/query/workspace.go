package query

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Workspace is a workspace in one environment, with its bounds and its parts.
type Workspace struct {
	Environment string `json:"environment"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Profile is the profile of kalypso.io/stdlib/workspace that applies if the workspace is not
	// declared, or if a registration chose it; "" if the workspace is declared.
	Profile       string   `json:"profile,omitempty"`
	Owners        []string `json:"owners"`
	Workloads     []string `json:"workloads"`
	Registrations []string `json:"registrations"` // the registrations that bring some of the workloads
	Assignments   int      `json:"assignments"`
	Failed        int      `json:"failed"` // assignments with errors
	Bounds        []Bound  `json:"bounds"`
	Quota         []Usage  `json:"quota"`
	// Files are the platform's files that declare its workloads and registrations, sorted.
	Files []string `json:"files"`
}

// Bound is a field of a workspace with its allowed patterns.
type Bound struct {
	Field  string   `json:"field"` // a path, such as objects.namespaced
	Allows []string `json:"allows"`
}

// Usage is the requested part of a quota.
type Usage struct {
	Resource  string `json:"resource"`
	Requested string `json:"requested"`
	Quota     string `json:"quota"`
}

// Workspaces lists the declared workspaces and the workspaces of workloads, by environment, name
// and profile.
func Workspaces(b *compiler.Build) []Workspace {
	out := []Workspace{}
	for e := range readable(b) {
		items := map[[2]string]*Workspace{}
		item := func(name string, of *model.Workspace, declared bool) *Workspace {
			key := [2]string{name, ""}
			if !declared {
				key[1] = of.Name
			}
			if items[key] == nil {
				items[key] = workspaceOf(e, name, of, key[1])
			}
			return items[key]
		}
		for i := range e.Model.Workspaces {
			item(e.Model.Workspaces[i].Name, &e.Model.Workspaces[i], true)
		}
		counted := map[*model.Workload]*Workspace{}
		for i := range e.Model.Workloads {
			w := &e.Model.Workloads[i]
			of, declared := e.Model.WorkspaceOf(w)
			if of == nil { // it has errors
				continue
			}
			to := item(w.Workspace, of, declared)
			counted[w] = to
			to.Workloads = append(to.Workloads, w.Name)
			from := model.Ref{Collection: "workloads", Name: w.Name}
			if w.Registration != "" {
				from = model.Ref{Collection: "registrations", Name: w.Registration}
				to.Registrations = append(to.Registrations, w.Registration)
			}
			for _, at := range e.Model.Positions.Of(from) {
				to.Files = append(to.Files, at.File)
			}
		}
		for i := range e.Schedule.Assignments {
			if to := counted[e.Schedule.Assignments[i].Workload]; to != nil {
				to.Assignments++
				if e.Failed(i) {
					to.Failed++
				}
			}
		}
		for _, key := range slices.SortedFunc(maps.Keys(items), func(a, b [2]string) int {
			return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
		}) {
			w := items[key]
			for _, list := range []*[]string{&w.Registrations, &w.Files} {
				slices.Sort(*list)
				*list = slices.Compact(*list)
			}
			out = append(out, *w)
		}
	}
	return out
}

func workspaceOf(e *engine.Environment, name string, of *model.Workspace,
	profile string) *Workspace {
	w := &Workspace{
		Environment: e.Name, Name: name, Description: of.Description, Profile: profile,
		Owners: append([]string{}, of.Owners...), Workloads: []string{}, Registrations: []string{},
		Files: []string{},
		Quota: []Usage{},
	}
	for _, b := range []Bound{
		{"objects.namespaced", of.Objects.Namespaced},
		{"objects.clusterScoped", of.Objects.ClusterScoped},
		{"namespaces", of.Namespaces}, {"environments", of.Environments},
		{"clusterTypes", of.ClusterTypes},
		{"labels", of.Labels}, {"policies", of.Policies}, {"sources", of.Sources},
		{"secrets", of.Secrets},
		{"machines.files", of.Machines.Files}, {"machines.packages", of.Machines.Packages},
		{"machines.units", of.Machines.Units},
		{"machines.users", of.Machines.Users}, {"machines.capabilities", of.Machines.Capabilities},
	} {
		if b.Field == "clusterTypes" && of.SelectedTypes != nil {
			b.Allows = []string{of.SelectedTypes.String()}
		}
		w.Bounds = append(w.Bounds, Bound{b.Field, append([]string{}, b.Allows...)})
	}
	if len(of.RequiredLabels) > 0 {
		w.Bounds = append(w.Bounds, Bound{"requiredLabels", of.RequiredLabels})
	}
	w.Bounds = append(w.Bounds, Bound{"podSecurity", []string{of.PodSecurity}})
	requested := e.Requested(of.Name)
	for _, resource := range slices.Sorted(maps.Keys(of.Quota)) {
		is := requested[resource]
		w.Quota = append(w.Quota, Usage{resource, is.String(), of.Quota[resource].Text()})
	}
	return w
}

// AboutWorkspace returns the diagnostics that concern a workspace. They are about its
// declaration, its workloads and registrations, and their assignments. Errors in entities that do
// not belong to a team concern it too, because they may hide the workspace. found reports whether
// any part of the workspace is known.
func AboutWorkspace(b *compiler.Build, name string) (about []diag.Diagnostic, found bool) {
	assignments, entities := map[string]bool{},
		map[string]bool{"workspaces." + model.Label(name): true}
	registered := map[string]bool{} // registrations, and whether they bring parts of the workspace
	for _, w := range Workspaces(b) {
		if w.Name != name {
			continue
		}
		found = true
		for _, of := range w.Registrations {
			entities["registrations."+model.Label(of)], registered[of] = true, true
		}
		for _, of := range w.Workloads {
			entities["workloads."+model.Label(of)] = true
		}
	}
	for e := range readable(b) {
		for _, r := range e.Model.Registrations {
			registered[r.Name] = registered[r.Name] || r.Workspace == name
		}
		for i := range e.Schedule.Assignments {
			if a := &e.Schedule.Assignments[i]; a.Workload.Workspace == name {
				assignments[a.ID(e.Name)] = true
			}
		}
	}
	for _, d := range b.Diagnostics {
		theirs := slices.DeleteFunc(slices.Clone(d.Assignments),
			func(id string) bool { return !assignments[id] })
		concerns := len(theirs) > 0
		if len(d.Assignments) == 0 {
			concerns = entities[entityOf(d.Path)] || d.Severity == diag.Error && !ofTeams(d.Path)
			if theirs, is := registered[registrationOf(d)]; is {
				concerns = theirs
			}
		}
		if concerns {
			d.Assignments = theirs
			about = append(about, d)
		}
	}
	return about, found
}

// registrationOf returns the registration whose files a diagnostic is about. The names of these
// files start with the registration's name, @ and the commit.
func registrationOf(d diag.Diagnostic) string {
	if len(d.Sites) == 0 {
		return ""
	}
	name, _, _ := strings.Cut(d.Sites[0].Position.File, "@")
	return name
}

// entityOf returns the first two fields of a path.
func entityOf(path string) string {
	collection, rest, _ := strings.Cut(path, ".")
	if strings.HasPrefix(rest, `"`) {
		if end := strings.Index(rest[1:], `"`); end >= 0 {
			return collection + "." + rest[:end+2]
		}
	}
	name, _, _ := strings.Cut(rest, ".")
	return collection + "." + name
}

// ofTeams reports whether a path is about an entity that belongs to a team.
func ofTeams(path string) bool {
	collection, _, found := strings.Cut(path, ".")
	return found && slices.Contains([]string{"workloads", "registrations", "workspaces"}, collection)
}
