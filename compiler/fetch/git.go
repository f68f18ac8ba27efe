package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/kalypso-io/kalypso/compiler/archive"
	"github.com/kalypso-io/kalypso/compiler/lock"
	"github.com/kalypso-io/kalypso/compiler/web"
)

// repositories fetches from git repositories.
type repositories struct {
	fetcher *Fetcher
	known   memo[*repository] // by URL
}

func (r *repositories) resolve(ctx context.Context, s lock.Source) (string, []byte, error) {
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

func (r *repositories) fetch(ctx context.Context, e lock.Entry) ([]byte, error) {
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

// names are the branches or tags of a repository.
func (r *repository) names(prefix string) []string {
	var names []string
	for ref := range r.refs {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			names = append(names, name)
		}
	}
	return names
}

// commit returns the commit that a source asks for.
func (r *repository) commit(s lock.Source) (string, error) {
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
	return "", &missing{problem: fmt.Sprintf("there is no %s %s", what, name), there: likely(r.names(prefix))}
}

// content returns the files of a commit as a packed archive.
func (r *repository) content(ctx context.Context, commit string) ([]byte, error) {
	id := plumbing.NewHash(commit)
	if id.String() != commit {
		return nil, fmt.Errorf("the commit %s has an id that is no SHA-1, and kalypso reads no repositories with others", commit)
	}
	dir, err := os.MkdirTemp("", "kalypso-fetch-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	objects, err := r.download(ctx, id, dir)
	if err != nil {
		return nil, err
	}
	files, err := archive.Build(commitEntries(objects, id))
	if err != nil {
		return nil, err
	}
	return archive.Pack(files), nil
}

// download gets a commit into a folder: alone where the server lets it be asked
// for, else with all branches and tags, among which it may be.
func (r *repository) download(ctx context.Context, id plumbing.Hash, dir string) (storage.Storer, error) {
	if want, ok := r.want(id); ok {
		objects, err := r.get(ctx, []plumbing.Hash{want}, 1, dir)
		if err == nil || !errors.Is(err, errRefused) {
			return objects, err
		}
	}
	objects, err := r.get(ctx, r.tips(), 0, dir)
	if err != nil {
		return nil, err
	}
	if objects.HasEncodedObject(id) != nil {
		return nil, &missing{problem: fmt.Sprintf("there is no commit %s on any branch or tag", id)}
	}
	return objects, nil
}

// want returns what a server that is asked for a commit alone is asked for, and
// whether it can be. Most servers give only what they have named.
func (r *repository) want(id plumbing.Hash) (plumbing.Hash, bool) {
	if named, ok := r.named[id]; ok {
		return named, true
	}
	return id, r.capabilities.Supports(capability.AllowReachableSHA1InWant)
}

// tips are the commits and tags that branches and tags name.
func (r *repository) tips() []plumbing.Hash {
	var out []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, id := range r.unpeeled {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// errRefused is that a server gives nothing for what was asked for.
var errRefused = errors.New("the server refuses to give the commit")

// get gets some commits into a folder, with what they came from up to a depth, 0
// for all.
func (r *repository) get(ctx context.Context, wants []plumbing.Hash, depth int, dir string) (storage.Storer, error) {
	session, err := r.session(ctx)
	if err != nil {
		return nil, r.explain(err)
	}
	defer session.Close()
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, r.explain(err)
	}
	request := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	request.Wants = wants
	if depth > 0 && refs.Capabilities.Supports(capability.Shallow) {
		request.Depth = packp.DepthCommits(depth)
		if err := request.Capabilities.Set(capability.Shallow); err != nil {
			return nil, err
		}
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		if temporary(err) {
			return nil, err
		}
		return nil, errors.Join(errRefused, r.explain(err))
	}
	defer response.Close()
	objects := filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault())
	return objects, unpack(objects, request, response)
}

// unpack writes the pack of a response to a storage.
func unpack(objects storage.Storer, request *packp.UploadPackRequest, response *packp.UploadPackResponse) error {
	pack := web.NewReader(response, maxBody)
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		pack = sideband.NewDemuxer(sideband.Sideband64k, pack)
	case request.Capabilities.Supports(capability.Sideband):
		pack = sideband.NewDemuxer(sideband.Sideband, pack)
	}
	err := packfile.UpdateObjectStorage(objects, pack)
	if errors.Is(err, packfile.ErrEmptyPackfile) {
		return errRefused
	}
	return err
}
