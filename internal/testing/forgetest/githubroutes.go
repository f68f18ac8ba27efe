package forgetest

import (
	"net/http"
	"strconv"
	"strings"
)

// route lists the calls that exist.
func (s *GitHubServer) route(mux *http.ServeMux) {
	mux.HandleFunc("POST /graphql", s.handle(s.graphQL))
	in := func(pattern string, do func(*GitHubRepository, *call) reply) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /repos/{owner}/{name}"+path, s.handle(func(c *call) reply {
			repo := s.repo(c.PathValue("owner"), c.PathValue("name"))
			if repo == nil || repo.hidden[c.login] {
				return notFound
			}
			repo.sync()
			return do(repo, c)
		}))
	}
	of := func(pattern string, do func(*GitHubRepository, *GitHubPull, *call) reply) {
		in(pattern, func(r *GitHubRepository, c *call) reply {
			for _, p := range r.pulls {
				if p.Number == c.number() {
					return do(r, p, c)
				}
			}
			return notFound
		})
	}
	in("GET ", (*GitHubRepository).get)
	in("GET /compare/{range}", (*GitHubRepository).compare)
	in("POST /labels", (*GitHubRepository).createLabel)
	in("GET /pulls", (*GitHubRepository).listPulls)
	in("POST /pulls", (*GitHubRepository).createPull)
	of("GET /pulls/{number}", func(r *GitHubRepository, p *GitHubPull, _ *call) reply { return found(r.show(p)) })
	of("PATCH /pulls/{number}", (*GitHubRepository).updatePull)
	of("PUT /pulls/{number}/merge", (*GitHubRepository).mergePull)
	of("GET /pulls/{number}/reviews", (*GitHubRepository).listReviews)
	of("POST /pulls/{number}/requested_reviewers", (*GitHubRepository).requestReviewers)
	of("GET /issues/{number}/comments", (*GitHubRepository).listComments)
	of("POST /issues/{number}/comments", (*GitHubRepository).createComment)
	in("PATCH /issues/comments/{number}", (*GitHubRepository).updateComment)
	in("GET /commits/{sha}/pulls", (*GitHubRepository).pullsOf)
	of("POST /issues/{number}/labels", (*GitHubRepository).addLabels)
	of("GET /issues/{number}/events", (*GitHubRepository).listEvents)
	in("GET /commits/{sha}/statuses", (*GitHubRepository).listStatuses)
	in("POST /statuses/{sha}", (*GitHubRepository).createStatus)
	in("GET /commits/{sha}/check-runs", (*GitHubRepository).listCheckRuns)
	in("GET /deployments", (*GitHubRepository).listDeployments)
	in("POST /deployments", (*GitHubRepository).createDeployment)
	in("GET /deployments/{number}/statuses", (*GitHubRepository).listDeploymentStatuses)
	in("POST /deployments/{number}/statuses", (*GitHubRepository).createDeploymentStatus)
}

// repo finds a repository, or nil. The state is locked.
func (s *GitHubServer) repo(owner, name string) *GitHubRepository {
	for _, r := range s.repos {
		if strings.EqualFold(r.Owner, owner) && strings.EqualFold(r.Name, name) {
			return r
		}
	}
	return nil
}

func (s *GitHubServer) repoByID(id string) *GitHubRepository {
	s.state.Lock()
	defer s.state.Unlock()
	for _, r := range s.repos {
		if strconv.FormatInt(r.ID, 10) == id {
			return r
		}
	}
	return nil
}
