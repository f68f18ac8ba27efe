package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// Statuses shows the progress of releases on forges. It sets a status on the commit in the GitOps
// branch, and writes one comment on the change request of that commit. Only one hub of a database
// does so. Only one goroutine may use it.
type Statuses struct {
	Hub *hub.Hub
	// Open opens the forge of a repository. It returns nil if the repository is on no forge.
	Open    func(ctx context.Context, repository string) (forge.Forge, error)
	URL     string // the hub's address, for links; "" if it has no address
	Problem func(error)

	holder   string
	forges   map[string]forge.Forge
	written  map[string]shownStatus      // by name
	replaced map[string][]replacedCommit // the statuses that must still be written, by environment
	changes  map[string]*forge.Change    // by repository and commit; nil if there is no change request
	comments map[string]string           // by repository and number
}

// shownStatus is a status that a forge shows.
type shownStatus struct {
	commit string
	forge.Status
}

// replacedCommit is a former commit of a ring whose status must name its replacement.
type replacedCommit struct{ name, commit, by string }

// NewStatuses returns Statuses.
func NewStatuses(h *hub.Hub, open func(context.Context, string) (forge.Forge, error), url string,
	problem func(error)) *Statuses {
	return &Statuses{Hub: h, Open: open, URL: strings.TrimSuffix(url, "/"), Problem: problem,
		holder: rand.Text(),
		forges: map[string]forge.Forge{}, written: map[string]shownStatus{},
		replaced: map[string][]replacedCommit{},
		changes:  map[string]*forge.Change{}, comments: map[string]string{}}
}

// The times of statuses: how often they are written, at most, and how long the lease of a stopped
// hub keeps other hubs from writing them.
const (
	statusEvery = 30 * time.Second
	statusLease = 3 * statusEvery
	// A forge may need a while until it knows the change request of a commit.
	knownAfter = 10 * time.Minute
)

// Run writes until the context ends.
func (s *Statuses) Run(ctx context.Context) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.Look(ctx); err != nil && ctx.Err() == nil {
			s.Problem(fmt.Errorf("statuses on the forge: %w", err))
		}
	}
}

// Look writes the changes, if this hub has the lease.
func (s *Statuses) Look(ctx context.Context) error {
	mine, err := s.Hub.Store().Lease(ctx, "statuses", s.holder, s.Hub.Now(), statusLease)
	if err != nil {
		return err
	}
	if !mine { // another hub writes, so these records are out of date
		clear(s.written)
		clear(s.replaced)
		clear(s.comments)
		return nil
	}
	var errs []error
	for _, w := range s.Hub.Fleet().Environments() {
		if err := s.environment(ctx, w); err != nil {
			errs = append(errs, fmt.Errorf("environment %s: %w", w.Environment, err))
		}
	}
	return errors.Join(errs...)
}

// forge returns the forge of a repository, or nil if the repository is on no forge.
func (s *Statuses) forge(ctx context.Context, repository string) (forge.Forge, error) {
	if f, opened := s.forges[repository]; opened {
		return f, nil
	}
	f, err := s.Open(ctx, repository)
	if err != nil {
		return nil, err
	}
	s.forges[repository] = f
	return f, nil
}

// ring is a ring with its newest release.
type ring struct {
	api.Release
	counts api.Counts
	failed []string // the first clusters with failures
}

func (s *Statuses) environment(ctx context.Context, w *state.DesiredState) error {
	f, err := s.forge(ctx, w.Repository)
	if err != nil || f == nil {
		return err
	}
	counts := map[string]api.Counts{}
	for _, g := range s.Hub.Fleet().Count(state.Filter{Environments: state.In(w.Environment)},
		state.ByRing) {
		counts[g.Values[0]] = api.CountsOf(&g.Tally)
	}
	var commits []string // in the order of the comments
	rings, seen := map[string][]ring{}, map[string]bool{}
	for _, r := range store.ReleasesOf(w) {
		if seen[r.Ring] {
			continue // another one is newer
		}
		seen[r.Ring] = true
		if len(rings[r.Commit]) == 0 {
			commits = append(commits, r.Commit)
		}
		of := ring{Release: r, counts: counts[r.Ring]}
		if of.counts.Failed > 0 { // a search for failures reads all clusters
			of.failed = s.failing(w.Environment, r.Ring)
		}
		rings[r.Commit] = append(rings[r.Commit], of)
	}
	var errs []error
	for _, commit := range commits {
		for _, r := range rings[commit] {
			errs = append(errs, s.status(ctx, f, w, &r))
		}
		errs = append(errs, s.comment(ctx, f, w, commit, rings[commit]))
	}
	return errors.Join(append(errs, s.replace(ctx, f, w.Environment))...)
}

// failing names the first clusters with failures.
func (s *Statuses) failing(environment, ring string) (names []string) {
	s.Hub.Fleet().List(state.Filter{Environments: state.In(environment), Ring: ring,
		States: []state.State{state.Failed}}, state.Position{}, func(r state.Row) bool {
		if len(names) == 0 || names[len(names)-1] != r.Cluster {
			names = append(names, r.Cluster)
		}
		return len(names) < maxNames
	})
	return names
}

// summary describes the progress of a ring.
func summary(c *api.Counts) string {
	text := fmt.Sprintf("%d/%d ok", c.OK, c.Wanted)
	for _, of := range []state.State{state.Failed, state.Drifted, state.Suspended, state.Stale,
		state.Missing} {
		if n := c.Of(of); n > 0 {
			text += fmt.Sprintf(", %d %s", n, of)
		}
	}
	return text
}

// status writes the status of a ring if it has changed.
func (s *Statuses) status(ctx context.Context, f forge.Forge, w *state.DesiredState,
	r *ring) error {
	name := strings.TrimSuffix("kalypso-hub/"+r.Environment+"/"+r.Ring, "/")
	reached := forge.Pending
	switch {
	case r.counts.Failed > w.MaxFailed:
		reached = forge.Failure
	case r.counts.Wanted > 0 && r.counts.OK == r.counts.Wanted:
		reached = forge.Success
	}
	is := shownStatus{r.Commit, forge.Status{Name: name, State: reached,
		Description: summary(&r.counts), URL: s.link(r.Environment)}}
	was, there := s.written[name]
	if there && was == is {
		return nil
	}
	if !there || was.commit != is.commit {
		before, err := s.earlierCommits(ctx, &r.Release)
		if err != nil {
			return err
		}
		if there && was.State != forge.Success && !slices.Contains(before, was.commit) {
			before = append(before, was.commit)
		}
		for _, commit := range before {
			if of := (replacedCommit{name, commit, r.Commit}); !slices.Contains(s.replaced[r.Environment],
				of) {
				s.replaced[r.Environment] = append(s.replaced[r.Environment], of)
			}
		}
	}
	err := f.SetStatus(ctx, plumbing.NewHash(r.Commit), is.Status)
	if err == nil || errors.Is(err, forge.ErrUnknownCommit) && s.Hub.Now().Sub(r.At) > knownAfter {
		// the forge will not know the commit; it is tried again when the status changes
		s.written[name] = is
	}
	return err
}

// The limits of the search before a release: how many releases of the environment, and how many
// commits.
const (
	maxBefore  = 50
	maxCommits = 3
)

// earlierCommits returns the commits of a ring before a release that never completed there. Their
// statuses may still be pending, even if another hub wrote them.
func (s *Statuses) earlierCommits(ctx context.Context, is *api.Release) (commits []string,
	err error) {
	all, err := s.Hub.Store().Releases(ctx, state.In(is.Environment), maxBefore)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all,
		func(r api.Release) bool { return r.Ring == is.Ring && r.Commit == is.Commit })
	for _, r := range all[at+1:] { // all of them if the release is not stored yet
		if r.Ring == is.Ring && r.Completed.IsZero() && len(commits) < maxCommits {
			commits = append(commits, r.Commit)
		}
	}
	return commits, nil
}

// replace writes to the statuses of a ring's earlier commits which commit has replaced them. It
// tries failed ones again, except commits that the forge no longer has.
func (s *Statuses) replace(ctx context.Context, f forge.Forge, environment string) error {
	var errs []error
	var left []replacedCommit
	for _, old := range s.replaced[environment] {
		if err := end(ctx, f, old); err != nil && !errors.Is(err, forge.ErrUnknownCommit) {
			errs, left = append(errs, err), append(left, old)
		}
	}
	s.replaced[environment] = left
	return errors.Join(errs...)
}

// replacedBy is the text before the replacement in the last status of a replaced commit.
const replacedBy = ", replaced by "

// end writes the last status of a commit, unless it has none or has an end already.
func end(ctx context.Context, f forge.Forge, old replacedCommit) error {
	commit := plumbing.NewHash(old.commit)
	viewer, err := f.Viewer(ctx)
	if err != nil {
		return err
	}
	all, err := f.Statuses(ctx, []plumbing.Hash{commit})
	if err != nil {
		return err
	}
	last := forge.Newest(all[commit], old.name,
		func(author string) bool { return viewer == "" || strings.EqualFold(author, viewer) })
	if last == nil || last.State == forge.Success || strings.Contains(last.Description, replacedBy) {
		return nil
	}
	return f.SetStatus(ctx, commit, forge.Status{Name: last.Name, State: last.State,
		Description: last.Description + replacedBy + short(old.by), URL: last.URL})
}

func (s *Statuses) link(environment string) string {
	if s.URL == "" {
		return ""
	}
	return s.URL + "/rollouts/" + url.PathEscape(environment)
}

// comment writes the comment on the change request of a commit, if there is one.
func (s *Statuses) comment(ctx context.Context, f forge.Forge, w *state.DesiredState, commit string,
	rings []ring) error {
	c, is := f.(forge.Commenter)
	if !is {
		return nil
	}
	key := w.Repository + " " + commit
	change, known := s.changes[key]
	if !known {
		var err error
		if change, err = c.ChangeOf(ctx, plumbing.NewHash(commit), w.Branch); err != nil {
			return err
		}
		if change != nil || s.Hub.Now().Sub(rings[0].At) > knownAfter {
			s.changes[key] = change
		}
	}
	if change == nil {
		return nil
	}
	mark := "<!-- kalypso-hub " + w.Environment + " -->"
	text := mark + "\n"
	if at := w.IndexOf(commit); at >= 0 && w.Commits[at].Effect != nil {
		text += onClusters(w.Commits[at].Effect) + "\n\n"
	}
	text += "| Where | On clusters | Failed on |\n|---|---|---|\n"
	for _, r := range rings {
		where := strings.TrimSuffix(r.Environment+"/"+r.Ring, "/")
		var failed []string
		for _, name := range r.failed {
			failed = append(failed, code(name))
		}
		text += fmt.Sprintf("| %s | %s | %s |\n", code(where), summary(&r.counts),
			strings.Join(failed, ", "))
	}
	if link := s.link(w.Environment); link != "" {
		text += "\n[The rollout at the hub](" + link + ")\n"
	}
	key = fmt.Sprint(key, " ", change.Number)
	if s.comments[key] == text {
		return nil
	}
	if err := c.SaveComment(ctx, change.Number, mark, text); err != nil {
		return err
	}
	s.comments[key] = text
	return nil
}

// onClusters describes the effect of a commit on clusters, removals first.
func onClusters(c *state.Effect) string {
	text := counted(c.Removed, "assignment") + " removed"
	if c.Removed > 0 {
		text += " from " + counted(c.RemovedFrom, "cluster")
	}
	switch {
	case c.Emptied == 1:
		text += ", of which 1 is left empty"
	case c.Emptied > 1:
		text += fmt.Sprintf(", of which %d are left empty", c.Emptied)
	}
	return fmt.Sprintf("%s, %d added, %d changed", text, c.Added, c.Changed)
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// code formats a name as code in Markdown.
func code(name string) string {
	return "`" + strings.NewReplacer("`", "'", "|", "/", "\n", " ", "\r", " ").Replace(name) + "`"
}
