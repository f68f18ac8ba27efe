package names

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// target is a deployment target that is declared.
type target struct{ workload, name string }

func (t target) full() string { return t.workload + "-" + t.name }

func split(name string) target {
	workload, name, _ := strings.Cut(name, "/")
	return target{workload, name}
}

// meant returns what a use names as its declaration names it, and whether it is declared where
// the environment's files see it: a full name is that of a target, a short one of several.
func (x *Index) meant(environment string, u *use) []use {
	switch {
	case u.collection == model.DeploymentTargets && strings.Contains(u.name, "/"):
		return []use{*u}
	case u.collection == model.DeploymentTargets, u.collection == model.TargetNames:
		var out []use
		for _, name := range x.declared(environment, model.DeploymentTargets) {
			t := split(name)
			if u.name == t.full() && u.collection == model.DeploymentTargets || u.name == t.name &&
				u.collection == model.TargetNames {
				out = append(out, use{collection: model.DeploymentTargets, name: name})
			}
		}
		return out
	}
	return []use{*u}
}

// scope returns the environment whose files an entity's name concerns: that of the file it
// stands in, or "", all of them, where the base declares or the file belongs to it.
func (x *Index) scope(f *file, u *use) string {
	environment := f.environment
	x.each(environment, func(g *file, v *use) {
		if g.environment == "" && v.declares && v.collection == u.collection && v.name == u.name {
			environment = ""
		}
	})
	return environment
}

// occurrence is a place where something is named.
type occurrence struct {
	file *file
	use  *use
}

func (o occurrence) place() Place { return o.file.place(&o.file.words[o.use.word]) }

// occurrences returns where the things that a use names are named, in order of path and place.
func (x *Index) occurrences(f *file, u *use) []occurrence {
	var out []occurrence
	for _, m := range x.meant(f.environment, u) {
		scope := x.scope(f, &m)
		t := split(m.name)
		x.each(scope, func(g *file, v *use) {
			same := v.collection == m.collection && v.name == m.name
			if m.collection == model.DeploymentTargets {
				same = same || v.collection == model.DeploymentTargets && v.name == t.full() ||
					v.collection == model.TargetNames && v.name == t.name
			}
			if o := (occurrence{g, v}); same && !slices.Contains(out, o) {
				out = append(out, o)
			}
		})
	}
	slices.SortFunc(out, func(a, b occurrence) int {
		p, q := a.place(), b.place()
		if p.Path != q.Path {
			return strings.Compare(p.Path, q.Path)
		}
		return p.Start - q.Start
	})
	return out
}

// Definition returns where what is named at an offset is declared: all of the places, since
// the files of a platform unify.
func (x *Index) Definition(path string, offset int) []Place {
	return x.found(path, offset, func(declares bool) bool { return declares })
}

// References returns where what is named at an offset is referred to and, with declaration,
// where it is declared.
func (x *Index) References(path string, offset int, declaration bool) []Place {
	return x.found(path, offset, func(declares bool) bool { return declaration || !declares })
}

func (x *Index) found(path string, offset int, wanted func(declares bool) bool) []Place {
	f, u := x.useAt(path, offset)
	if u == nil {
		return nil
	}
	var out []Place
	for _, o := range x.occurrences(f, u) {
		if wanted(o.use.declares) {
			out = append(out, o.place())
		}
	}
	return out
}
