// Package origin compares where a reconciler takes from what it applies with where an
// environment's tree is. A cluster that pulls another folder, another branch, a fork or an old
// copy is as ready as any other, and hears of no later commit.
package origin

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/address"
)

// Origin is where a reconciler takes from what it applies; "" for what it does not say.
type Origin struct {
	Repository string // its URL
	Branch     string // or a tag or a commit, where it follows none
	Path       string // of the folder in the repository, without slashes at its ends
}

// Any ends a Path that is that of a cluster type, or of a class of it, whichever deployment target it is about.
const Any = "*"

// Tree is where the tree of an environment is.
type Tree struct {
	Repository string
	Mirrors    []string // URLs from which clusters may pull the same branch
	Branch     string
	Path       string // "" for the root of the repository
}

// Clean returns an origin in the form in which origins are compared: a URL without credentials, a
// branch without refs/heads/, which is not said where it is the repository's default one, and a
// clean path.
func (o Origin) Clean() Origin {
	if scheme, rest, isURL := strings.Cut(o.Repository, "://"); isURL && scheme != "ssh" {
		host, path, _ := strings.Cut(rest, "/")
		o.Repository = scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + strings.TrimSuffix("/"+path, "/")
	}
	if o.Branch = strings.TrimPrefix(o.Branch, "refs/heads/"); o.Branch == "HEAD" {
		o.Branch = ""
	}
	if o.Path != "" {
		o.Path = strings.TrimPrefix(path.Clean("/"+o.Path), "/")
	}
	return o
}

// Has reports whether a URL is that of the repository, or of a mirror of it.
func (t Tree) Has(url string) bool {
	return Same(t.Repository, url) || slices.ContainsFunc(t.Mirrors, func(mirror string) bool { return Same(mirror, url) })
}

// FolderOf returns the folder of the cluster type, or of a class of it, and the deployment target
// that the path of an origin leads to; false where that is in no such folder of the tree. A class
// without anything before it, of which nothing else is said, is that of the tree, wherever that is.
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

// Differs returns how an origin differs from that of a deployment target in a tree, for people,
// with both values; "" where what is said of it is the same. Any class of the cluster type is:
// which one a cluster is in changes by commits.
func (t Tree) Differs(o Origin, clusterType, target string) string {
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
		if folder, of, ok := t.FolderOf(o); !ok || model.TypeOfFolder(folder) != clusterType || of != target && of != Any {
			is("folder", o.Path, path.Join(t.Path, clusterType, target))
		}
	}
	if len(differ) == 0 {
		return ""
	}
	return "it applies " + strings.Join(differ, "; ")
}

// Same reports whether two URLs are those of one repository: by https or ssh, with or without .git.
func Same(a, b string) bool { return a == b || key(a) == key(b) }

// key returns what URLs of one repository have in common.
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
