package forgetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Show returns the repository's state on the forge, as text to compare. It has pull requests with
// their labels, reviewers, comments and reviews, statuses and deployments, each kind oldest
// first.
func (r *GitHubRepository) Show() string {
	var b strings.Builder
	for _, p := range r.Pulls() {
		state := p.State
		switch {
		case p.Merged:
			state = "merged " + p.MergeMethod
		case p.Queued:
			state += " queued"
		case p.AutoMerge:
			state += " auto-merge"
		}
		showChange(&b, p.Number, state, p.Head, p.Base, p.Author, p.Title)
		teams := slices.Clone(p.Teams)
		for i := range teams {
			teams[i] = r.Owner + "/" + teams[i]
		}
		showLists(&b, p.Labels, append(slices.Clone(p.Reviewers), teams...))
		for _, c := range p.Comments {
			showText(&b, "comment by "+c.By, c.Body)
		}
		for _, review := range p.Reviews {
			showReview(&b, review.By, review.State, review.Commit == p.HeadID)
		}
	}
	for _, s := range r.Statuses() {
		showStatusOf(&b, s.Commit.String(), s.Context, s.State, s.Creator, s.Description)
	}
	for _, d := range r.Deployments() {
		production := ""
		if d.Production {
			production = " production"
		}
		fmt.Fprintf(&b, "deployment of %s to %s%s:", d.Commit, d.Environment, production)
		for _, s := range d.Statuses {
			fmt.Fprintf(&b, " %s", s.State)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Body is the body of a pull request.
func (r *GitHubRepository) Body(number int) string {
	for _, p := range r.Pulls() {
		if p.Number == number {
			return p.Body
		}
	}
	return ""
}

// Show returns the repository's state on the forge, as text to compare.
func (g *GitlabGitea) Show() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	for _, c := range g.changes {
		state := strings.TrimSuffix(c.state, "ed")
		switch {
		case c.state != "opened":
			state = c.state
		case c.auto:
			state += " auto-merge"
		}
		showChange(&b, c.number, state, c.head, c.base, c.author, c.title)
		showLists(&b, c.labels, append(slices.Clone(c.reviewers), c.teams...))
		for _, n := range c.notes {
			showText(&b, "comment by "+n.by, n.body)
		}
		for _, r := range c.approvals {
			showReview(&b, r.by, r.state, r.commit == g.headOf(c))
		}
	}
	for _, s := range g.statuses {
		showStatusOf(&b, s.commit, s.name, s.state, s.by, s.description)
	}
	return b.String()
}

// Body is the body of a change.
func (g *GitlabGitea) Body(number int) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes[number-1].body
}

// Label lets somebody add a label to a change.
func (g *GitlabGitea) Label(number int, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes[number-1].labels = append(g.changes[number-1].labels, name)
}

// SetStatus sets a status of a commit by somebody.
func (g *GitlabGitea) SetStatus(commit git.Hash, name, state, by, description string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &gitlabGiteaStatus{id: len(g.statuses) + 1, commit: commit.String(), name: name, state: state,
		by: by, description: description, created: g.Now()}
	if state != "pending" {
		s.finished = g.Now()
	}
	g.statuses = append(g.statuses, s)
}

func showChange(b *strings.Builder, number int, state, head, base, by, title string) {
	fmt.Fprintf(b, "#%d %s: %s -> %s by %s\n", number, state, head, base, by)
	showText(b, "title", title)
}

func showLists(b *strings.Builder, labels, reviewers []string) {
	if len(labels) > 0 {
		showText(b, "labels", strings.Join(labels, ", "))
	}
	if len(reviewers) > 0 {
		showText(b, "reviewers", strings.Join(reviewers, ", "))
	}
}

func showText(b *strings.Builder, what, text string) {
	fmt.Fprintf(b, "  %s: %s\n", what, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    "))
}

func showReview(b *strings.Builder, by, state string, isHead bool) {
	of := "the head"
	if !isHead {
		of = "an earlier head"
	}
	fmt.Fprintf(b, "  review by %s: %s of %s\n", by, strings.ToLower(state), of)
}

func showStatusOf(b *strings.Builder, commit, name, state, by, description string) {
	fmt.Fprintf(b, "status of %s: %s %s by %s: %s\n", commit, name, state, by, description)
}
