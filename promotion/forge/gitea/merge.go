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

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Merge implements forge.Forge. The head must contain the base. Otherwise Gitea would make a tree
// that nobody has reviewed, and Merge returns git.ErrLostRace. A merge that Gitea makes by itself
// later has no such check. The branch's protection should block merging of outdated heads.
func (f *Forge) Merge(ctx context.Context, number int, head git.Hash,
	o forge.MergeOptions) (forge.MergeState, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (forge.MergeState, error) {
		pr, err := f.get(ctx, number)
		if err != nil {
			return "", err
		}
		if state, err := settled(pr, head); state != "" || err != nil {
			return state, err
		}
		if change(pr).Draft {
			return forge.MergeRefused, nil
		}
		style, err := f.style(ctx, o.Method)
		if err != nil {
			return "", err
		}
		_, r, err := f.api(ctx).MergePullRequest(f.owner, f.name, int64(number),
			gitea.MergePullRequestOption{
				Style: style, Title: o.Title, Message: o.Message, HeadCommitId: head.String(),
				MergeWhenChecksSucceed: o.WhenAllowed,
			})
		if err != nil {
			return "", f.fail(fmt.Sprintf("merge #%d", number), r, err)
		}
		return f.merged(ctx, number, head, o, code(r))
	})
}

// settled returns the result if no merge is needed. It returns "" if the pull request can be
// merged.
func settled(pr *gitea.PullRequest, head git.Hash) (forge.MergeState, error) {
	switch {
	case server.Hash(pr.Head.Sha) != head:
		return "", fmt.Errorf("merge #%d at %s: %w: its head is %s", pr.Index, git.Short(head),
			git.ErrLostRace, git.Short(server.Hash(pr.Head.Sha)))
	case pr.HasMerged:
		return forge.MergeDone, nil
	case pr.State != gitea.StateOpen:
		return "", fmt.Errorf("merge #%d: it is closed", pr.Index)
	case pr.MergeBase != pr.Base.Sha:
		return "", fmt.Errorf("merge #%d at %s: %w: %s has commits that it has not", pr.Index,
			git.Short(head), git.ErrLostRace, terminal.Line(pr.Base.Ref))
	}
	return "", nil
}

// style returns the merge style for a method, or an error if the repository does not allow it.
// Rebasing a head that contains the base is a fast-forward.
func (f *Forge) style(ctx context.Context, method string) (gitea.MergeStyle, error) {
	repository, err := f.visible(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range []struct {
		method  string
		style   gitea.MergeStyle
		allowed bool
	}{
		{"squash", gitea.MergeStyleSquash, repository.AllowSquash},
		{"merge", gitea.MergeStyleMerge, repository.AllowMerge},
		{"rebase", gitea.MergeStyleFastForwardOnly, repository.AllowFastForwardOnlyMerge},
		{"rebase", gitea.MergeStyleRebase, repository.AllowRebase},
	} {
		if s.allowed && (method == "" || method == s.method) {
			return s.style, nil
		}
	}
	return "", fmt.Errorf("the repository %s/%s does not allow to merge by %q", f.owner, f.name,
		method)
}

// merged returns the result of an answer. Refusals have the same codes for rules that do
// not allow the merge yet and for concurrent changes, so it reads the pull request again.
func (f *Forge) merged(ctx context.Context, number int, head git.Hash, o forge.MergeOptions,
	code int) (forge.MergeState, error) {
	switch code {
	case http.StatusOK:
		return forge.MergeDone, nil
	case http.StatusCreated:
		return forge.MergeWaiting, nil
	case http.StatusMethodNotAllowed, http.StatusConflict, http.StatusUnprocessableEntity:
	default:
		return "", fmt.Errorf("merge #%d: %s answers %d", number, f.server.Host(), code)
	}
	pr, err := f.get(ctx, number)
	if err != nil {
		return "", err
	}
	switch state, err := settled(pr, head); {
	case state != "" || err != nil:
		return state, err
	case code == http.StatusConflict && o.WhenAllowed:
		return forge.MergeWaiting, nil // it is scheduled already
	case code == http.StatusConflict:
		return "", fmt.Errorf("merge #%d at %s: %w", number, git.Short(head), git.ErrLostRace)
	}
	return forge.MergeRefused, nil
}

// CancelMerge implements forge.Forge. The API does not report whether a merge is scheduled.
func (f *Forge) CancelMerge(ctx context.Context, number int) error {
	return f.server.Do(ctx, func(ctx context.Context) error {
		r, err := f.api(ctx).CancelScheduledAutoMerge(f.owner, f.name, int64(number))
		if code(r) == http.StatusNotFound {
			return nil
		}
		return f.fail(fmt.Sprintf("keep #%d from being merged", number), r, err)
	})
}

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
				By: name, Approved: r.State == gitea.ReviewStateApproved, Commit: server.Hash(r.CommitID),
				At: r.Submitted,
			}
		}
		return &forge.Reviews{Reviews: forge.ByReviewer(reviews), Required: required}, nil
	})
}

func (f *Forge) reviews(ctx context.Context, number int) ([]*gitea.PullReview, error) {
	all, r, err := pages(func(o gitea.ListOptions) ([]*gitea.PullReview, *gitea.Response, error) {
		return f.api(ctx).ListPullReviews(f.owner, f.name, int64(number),
			gitea.ListPullReviewsOptions{ListOptions: o})
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
		if r.Reviewer != nil &&
			(r.State == gitea.ReviewStateApproved || r.State == gitea.ReviewStateRequestChanges) {
			by[r.Reviewer.UserName] = r
		}
	}
	maps.DeleteFunc(by, func(_ string, r *gitea.PullReview) bool { return r.Dismissed })
	return by
}

// required reports whether the branch has the approvals that its protection requires. Only
// administrators can see whether approvals of older heads count, and whether a request for
// changes blocks. The result is Unknown if it depends on that.
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

// Statuses implements forge.Forge. The jobs of Actions are among them.
func (f *Forge) Statuses(ctx context.Context, commits []git.Hash) (map[git.Hash][]forge.Status,
	error) {
	return f.server.Statuses(ctx, commits, f.statuses)
}

func (f *Forge) statuses(ctx context.Context, commit git.Hash) ([]forge.Status, error) {
	list, r, err := pages(func(o gitea.ListOptions) ([]*gitea.Status, *gitea.Response, error) {
		return f.api(ctx).ListStatuses(f.owner, f.name, commit.String(),
			gitea.ListStatusesOption{ListOptions: o})
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
		statuses[i] = forge.Status{Name: s.Context, State: state(s.State), Description: s.Description,
			URL: s.TargetURL, At: s.Created}
		if s.Creator != nil {
			statuses[i].By = s.Creator.UserName
		}
	}
	return statuses, nil
}

// state converts a state: an unknown one is pending.
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
		isViewer := func(author string) bool {
			return f.viewer == "" ||
				strings.EqualFold(author, f.viewer)
		}
		if forge.Newest(all, s.Name, isViewer).Same(s) {
			return nil
		}
		_, r, err := f.api(ctx).CreateStatus(f.owner, f.name, commit.String(), gitea.CreateStatusOption{
			State: gitea.StatusState(s.State), TargetURL: s.URL, Description: s.Description, Context: s.Name,
		})
		failure := f.fail("set the status "+s.Name+" of "+git.Short(commit), r, err)
		if c := code(r); c == http.StatusNotFound || c == http.StatusUnprocessableEntity {
			return fmt.Errorf("%w: %w", forge.ErrUnknownCommit, failure)
		}
		return failure
	})
}
