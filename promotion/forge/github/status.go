package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// parallel is the number of commits that are read at once. GitHub allows a hundred concurrent
// requests for a token.
const parallel = 6

// user is a user in the API; nil for a deleted account.
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

// Statuses makes two requests of REST for a commit. One query of GraphQL could read many commits,
// but it returns only the newest status of each name, and has other names for bots. It lacks the
// history, which contains the start of a soak and statuses of others. Repeated requests have an
// ETag, and do not count for rate limits if nothing has changed.
func (r *repo) Statuses(
	ctx context.Context, commits []git.Hash,
) (all map[git.Hash][]forge.Status, err error) {
	err = r.client.Run(ctx, func(ctx context.Context) error {
		all, err = server.Statuses(ctx, parallel, commits,
			func(ctx context.Context, commit git.Hash) ([]forge.Status, error) {
				statuses, err := r.statuses(ctx, commit)
				if err != nil {
					return nil, fmt.Errorf("reading the statuses of %s: %w", git.Short(commit), err)
				}
				return statuses, nil
			})
		return err
	})
	return all, err
}

// statuses returns the statuses and check runs of a commit, oldest first.
func (r *repo) statuses(ctx context.Context, commit git.Hash) ([]forge.Status, error) {
	var out []forge.Status
	err := r.eachStatus(ctx, commit, func(s status) bool {
		out = append(out, s.converted())
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(out) // the API has the newest first
	err = pages(ctx, r, "commits/"+commit.String()+"/check-runs", values{"filter": "all"},
		func(page struct {
			Runs []checkRun `json:"check_runs"`
		}) bool {
			for _, run := range page.Runs {
				// The end of a check run is reported by its app. kalypso's own results are
				// statuses, whose times are GitHub's.
				if !strings.HasPrefix(run.Name, "kalypso/") {
					out = append(out, run.converted())
				}
			}
			return true
		})
	// Fine-grained tokens of people cannot have the permission to read checks. Without it
	// there are no check runs, and gates that need one stay pending.
	if denied := (*forge.AuthError)(nil); err != nil && !errors.As(err, &denied) &&
		!isUnknownCommit(err) {
		return nil, err
	}
	// Times are in whole seconds: within one, the order of the API is kept.
	slices.SortStableFunc(out, func(a, b forge.Status) int { return a.At.Compare(b.At) })
	return out, nil
}

// eachStatus calls keep for the statuses of a commit, newest first, until it returns false. A
// commit that GitHub does not know has no statuses.
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
	return isRefusal(err, http.StatusNotFound) ||
		isRefusal(err, http.StatusUnprocessableEntity, "no commit found")
}

func (s status) converted() forge.Status {
	state := forge.Pending // also for unknown states
	switch s.State {
	case "success":
		state = forge.Success
	case "failure", "error":
		state = forge.Failure
	}
	return forge.Status{Name: s.Context, State: state, Description: s.Description, URL: s.TargetURL,
		By: s.Creator.name(), At: s.CreatedAt}
}

// converted follows GitHub's own rules of protected branches: a skipped or neutral run is a
// success.
func (c checkRun) converted() forge.Status {
	out := forge.Status{Name: c.Name, State: forge.Pending, Description: c.Output.Title,
		URL: c.DetailsURL, At: c.StartedAt}
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

// SetStatus reads the newest status of the viewer with the name first. After a lost answer
// and with an outdated list, the status is written twice, which does no harm.
func (r *repo) SetStatus(ctx context.Context, commit git.Hash, s forge.Status) error {
	err := r.client.Run(ctx, func(ctx context.Context) error {
		viewer, err := r.Viewer(ctx)
		if err != nil {
			return err
		}
		isSet := false
		if viewer != "" {
			err = r.eachStatus(ctx, commit, func(old status) bool {
				// GitHub ignores the case of names of statuses, but keeps it.
				if old.Context != s.Name || old.Creator.name() != viewer {
					return true
				}
				isSet = old.converted().State == s.State && sameText(old.Description, s.Description)
				return false
			})
		}
		if isSet || err != nil {
			return err
		}
		return r.send(ctx, server.Write, http.MethodPost, "statuses/"+commit.String(), map[string]string{
			"context": s.Name, "state": string(s.State), "description": s.Description, "target_url": s.URL,
		}, nil)
	})
	if isUnknownCommit(err) {
		err = fmt.Errorf("%w: %w", forge.ErrUnknownCommit, err)
	}
	if err != nil {
		return fmt.Errorf("setting the status %s of %s: %w", s.Name, git.Short(commit), err)
	}
	return nil
}

// deployment is one of the REST API.
type deployment struct {
	ID         int64           `json:"id"`
	SHA        string          `json:"sha"`
	Production bool            `json:"production_environment"`
	Payload    json.RawMessage `json:"payload"` // an object, or one as a string
}

// deploymentStates are GitHub's states.
var deploymentStates = map[forge.State]string{forge.Pending: "in_progress",
	forge.Success: "success", forge.Failure: "failure"}

// Deploy creates a deployment for a commit in an environment, and one status for each of
// its states. A success makes the environment's earlier ones inactive, which GitHub does
// itself only outside of production.
func (r *repo) Deploy(ctx context.Context, d forge.Deployment) error {
	err := r.client.Run(ctx, func(ctx context.Context) error {
		var newest []deployment
		err := r.get(ctx, "deployments", values{"environment": d.Environment, "per_page": "1"}, &newest)
		if err != nil {
			return err
		}
		if len(newest) == 0 || !newest[0].is(d) {
			newest = []deployment{{}}
			payload := d.Payload
			if payload == nil {
				payload = map[string]string{} // null is not a payload
			}
			// It is neither merged nor checked: it runs already.
			err = r.send(ctx, server.Write, http.MethodPost, "deployments", map[string]any{
				"ref": d.Commit.String(), "environment": d.Environment, "description": d.Description,
				"auto_merge": false, "required_contexts": []string{}, "production_environment": d.Production,
				"transient_environment": false, "payload": payload,
			}, &newest[0])
			if err != nil {
				return err
			}
		}
		if newest[0].ID <= 0 {
			return errors.New("GitHub answers with something that is no deployment")
		}
		return r.setDeployment(ctx, newest[0].ID, d)
	})
	if err != nil {
		return fmt.Errorf("recording the deployment to %s: %w", d.Environment, err)
	}
	return nil
}

// setDeployment adds a status to a deployment, if its newest one differs.
func (r *repo) setDeployment(ctx context.Context, id int64, d forge.Deployment) error {
	path := "deployments/" + strconv.FormatInt(id, 10) + "/statuses"
	var newest []struct {
		State       string `json:"state"`
		Description string `json:"description"`
		URL         string `json:"log_url"`
	}
	err := r.get(ctx, path, values{"per_page": "1"}, &newest)
	if err != nil || len(newest) > 0 && newest[0].State == deploymentStates[d.State] &&
		newest[0].URL == d.URL && sameText(newest[0].Description, d.Description) {
		return err
	}
	return r.send(ctx, server.Write, http.MethodPost, path, map[string]any{
		"state": deploymentStates[d.State], "description": d.Description, "log_url": d.URL,
		"auto_inactive": true,
	}, nil)
}

// is reports whether a deployment has the same commit and payload.
func (old *deployment) is(d forge.Deployment) bool {
	text := []byte(old.Payload)
	if quoted := ""; json.Unmarshal(text, &quoted) == nil {
		text = []byte(quoted)
	}
	had := map[string]string{}
	if len(text) > 0 && json.Unmarshal(text, &had) != nil {
		return false
	}
	return server.Hash(old.SHA) == d.Commit && old.Production == d.Production &&
		maps.Equal(had, d.Payload)
}
