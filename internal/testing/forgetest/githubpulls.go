package forgetest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
)

// GitHubPull is a pull request.
type GitHubPull struct {
	Number           int
	Head, Base       string // branches
	HeadID           git.Hash
	Title, Body      string
	State            string // open or closed
	Draft, Merged    bool
	MergeCommit      git.Hash
	MergeMethod      string
	Author           string
	Labels           []string
	Reviewers, Teams []string // users and teams whose review is requested
	AutoMerge        bool
	Queued           bool
	Fork             bool
	Comments         []GitHubComment
	Reviews          []GitHubReview

	requested []string // everyone whose review was ever requested, teams with a slash before
	mergeText string   // of auto-merge
	lag       int
}

// GitHubComment is a comment of a pull request.
type GitHubComment struct {
	By, Body string
	lag      int
}

// GitHubReview is a review: APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED.
type GitHubReview struct {
	By, State string
	Commit    git.Hash
	At        time.Time
}

// Pulls are all pull requests, by number.
func (r *GitHubRepository) Pulls() []GitHubPull {
	r.server.state.Lock()
	defer r.server.state.Unlock()
	r.sync()
	var out []GitHubPull
	for _, p := range r.pulls {
		copied := *p
		copied.Labels, copied.Reviewers, copied.Teams = slices.Clone(p.Labels), slices.Clone(p.Reviewers),
			slices.Clone(p.Teams)
		copied.Comments, copied.Reviews = slices.Clone(p.Comments), slices.Clone(p.Reviews)
		out = append(out, copied)
	}
	return out
}

// AddPull opens a pull request as somebody else would.
func (r *GitHubRepository) AddPull(p GitHubPull) (number int) {
	r.Change(func(r *GitHubRepository) {
		p.Number, p.State = len(r.pulls)+1, "open"
		r.pulls = append(r.pulls, &p)
	})
	return p.Number
}

// ChangePull changes a pull request behind the client's back.
func (r *GitHubRepository) ChangePull(number int, change func(*GitHubPull)) {
	r.Change(func(r *GitHubRepository) {
		for _, p := range r.pulls {
			if p.Number == number {
				change(p)
			}
		}
	})
}

// Review adds a review of the present head. It removes the reviewer from the requested ones.
func (r *GitHubRepository) Review(number int, by, state string) {
	r.ChangePull(number, func(p *GitHubPull) {
		p.Reviews = append(p.Reviews, GitHubReview{By: by, State: state, Commit: p.HeadID, At: r.server.Clock.Now()})
		p.Reviewers = slices.DeleteFunc(p.Reviewers, func(s string) bool { return s == by })
	})
}

// sync updates the pull requests from the branches. The state is locked.
func (r *GitHubRepository) sync() {
	if !slices.ContainsFunc(r.pulls, func(p *GitHubPull) bool { return p.State == "open" && !p.Fork }) {
		return
	}
	branches := r.branches()
	for _, p := range r.pulls {
		if p.State != "open" || p.Fork {
			continue
		}
		head, base := branches[p.Head], branches[p.Base]
		switch {
		case head == "" || base == "":
			p.State = "closed"
		case r.count(base+".."+head) == 0: // somebody has pushed it
			p.HeadID = plumbing.NewHash(head)
			p.State, p.Merged, p.MergeCommit = "closed", true, plumbing.NewHash(base)
		default:
			p.HeadID = plumbing.NewHash(head)
		}
	}
}

// show is a pull request in the REST API.
func (r *GitHubRepository) show(p *GitHubPull) map[string]any {
	labels, reviewers, teams := []any{}, []any{}, []any{}
	for _, l := range p.Labels {
		labels = append(labels, map[string]any{"name": l})
	}
	for _, u := range p.Reviewers {
		reviewers = append(reviewers, person(u))
	}
	for _, t := range p.Teams {
		teams = append(teams, map[string]any{"slug": t})
	}
	head := any(map[string]any{"id": r.ID})
	if p.Fork {
		head = map[string]any{"id": r.ID + 1000}
	}
	body := any(p.Body)
	if p.Body == "" {
		body = nil
	}
	out := map[string]any{
		"number": p.Number, "node_id": r.nodeID(p), "state": p.State, "title": p.Title, "body": body, "draft": p.Draft,
		"merged": p.Merged, "merged_at": nil, "merge_commit_sha": nil, "auto_merge": nil, "user": person(p.Author),
		"head":   map[string]any{"ref": p.Head, "sha": p.HeadID.String(), "label": r.Owner + ":" + p.Head, "repo": head},
		"base":   map[string]any{"ref": p.Base, "sha": r.resolve(p.Base), "repo": map[string]any{"id": r.ID}},
		"labels": labels, "requested_reviewers": reviewers, "requested_teams": teams,
		"html_url": "https://" + r.server.Host + "/elsewhere",
	}
	if p.Merged {
		out["merged_at"], out["merge_commit_sha"] = r.server.Clock.Now().Format(time.RFC3339), p.MergeCommit.String()
	}
	if p.AutoMerge {
		out["auto_merge"] = map[string]any{"merge_method": p.MergeMethod}
	}
	return out
}

func (r *GitHubRepository) listPulls(c *call) reply {
	query := c.URL.Query()
	out := []any{}
	for _, p := range slices.Backward(r.pulls) { // newest first
		if wanted := query.Get("head"); wanted != "" && wanted != r.Owner+":"+p.Head {
			continue
		}
		if wanted := query.Get("base"); wanted != "" && wanted != p.Base {
			continue
		}
		if wanted := query.Get("state"); wanted != "all" && wanted != p.State &&
			(wanted != "" || p.State != "open") || lags(&p.lag) {
			continue
		}
		out = append(out, r.show(p))
	}
	return reply{status: http.StatusOK, list: out}
}

// lags reports whether something is not listed yet, one time less.
func lags(left *int) bool {
	if *left <= 0 {
		return false
	}
	*left--
	return true
}

func (r *GitHubRepository) createPull(c *call) reply {
	head, base := c.text("head"), c.text("base")
	for _, branch := range []struct{ field, name string }{{"head", head}, {"base", base}} {
		if r.resolve("refs/heads/"+branch.name) == "" {
			return invalid("PullRequest", branch.field, "invalid", "")
		}
	}
	for _, p := range r.pulls {
		if p.State == "open" && !p.Fork && p.Head == head && p.Base == base {
			return invalid("PullRequest", "", "custom", "A pull request already exists for "+r.Owner+":"+head+".")
		}
	}
	if r.count("refs/heads/"+base+"..refs/heads/"+head) == 0 {
		return invalid("PullRequest", "", "custom", "No commits between "+base+" and "+head)
	}
	if problem := tooLong(c); problem != nil {
		return *problem
	}
	draft, _ := c.in["draft"].(bool)
	p := &GitHubPull{
		Number: len(r.pulls) + 1, State: "open", Author: c.login, Head: head, Base: base,
		Title: c.text("title"), Body: c.text("body"), Draft: draft, lag: r.server.lag,
	}
	r.pulls = append(r.pulls, p)
	r.sync()
	return reply{status: http.StatusCreated, body: r.show(p)}
}

func tooLong(c *call) *reply {
	for field, most := range map[string]int{"title": 256, "body": 65536} {
		if len([]rune(c.text(field))) > most {
			out := invalid("PullRequest", field, "custom", field+" is too long")
			return &out
		}
	}
	return nil
}

func (r *GitHubRepository) updatePull(p *GitHubPull, c *call) reply {
	if problem := tooLong(c); problem != nil {
		return *problem
	}
	for field, text := range map[string]*string{"title": &p.Title, "body": &p.Body, "state": &p.State} {
		if value, ok := c.in[field].(string); ok {
			*text = value
		}
	}
	return found(r.show(p))
}

func (r *GitHubRepository) addLabels(p *GitHubPull, c *call) reply {
	wanted, _ := c.in["labels"].([]any)
	for _, l := range wanted {
		name, _ := l.(string)
		if r.OnlyKnownLabels && !slices.Contains(r.labels, name) {
			return invalid("Label", "name", "missing", "")
		}
		if !slices.Contains(p.Labels, name) {
			p.Labels = append(p.Labels, name)
		}
	}
	return found(r.show(p)["labels"])
}

func (r *GitHubRepository) requestReviewers(p *GitHubPull, c *call) reply {
	users, _ := c.in["reviewers"].([]any)
	for _, u := range users {
		login, _ := u.(string)
		if login == p.Author {
			return fail(http.StatusUnprocessableEntity, "Review cannot be requested from pull request author.")
		}
		if !slices.Contains(p.Reviewers, login) {
			p.Reviewers, p.requested = append(p.Reviewers, login), append(p.requested, login)
		}
	}
	teams, _ := c.in["team_reviewers"].([]any)
	for _, t := range teams {
		if slug, _ := t.(string); !slices.Contains(p.Teams, slug) {
			p.Teams, p.requested = append(p.Teams, slug), append(p.requested, "/"+slug)
		}
	}
	return reply{status: http.StatusCreated, body: r.show(p)}
}

func (r *GitHubRepository) listEvents(p *GitHubPull, _ *call) reply {
	out := []any{map[string]any{"event": "head_ref_force_pushed", "requested_reviewer": nil}}
	for _, who := range p.requested {
		event := map[string]any{"event": "review_requested", "requested_reviewer": person(who)}
		if slug, ok := strings.CutPrefix(who, "/"); ok {
			event = map[string]any{"event": "review_requested", "requested_team": map[string]any{"slug": slug}}
		}
		out = append(out, event)
	}
	return reply{status: http.StatusOK, list: out}
}

func (r *GitHubRepository) listComments(p *GitHubPull, _ *call) reply {
	out := []any{}
	for i := range p.Comments {
		if !lags(&p.Comments[i].lag) {
			out = append(out, map[string]any{"id": p.Number*1000 + i, "user": person(p.Comments[i].By),
				"body": p.Comments[i].Body})
		}
	}
	return reply{status: http.StatusOK, list: out}
}

func (r *GitHubRepository) createComment(p *GitHubPull, c *call) reply {
	p.Comments = append(p.Comments, GitHubComment{By: c.login, Body: c.text("body"), lag: r.server.lag})
	return reply{status: http.StatusCreated, body: map[string]any{"body": c.text("body")}}
}

func (r *GitHubRepository) updateComment(c *call) reply {
	for _, p := range r.pulls {
		for i := range p.Comments {
			if p.Number*1000+i == c.number() && p.Comments[i].By == c.login {
				p.Comments[i].Body = c.text("body")
				return found(map[string]any{"body": c.text("body")})
			}
		}
	}
	return notFound
}

func (r *GitHubRepository) pullsOf(c *call) reply {
	out := []any{}
	for _, p := range r.pulls {
		if p.MergeCommit.String() == c.PathValue("sha") || p.HeadID.String() == c.PathValue("sha") {
			out = append(out, r.show(p))
		}
	}
	return reply{status: http.StatusOK, list: out}
}

func (r *GitHubRepository) listReviews(p *GitHubPull, _ *call) reply {
	out := []any{}
	for _, review := range p.Reviews {
		association := "MEMBER"
		if review.By == "stranger" {
			association = "CONTRIBUTOR"
		}
		out = append(out, map[string]any{
			"author_association": association,
			"user":               person(review.By), "state": review.State,
			"commit_id": review.Commit.String(), "submitted_at": review.At.Format(time.RFC3339),
		})
	}
	return reply{status: http.StatusOK, list: out}
}
