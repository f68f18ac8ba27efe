package github

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Reviews ignores comments, and takes a dismissal for the end of all earlier reviews of its
// reviewer, as GitHub's own rules do.
func (r *repo) Reviews(ctx context.Context, number int) (*forge.Reviews, error) {
	newest := map[string]forge.Review{}
	err := pages(ctx, r, "pulls/"+strconv.Itoa(number)+"/reviews", nil, func(page []struct {
		User  *user  `json:"user"`
		State string `json:"state"`
		// Association is the relation of the reviewer to the repository. Anybody may review
		// a public one; only reviews of those who belong to it count.
		Association string    `json:"author_association"`
		Commit      string    `json:"commit_id"`
		At          time.Time `json:"submitted_at"`
	}) bool {
		for _, review := range page { // oldest first
			by := review.User.name()
			if !slices.Contains([]string{"OWNER", "MEMBER", "COLLABORATOR"}, review.Association) {
				continue
			}
			switch review.State {
			case "APPROVED", "CHANGES_REQUESTED":
				if by != "" {
					newest[by] = forge.Review{By: by, Approved: review.State == "APPROVED",
						Commit: server.Hash(review.Commit), At: review.At}
				}
			case "DISMISSED":
				delete(newest, by)
			}
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("reading the reviews of pull request %d: %w", number, err)
	}
	required, err := r.required(ctx, number)
	if err != nil {
		return nil, fmt.Errorf("asking what pull request %d still requires: %w", number, err)
	}
	return &forge.Reviews{Reviews: forge.ByReviewer(newest), Required: required}, nil
}

// required returns GitHub's own decision. Without a rule that requires reviews there is
// none: then the result is Unknown.
func (r *repo) required(ctx context.Context, number int) (forge.Requirement, error) {
	var got struct {
		Repository struct {
			PullRequest struct {
				ReviewDecision string `json:"reviewDecision"`
			} `json:"pullRequest"`
		} `json:"repository"`
	}
	err := r.client.graphQL(ctx, read, "ReviewDecision", `query ReviewDecision($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { reviewDecision } }
}`, map[string]any{"owner": r.owner, "name": r.name, "number": number}, &got)
	if err != nil && !isGraphQL(err, "FORBIDDEN") {
		return forge.Unknown, err
	}
	switch got.Repository.PullRequest.ReviewDecision {
	case "APPROVED":
		return forge.Satisfied, nil
	case "REVIEW_REQUIRED", "CHANGES_REQUESTED":
		return forge.Unsatisfied, nil
	}
	return forge.Unknown, nil
}
