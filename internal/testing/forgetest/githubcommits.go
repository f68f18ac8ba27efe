package forgetest

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

func (r *GitHubRepository) listStatuses(c *call) reply {
	out := []any{}
	for _, s := range slices.Backward(r.statuses) { // newest first
		if s.Commit.String() == c.PathValue("sha") && !lags(&s.lag) {
			out = append(out, showStatus(s))
		}
	}
	return reply{status: http.StatusOK, list: out}
}

func showStatus(s *GitHubStatus) any {
	return map[string]any{
		"context": s.Context, "state": s.State, "description": s.Description, "target_url": s.TargetURL,
		"creator": person(s.Creator), "created_at": s.At.Format(time.RFC3339),
	}
}

func (r *GitHubRepository) createStatus(c *call) reply {
	sha := c.PathValue("sha")
	if r.resolve(sha) != sha {
		return fail(http.StatusUnprocessableEntity, "No commit found for SHA: "+sha)
	}
	if len([]rune(c.text("description"))) > 140 {
		return invalid("Status", "", "custom", "description is too long (maximum is 140 characters)")
	}
	if !slices.Contains([]string{"error", "failure", "pending", "success"}, c.text("state")) {
		return invalid("Status", "", "custom", "State is not included in the list")
	}
	s := &GitHubStatus{
		Commit: plumbing.NewHash(sha), Context: c.text("context"), State: c.text("state"), Description: c.text("description"),
		TargetURL: c.text("target_url"), Creator: c.login, At: r.server.Clock.Now(), lag: r.server.lag,
	}
	r.statuses = append(r.statuses, s)
	r.mergeWaiting()
	return reply{status: http.StatusCreated, body: showStatus(s)}
}

func (r *GitHubRepository) listCheckRuns(c *call) reply {
	if r.resolve(c.PathValue("sha")) == "" {
		return fail(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.PathValue("sha"))
	}
	out := []any{}
	newest := map[string]bool{}
	for _, run := range slices.Backward(r.checks) {
		// Without a filter, GitHub shows the newest run of each name and app only.
		name := run.App + "/" + run.Name
		if run.Commit.String() != c.PathValue("sha") || newest[name] && c.URL.Query().Get("filter") != "all" {
			continue
		}
		newest[name] = true
		at := run.At.Format(time.RFC3339)
		shown := map[string]any{
			"name": run.Name, "status": run.Status, "conclusion": nil, "started_at": at, "completed_at": nil,
			"output": map[string]any{"title": run.Title}, "app": nil, "details_url": "https://checks.example/" + run.Name,
		}
		if run.Status == "completed" {
			shown["conclusion"], shown["completed_at"] = run.Conclusion, at
		}
		if run.App != "" {
			shown["app"] = map[string]any{"slug": run.App}
		}
		out = append(out, shown)
	}
	return reply{status: http.StatusOK, list: out, key: "check_runs"}
}

func (r *GitHubRepository) listDeployments(c *call) reply {
	out := []any{}
	for _, d := range slices.Backward(r.deployments) {
		if wanted := c.URL.Query().Get("environment"); (wanted == "" || wanted == d.Environment) && !lags(&d.lag) {
			out = append(out, showDeployment(d))
		}
	}
	return reply{status: http.StatusOK, list: out}
}

func showDeployment(d *GitHubDeployment) any {
	return map[string]any{
		"id": d.ID, "sha": d.Commit.String(), "ref": d.Commit.String(), "environment": d.Environment,
		"production_environment": d.Production, "payload": d.Payload,
	}
}

func (r *GitHubRepository) createDeployment(c *call) reply {
	commit := r.resolve(c.text("ref"))
	if commit == "" {
		return fail(http.StatusUnprocessableEntity, "No ref found for: "+c.text("ref"))
	}
	// Without the two, GitHub merges the default branch into the ref, and refuses if any check is
	// missing.
	if merge, ok := c.in["auto_merge"].(bool); !ok || merge {
		return fail(http.StatusConflict, "Conflict merging main into "+commit)
	}
	if contexts, ok := c.in["required_contexts"].([]any); !ok || len(contexts) > 0 {
		return fail(http.StatusConflict, "Conflict: Commit status checks failed for "+commit)
	}
	production, _ := c.in["production_environment"].(bool)
	d := &GitHubDeployment{
		ID: r.server.id(), Commit: plumbing.NewHash(commit), Environment: c.text("environment"), Production: production,
		Payload: c.in["payload"], lag: r.server.lag,
	}
	r.deployments = append(r.deployments, d)
	return reply{status: http.StatusCreated, body: showDeployment(d)}
}

// deployment finds one by the number in the path, or nil.
func (r *GitHubRepository) deployment(c *call) *GitHubDeployment {
	for _, d := range r.deployments {
		if strconv.FormatInt(d.ID, 10) == c.PathValue("number") {
			return d
		}
	}
	return nil
}

func (r *GitHubRepository) listDeploymentStatuses(c *call) reply {
	d := r.deployment(c)
	if d == nil {
		return notFound
	}
	out := []any{}
	for i := range slices.Backward(d.Statuses) {
		s := &d.Statuses[i]
		if !lags(&s.lag) {
			out = append(out, map[string]any{"state": s.State, "description": s.Description, "log_url": s.LogURL})
		}
	}
	return reply{status: http.StatusOK, list: out}
}

func (r *GitHubRepository) createDeploymentStatus(c *call) reply {
	d := r.deployment(c)
	if d == nil {
		return notFound
	}
	s := GitHubDeploymentStatus{State: c.text("state"), Description: c.text("description"),
		LogURL: c.text("log_url"), lag: r.server.lag}
	d.Statuses = append(d.Statuses, s)
	if inactivate, given := c.in["auto_inactive"].(bool); s.State == "success" && (inactivate || !given) {
		for _, old := range r.deployments {
			if old != d && old.Environment == d.Environment && !old.Production && len(old.Statuses) > 0 {
				old.Statuses = append(old.Statuses, GitHubDeploymentStatus{State: "inactive"})
			}
		}
	}
	return reply{status: http.StatusCreated, body: map[string]any{"state": s.State}}
}
