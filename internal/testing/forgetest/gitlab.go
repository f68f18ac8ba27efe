package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// GitLab is a GitLab instance with one project. It has the part of the REST API that promotion
// uses, with the transitions, limits and answers of GitLab 18.
type GitLab struct {
	GitlabGitea
	// MergeMethod and Squash are the project's settings.
	MergeMethod, Squash string
	// Left is the number of approvals that its rules still require, and Required the total number.
	Left, Required int
	// Freezes are the deploy freezes: start, end and time zone.
	Freezes [][3]string

	project      string
	environments []map[string]any
	deployments  []map[string]any
}

// NewGitLab serves a project with the tokens "token-of-kalypso", "token-of-ann" and
// "token-of-bob", and glcbt-job as the token of a job that ann runs.
func NewGitLab(t testing.TB, project string) *GitLab {
	g := &GitLab{project: project, MergeMethod: "merge", Squash: "default_off"}
	mux := http.NewServeMux()
	g.start(t, project, "/api/v4", mux)
	for pattern, handle := range map[string]func(*gitlabCall){
		"GET /user": g.user, "GET /job": g.job, "GET /users": g.users,
		"GET /projects/{id}":                                                         g.settings,
		"GET /projects/{id}/merge_requests":                                          g.list,
		"POST /projects/{id}/merge_requests":                                         g.create,
		"GET /projects/{id}/merge_requests/{n}":                                      g.show,
		"PUT /projects/{id}/merge_requests/{n}":                                      g.update,
		"PUT /projects/{id}/merge_requests/{n}/merge":                                g.accept,
		"POST /projects/{id}/merge_requests/{n}/cancel_merge_when_pipeline_succeeds": g.cancel,
		"GET /projects/{id}/merge_requests/{n}/{what}":                               g.part,
		"POST /projects/{id}/merge_requests/{n}/notes":                               g.note,
		"PUT /projects/{id}/merge_requests/{n}/notes/{note}":                         g.editNote,
		"GET /projects/{id}/repository/commits/{sha}/merge_requests":                 g.mergeRequestsOf,
		"GET /projects/{id}/repository/commits/{sha}/statuses":                       g.listStatuses,
		"POST /projects/{id}/statuses/{sha}":                                         g.setStatus,
		"GET /projects/{id}/environments":                                            g.listEnvironments,
		"POST /projects/{id}/environments":                                           g.createEnvironment,
		"PUT /projects/{id}/environments/{n}":                                        g.updateEnvironment,
		"GET /projects/{id}/deployments":                                             g.listDeployments,
		"POST /projects/{id}/deployments":                                            g.createDeployment,
		"PUT /projects/{id}/deployments/{n}":                                         g.updateDeployment,
		"GET /projects/{id}/freeze_periods":                                          g.listFreezes,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /api/v4"+path, func(w http.ResponseWriter, r *http.Request) { g.handle(w, r, handle) })
	}
	return g
}

// gitlabCall is one request, with its body and its user.
type gitlabCall struct {
	w http.ResponseWriter
	*http.Request
	by     string
	body   map[string]any
	change *gitlabGiteaChange
}

func (c *gitlabCall) answer(code int, v any) { gitlabGiteaJSON(c.w, code, v) }

func (c *gitlabCall) refuse(code int, message string) {
	c.answer(code, map[string]any{"message": message})
}

// text returns a field of the body; ok reports whether it is there.
func (c *gitlabCall) text(name string) (string, bool) {
	v, ok := c.body[name].(string)
	return v, ok
}

func (g *GitLab) handle(w http.ResponseWriter, r *http.Request, do func(*gitlabCall)) {
	c := &gitlabCall{w: w, Request: r, body: map[string]any{}}
	_ = json.NewDecoder(r.Body).Decode(&c.body)
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if job := r.Header.Get("JOB-TOKEN"); job == "glcbt-job" {
		c.by = "ann"
	} else if c.by = g.Users[token]; c.by == "" {
		c.refuse(http.StatusUnauthorized, "401 Unauthorized "+token)
		return
	}
	if id := r.PathValue("id"); id != "" && id != g.project {
		c.refuse(http.StatusNotFound, "404 Project Not Found")
		return
	}
	if n := r.PathValue("n"); n != "" && strings.Contains(r.URL.Path, "/merge_requests/") {
		i, _ := strconv.Atoi(n)
		if i < 1 || i > len(g.changes) {
			c.refuse(http.StatusNotFound, "404 Not found")
			return
		}
		c.change = g.changes[i-1]
	}
	do(c)
}

func gitlabList[T any](c *gitlabCall, most int, all []T) {
	page, next := gitlabGiteaPage(all, c.Request, "per_page", most)
	if next > 0 {
		c.w.Header().Set("X-Next-Page", strconv.Itoa(next))
	}
	c.answer(http.StatusOK, page)
}

// gitlabID is the id of a user: any number will do.
func gitlabID(name string) int { return 100 + len(name)*26 + int(name[0]) }

func gitlabUser(name string) map[string]any {
	return map[string]any{"id": gitlabID(name), "username": name}
}

func (g *GitLab) user(c *gitlabCall) { c.answer(http.StatusOK, gitlabUser(c.by)) }

func (g *GitLab) job(c *gitlabCall) {
	c.answer(http.StatusOK, map[string]any{"id": 1, "user": gitlabUser(c.by)})
}

func (g *GitLab) names() []string {
	names := []string{"carol"}
	for _, name := range g.Users {
		names = append(names, name)
	}
	return names
}

func (g *GitLab) users(c *gitlabCall) {
	found := []any{}
	if name := c.URL.Query().Get("username"); slices.Contains(g.names(), name) {
		found = append(found, gitlabUser(name))
	}
	c.answer(http.StatusOK, found)
}

func (g *GitLab) settings(c *gitlabCall) {
	c.answer(http.StatusOK, map[string]any{"id": 7, "path_with_namespace": g.project,
		"merge_method": g.MergeMethod, "squash_option": g.Squash})
}

// json is a merge request as the API has it.
func (g *GitLab) json(mr *gitlabGiteaChange, diverged bool) map[string]any {
	source, reviewers := 7, []any{}
	if mr.fork {
		source = 8
	}
	for _, r := range mr.reviewers {
		reviewers = append(reviewers, gitlabUser(r))
	}
	isDraft := strings.HasPrefix(mr.title, "Draft: ")
	status := "mergeable"
	switch {
	case isDraft:
		status = "draft_status"
	case mr.blocked != "":
		status = mr.blocked
	case g.Left > 0:
		status = "not_approved"
	}
	m := map[string]any{
		"id": 1000 + mr.number, "iid": mr.number, "title": mr.title, "description": mr.body, "state": mr.state,
		"source_branch": mr.head, "target_branch": mr.base, "source_project_id": source, "target_project_id": 7,
		"labels": append([]string{}, mr.labels...), "reviewers": reviewers, "author": gitlabUser(mr.author), "draft": isDraft,
		"sha": g.headOf(mr), "web_url": fmt.Sprintf("%s/%s/-/merge_requests/%d", g.URL, g.project, mr.number),
		"merge_when_pipeline_succeeds": mr.auto, "detailed_merge_status": status,
	}
	if mr.state == "merged" && mr.merged != mr.headWhenMerged {
		m["merge_commit_sha"] = mr.merged
	}
	if diverged && mr.state == "opened" {
		m["diverged_commits_count"] = g.diverged(mr)
	}
	return m
}

func (g *GitLab) list(c *gitlabCall) {
	q, found := c.URL.Query(), []any{}
	for _, mr := range g.shown() {
		if mr.state == q.Get("state") && mr.head == q.Get("source_branch") && mr.base == q.Get("target_branch") {
			found = append(found, g.json(mr, false))
		}
	}
	gitlabList(c, g.PageSize, found)
}

func (g *GitLab) create(c *gitlabCall) {
	mr := &gitlabGiteaChange{author: c.by}
	mr.head, _ = c.text("source_branch")
	mr.base, _ = c.text("target_branch")
	if other := g.opened(mr.head, mr.base); other != nil {
		c.answer(http.StatusConflict,
			map[string]any{"message": []string{fmt.Sprintf("Another open merge request already exists for "+
				"this source branch: !%d", other.number)}})
		return
	}
	if g.tip(mr.head) == "" {
		c.answer(http.StatusBadRequest,
			map[string]any{"message": map[string]any{"source_branch": []string{"does not exist"}}})
		return
	}
	g.write(c, g.open(mr))
	c.answer(http.StatusCreated, g.json(mr, false))
}

// write applies the fields of a body to a merge request.
func (g *GitLab) write(c *gitlabCall, mr *gitlabGiteaChange) {
	if title, ok := c.text("title"); ok {
		mr.title = title
	}
	if body, ok := c.text("description"); ok {
		mr.body = body
	}
	for _, name := range []string{"labels", "add_labels"} {
		if labels, ok := c.text(name); ok && labels != "" {
			mr.labels = append(mr.labels, strings.Split(labels, ",")...)
		}
	}
	if ids, ok := c.body["reviewer_ids"].([]any); ok {
		mr.reviewers = nil
		for _, name := range g.names() {
			if slices.Contains(ids, any(float64(gitlabID(name)))) {
				mr.reviewers = append(mr.reviewers, name)
			}
		}
	}
	if event, _ := c.text("state_event"); event == "close" {
		mr.state = "closed"
	}
}

func (g *GitLab) show(c *gitlabCall) {
	c.answer(http.StatusOK, g.json(c.change, c.URL.Query().Get("include_diverged_commits_count") == "true"))
}

func (g *GitLab) update(c *gitlabCall) {
	g.write(c, c.change)
	c.answer(http.StatusOK, g.json(c.change, false))
}

func (g *GitLab) accept(c *gitlabCall) {
	mr := c.change
	auto, _ := c.body["auto_merge"].(bool)
	squash, _ := c.body["squash"].(bool)
	status := g.json(mr, false)["detailed_merge_status"]
	if sha, _ := c.text("sha"); sha != g.headOf(mr) {
		c.refuse(http.StatusConflict, "SHA does not match HEAD of source branch: "+g.headOf(mr))
		return
	}
	switch {
	case mr.state != "opened", status != "mergeable" && !auto:
		c.refuse(http.StatusMethodNotAllowed, "405 Method Not Allowed")
		return
	case status != "mergeable":
		mr.auto = true
	default:
		how, field := g.MergeMethod, "merge_commit_message"
		if squash {
			how, field = "squash", "squash_commit_message"
		}
		message, _ := c.text(field)
		g.merge(mr, how, message)
	}
	c.answer(http.StatusOK, g.json(mr, false))
}

func (g *GitLab) cancel(c *gitlabCall) {
	if !c.change.auto {
		c.refuse(http.StatusNotAcceptable, "406 Not Acceptable")
		return
	}
	c.change.auto = false
	c.answer(http.StatusCreated, g.json(c.change, false))
}

// part answers a request for a part of a merge request, such as its approvals or notes.
func (g *GitLab) part(c *gitlabCall) {
	mr := c.change
	g.headOf(mr)
	all := []any{}
	switch c.PathValue("what") {
	case "approvals":
		g.approvals(c)
		return
	case "reviewers":
		for _, r := range mr.approvals {
			all = append(all, map[string]any{"user": gitlabUser(r.by), "state": r.state, "created_at": r.at})
		}
	case "versions":
		for i, v := range slices.Backward(mr.versions) {
			all = append(all, map[string]any{"id": i, "head_commit_sha": v.head, "created_at": v.at})
		}
	case "notes":
		for i, n := range slices.Backward(mr.notes) {
			all = append(all, map[string]any{"id": gitlabGiteaNoteID(mr, i), "body": n.body,
				"author": gitlabUser(n.by), "system": n.by == "system"})
		}
		if c.URL.Query().Get("sort") == "asc" {
			slices.Reverse(all)
		}
	}
	gitlabList(c, g.PageSize, all)
}

func (g *GitLab) approvals(c *gitlabCall) {
	by := []any{}
	for _, r := range c.change.approvals {
		if r.state == "approved" && !r.dismissed {
			by = append(by, map[string]any{"user": gitlabUser(r.by), "approved_at": r.at})
		}
	}
	c.answer(http.StatusOK, map[string]any{"approved_by": by, "approvals_left": g.Left, "approvals_required": g.Required})
}

func (g *GitLab) note(c *gitlabCall) {
	body, _ := c.text("body")
	c.change.notes = append(c.change.notes, gitlabGiteaNote{by: c.by, body: body})
	c.answer(http.StatusCreated, map[string]any{"id": len(c.change.notes), "body": body})
}

func (g *GitLab) editNote(c *gitlabCall) {
	n := g.noteOf(c.PathValue("note"))
	if n == nil || n.by != c.by {
		c.refuse(http.StatusForbidden, "403 Forbidden")
		return
	}
	n.body, _ = c.text("body")
	c.answer(http.StatusOK, map[string]any{"body": n.body})
}

func (g *GitLab) mergeRequestsOf(c *gitlabCall) {
	all := []any{}
	for _, mr := range g.changes {
		if mr.merged == c.PathValue("sha") {
			all = append(all, g.json(mr, false))
		}
	}
	c.answer(http.StatusOK, all)
}
