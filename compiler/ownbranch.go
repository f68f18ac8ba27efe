package compiler

import (
	"fmt"
	"path"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/git"
)

// checkOwnBranch reports environments whose trees would be kept among the files that they are
// compiled from. Otherwise each promotion would create a commit to promote. It ignores a platform
// in a folder outside of a repository.
func (b *Build) checkOwnBranch(dir string) {
	root, err := source.Root(dir)
	if err != nil {
		return
	}
	repo, folder, err := source.Repository(root)
	if err != nil {
		return
	}
	defer repo.Close()
	own := map[string]bool{}
	for _, name := range []string{repo.RemoteURL("origin"), repo.WorkTree(), repo.Dir()} {
		own[sameRepository(name)] = name != ""
	}
	for _, s := range b.Declarations {
		g := s.GitOps
		if e := b.environment(s.Name); e != nil && e.Model != nil {
			g = e.Model.GitOps
		}
		if g == nil || !own[sameRepository(g.Repo)] {
			continue
		}
		what := ""
		for _, of := range b.Declarations {
			if from := of.Promotion.Source; from != nil && from.Branch == g.Branch &&
				source.Overlap(from.Path, g.Path) {
				what = "the own files of environment " + of.Name
			}
		}
		if source.Overlap(folder, g.Path) && hasPlatform(repo, g.Branch, folder) {
			what = "the platform"
		}
		if what == "" {
			continue
		}
		d := diag.New(diag.OwnBranch,
			fmt.Sprintf("the tree of environment %s would be kept in branch %s of %s, which has %s: each "+
				"promotion would be a commit to be promoted", s.Name, g.Branch, g.Repo, what)).
			Hinting("name a branch that has nothing else, or another repository")
		if e := b.environment(s.Name); e != nil && e.Model != nil {
			e.Displace()
		}
		for _, p := range b.positions(
			model.Ref{Collection: "environments", Name: s.Name, Path: "gitops"}) {
			d = d.In(p, "")
		}
		b.Diagnostics = append(b.Diagnostics, d)
	}
}

// sameRepository returns the URL of a repository in a form that equal repositories share.
func sameRepository(url string) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(url, "file://"), "/"), ".git")
}

// hasPlatform reports whether a branch has a platform in a folder.
func hasPlatform(repo *git.Repository, branch, folder string) bool {
	if at, err := repo.CheckedOut("refs/heads/" + branch); err == nil && at != "" &&
		at == repo.WorkTree() {
		return true
	}
	for _, ref := range []string{"refs/heads/" + branch, "refs/remotes/origin/" + branch} {
		id, err := repo.Ref(ref)
		if err != nil || id.IsZero() {
			continue
		}
		root, err := repo.CommitTree(id)
		if err != nil {
			continue
		}
		if _, found, err := repo.Find(root,
			path.Join(folder, source.PlatformMarker.Files[0])); err == nil && found {
			return true
		}
	}
	return false
}
