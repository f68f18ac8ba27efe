package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// Declarations checks environments against each other, and how commits come to them.
type Declarations struct{ *Entities }

// Folders reports folders of environments without an entry.
func (x *Declarations) Folders(p *source.Platform) {
	names := x.names("environments")
	for _, folder := range p.Folders {
		if slices.Contains(names, folder) {
			continue
		}
		hint := fmt.Sprintf("declare it in the base: environments: %s: {}", model.Label(folder))
		if !model.IsName(folder) {
			hint = "rename the folder: the name of an environment has at most 63 lower case letters, digits and dashes"
		}
		x.Report(diag.New(diag.UndeclaredEnvironment,
			fmt.Sprintf("environments/%s is no environment: the base does not declare it", folder)).
			In(p.FirstFile(folder), "").Hinting(hint))
	}
}

// Declared reports entries that wait for what is not there, entries that wait for
// each other, and policies that cannot be followed. Those with errors are then invalid.
func (x *Declarations) Declared(declarations []model.Declaration) {
	names := x.names("environments")
	after := map[string][]string{}
	for _, s := range declarations {
		after[s.Name] = s.After
		for i, name := range s.After {
			x.reference("environment", name, names,
				model.Ref{Collection: "environments", Name: s.Name, Path: fmt.Sprintf("after[%d]", i)})
		}
	}
	if cycle := findCycle(after); cycle != nil {
		d := diag.New(diag.EnvironmentCycle, "environments wait for each other: "+strings.Join(cycle, " after ")).
			Hinting("remove one of the after entries")
		for _, name := range cycle[1:] {
			d = d.At(model.Ref{Collection: "environments", Name: name, Path: "after"}, "")
		}
		x.Fail(model.Ref{Collection: "environments", Name: cycle[0]}, d)
	}
	x.checkPolicies(declarations)
	for i := range declarations {
		s := &declarations[i]
		s.Invalid = x.Invalid[model.Ref{Collection: "environments", Name: s.Name}]
	}
}

// Own reports environments that only the files of one environment declare: those of the
// base count, for all.
func (x *Declarations) Own(declarations []model.Declaration, name string) {
	if declarations == nil {
		return
	}
	for _, key := range x.names("environments") {
		if model.IsName(key) && !slices.ContainsFunc(declarations, func(s model.Declaration) bool { return s.Name == key }) {
			ref := model.Ref{Collection: "environments", Name: key}
			x.Report(diag.New(diag.UndeclaredEnvironment,
				fmt.Sprintf("environment %s is declared in the files of %s only", key,
					name)).InEach(x.Positions.Of(ref)...).On(ref.String()).
				Hinting("declare it in the base, which all environments share"))
		}
	}
}

// findCycle returns the nodes of a cycle, the first one again at the end; nil
// where there is none. It is the same whatever the order of the map.
func findCycle(edges map[string][]string) []string {
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
	for _, n := range slices.Sorted(maps.Keys(edges)) {
		if c := visit(n); c != nil {
			return c
		}
	}
	return nil
}
