package gitea

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/kalypso-io/kalypso/compiler/git"
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
		out := &forge.Reviews{Required: required}
		for _, name := range slices.Sorted(maps.Keys(newest)) {
			r := newest[name]
			out.Reviews = append(out.Reviews, forge.Review{
				By: name, Approved: r.State == gitea.ReviewStateApproved, Commit: server.Hash(r.CommitID), At: r.Submitted,
			})
		}
		return out, nil
	})
}

func (f *Forge) reviews(ctx context.Context, number int) ([]*gitea.PullReview, error) {
	all, r, err := pages(func(o gitea.ListOptions) ([]*gitea.PullReview, *gitea.Response, error) {
		return f.api(ctx).ListPullReviews(f.owner, f.name, int64(number), gitea.ListPullReviewsOptions{ListOptions: o})
	})
	return all, f.fail(fmt.Sprintf("read the reviews of #%d", number), r, err)
}

// newest returns the newest approval or request for changes of each reviewer, unless
// it was dismissed: an older one does not count again then.
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

// required says whether the branch has the approvals that its protection wants. It
// does not tell all: whether approvals of older heads count, and whether a request for
// changes blocks, is for administrators to see, and Unknown.
func (f *Forge) required(ctx context.Context, number int, newest map[string]*gitea.PullReview) (forge.Requirement, error) {
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

// Statuses implements forge.Forge. Jobs of Actions are among them.
func (f *Forge) Statuses(ctx context.Context, commits []git.Hash) (map[git.Hash][]forge.Status, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (map[git.Hash][]forge.Status, error) {
		return server.Each(ctx, commits, f.statuses)
	})
}

func (f *Forge) statuses(ctx context.Context, commit git.Hash) ([]forge.Status, error) {
	list, r, err := pages(func(o gitea.ListOptions) ([]*gitea.Status, *gitea.Response, error) {
		return f.api(ctx).ListStatuses(f.owner, f.name, commit.String(), gitea.ListStatusesOption{ListOptions: o})
	})
	if code(r) == http.StatusNotFound {
		_, err := f.visible(ctx)
		return nil, err
	}
	if err != nil {
		return nil, f.fail("read the statuses of "+git.Short(commit), r, err)
	}
	slices.SortFunc(list, func(a, b *gitea.Status) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	statuses := make([]forge.Status, len(list))
	for i, s := range list {
		statuses[i] = forge.Status{Name: s.Context, State: state(s.State), Description: s.Description, URL: s.TargetURL, At: s.Created}
		if s.Creator != nil {
			statuses[i].By = s.Creator.UserName
		}
	}
	return statuses, nil
}

// state is a state of Gitea's: one that is none of these is to come.
func state(s gitea.StatusState) forge.State {
	switch s {
	case gitea.StatusSuccess:
		return forge.Success
	case gitea.StatusFailure, gitea.StatusError, gitea.StatusWarning:
		return forge.Failure
	}
	return forge.Pending
}

// SetStatus implements forge.Forge.
func (f *Forge) SetStatus(ctx context.Context, commit git.Hash, s forge.Status) error {
	return f.server.Do(ctx, func(ctx context.Context) error {
		all, err := f.statuses(ctx, commit)
		if err != nil {
			return err
		}
		for _, said := range slices.Backward(all) {
			if said.Name == s.Name && (f.viewer == "" || strings.EqualFold(said.By, f.viewer)) {
				if said.State == s.State && said.Description == s.Description {
					return nil
				}
				break
			}
		}
		_, r, err := f.api(ctx).CreateStatus(f.owner, f.name, commit.String(), gitea.CreateStatusOption{
			State: gitea.StatusState(s.State), TargetURL: s.URL, Description: s.Description, Context: s.Name,
		})
		return f.fail("set the status "+s.Name+" of "+git.Short(commit), r, err)
	})
}
