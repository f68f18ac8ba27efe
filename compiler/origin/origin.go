// Package origin compares the repository, branch and folder that a reconciler pulls with
// the place of an environment's tree. A cluster that pulls another folder, another branch,
// a fork or an old copy looks ready, but it does not get new commits.
package origin

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/address"
)

// Origin is the place that a reconciler pulls. A field is "" if the reconciler does not report it.
type Origin struct {
	Repository string // its URL
	Branch     string // or a tag or a commit
	Path       string // of the folder in the repository, without slashes at its ends
}

// Any is the last segment of a Path that covers all deployment targets of a cluster type or class.
const Any = "*"

// Tree is the place of an environment's tree. Without a Repository it is unknown.
type Tree struct {
	Repository string
	Mirrors    []string // URLs of mirrors that clusters may pull instead
	Branch     string
	Path       string // "" for the root of the repository
}

// Clean returns an origin in canonical form: the URL has no credentials, the branch has no
// refs/heads/ and is "" for the repository's default branch, and the path is clean.
func (o Origin) Clean() Origin {
	if scheme, rest, isURL := strings.Cut(o.Repository, "://"); isURL && scheme != "ssh" {
		host, path, _ := strings.Cut(rest, "/")
		o.Repository = scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] +
			strings.TrimSuffix("/"+path, "/")
	}
	if o.Branch = strings.TrimPrefix(o.Branch, "refs/heads/"); o.Branch == "HEAD" {
		o.Branch = ""
	}
	o.Path = cleanPath(o.Path)
	return o
}

// TreeOf returns the place that an environment's gitops names.
func TreeOf(g *model.GitOps) Tree {
	return Tree{Repository: g.Repo, Mirrors: g.Mirrors,
		Branch: strings.TrimPrefix(g.Branch, "refs/heads/"), Path: cleanPath(g.Path)}
}

// Folder describes the tree's folder for people.
func (t Tree) Folder() string {
	if t.Path == "" {
		return "the root"
	}
	return "folder " + t.Path
}

// cleanPath returns a clean path without slashes at its ends; "" for the root.
func cleanPath(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

// Has reports whether a URL is the repository's or a mirror's.
func (t Tree) Has(url string) bool {
	return Same(t.Repository, url) ||
		slices.ContainsFunc(t.Mirrors, func(mirror string) bool { return Same(mirror, url) })
}

// FolderOf returns the folder of the cluster type or class, and the deployment target, that the
// path of an origin leads to. It returns false if the path is outside the tree. A path that begins
// with a class, in an origin without repository and branch, is relative to the tree.
func (t Tree) FolderOf(o Origin) (folder, target string, ok bool) {
	rest, within := o.Path, true
	if t.Path != "" {
		rest, within = strings.CutPrefix(o.Path, t.Path+"/")
	}
	parts := strings.SplitN(rest, "/", 3)
	if !within || len(parts) < 2 {
		name, _, _ := strings.Cut(o.Path, "/")
		if within || o.Repository != "" || o.Branch != "" || !strings.Contains(name, ".") {
			return "", "", false
		}
		return Tree{}.FolderOf(o)
	}
	return parts[0], parts[1], true
}

// Differs describes for people how an origin differs from the place of a deployment target in the
// tree, with both values. It returns "" if no reported field differs or the tree's place is
// unknown. All classes of the cluster type are equal here, because commits move clusters between
// them.
func (t Tree) Differs(o Origin, clusterType, target string) string {
	if t.Repository == "" {
		return ""
	}
	var differ []string
	is := func(what, said, wanted string) {
		differ = append(differ, fmt.Sprintf("%s %s, and %s is wanted", what, said, wanted))
	}
	if o.Repository != "" && o.Repository != t.Repository && !t.Has(o.Repository) {
		is("repository", o.Repository, t.Repository)
	}
	if o.Branch != "" && o.Branch != t.Branch {
		is("branch", o.Branch, t.Branch)
	}
	if o.Path != "" {
		if folder, of,
			ok := t.FolderOf(o); !ok || model.TypeOfFolder(folder) != clusterType || of != target &&
			of != Any {
			is("folder", o.Path, path.Join(t.Path, clusterType, target))
		}
	}
	if len(differ) == 0 {
		return ""
	}
	return "it applies " + strings.Join(differ, "; ")
}

// Same reports whether two URLs are of one repository: by https or ssh, with or without .git.
func Same(a, b string) bool { return a == b || key(a) == key(b) }

// key returns the part that all URLs of one repository share.
func key(url string) string {
	url = strings.TrimSuffix(strings.TrimRight(url, "/"), ".git")
	a, ok := address.Parse(url)
	if !ok || a.Climbs {
		return url
	}
	port := a.Port
	if port == a.Usual || a.Scheme == "http" && port == "80" {
		port = ""
	}
	if a.Scheme == "oci" { // an artifact, and no repository of git
		port += " oci"
	}
	return strings.ToLower(a.Host + ":" + port + "/" + strings.Join(a.Path, "/"))
}
