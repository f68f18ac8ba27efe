package forgetest

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// mergePull merges as the rules allow.
func (r *GitHubRepository) mergePull(p *GitHubPull, c *call) reply {
	if p.State != "open" {
		return fail(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	}
	if wanted := c.text("sha"); wanted != "" && wanted != p.HeadID.String() {
		return fail(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	}
	method := c.text("merge_method")
	if method == "" {
		method = "merge"
	}
	allowed, words := r.allows(method)
	if !allowed {
		return fail(http.StatusMethodNotAllowed, words+" are not allowed on this repository.")
	}
	if r.MergeQueue {
		return fail(http.StatusMethodNotAllowed, "Repository rule violations found\nChanges must be "+
			"made through the merge queue")
	}
	if problem := r.blocked(p); problem != "" {
		return fail(http.StatusMethodNotAllowed, problem)
	}
	if !r.mergeBy(p, method, c.text("commit_title")+"\n\n"+c.text("commit_message")) {
		return fail(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	}
	return found(map[string]any{"sha": p.MergeCommit.String(), "merged": true,
		"message": "Pull Request successfully merged"})
}

// allows reports whether the repository allows a method, and returns the method's name in
// messages.
func (r *GitHubRepository) allows(method string) (bool, string) {
	switch method {
	case "squash":
		return r.Squash, "Squash merges"
	case "rebase":
		return r.Rebase, "Rebase merges"
	}
	return r.MergeCommit, "Merge commits"
}

// blocked returns the reason why the rules do not allow merging a pull request. It returns "" if
// they do.
func (r *GitHubRepository) blocked(p *GitHubPull) string {
	rules := r.Rules[p.Base]
	for _, name := range rules.Statuses {
		state := ""
		for _, s := range r.statuses {
			if s.Commit == p.HeadID && s.Context == name {
				state = s.State
			}
		}
		if state != "success" {
			return fmt.Sprintf("Required status check %q is expected.", name)
		}
	}
	switch {
	case p.Draft:
		return "Pull Request is still a draft"
	case len(r.approvals(p)) < rules.Approvals:
		return fmt.Sprintf("At least %d approving review is required by reviewers with write access.", rules.Approvals)
	case rules.UpToDate && r.count(p.HeadID.String()+".."+r.resolve(p.Base)) > 0:
		return "Head branch is out of date. Review and try the merge again."
	}
	return ""
}

// approvals are the approvals whose newest opinion is an approval.
func (r *GitHubRepository) approvals(p *GitHubPull) []string {
	var out []string
	for _, review := range p.Reviews {
		if review.State == "COMMENTED" {
			continue
		}
		out = slices.DeleteFunc(out, func(s string) bool { return s == review.By })
		if review.State == "APPROVED" {
			out = append(out, review.By)
		}
	}
	return out
}

// mergeBy merges in git; it reports whether there were no conflicts.
func (r *GitHubRepository) mergeBy(p *GitHubPull, method, message string) bool {
	base := r.resolve(p.Base)
	commit := r.combine(base, p.HeadID.String(), method, message)
	if commit == "" {
		return false
	}
	r.git("update-ref", "refs/heads/"+p.Base, commit, base)
	p.State, p.Merged, p.MergeCommit, p.MergeMethod = "closed", true, plumbing.NewHash(commit), method
	return true
}

// mergeWaiting merges the waiting pull requests that no rule blocks any more.
func (r *GitHubRepository) mergeWaiting() {
	for _, p := range r.pulls {
		if p.State != "open" || r.blocked(p) != "" {
			continue
		}
		if p.AutoMerge && r.MergeQueue {
			p.AutoMerge, p.Queued = false, true
		} else if p.AutoMerge {
			r.mergeBy(p, p.MergeMethod, p.mergeText)
		}
	}
}

// RunQueue merges the pull requests in the merge queue.
func (r *GitHubRepository) RunQueue() {
	r.Change(func(r *GitHubRepository) {
		for _, p := range r.pulls {
			if p.State == "open" && p.Queued {
				r.mergeBy(p, "merge", p.Title)
			}
		}
	})
}
