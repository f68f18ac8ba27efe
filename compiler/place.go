package compiler

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// place is the location of an environment's tree: a tag of an OCI repository, or a folder of a
// branch. A tag has one artifact, so the path in it makes no difference.
type place struct {
	in     string // the tag or the branch, with the repository
	folder string // "." for the branch's root; "" in a tag
}

// String describes the place for people.
func (p place) String() string {
	if p.folder == "" {
		return p.in
	}
	return fmt.Sprintf("folder %s of %s", p.folder, p.in)
}

// holds reports whether another place is within this one.
func (p place) holds(other place) bool {
	return p.in == other.in && p != other && p.folder != "" &&
		(p.folder == "." || strings.HasPrefix(other.folder, p.folder+"/"))
}

// placeOf returns the location of an environment's tree. It returns the zero place if the
// location is not known.
func placeOf(environment string, g *model.GitOps) place {
	switch {
	case g == nil:
		return place{}
	case g.OCI != "":
		return place{in: fmt.Sprintf("tag %s of %s", cmp.Or(g.Tag, environment), g.OCI)}
	case g.Repo == "" || g.Branch == "":
		return place{}
	}
	return place{fmt.Sprintf("branch %s of %s", g.Branch,
		strings.TrimSuffix(strings.TrimSuffix(g.Repo, "/"), ".git")), path.Clean(g.Path)}
}

// checkPlaces reports environments whose trees are kept in the same place, or one within the
// other. In the same place, the last written tree would replace the other. checkPlaces keeps the
// output of these environments as it is. For environments that are not compiled, it uses the
// gitops of the base.
func (b *Build) checkPlaces() {
	places := map[place][]string{} // the environments of each place
	for _, s := range b.Declarations {
		gitops := s.GitOps
		if e := b.environment(s.Name); e != nil && e.Model != nil {
			gitops = e.Model.GitOps
		}
		if p := placeOf(s.Name, gitops); p != (place{}) {
			places[p] = append(places[p], s.Name)
		}
	}
	sorted := slices.SortedFunc(maps.Keys(places),
		func(a, b place) int { return strings.Compare(a.String(), b.String()) })
	for _, p := range sorted {
		names := places[p]
		if last := len(names) - 1; last > 0 {
			b.displace(fmt.Sprintf("the trees of environments %s and %s are kept in one place, %s",
				strings.Join(names[:last], ", "), names[last], p), names)
		}
		for _, inner := range sorted {
			if p.holds(inner) {
				b.displace(fmt.Sprintf("the tree of environment %s is kept within that of %s: folder %s in %s",
					places[inner][0], names[0], inner.folder, p), []string{names[0], places[inner][0]})
			}
		}
	}
}

// displace reports environments whose trees conflict, and keeps their output as it is.
func (b *Build) displace(message string, names []string) {
	d := diag.New(diag.SharedPlace,
		message).Hinting("give each a branch or tag of its own, or in git a path of its own")
	for _, name := range names {
		if e := b.environment(name); e != nil && e.Model != nil {
			e.Displace()
		}
		for _, p := range b.positions(model.Ref{Collection: "environments", Name: name, Path: "gitops"}) {
			d = d.In(p, "")
		}
	}
	b.Diagnostics = append(b.Diagnostics, d)
}

// warnOfMoves warns if an environment's tree moved from the place in its previous record.
// Clusters that still pull the old place do not get new commits.
func (b *Build) warnOfMoves(previous map[string]*tree.Record) {
	for _, e := range b.Environments {
		was := previous[e.Name]
		if was == nil || e.Model == nil || e.Model.GitOps == nil {
			continue
		}
		at, now := &model.GitOps{}, e.Model.GitOps
		switch {
		case was.Git != nil:
			at.Repo, at.Branch, at.Path = was.Git.Repository, was.Git.Branch, was.Git.Path
		case was.OCI != nil:
			at.OCI, at.Tag, at.Path = was.OCI.Repository, was.OCI.Tag, was.OCI.Path
		default:
			continue // an older version wrote the record, or the environment had no gitops
		}
		is, old := origin.TreeOf(now), origin.TreeOf(at)
		if !is.Has(at.Repo) || at.OCI != now.OCI || is.Branch != old.Branch || at.Tag != now.Tag ||
			is.Path != old.Path {
			b.Diagnostics = append(b.Diagnostics, b.moved(e, at, was))
		}
	}
}

// moved returns the warning that the tree of an environment moved from a place that has its
// record.
func (b *Build) moved(e *engine.Environment, at *model.GitOps, was *tree.Record) diag.Diagnostic {
	now := e.Model.GitOps
	field, before, after := "repo", placeOf(e.Name, at).String(), placeOf(e.Name, now).String()
	switch {
	case at.OCI != now.OCI || !origin.TreeOf(now).Has(at.Repo):
		if now.OCI != "" {
			field = "oci"
		}
	case at.Tag != now.Tag:
		field, before, after = "tag", "tag "+at.Tag, "tag "+now.Tag
	case at.Branch != now.Branch:
		field, before, after = "branch", "branch "+at.Branch, "branch "+now.Branch
	default:
		field, before, after = "path", origin.TreeOf(at).Folder(), origin.TreeOf(now).Folder()
	}
	message := fmt.Sprintf("the tree of environment %s is kept in %s, and was in %s", e.Name, after,
		before)
	pull, names := b.pullers(e, was)
	if pull != "" {
		message += ": " + pull + " from there, and get nothing that is built from now on"
	}
	d := diag.New(diag.TreeMoved, message).On("environments." + e.Name + ".gitops." + field)
	d.Environment = e.Name
	for _, p := range b.positions(
		model.Ref{Collection: "environments", Name: e.Name, Path: "gitops." + field}) {
		d = d.In(p, "")
	}
	old := "what is left in " + before
	if folder := origin.TreeOf(at).Path; field == "path" && at.OCI == "" && folder != "" {
		old += " (git rm -r " + folder + ")"
	}
	if len(names) == 0 {
		return d.Hinting("nothing pulls it: remove " + old)
	}
	return d.Hinting("bootstrap them again: apply what `kalypso bootstrap " + names[0] + "` prints" +
		others(names[1:]) + "; then remove " + old + ", which stays until then")
}

// pullers returns the clusters that pull a record's tree, as subject and verb of a sentence. It
// also returns the arguments of bootstrap for each cluster, or for each cluster type without
// entries.
func (b *Build) pullers(e *engine.Environment, was *tree.Record) (who string, names []string) {
	types := map[string]bool{}
	for i := range was.ClusterTypes {
		if name := was.ClusterTypes[i].Name; !tree.IsShard(name) {
			types[model.TypeOfFolder(name)] = true
		}
	}
	clusters, listed := 0, true
	for _, name := range slices.Sorted(maps.Keys(types)) {
		of := was.ClustersOf(name)
		clusters, listed = clusters+len(of), listed && len(of) > 0
		if !e.HasEntries(name) {
			names = append(names, e.Name+"/"+name)
			continue
		}
		for _, cluster := range of {
			names = append(names, "cluster "+e.Name+"/"+cluster)
		}
	}
	switch {
	case len(names) == 0:
		return "", nil
	case !listed:
		return "the clusters of its cluster types pull", names
	case clusters == 1:
		return "1 cluster pulls", names
	}
	return fmt.Sprintf("%d clusters pull", clusters), names
}

// others lists the remaining names, after the first one.
func others(names []string) string {
	const most = 3
	switch more := len(names) - most; {
	case len(names) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf(", and likewise for %s and %d more", strings.Join(names[:most], ", "), more)
	}
	return ", and likewise for " + strings.Join(names, ", ")
}

// destination is the location of an environment's tree in a git repository.
type destination struct{ branch, folder string }

// String describes the destination for people.
func (d destination) String() string {
	if d.folder == "" {
		return "the root of branch " + d.branch
	}
	return fmt.Sprintf("folder %s of branch %s", d.folder, d.branch)
}

// destination returns the location of a tree in the repository of an output. This is the location
// in the environment's gitops, where reconcilers look. Without gitops, it is the location that
// the output names. For any other location, destination returns a diagnostic: the objects of the
// tree would not point there. It does not compare the repository's own address, because users
// push from a clone.
func (o Output) destination(environment string, g *model.GitOps) (destination, *diag.Diagnostic) {
	ref := model.Ref{Collection: "environments", Name: environment, Path: "gitops"}
	named := destination{strings.TrimPrefix(o.Branch, "refs/heads/"), o.folder(environment)}
	refuse := func(d diag.Diagnostic, at model.Ref) (destination, *diag.Diagnostic) {
		d = d.At(at, "").On(at.String())
		return destination{}, &d
	}
	switch {
	case g == nil && named.branch != "":
		return named, nil
	case g == nil:
		return refuse(
			diag.New(diag.NeedsGitOps,
				"nothing says which branch holds the tree of environment "+environment).
				Hinting(fmt.Sprintf(
					`say where it is kept: environments: %s: gitops: {repo: "...", branch: "..."}, or name a branch with --branch`, model.Label(environment))),
			model.Ref{Collection: "environments", Name: environment})
	case g.OCI != "":
		return refuse(diag.New(diag.Misplaced,
			fmt.Sprintf("the tree of environment %s would be written to a git repository, and its own "+
				"objects point to %s", environment, placeOf(environment, g))).
			Hinting("put it there with kalypso publish, or let gitops name a repository and a branch"), ref)
	}
	is := origin.TreeOf(g)
	own := destination{is.Branch, is.Path}
	if named.branch == "" || named == own {
		return own, nil
	}
	return refuse(diag.New(diag.Misplaced,
		fmt.Sprintf("the tree of environment %s would be written to %s, and its own objects point to %s",
			environment, named, own)).
		Hinting("leave out --branch and --flat, and it is written where gitops says; or let gitops say "+
			"where it is to be"), ref)
}

// environment returns a compiled environment by name. It returns nil if there is no such
// environment.
func (b *Build) environment(name string) *engine.Environment {
	for _, e := range b.Environments {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// positions returns the positions of a part of an environment in the files. It uses the
// environment itself, or otherwise another compiled one, because all share the base.
func (b *Build) positions(ref model.Ref) []model.Position {
	all := b.Environments
	if e := b.environment(ref.Name); e != nil {
		all = append([]*engine.Environment{e}, all...)
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
