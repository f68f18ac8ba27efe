package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// Statuses shows on forges how far releases are: as a status of the commit in the GitOps branch,
// and in one comment on the change request that brought it there. One hub of a database does so.
// It is for one goroutine.
type Statuses struct {
	Hub *hub.Hub
	// Open opens the forge of a repository; nil for one that is on none.
	Open    func(ctx context.Context, repository string) (forge.Forge, error)
	URL     string // the hub's address, for links; "" for none
	Problem func(error)

	holder   string
	forges   map[string]forge.Forge
	written  map[string]shown         // by context
	changes  map[string]*forge.Change // by repository and commit; nil for none
	comments map[string]string        // by repository and number
}

// shown is what a status shows.
type shown struct {
	commit string
	forge.Status
}

// NewStatuses returns Statuses.
func NewStatuses(h *hub.Hub, open func(context.Context, string) (forge.Forge, error), url string, problem func(error)) *Statuses {
	return &Statuses{Hub: h, Open: open, URL: strings.TrimSuffix(url, "/"), Problem: problem, holder: rand.Text(),
		forges: map[string]forge.Forge{}, written: map[string]shown{}, changes: map[string]*forge.Change{}, comments: map[string]string{}}
}

// The times of statuses: how often they are written, at most, and how long a hub that has
// stopped keeps others from it.
const (
	statusEvery = 30 * time.Second
	statusLease = 3 * statusEvery
	// A forge may know a while later by which change request a commit came.
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

// Look writes what has changed, where this is the hub that does.
func (s *Statuses) Look(ctx context.Context) error {
	mine, err := s.Hub.Store().Lease(ctx, "statuses", s.holder, s.Hub.Now(), statusLease)
	if err != nil || !mine {
		return err
	}
	var errs []error
	for _, w := range s.Hub.Fleet().Environments() {
		if err := s.environment(ctx, w); err != nil {
			errs = append(errs, fmt.Errorf("environment %s: %w", w.Environment, err))
		}
	}
	return errors.Join(errs...)
}

// forge returns the forge of a repository; nil for none.
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

// ring is a ring with the release that it has.
type ring struct {
	store.Release
	counts api.Counts
	failed []string // the first clusters with failures
}

func (s *Statuses) environment(ctx context.Context, w *state.Wanted) error {
	f, err := s.forge(ctx, w.Repository)
	if err != nil || f == nil {
		return err
	}
	counts := map[string]api.Counts{}
	for _, g := range s.Hub.Fleet().Count(state.Filter{Environments: state.In(w.Environment)}, state.ByRing) {
		counts[g.Values[0]] = api.CountsOf(&g.Tally)
	}
	var commits []string // in which order they are commented on
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
		if of.counts.Failed > 0 { // looking for them reads all clusters
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
	return errors.Join(errs...)
}

// failing names the first clusters with failures.
func (s *Statuses) failing(environment, ring string) (names []string) {
	s.Hub.Fleet().List(state.Filter{Environments: state.In(environment), Ring: ring, States: []state.State{state.Failed}}, state.Position{}, func(r state.Row) bool {
		if len(names) == 0 || names[len(names)-1] != r.Cluster {
			names = append(names, r.Cluster)
		}
		return len(names) < mostNames
	})
	return names
}

// summary says how far a ring is.
func summary(c *api.Counts) string {
	text := fmt.Sprintf("%d/%d ok", c.OK, c.Wanted)
	for _, of := range []state.State{state.Failed, state.Drifted, state.Stale, state.Missing} {
		if n := c.Of(of); n > 0 {
			text += fmt.Sprintf(", %d %s", n, of)
		}
	}
	return text
}

func stateOf(c *api.Counts, maxFailed int) forge.State {
	switch {
	case c.Failed > maxFailed:
		return forge.Failure
	case c.Wanted > 0 && c.OK == c.Wanted:
		return forge.Success
	}
	return forge.Pending
}

// status writes the status of a ring, where it has changed. The commit that the ring had before
// keeps its last one, which says that it was replaced.
func (s *Statuses) status(ctx context.Context, f forge.Forge, w *state.Wanted, r *ring) error {
	name := strings.TrimSuffix("kalypso-hub/"+r.Environment+"/"+r.Ring, "/")
	is := shown{r.Commit, forge.Status{Name: name, State: stateOf(&r.counts, w.MaxFailed), Description: summary(&r.counts), URL: s.link(r.Environment)}}
	was, there := s.written[name]
	if there && was.commit != is.commit && was.State != forge.Success {
		was.Description += ", replaced by " + short(r.Commit)
		if err := f.SetStatus(ctx, plumbing.NewHash(was.commit), was.Status); err != nil {
			return err
		}
	}
	if there && was == is {
		return nil
	}
	if err := f.SetStatus(ctx, plumbing.NewHash(r.Commit), is.Status); err != nil {
		return err
	}
	s.written[name] = is
	return nil
}

func (s *Statuses) link(environment string) string {
	if s.URL == "" {
		return ""
	}
	return s.URL + "/rollouts/" + url.PathEscape(environment)
}

// comment writes the comment on the change request that brought a commit, where there is one.
func (s *Statuses) comment(ctx context.Context, f forge.Forge, w *state.Wanted, commit string, rings []ring) error {
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
	text := mark + "\n" + table(rings)
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

func table(rings []ring) string {
	var b strings.Builder
	b.WriteString("| Where | On clusters | Failed on |\n|---|---|---|\n")
	for _, r := range rings {
		where := strings.TrimSuffix(r.Environment+"/"+r.Ring, "/")
		fmt.Fprintf(&b, "| %s | %s | %s |\n", code(where), summary(&r.counts), codes(r.failed))
	}
	return b.String()
}

// code is a name in Markdown, which means nothing in it.
func code(name string) string {
	return "`" + strings.NewReplacer("`", "'", "|", "/", "\n", " ", "\r", " ").Replace(name) + "`"
}

func codes(names []string) string {
	var out []string
	for _, name := range names {
		out = append(out, code(name))
	}
	return strings.Join(out, ", ")
}
