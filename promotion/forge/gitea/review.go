package gitea

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"code.gitea.io/sdk/gitea"

	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Reviews implements forge.Forge.
func (f *Forge) Reviews(ctx context.Context, number int) (*forge.Reviews, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (*forge.Reviews, error) {
		all, err := f.reviews(ctx, number)
		if err != nil {
			return nil, err
		}
		newest := newest(all)
		required, err := f.required(ctx, number, newest)
		if err != nil {
			return nil, err
		}
		reviews := map[string]forge.Review{}
		for name, r := range newest {
			reviews[name] = forge.Review{
				By: name, Approved: r.State == gitea.ReviewStateApproved, Commit: server.Hash(r.CommitID), At: r.Submitted,
			}
		}
		return &forge.Reviews{Reviews: forge.ByReviewer(reviews), Required: required}, nil
	})
}

func (f *Forge) reviews(ctx context.Context, number int) ([]*gitea.PullReview, error) {
	all, r, err := pages(func(o gitea.ListOptions) ([]*gitea.PullReview, *gitea.Response, error) {
		return f.api(ctx).ListPullReviews(f.owner, f.name, int64(number), gitea.ListPullReviewsOptions{ListOptions: o})
	})
	return all, f.fail(fmt.Sprintf("read the reviews of #%d", number), r, err)
}

// newest returns the newest approval or request for changes of each reviewer, unless it was
// dismissed: an older one does not count again then.
func newest(all []*gitea.PullReview) map[string]*gitea.PullReview {
	by := map[string]*gitea.PullReview{}
	slices.SortStableFunc(all, func(a, b *gitea.PullReview) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range all {
		if r.Reviewer != nil && (r.State == gitea.ReviewStateApproved || r.State == gitea.ReviewStateRequestChanges) {
			by[r.Reviewer.UserName] = r
		}
	}
	maps.DeleteFunc(by, func(_ string, r *gitea.PullReview) bool { return r.Dismissed })
	return by
}

// required reports whether the branch has the approvals that its protection requires. Only
// administrators can see whether approvals of older heads count, and whether a request for
// changes blocks: the result is Unknown where that matters.
func (f *Forge) required(ctx context.Context, number int,
	newest map[string]*gitea.PullReview) (forge.Requirement, error) {
	pr, err := f.get(ctx, number)
	if err != nil {
		return "", err
	}
	branch, r, err := f.api(ctx).GetRepoBranch(f.owner, f.name, pr.Base.Ref)
	if code(r) == http.StatusNotFound {
		return forge.Unknown, nil
	}
	if err != nil {
		return "", f.fail("read the branch "+pr.Base.Ref, r, err)
	}
	var fresh, all int64
	blocked := false
	for _, r := range newest {
		switch {
		case !r.Official:
		case r.State == gitea.ReviewStateRequestChanges:
			blocked = true
		default:
			all++
			if !r.Stale {
				fresh++
			}
		}
	}
	switch {
	case all < branch.RequiredApprovals:
		return forge.Unsatisfied, nil
	case blocked || fresh < branch.RequiredApprovals:
		return forge.Unknown, nil
	}
	return forge.Satisfied, nil
}
