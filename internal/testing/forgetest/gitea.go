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

// Gitea is a Gitea or Forgejo instance with one repository. It has the part of the API that
// promotion uses, with the answers of Gitea 1.25.
type Gitea struct {
	GitlabGitea
	// Allowed are the ways to merge that the repository allows, as the API names them:
	// squash, merge, rebase, fast-forward-only.
	Allowed []string
	// Required is the number of approvals that the branches' protection requires.
	Required int

	path   string
	labels []string
}

// NewGitea serves a repository with the tokens "token-of-kalypso", "token-of-ann" and
// "token-of-bob".
func NewGitea(t testing.TB, path string) *Gitea {
	g := &Gitea{path: path, Allowed: []string{"squash", "merge"}}
	mux := http.NewServeMux()
	g.start(t, path, "/api/v1", mux)
	for pattern, handle := range map[string]func(*giteaCall){
		"GET /user":                       g.user,
		"GET /repos/{o}/{r}":              g.settings,
		"GET /repos/{o}/{r}/branches/{b}": g.branch,
		"GET /repos/{o}/{r}/labels":       g.listLabels, "POST /repos/{o}/{r}/labels": g.createLabel,
		"GET /repos/{o}/{r}/pulls": g.list, "POST /repos/{o}/{r}/pulls": g.create,
		"GET /repos/{o}/{r}/pulls/{n}": g.show, "PATCH /repos/{o}/{r}/pulls/{n}": g.update,
		"POST /repos/{o}/{r}/pulls/{n}/merge":               g.accept,
		"DELETE /repos/{o}/{r}/pulls/{n}/merge":             g.cancel,
		"GET /repos/{o}/{r}/pulls/{n}/reviews":              g.reviews,
		"POST /repos/{o}/{r}/pulls/{n}/requested_reviewers": g.request,
		"POST /repos/{o}/{r}/issues/{n}/labels":             g.label,
		"GET /repos/{o}/{r}/issues/{n}/comments":            g.comments,
		"POST /repos/{o}/{r}/issues/{n}/comments":           g.comment,
		"PATCH /repos/{o}/{r}/issues/comments/{comment}":    g.editComment,
		"GET /repos/{o}/{r}/commits/{sha}/pull":             g.pullOf,
		"GET /repos/{o}/{r}/commits/{sha}/statuses":         g.listStatuses,
		"POST /repos/{o}/{r}/statuses/{sha}":                g.setStatus,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /api/v1"+path, func(w http.ResponseWriter, r *http.Request) { g.handle(w, r, handle) })
	}
	return g
}

// giteaCall is one request, with its body and its user.
type giteaCall struct {
	w http.ResponseWriter
	*http.Request
	by     string
	change *gitlabGiteaChange
	body   struct {
		Head, Base, Title, State, Context, Description, Name string
		Body                                                 *string
		TargetURL                                            string `json:"target_url"`
		Labels                                               []int
		Reviewers                                            []string
		TeamReviewers                                        []string `json:"team_reviewers"`
		Do, MergeTitleField, MergeMessageField               string
		HeadCommit                                           string `json:"head_commit_id"`
		WhenChecksSucceed                                    bool   `json:"merge_when_checks_succeed"`
	}
}

func (c *giteaCall) answer(code int, v any) { gitlabGiteaJSON(c.w, code, v) }

func (c *giteaCall) refuse(code int, message string) {
	c.answer(code, map[string]any{"message": message, "url": "https://gitea.example.com/api/swagger"})
}

func (g *Gitea) handle(w http.ResponseWriter, r *http.Request, do func(*giteaCall)) {
	c := &giteaCall{w: w, Request: r}
	_ = json.NewDecoder(r.Body).Decode(&c.body)
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "token ")
	if c.by = g.Users[token]; c.by == "" {
		c.refuse(http.StatusUnauthorized, "invalid username, password or token "+token)
		return
	}
	if r.PathValue("o") != "" && r.PathValue("o")+"/"+r.PathValue("r") != g.path {
		c.refuse(http.StatusNotFound, "The target couldn't be found.")
		return
	}
	if n := r.PathValue("n"); n != "" {
		i, _ := strconv.Atoi(n)
		if i < 1 || i > len(g.changes) {
			c.refuse(http.StatusNotFound, "The target couldn't be found.")
			return
		}
		c.change = g.changes[i-1]
	}
	do(c)
}

// giteaList sends a page. Only some lists of Gitea link the next page.
func giteaList[T any](c *giteaCall, most int, all []T, link bool) {
	page, next := gitlabGiteaPage(all, c.Request, "limit", most)
	c.w.Header().Set("X-Total-Count", strconv.Itoa(len(all)))
	if next > 0 && link {
		c.w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=%d>; rel="next"`, c.Host, c.URL.Path, next))
	}
	c.answer(http.StatusOK, page)
}

func giteaUser(name string) map[string]any { return map[string]any{"login": name} }

func (g *Gitea) user(c *giteaCall) { c.answer(http.StatusOK, giteaUser(c.by)) }

func (g *Gitea) settings(c *giteaCall) {
	c.answer(http.StatusOK, map[string]any{
		"id": 7, "allow_squash_merge": slices.Contains(g.Allowed, "squash"),
		"allow_merge_commits":           slices.Contains(g.Allowed, "merge"),
		"allow_rebase":                  slices.Contains(g.Allowed, "rebase"),
		"allow_fast_forward_only_merge": slices.Contains(g.Allowed, "fast-forward-only"),
	})
}

func (g *Gitea) branch(c *giteaCall) {
	c.answer(http.StatusOK, map[string]any{"name": c.PathValue("b"), "protected": g.Required > 0,
		"required_approvals": g.Required})
}

func (g *Gitea) listLabels(c *giteaCall) {
	all := []any{}
	for i, name := range g.labels {
		all = append(all, map[string]any{"id": i, "name": name})
	}
	giteaList(c, g.PageSize, all, false)
}

func (g *Gitea) createLabel(c *giteaCall) {
	g.labels = append(g.labels, c.body.Name)
	c.answer(http.StatusCreated, map[string]any{"id": len(g.labels) - 1, "name": c.body.Name})
}

func (g *Gitea) labelsOf(pr *gitlabGiteaChange) []any {
	all := []any{}
	for _, name := range pr.labels {
		all = append(all, map[string]any{"id": slices.Index(g.labels, name), "name": name})
	}
	return all
}

// json is a pull request as the API has it.
func (g *Gitea) json(pr *gitlabGiteaChange) map[string]any {
	source, users, teams := 7, []any{}, []any{}
	if pr.fork {
		source = 8
	}
	for _, r := range pr.reviewers {
		users = append(users, giteaUser(r))
	}
	for i, r := range pr.teams {
		teams = append(teams, map[string]any{"id": i, "name": r})
	}
	head := g.headOf(pr)
	m := map[string]any{
		"id": 1000 + pr.number, "number": pr.number, "title": pr.title, "body": pr.body, "state": "open",
		"user":   giteaUser(pr.author),
		"labels": g.labelsOf(pr), "requested_reviewers": users, "requested_reviewers_teams": teams,
		"draft": strings.HasPrefix(pr.title, "WIP: "), "mergeable": pr.blocked == "", "merged": pr.state == "merged",
		"html_url": fmt.Sprintf("%s/%s/pulls/%d", g.URL, g.path, pr.number), "merge_base": pr.merged,
		"head": map[string]any{"ref": pr.head, "sha": head, "repo_id": source},
		"base": map[string]any{"ref": pr.base, "sha": g.tip(pr.base), "repo_id": 7},
	}
	switch {
	case pr.state == "merged":
		m["merge_commit_sha"], m["state"] = pr.merged, "closed"
	case pr.state == "closed":
		m["state"] = "closed"
	case g.tip(pr.head) != "" && g.tip(pr.base) != "":
		m["merge_base"] = g.memo("merge-base", g.tip(pr.base), head)
	}
	return m
}

func (g *Gitea) list(c *giteaCall) {
	found := []any{}
	for _, pr := range g.shown() {
		if c.URL.Query().Get("state") != "open" || pr.state == "opened" {
			found = append(found, g.json(pr))
		}
	}
	giteaList(c, g.PageSize, found, true)
}

func (g *Gitea) create(c *giteaCall) {
	if other := g.opened(c.body.Head, c.body.Base); other != nil {
		c.refuse(http.StatusConflict, fmt.Sprintf("pull request already exists for these targets [id: %d]", other.number))
		return
	}
	if g.tip(c.body.Head) == "" {
		c.refuse(http.StatusNotFound, "The target couldn't be found.")
		return
	}
	pr := g.open(&gitlabGiteaChange{head: c.body.Head, base: c.body.Base, title: c.body.Title, author: c.by})
	if c.body.Body != nil {
		pr.body = *c.body.Body
	}
	c.answer(http.StatusCreated, g.json(pr))
}

func (g *Gitea) show(c *giteaCall) { c.answer(http.StatusOK, g.json(c.change)) }

func (g *Gitea) update(c *giteaCall) {
	if c.body.Title != "" {
		c.change.title = c.body.Title
	}
	if c.body.Body != nil {
		c.change.body = *c.body.Body
	}
	if c.body.State == "closed" {
		c.change.state = "closed"
	}
	c.answer(http.StatusCreated, g.json(c.change))
}

func (g *Gitea) accept(c *giteaCall) {
	pr, b := c.change, c.body
	switch {
	case pr.state != "opened", strings.HasPrefix(pr.title, "WIP: "), !slices.Contains(g.Allowed, b.Do):
		c.refuse(http.StatusMethodNotAllowed, "Please try again later")
	case b.HeadCommit != g.headOf(pr):
		c.refuse(http.StatusConflict, "head out of date")
	case pr.auto && b.WhenChecksSucceed && pr.blocked != "":
		c.refuse(http.StatusConflict, "The auto merge is already scheduled")
	case pr.blocked != "" && b.WhenChecksSucceed:
		pr.auto = true
		c.w.WriteHeader(http.StatusCreated)
	case pr.blocked != "":
		c.refuse(http.StatusMethodNotAllowed, pr.blocked)
	default:
		g.merge(pr, b.Do, strings.TrimSpace(b.MergeTitleField+"\n\n"+b.MergeMessageField))
		c.w.WriteHeader(http.StatusOK)
	}
}

func (g *Gitea) cancel(c *giteaCall) {
	if !c.change.auto {
		c.refuse(http.StatusNotFound, "The target couldn't be found.")
		return
	}
	c.change.auto = false
	c.w.WriteHeader(http.StatusNoContent)
}

func (g *Gitea) reviews(c *giteaCall) {
	all := []any{}
	head := g.headOf(c.change)
	for i, r := range c.change.approvals {
		state := map[string]string{"approved": "APPROVED", "requested_changes": "REQUEST_CHANGES",
			"comment": "COMMENT"}[r.state]
		all = append(all, map[string]any{"id": i, "user": giteaUser(r.by), "state": state,
			"commit_id": r.commit, "official": true,
			"stale": r.commit != head, "dismissed": r.dismissed, "submitted_at": r.at})
	}
	giteaList(c, g.PageSize, all, false)
}

func (g *Gitea) request(c *giteaCall) {
	for _, name := range c.body.Reviewers {
		if name == c.change.author {
			c.refuse(http.StatusUnprocessableEntity, "poster of pr can't be reviewer")
			return
		}
	}
	c.change.reviewers = append(c.change.reviewers, c.body.Reviewers...)
	c.change.teams = append(c.change.teams, c.body.TeamReviewers...)
	c.answer(http.StatusCreated, []any{})
}

func (g *Gitea) label(c *giteaCall) {
	for _, id := range c.body.Labels {
		c.change.labels = append(c.change.labels, g.labels[id])
	}
	c.answer(http.StatusOK, g.labelsOf(c.change))
}

func (g *Gitea) comments(c *giteaCall) {
	all := []any{}
	for i, n := range c.change.notes {
		all = append(all, map[string]any{"id": gitlabGiteaNoteID(c.change, i), "body": n.body, "user": giteaUser(n.by)})
	}
	c.answer(http.StatusOK, all)
}

func (g *Gitea) comment(c *giteaCall) {
	c.change.notes = append(c.change.notes, gitlabGiteaNote{by: c.by, body: *c.body.Body})
	c.answer(http.StatusCreated, map[string]any{"id": len(c.change.notes), "body": c.body.Body})
}

func (g *Gitea) editComment(c *giteaCall) {
	n := g.noteOf(c.PathValue("comment"))
	if n == nil || n.by != c.by {
		c.refuse(http.StatusForbidden, "user has no permission to edit the comment")
		return
	}
	n.body = *c.body.Body
	c.answer(http.StatusOK, map[string]any{"body": n.body})
}

func (g *Gitea) pullOf(c *giteaCall) {
	for _, pr := range g.changes {
		if pr.merged == c.PathValue("sha") {
			c.answer(http.StatusOK, g.json(pr))
			return
		}
	}
	c.refuse(http.StatusNotFound, "The target couldn't be found.")
}

func (g *Gitea) listStatuses(c *giteaCall) {
	if !g.known(c.PathValue("sha")) {
		c.refuse(http.StatusNotFound, "The target couldn't be found.")
		return
	}
	all := []any{}
	for _, s := range slices.Backward(g.statuses) {
		if s.commit == c.PathValue("sha") {
			all = append(all, map[string]any{"id": s.id, "status": s.state, "context": s.name, "description": s.description,
				"target_url": s.url, "creator": giteaUser(s.by), "created_at": s.created, "updated_at": s.created})
		}
	}
	giteaList(c, g.PageSize, all, true)
}

func (g *Gitea) setStatus(c *giteaCall) {
	if !g.known(c.PathValue("sha")) {
		c.refuse(http.StatusNotFound, "The target couldn't be found.")
		return
	}
	g.statuses = append(g.statuses,
		&gitlabGiteaStatus{id: len(g.statuses) + 1, commit: c.PathValue("sha"), name: c.body.Context,
			state: c.body.State, description: c.body.Description, url: c.body.TargetURL, by: c.by, created: g.Now()})
	c.answer(http.StatusCreated, map[string]any{"id": len(g.statuses), "status": c.body.State})
}
