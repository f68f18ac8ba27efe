package session

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
	"github.com/kalypso-io/kalypso/promotion/ledger"
)

// opener opens repositories, each once, and keeps them.
type opener struct {
	request  *Request
	now      time.Time
	known    map[string]*Repository // by URL
	opened   map[string]*openResult // by URL: those that are not known yet
	unopened map[string]error       // by URL: why those cannot be
	// allowedSigners are the keys whose signatures count; nil before the platform was read.
	allowedSigners []byte
	// of environments that were renamed; empty before the platform was read
	names ledger.Names
}

// close releases the repositories.
func (o *opener) close() error {
	var errs []error
	for _, r := range o.known {
		errs = append(errs, r.close())
	}
	for _, other := range o.opened {
		if other.remote != nil {
			errs = append(errs, other.remote.Close())
		}
	}
	return errors.Join(errs...)
}

// openResult is a repository of the request, or the error of opening it.
type openResult struct {
	remote *remote.Remote
	err    error
}

// openRemotes opens the repositories of all environments, at once.
func (o *opener) openRemotes(ctx context.Context, stages []model.Declaration) {
	o.opened = map[string]*openResult{}
	var all sync.WaitGroup
	limit := make(chan struct{}, maxAtOnce)
	for i := range stages {
		g := stages[i].GitOps
		if g == nil || g.Repo == "" || o.known[g.Repo] != nil || o.opened[g.Repo] != nil {
			continue
		}
		to := &openResult{}
		o.opened[g.Repo] = to
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			to.remote, to.err = o.request.Remote(ctx, g.Repo)
		})
	}
	all.Wait()
}

// maxAtOnce is the number of repositories that are opened at once.
const maxAtOnce = 8

// openRemote opens a repository, or returns the result of openRemotes.
func (o *opener) openRemote(ctx context.Context, url string) (*remote.Remote, error) {
	if by := o.opened[url]; by != nil {
		delete(o.opened, url)
		return by.remote, by.err
	}
	return o.request.Remote(ctx, url)
}

// Repository is a git repository with its host.
type Repository struct {
	ledger.Repository
	Forge forge.Forge
	Plain bool // there is only git
	// notes keep statuses and approvals if there is no forge.
	notes *ledger.Notes
	// statuses are nil before they are needed.
	statuses *ledger.Statuses
	// elsewhere are statuses in git notes, of commits of a platform that is on no forge, or
	// nil.
	elsewhere *ledger.Statuses
}

// repository opens a repository, once for each URL.
func (o *opener) repository(ctx context.Context, url string) (*Repository, error) {
	if known := o.known[url]; known != nil {
		return known, nil
	}
	if err := o.unopened[url]; err != nil {
		return nil, err
	}
	r, err := o.openRepository(ctx, url)
	if err != nil {
		o.unopened[url] = err
		return nil, errors.Join(err, r.close())
	}
	o.known[url] = r
	return r, nil
}

// openRepository opens a repository. The caller has to close the result, even after an error.
func (o *opener) openRepository(ctx context.Context, url string) (r *Repository, err error) {
	r = &Repository{Repository: ledger.Repository{Names: o.names}}
	if r.Remote, err = o.openRemote(ctx, url); err != nil {
		return r, err
	}
	r.URL = r.Remote.URL()
	refs, _ := r.Remote.Advertised() // it has just been opened
	r.Refs = maps.Clone(refs)
	if r.Staging, err = r.Remote.Staging(); err != nil {
		return r, err
	}
	if r.Forge, err = o.request.Forge(ctx, url); err != nil {
		return r, err
	}
	if r.Forge == nil {
		r.Plain = true
		r.Forge, err = o.plainForge(r)
	}
	return r, err
}

func (r *Repository) close() error {
	var errs []error
	if r.Staging != nil {
		errs = append(errs, r.Staging.Close())
	}
	if r.Remote != nil {
		errs = append(errs, r.Remote.Close())
	}
	return errors.Join(errs...)
}

// BranchRef returns the full name of a branch.
func BranchRef(branch string) string { return "refs/heads/" + branch }

// defaultBranch returns the default branch of the repository.
func (r *Repository) defaultBranch() string { return cmp.Or(r.Remote.DefaultBranch(), "main") }

// plainForge returns a forge that keeps statuses and requests in the repository itself.
func (o *opener) plainForge(r *Repository) (*plain.Forge, error) {
	options := plain.Options{By: o.request.Author(o.now).Signature, Now: o.request.Now,
		AllowedSigners: o.allowedSigners}
	if o.request.Signer != nil {
		options.Signer = o.request.Signer.SSH
	}
	if r.notes == nil {
		r.notes = ledger.NewNotes(&r.Repository)
	}
	return plain.New(r.notes, options)
}

// Statuses returns the statuses of the repository's commits.
func (r *Repository) Statuses() *ledger.Statuses {
	if r.statuses == nil {
		r.statuses = ledger.NewStatuses(r.Forge, r.Names)
	}
	return r.statuses
}

// StatusesOf returns the statuses of a base commit of the repository. Without a forge,
// they are in the given notes of a GitOps repository.
func (r *Repository) StatusesOf(ctx context.Context, statuses *ledger.Statuses,
	commit git.Hash) ([]forge.Status, error) {
	if r.Plain {
		return statuses.Of(ctx, commit)
	}
	return r.Statuses().Of(ctx, commit)
}

// gather fetches the objects of environments, from all repositories at the same time, and from
// each in as few requests as possible. If it cannot get an object, its reader fetches the object
// again and returns the error.
func (s *State) gather(ctx context.Context) {
	of := map[*Repository][]*Environment{}
	for i := range s.Platform.Policies {
		if env := s.Environments[s.Platform.Policies[i].Name]; env.Repository != nil &&
			!env.Tip.IsZero() {
			of[env.Repository] = append(of[env.Repository], env)
		}
	}
	var all sync.WaitGroup
	limit := make(chan struct{}, maxAtOnce)
	for r, environments := range of {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			_ = s.gatherOf(ctx, r, environments)
		})
	}
	all.Wait()
}

// gatherOf fetches the newest commits of branches of a repository, the orders, and then the
// records.
func (s *State) gatherOf(ctx context.Context, r *Repository, environments []*Environment) error {
	var deep []git.Hash
	flat := r.OrderIDs()
	for _, env := range environments {
		if env.Aside {
			flat = append(flat, env.Tip)
		} else {
			deep = append(deep, env.Tip)
		}
	}
	if err := errors.Join(r.Remote.Fetch(ctx, deep, firstDepth),
		r.Remote.Fetch(ctx, flat, 1)); err != nil {
		return err
	}
	var ids []git.Hash
	for _, env := range environments {
		records, err := env.recordIDs()
		if err != nil {
			return err
		}
		ids = append(ids, records...)
	}
	if err := r.Remote.Prefetch(ctx, ids); err != nil {
		return err
	}
	ids = nil
	for _, env := range environments {
		at, err := r.View(env.Branch, env.Tip)
		if err != nil {
			return err
		}
		_ = s.Bounded(ctx, env, func() error { // if it cannot be read, that is an error later
			record, _, err := at.Record(env.Folder)
			if err == nil && record != nil && !env.Aside {
				ids = append(ids, clusterTypesOf(record)...)
			}
			return err
		})
	}
	return r.Remote.Prefetch(ctx, ids)
}

// recordIDs returns the ids of an environment's records in the commits that are already fetched.
// The first of them are read in any case.
func (env *Environment) recordIDs() (ids []git.Hash, err error) {
	links, err := (&History{of: env, depth: firstDepth}).links()
	if err != nil {
		return nil, err
	}
	if env.Aside {
		links = links[:1]
	}
	for _, l := range links {
		id, err := env.recordIn(l)
		if err != nil {
			return nil, err
		}
		if !id.IsZero() && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// recordIn returns the id of the environment's record in a commit; zero if the commit has no
// record.
func (env *Environment) recordIn(l git.Link) (git.Hash, error) {
	e, found, err := env.Repository.Staging.Find(l.Tree, path.Join(env.Folder, tree.RecordPath))
	if err != nil || !found || e.Mode != git.FileMode {
		return git.Hash{}, err
	}
	return e.ID, nil
}

// clusterTypesOf returns the ids of the records of cluster types.
func clusterTypesOf(record *tree.Record) []git.Hash {
	var ids []git.Hash
	for _, ct := range record.ClusterTypes {
		ids = append(ids, tree.Revision(ct.Record).Hash())
	}
	return ids
}
