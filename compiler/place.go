package compiler

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// placeOf names where an environment's tree is kept; "" where that is not known.
// A tag holds one artifact, so that its path makes no difference.
func placeOf(environment string, g *model.GitOps) string {
	switch {
	case g == nil:
		return ""
	case g.OCI != "" && g.Tag == "":
		return fmt.Sprintf("tag %s of %s", environment, g.OCI)
	case g.OCI != "":
		return fmt.Sprintf("tag %s of %s", g.Tag, g.OCI)
	case g.Repo == "" || g.Branch == "":
		return ""
	}
	repository := strings.TrimSuffix(strings.TrimSuffix(g.Repo, "/"), ".git")
	return fmt.Sprintf("folder %s of branch %s of %s", path.Clean(g.Path), g.Branch, repository)
}

// checkPlaces reports environments whose trees are kept in one place, where the
// one that is written last would replace the other, and leaves their output as it
// is. Of an environment that is not compiled the base says where it is.
func (b *Build) checkPlaces() {
	places := map[string][]string{} // to environments
	for _, s := range b.Stages {
		gitops := s.GitOps
		if e := b.environment(s.Name); e != nil && e.Model != nil {
			gitops = e.Model.GitOps
		}
		if place := placeOf(s.Name, gitops); place != "" {
			places[place] = append(places[place], s.Name)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(places)) {
		names := places[place]
		if len(names) < 2 {
			continue
		}
		last := len(names) - 1
		d := diag.New(diag.SharedPlace, fmt.Sprintf("the trees of environments %s and %s are kept in one place, %s", strings.Join(names[:last], ", "), names[last], place)).
			Hinting("give each a branch or tag of its own, or in git a path of its own")
		for _, name := range names {
			if e := b.environment(name); e != nil && e.Model != nil {
				e.displaced = true
			}
			for _, p := range b.positions(model.Ref{Collection: "environments", Name: name, Path: "gitops"}) {
				d = d.In(p, "")
			}
		}
		b.Diagnostics = append(b.Diagnostics, d)
	}
}

// environment returns one that is compiled, or nil.
func (b *Build) environment(name string) *Environment {
	for _, e := range b.Environments {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// positions returns where something of an environment is written, as it says, or
// else another that is compiled: all share the base.
func (b *Build) positions(ref model.Ref) []model.Position {
	all := b.Environments
	if e := b.environment(ref.Name); e != nil {
		all = append([]*Environment{e}, all...)
	}
	for _, e := range all {
		if e.Model == nil {
			continue
		}
		if found := e.Model.Positions.Of(ref); len(found) > 0 {
			return found
		}
	}
	return nil
}
