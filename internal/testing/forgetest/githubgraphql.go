package forgetest

import (
	"fmt"
	"net/http"
	"strings"
)

// graphQL answers operations by their names, with their variables as arguments. An unknown
// operation is an error, so that no client depends on a missing one.
func (s *GitHubServer) graphQL(c *call) reply {
	name := c.text("operationName")
	variables, _ := c.in["variables"].(map[string]any)
	text := func(key string) string {
		value, _ := variables[key].(string)
		return value
	}
	if name == "" || !strings.Contains(c.text("query"), " "+name) {
		return mistake("", "No operation named "+name)
	}
	switch name {
	case "Viewer":
		return answered(map[string]any{"viewer": map[string]any{"login": c.login}})
	case "ReviewDecision":
		number, _ := variables["number"].(float64)
		return s.reviewDecision(text("owner"), text("name"), int(number))
	}
	r, p := s.pullByNode(text("id"))
	if p == nil {
		return mistake("NOT_FOUND", "Could not resolve to a node with the global id of '"+text("id")+"'")
	}
	r.sync()
	switch name {
	case "ConvertToDraft", "MarkReady":
		p.Draft = name == "ConvertToDraft"
	case "AutoMerge":
		return r.enableAutoMerge(p, text("head"), strings.ToLower(text("method")), text("title")+"\n\n"+text("message"))
	case "Cancel":
		if !p.AutoMerge {
			return mistake("UNPROCESSABLE", "Can't disable auto-merge for this pull request.")
		}
		p.AutoMerge = false
	case "Waits":
		return answered(map[string]any{"node": map[string]any{"isInMergeQueue": p.Queued}})
	case "Dequeue":
		if !p.Queued {
			return mistake("UNPROCESSABLE", "Pull request is not in the merge queue")
		}
		p.Queued = false
	case "Enqueue":
		return r.enqueue(p, text("head"))
	default:
		return mistake("", "the server does not play "+name)
	}
	return answered(map[string]any{})
}

func answered(data any) reply { return found(map[string]any{"data": data}) }

// mistake is an error of GraphQL, which has a status of 200.
func mistake(kind, message string) reply {
	return reply{status: http.StatusOK, body: map[string]any{"data": nil,
		"errors": []any{map[string]any{"type": kind, "message": message}}}}
}

func (r *GitHubRepository) nodeID(p *GitHubPull) string {
	return fmt.Sprintf("PR_%d_%d", r.ID, p.Number)
}

func (s *GitHubServer) pullByNode(id string) (*GitHubRepository, *GitHubPull) {
	for _, r := range s.repos {
		for _, p := range r.pulls {
			if r.nodeID(p) == id {
				return r, p
			}
		}
	}
	return nil, nil
}

// reviewDecision answers with null if no rule requires a review.
func (s *GitHubServer) reviewDecision(owner, name string, number int) reply {
	r := s.repo(owner, name)
	if r == nil {
		return mistake("NOT_FOUND", "Could not resolve to a Repository")
	}
	for _, p := range r.pulls {
		if p.Number != number {
			continue
		}
		decision := any(nil)
		if wanted := r.Rules[p.Base].Approvals; wanted > 0 && len(r.approvals(p)) >= wanted {
			decision = "APPROVED"
		} else if wanted > 0 {
			decision = "REVIEW_REQUIRED"
		}
		return answered(map[string]any{"repository": map[string]any{"pullRequest": map[string]any{"reviewDecision": decision}}})
	}
	return mistake("NOT_FOUND", "Could not resolve to a PullRequest")
}

func (r *GitHubRepository) enableAutoMerge(p *GitHubPull, head, method, message string) reply {
	allowed, words := r.allows(method)
	switch {
	case !r.AutoMerge:
		return mistake("UNPROCESSABLE", "Auto merge is not allowed for this repository")
	case r.MergeQueue && method != "":
		return mistake("UNPROCESSABLE", "The merge strategy is set by the merge queue")
	case !allowed:
		return mistake("UNPROCESSABLE", "Merge method "+words+" is not allowed on this repository")
	case head != p.HeadID.String():
		return mistake("UNPROCESSABLE", "Head branch was modified. Review and try the merge again.")
	case r.blocked(p) == "" && !r.MergeQueue:
		return mistake("UNPROCESSABLE", "Pull request Pull request is in clean status")
	}
	p.AutoMerge, p.MergeMethod, p.mergeText = true, method, message
	r.mergeWaiting()
	return answered(map[string]any{})
}

func (r *GitHubRepository) enqueue(p *GitHubPull, head string) reply {
	switch {
	case !r.MergeQueue:
		return mistake("UNPROCESSABLE", "The merge queue is not enabled for this branch")
	case head != p.HeadID.String():
		return mistake("UNPROCESSABLE", "Expected head sha does not match")
	case p.Queued:
		return mistake("UNPROCESSABLE", "Pull request is already in the merge queue")
	case r.blocked(p) != "":
		return mistake("UNPROCESSABLE", "Pull request is not ready: "+r.blocked(p))
	}
	p.Queued = true
	return answered(map[string]any{})
}
