package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// parallel is how many commits are asked about at once. GitHub allows a hundred requests
// at a time for all that uses a token.
const parallel = 6

// user is somebody in the API; nil where the account is gone.
type user struct {
	Login string `json:"login"`
}

func (u *user) name() string {
	if u == nil {
		return ""
	}
	return u.Login
}

// status is a commit status of the REST API.
type status struct {
	Context     string    `json:"context"`
	State       string    `json:"state"`
	Description string    `json:"description"`
	TargetURL   string    `json:"target_url"`
	Creator     *user     `json:"creator"`
	CreatedAt   time.Time `json:"created_at"`
}

// checkRun is a check run of the REST API.
type checkRun struct {
	Name        string     `json:"name"`
	Status      string     `json:"status"`
	Conclusion  string     `json:"conclusion"`
	DetailsURL  string     `json:"details_url"`
	StartedAt   time.Time  `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
	Output      struct {
		Title string `json:"title"`
	} `json:"output"`
	App *struct {
		Slug string `json:"slug"`
	} `json:"app"`
}

// Statuses makes two requests of REST for a commit. One query of GraphQL could name
// many commits, but it has only the newest status of each name: no history, in which
// a soak's start or another's word is to be found, and it names bots otherwise than
// everything else does. What was asked before is asked with its ETag, which does not
// count where nothing changed.
func (r *repo) Statuses(ctx context.Context, commits []git.Hash) (map[git.Hash][]forge.Status, error) {
	return server.Statuses(ctx, parallel, commits, func(ctx context.Context, commit git.Hash) ([]forge.Status, error) {
		statuses, err := r.statuses(ctx, commit)
		if err != nil {
			return nil, fmt.Errorf("reading the statuses of %s: %w", git.Short(commit), err)
		}
		return statuses, nil
	})
}

// statuses returns the statuses and check runs of a commit, oldest first.
func (r *repo) statuses(ctx context.Context, commit git.Hash) ([]forge.Status, error) {
	var out []forge.Status
	err := r.eachStatus(ctx, commit, func(s status) bool {
		out = append(out, s.said())
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(out) // the API has the newest first
	err = pages(ctx, r, "commits/"+commit.String()+"/check-runs", values{"filter": "all"}, func(page struct {
		Runs []checkRun `json:"check_runs"`
	}) bool {
		for _, run := range page.Runs {
			// When a check run ended is what its app says. What kalypso says it says in
			// statuses, whose times are GitHub's.
			if !strings.HasPrefix(run.Name, "kalypso/") {
				out = append(out, run.said())
			}
		}
		return true
	})
	// Fine-grained tokens of people cannot be given the right to read checks. They see
	// none, and who waits for one waits on.
	if denied := (*forge.AuthError)(nil); err != nil && !errors.As(err, &denied) && !isUnknownCommit(err) {
		return nil, err
	}
	// Times are in whole seconds: within one, the order of the API stays.
	slices.SortStableFunc(out, func(a, b forge.Status) int { return a.At.Compare(b.At) })
	return out, nil
}

// eachStatus goes through the commit statuses of a commit, newest first, until keep
// returns false. A commit that GitHub does not know has none.
func (r *repo) eachStatus(ctx context.Context, commit git.Hash, keep func(status) bool) error {
	err := pages(ctx, r, "commits/"+commit.String()+"/statuses", nil, func(page []status) bool {
		for _, s := range page {
			if !keep(s) {
				return false
			}
		}
		return true
	})
	if isUnknownCommit(err) {
		return nil
	}
	return err
}

func isUnknownCommit(err error) bool {
	return isRefusal(err, http.StatusNotFound) || isRefusal(err, http.StatusUnprocessableEntity, "no commit found")
}

func (s status) said() forge.Status {
	state := forge.Pending // also where it is a word that nobody knows yet
	switch s.State {
	case "success":
		state = forge.Success
	case "failure", "error":
		state = forge.Failure
	}
	return forge.Status{Name: s.Context, State: state, Description: s.Description, URL: s.TargetURL, By: s.Creator.name(), At: s.CreatedAt}
}

// said takes a run for what GitHub's own rules of protected branches take it: a
// skipped or neutral one is a success.
func (c checkRun) said() forge.Status {
	out := forge.Status{Name: c.Name, State: forge.Pending, Description: c.Output.Title, URL: c.DetailsURL, At: c.StartedAt}
	if c.App != nil && c.App.Slug != "" {
		out.By = c.App.Slug + "[bot]"
	}
	if c.Status != "completed" {
		return out
	}
	out.State = forge.Failure
	switch c.Conclusion {
	case "success", "neutral", "skipped":
		out.State = forge.Success
	}
	if c.CompletedAt != nil {
		out.At = *c.CompletedAt
	}
	return out
}

// SetStatus looks for the newest status of the viewer with the name first. Where an
// answer is lost and the list is behind as well, the status is there twice, which
// says nothing else.
func (r *repo) SetStatus(ctx context.Context, commit git.Hash, s forge.Status) error {
	err := r.settle(ctx,
		func() (bool, error) { return r.isSaid(ctx, commit, s) },
		func() error {
			return r.send(ctx, write, http.MethodPost, "statuses/"+commit.String(), map[string]string{
				"context": s.Name, "state": string(s.State), "description": s.Description, "target_url": s.URL,
			}, nil)
		})
	if err != nil {
		return fmt.Errorf("setting the status %s of %s: %w", s.Name, git.Short(commit), err)
	}
	return nil
}

// isSaid reports whether the newest status of the viewer with a name says the same
// already.
func (r *repo) isSaid(ctx context.Context, commit git.Hash, s forge.Status) (bool, error) {
	viewer, err := r.Viewer(ctx)
	if viewer == "" || err != nil {
		return false, err
	}
	said := false
	err = r.eachStatus(ctx, commit, func(old status) bool {
		// GitHub takes names of statuses for the same whatever their case, but keeps it.
		if old.Context != s.Name || old.Creator.name() != viewer {
			return true
		}
		said = old.said().State == s.State && sameText(old.Description, s.Description)
		return false
	})
	return said, err
}
