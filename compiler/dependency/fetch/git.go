package fetch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/address"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
)

// repositories fetches from git repositories.
type repositories struct {
	wait  time.Duration
	reach address.Reach
	known memo[*repository] // by URL
}

// repository is a git repository, with its refs at the first use.
type repository struct {
	remote *remote.Remote
	refs   map[string]git.Hash // by full name; for an annotated tag, its commit
}

// open reads the branches and tags of a repository. Fetched objects are kept in a temporary
// folder: the store has the resulting archives.
func (r *repositories) open(ctx context.Context, url string) (*repository, error) {
	return r.known.get(url, func() (*repository, error) {
		if filepath.IsAbs(url) {
			return nil, errors.New("a folder is no source; its URL, which begins with file://, is one")
		}
		opened, err := remote.Open(ctx, url,
			remote.Options{Backend: remote.Native, Whole: true, Wait: r.wait, Reach: r.reach})
		if err != nil {
			return nil, err
		}
		refs, peeled := opened.Advertised()
		repo := &repository{remote: opened, refs: map[string]git.Hash{}}
		for ref, id := range refs {
			repo.refs[ref] = id
		}
		for ref, id := range peeled {
			repo.refs[ref] = id
		}
		if len(refs) == 0 {
			return nil, errors.Join(&missingError{problem: "the repository is empty"}, opened.Close())
		}
		return repo, nil
	})
}

func (r *repositories) close() error {
	var errs []error
	for _, repo := range r.known.all() {
		errs = append(errs, repo.remote.Close())
	}
	return errors.Join(errs...)
}

func (r *repositories) resolve(ctx context.Context, s dependency.Source) (string, []byte, error) {
	repo, err := r.open(ctx, s.URL)
	if err != nil {
		return "", nil, err
	}
	commit, err := repo.commit(s)
	if err != nil {
		return "", nil, err
	}
	data, err := repo.content(ctx, commit)
	return commit, data, err
}

func (r *repositories) fetch(ctx context.Context, e dependency.Entry) ([]byte, error) {
	repo, err := r.open(ctx, e.URL)
	if err != nil {
		return nil, err
	}
	return repo.content(ctx, e.Revision)
}

const (
	branches = "refs/heads/"
	tags     = "refs/tags/"
)

// names returns the names of the branches or tags of a repository.
func (r *repository) names(prefix string) []string {
	var names []string
	for ref := range r.refs {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			names = append(names, name)
		}
	}
	return names
}

// commit returns the commit that a source selects.
func (r *repository) commit(s dependency.Source) (string, error) {
	prefix, name, what := branches, s.Branch, "branch"
	switch {
	case s.Commit != "":
		return s.Commit, nil
	case s.Tag != "":
		prefix, name, what = tags, s.Tag, "tag"
	case s.Semver != "":
		var err error
		if name, err = newest(s.Semver, r.names(tags), strictly); err != nil {
			return "", err
		}
		prefix, what = tags, "tag"
	}
	if id, ok := r.refs[prefix+name]; ok {
		return id.String(), nil
	}
	return "", &missingError{problem: fmt.Sprintf("there is no %s %s", what, name),
		there: likely(r.names(prefix))}
}

// content returns the files of a commit as a packed archive.
func (r *repository) content(ctx context.Context, commit string) ([]byte, error) {
	id := plumbing.NewHash(commit)
	if id.String() != commit {
		return nil, fmt.Errorf("the commit %s has an id that is no SHA-1, and kalypso reads no "+
			"repositories with others", commit)
	}
	if err := r.remote.Fetch(ctx, []git.Hash{id}, 1); err != nil {
		return nil, err
	}
	files, err := archive.Build(commitEntries(r.remote.Objects(), id))
	if err != nil {
		return nil, err
	}
	return archive.Pack(files), nil
}
