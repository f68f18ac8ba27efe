package gitlab

import (
	"context"
	"fmt"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Reviews implements forge.Forge. GitLab reports when an approval was given, and not for
// which head: it counts for the newest head that GitLab knew by then. An approval right
// after a push may count for the older head, never the other way round.
func (f *Forge) Reviews(ctx context.Context, number int) (*forge.Reviews, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (*forge.Reviews, error) {
		approvals, _, err := f.api.MergeRequestApprovals.GetConfiguration(f.project, int64(number), gl.WithContext(ctx))
		if err != nil {
			return nil, f.fail(fmt.Sprintf("read the approvals of !%d", number), err)
		}
		reviewers, _, err := f.api.MergeRequests.GetMergeRequestReviewers(f.project, int64(number), gl.WithContext(ctx))
		if err != nil {
			return nil, f.fail(fmt.Sprintf("read the reviewers of !%d", number), err)
		}
		versions, err := f.versions(ctx, number)
		if err != nil {
			return nil, err
		}
		mr, err := f.get(ctx, number)
		if err != nil {
			return nil, err
		}
		return &forge.Reviews{Reviews: reviews(approvals, reviewers, versions), Required: required(approvals, mr)}, nil
	})
}

// versions returns the heads of a merge request, with their times.
func (f *Forge) versions(ctx context.Context, number int) ([]*gl.MergeRequestDiffVersion, error) {
	versions, err := server.Pages(func(n int) ([]*gl.MergeRequestDiffVersion, int, error) {
		list, r, err := f.api.MergeRequests.GetMergeRequestDiffVersions(f.project, int64(number),
			&gl.GetMergeRequestDiffVersionsOptions{ListOptions: page(n)}, gl.WithContext(ctx))
		return list, next(r), err
	})
	return versions, f.fail(fmt.Sprintf("read the versions of !%d", number), err)
}

func reviews(approvals *gl.MergeRequestApprovals, reviewers []*gl.MergeRequestReviewer,
	versions []*gl.MergeRequestDiffVersion) []forge.Review {
	by := map[string]forge.Review{}
	for _, a := range approvals.ApprovedBy {
		if a.User != nil {
			at := timeOf(a.ApprovedAt)
			by[a.User.Username] = forge.Review{By: a.User.Username, Approved: true, Commit: headAt(versions, at), At: at}
		}
	}
	// GitLab reports no time for a request for changes. It removes an approval, and an
	// approval removes it.
	for _, r := range reviewers {
		if r.User != nil && r.State == "requested_changes" {
			by[r.User.Username] = forge.Review{By: r.User.Username}
		}
	}
	return forge.ByReviewer(by)
}

// headAt returns the head at a time; the zero Hash where it is not known.
func headAt(versions []*gl.MergeRequestDiffVersion, at time.Time) git.Hash {
	var head git.Hash
	var since time.Time
	for _, v := range versions {
		if made := timeOf(v.CreatedAt); !made.IsZero() && !made.After(at) && !made.Before(since) {
			head, since = server.Hash(v.HeadCommitSHA), made
		}
	}
	return head
}

// required reports whether GitLab's approval rules are satisfied, whatever else a merge
// request still lacks.
func required(approvals *gl.MergeRequestApprovals, mr *gl.MergeRequest) forge.Requirement {
	switch status := mr.DetailedMergeStatus; {
	case approvals.ApprovalsLeft > 0, status == "not_approved", status == "requested_changes", status == "policies_denied":
		return forge.Unsatisfied
	case status == "mergeable", approvals.ApprovalsRequired > 0:
		return forge.Satisfied
	}
	return forge.Unknown
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
