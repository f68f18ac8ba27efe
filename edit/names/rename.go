package names

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/edit/syntax"
)

// Renamable returns the name at an offset that Rename can change; ok is false where there is
// none.
func (x *Index) Renamable(path string, offset int) (at Place, ok bool) {
	f, u := x.useAt(path, offset)
	if u == nil {
		return Place{}, false
	}
	return f.place(&f.words[u.word]), true
}

// Rename gives an entity or a deployment target another name wherever it is named. At a full
// name it is the deployment target that is renamed, to what follows the workload's name. The
// error says why there cannot be such a name, or the name cannot be changed everywhere.
func (x *Index) Rename(path string, offset int, to string) ([]Edit, error) {
	f, u := x.useAt(path, offset)
	if u == nil {
		return nil, fmt.Errorf("only names of entities and deployment targets can be renamed, and there is none")
	}
	meant := x.meant(f.environment, u)
	if len(meant) > 1 {
		return nil, fmt.Errorf("%d workloads have a deployment target %s: rename it where one of them "+
			"declares it", len(meant), u.name)
	}
	if len(meant) == 0 {
		return nil, notDeclared(u.collection, u.name)
	}
	m := meant[0]
	if u.collection == model.DeploymentTargets && u.name == split(m.name).full() {
		to = strings.TrimPrefix(to, split(m.name).workload+"-")
	}
	if err := x.mayRename(f, m, to); err != nil {
		return nil, err
	}
	var out []Edit
	for _, o := range x.occurrences(f, &m) {
		e := o.renamed(m, to)
		if w := &o.file.words[o.use.word]; w.Kind == syntax.Identifier && strings.HasPrefix(e.Text, `"`) {
			return nil, fmt.Errorf("%s refers to it by the identifier %s, and %s is none: write %s[%q] "+
				"there first", o.file.where(w), w.Text, to, m.collection, m.name)
		}
		out = append(out, e)
	}
	if m.collection == "workloads" {
		out = append(out, x.fullNames(f, m, to)...)
	}
	slices.SortFunc(out, func(a, b Edit) int {
		if a.Path != b.Path {
			return strings.Compare(a.Path, b.Path)
		}
		return a.Start - b.Start
	})
	return out, nil
}

func notDeclared(collection, name string) error {
	return fmt.Errorf("%s %s is not written in the platform's files: a comprehension, an imported "+
		"package or a registration gives it its name, and has to give it another", kindOf(collection),
		strings.ReplaceAll(name, "/", "-"))
}

// mayRename returns why something cannot have another name.
func (x *Index) mayRename(f *file, m use, to string) error {
	kind := kindOf(m.collection)
	scope := x.scope(f, &m)
	declared := x.declared(scope, m.collection)
	taken, own := to, m.name
	if m.collection == model.DeploymentTargets {
		taken, own = split(m.name).workload+"/"+to, split(m.name).name
	}
	switch {
	case m.collection == "tests" &&
		(to == "" || strings.TrimSpace(to) != to || strings.ContainsFunc(to, unicode.IsControl)):
		return fmt.Errorf("%q is no name of a test: it is a line of text, without white space at its ends", to)
	case m.collection != "tests" && !model.IsName(to):
		return fmt.Errorf("%q is no name: at most %d lower case letters, digits and dashes, with a "+
			"letter or digit first and last", to, model.MaxLabel)
	case to == own:
		return fmt.Errorf("it is called %s already", to)
	case m.collection == "namespaceServices" && m.name == "default":
		return fmt.Errorf("the schema itself names the namespace service default: declare another, and " +
			"name it in the cluster types")
	case !slices.Contains(declared, m.name):
		return notDeclared(m.collection, m.name)
	case slices.Contains(declared, taken):
		return fmt.Errorf("there is a %s %s already", kind, to)
	}
	if m.collection == "environments" &&
		slices.ContainsFunc(x.files, func(g *file) bool { return g.environment == m.name && g.part }) {
		return fmt.Errorf("the folder %s/%s has the name of the environment: rename the folder as "+
			"well, and begin with it", source.Environments, m.name)
	}
	if m.collection == model.DeploymentTargets {
		return x.mayRenameTarget(scope, split(m.name), to)
	}
	return nil
}

// mayRenameTarget returns an error where selectors name several targets at once, or two
// targets would have one full name.
func (x *Index) mayRenameTarget(scope string, t target, to string) (err error) {
	full := target{t.workload, to}.full()
	same := 0
	for _, name := range x.declared(scope, model.DeploymentTargets) {
		other := split(name)
		if other.name == t.name {
			same++
		}
		if other.full() == full {
			err = fmt.Errorf("deployment target %s of workload %s has the full name %s already", other.name,
				other.workload, full)
		}
	}
	x.each(scope, func(g *file, u *use) {
		if u.collection == model.TargetNames && u.name == t.name && same > 1 && err == nil {
			err = fmt.Errorf("a selector in %s names %s, which %d workloads have: write there what it is "+
				"to select, and rename then", g.Path, t.name, same)
		}
	})
	return err
}

// renamed returns the edit of a place that names an entity.
func (o occurrence) renamed(m use, to string) Edit {
	w := &o.file.words[o.use.word]
	if o.use.collection == model.DeploymentTargets && !strings.Contains(o.use.name, "/") {
		to = split(m.name).workload + "-" + to
	}
	e := Edit{o.place(), to}
	if w.Quoted {
		return e
	}
	// What is no identifier of CUE needs quotes, and after a dot as well.
	e.Text = model.Label(to)
	return e
}

// fullNames are the edits of the full names of a workload's targets.
func (x *Index) fullNames(f *file, workload use, to string) []Edit {
	scope := x.scope(f, &workload)
	renamed := map[string]string{}
	for _, name := range x.declared(scope, model.DeploymentTargets) {
		if t := split(name); t.workload == workload.name {
			renamed[t.full()] = target{to, t.name}.full()
		}
	}
	var out []Edit
	x.each(scope, func(g *file, u *use) {
		if full, ok := renamed[u.name]; ok && u.collection == model.DeploymentTargets {
			out = append(out, Edit{g.place(&g.words[u.word]), full})
		}
	})
	return out
}

// kindOf returns what an entity of a collection is called.
func kindOf(collection string) string {
	if kind, ok := kinds[collection]; ok {
		return kind
	}
	return collection
}

var kinds = map[string]string{
	"environments": "environment", "clusterTypes": "cluster type", "clusters": "cluster", "workspaces": "workspace",
	"workloads": "workload", "registrations": "registration",
	"schedulingPolicies": "scheduling policy", "configs": "config",
	"configSchemas": "config schema", "namespaceServices": "namespace service",
	"reconcilers": "reconciler", "tests": "test", "inventories": "inventory",
	model.DeploymentTargets: "deployment target", model.TargetNames: "deployment target",
}
