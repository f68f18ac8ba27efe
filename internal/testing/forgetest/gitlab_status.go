package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

func (g *GitLab) listStatuses(c *gitlabCall) {
	if !g.known(c.PathValue("sha")) {
		c.refuse(http.StatusNotFound, "404 Commit Not Found")
		return
	}
	all := []any{}
	for _, s := range g.statuses {
		if name := c.URL.Query().Get("name"); s.commit == c.PathValue("sha") && (name == "" || name == s.name) {
			m := map[string]any{"id": s.id, "sha": s.commit, "name": s.name, "status": s.state, "description": s.description,
				"target_url": s.url, "created_at": s.created, "author": gitlabUser(s.by)}
			if !s.finished.IsZero() {
				m["finished_at"] = s.finished
			}
			all = append(all, m)
		}
	}
	gitlabList(c, g.PageSize, all)
}

// setStatus moves the newest status of a name on, or begins another one: GitLab does
// not move one that has finished, and has no way from a state to itself.
func (g *GitLab) setStatus(c *gitlabCall) {
	if !g.known(c.PathValue("sha")) {
		c.refuse(http.StatusNotFound, "404 Commit Not Found")
		return
	}
	name, _ := c.text("name")
	state, _ := c.text("state")
	var s *gitlabGiteaStatus
	for _, other := range g.statuses {
		if other.commit == c.PathValue("sha") && other.name == name && other.by == c.by && other.finished.IsZero() {
			s = other
		}
	}
	if s != nil && s.state == state {
		c.refuse(http.StatusBadRequest, "Cannot transition status via :enqueue from :"+state)
		return
	}
	if s == nil {
		s = &gitlabGiteaStatus{id: len(g.statuses) + 1, commit: c.PathValue("sha"), name: name, by: c.by, created: g.Now()}
		g.statuses = append(g.statuses, s)
	}
	s.state = state
	s.description, _ = c.text("description")
	s.url, _ = c.text("target_url")
	if state == "success" || state == "failed" {
		s.finished = g.Now()
	}
	c.answer(http.StatusCreated, map[string]any{"id": s.id, "status": state})
}

// Job adds the status of a job of GitLab's own, or of another user.
func (g *GitLab) Job(commit, name, state, by string, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.statuses = append(g.statuses, &gitlabGiteaStatus{id: len(g.statuses) + 1, commit: commit,
		name: name, state: state, by: by, created: at})
}

func (g *GitLab) listEnvironments(c *gitlabCall) {
	found := []any{}
	for _, e := range g.environments {
		if e["name"] == c.URL.Query().Get("name") {
			found = append(found, e)
		}
	}
	gitlabList(c, g.PageSize, found)
}

func (g *GitLab) createEnvironment(c *gitlabCall) {
	c.body["id"] = len(g.environments) + 1
	g.environments = append(g.environments, c.body)
	c.answer(http.StatusCreated, c.body)
}

func (g *GitLab) updateEnvironment(c *gitlabCall) { gitlabUpdate(c, g.environments) }

func (g *GitLab) listDeployments(c *gitlabCall) {
	found := []any{}
	for _, d := range slices.Backward(g.deployments) {
		if d["environment_name"] == c.URL.Query().Get("environment") {
			found = append(found, d)
		}
	}
	gitlabList(c, g.PageSize, found)
}

func (g *GitLab) createDeployment(c *gitlabCall) {
	if ref, _ := c.text("ref"); !g.known(ref) {
		c.answer(http.StatusBadRequest,
			map[string]any{"message": map[string]any{"ref": []string{"The branch or tag does not exist"}}})
		return
	}
	c.body["id"], c.body["environment_name"] = len(g.deployments)+1, c.body["environment"]
	delete(c.body, "environment")
	g.deployments = append(g.deployments, c.body)
	c.answer(http.StatusCreated, c.body)
}

func (g *GitLab) updateDeployment(c *gitlabCall) { gitlabUpdate(c, g.deployments) }

func gitlabUpdate(c *gitlabCall, all []map[string]any) {
	n, _ := strconv.Atoi(c.PathValue("n"))
	if n < 1 || n > len(all) {
		c.refuse(http.StatusNotFound, "404 Not found")
		return
	}
	for name, value := range c.body {
		all[n-1][name] = value
	}
	c.answer(http.StatusOK, all[n-1])
}

// Deployments returns the deployments, as ENVIRONMENT STATE COMMIT, and the environments, as NAME
// TIER URL.
func (g *GitLab) Deployments() (deployments, environments []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.deployments {
		deployments = append(deployments, fmt.Sprint(d["environment_name"], " ", d["status"], " ", d["sha"]))
	}
	for _, e := range g.environments {
		environments = append(environments, fmt.Sprint(e["name"], " ", e["tier"], " ", e["external_url"]))
	}
	return deployments, environments
}

func (g *GitLab) listFreezes(c *gitlabCall) {
	all := []any{}
	for i, f := range g.Freezes {
		all = append(all, map[string]any{"id": i, "freeze_start": f[0], "freeze_end": f[1], "cron_timezone": f[2]})
	}
	gitlabList(c, g.PageSize, all)
}
