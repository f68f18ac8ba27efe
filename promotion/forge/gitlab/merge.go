package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Merge implements forge.Forge. The head must contain the base. Otherwise GitLab would make a
// tree that nobody has reviewed, and Merge returns git.ErrLostRace.
//
// The project, not the request, decides whether a merge request is merged by a commit or by a
// fast-forward. If Method is not the project's method, Merge returns an error. If the method is
// merge or rebase, the commits of the head become commits of the base.
func (f *Forge) Merge(ctx context.Context, number int, head git.Hash,
	o forge.MergeOptions) (forge.MergeState, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (forge.MergeState, error) {
		squash, err := f.squash(ctx, o.Method)
		if err != nil {
			return "", err
		}
		mr, err := f.checked(ctx, number)
		if err != nil {
			return "", err
		}
		if state, err := f.settled(mr, head); state != "" || err != nil {
			return state, err
		}
		return f.accept(ctx, mr, squash, o)
	})
}

// squash reports whether a method squashes, or returns why the project does not support it.
func (f *Forge) squash(ctx context.Context, method string) (bool, error) {
	project, _, err := f.api.Projects.GetProject(f.project, nil, gl.WithContext(ctx))
	if err != nil {
		return false, f.fail("read how the project merges", err)
	}
	never, always := project.SquashOption == gl.SquashOptionNever,
		project.SquashOption == gl.SquashOptionAlways
	forward := project.MergeMethod == gl.FastForwardMerge
	switch {
	case method == "" && !never, method == "squash" && !never:
		return true, nil
	case method == "", method == "merge" && !forward && !always,
		method == "rebase" && forward && !always:
		return false, nil
	}
	return false, fmt.Errorf(
		"the project %s does not merge by %s: its merge method is %s, and squashing is %s",
		f.project, terminal.Line(method), terminal.Line(string(project.MergeMethod)),
		terminal.Line(string(project.SquashOption)))
}

// checking are the states in which GitLab does not know yet whether a merge request can be
// merged (https://docs.gitlab.com/api/merge_requests/#merge-status).
var checking = []string{"unchecked", "checking", "preparing", "approvals_syncing"}

// checked reads a merge request, and waits for a while until GitLab knows whether it can be
// merged, which it computes after a push and on request.
func (f *Forge) checked(ctx context.Context, number int) (*gl.MergeRequest, error) {
	for pause := time.Second; ; pause *= 2 {
		mr, err := f.get(ctx, number)
		if err != nil || pause > 8*time.Second || mr.State != "opened" ||
			!slices.Contains(checking, mr.DetailedMergeStatus) {
			return mr, err
		}
		if err := f.server.Wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// settled returns the result if no merge is needed. It returns "" if the merge request can be
// merged.
func (f *Forge) settled(mr *gl.MergeRequest, head git.Hash) (forge.MergeState, error) {
	switch {
	case server.Hash(mr.SHA) != head:
		return "", fmt.Errorf("merge !%d at %s: %w: its head is %s", mr.IID, git.Short(head),
			git.ErrLostRace, git.Short(server.Hash(mr.SHA)))
	case mr.State == "merged":
		return forge.MergeDone, nil
	case mr.State == "closed":
		return "", fmt.Errorf("merge !%d: it is closed", mr.IID)
	case mr.DivergedCommitsCount > 0:
		return "", fmt.Errorf("merge !%d at %s: %w: %s has %d commits that it has not", mr.IID,
			git.Short(head), git.ErrLostRace, terminal.Line(mr.TargetBranch), mr.DivergedCommitsCount)
	case mr.MergeWhenPipelineSucceeds:
		return forge.MergeWaiting, nil
	}
	return "", nil
}

// accept merges, or lets GitLab merge later.
func (f *Forge) accept(ctx context.Context, mr *gl.MergeRequest, squash bool,
	o forge.MergeOptions) (forge.MergeState, error) {
	mergeable := mr.DetailedMergeStatus == "mergeable"
	if !mergeable && !o.WhenAllowed {
		return forge.MergeRefused, nil
	}
	options := &gl.AcceptMergeRequestOptions{SHA: &mr.SHA, Squash: &squash}
	if text := server.CommitText(o.Title, o.Message); text != "" {
		options.MergeCommitMessage, options.SquashCommitMessage = &text, &text
	}
	if !mergeable {
		options.AutoMerge = gl.Ptr(true)
		//lint:ignore SA1019 GitLab before 17.11 knows the old name only
		options.MergeWhenPipelineSucceeds = options.AutoMerge
	}
	answer, _, err := f.api.MergeRequests.AcceptMergeRequest(f.project, mr.IID, options,
		gl.WithContext(ctx))
	switch code(err) {
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusConflict,
		http.StatusUnprocessableEntity:
		return f.refused(ctx, mr, code(err))
	}
	if err != nil {
		return "", f.fail(fmt.Sprintf("merge !%d", mr.IID), err)
	}
	switch {
	case answer.State == "merged":
		return forge.MergeDone, nil
	case answer.MergeWhenPipelineSucceeds:
		return forge.MergeWaiting, nil
	}
	return forge.MergeRefused, nil
}

// refused reads why GitLab has not merged: it answers with the same codes for rules that do
// not allow it yet and for concurrent changes. Only 409 is always about the head.
func (f *Forge) refused(ctx context.Context, before *gl.MergeRequest, code int) (forge.MergeState,
	error) {
	mr, err := f.get(ctx, int(before.IID))
	if err != nil {
		return "", err
	}
	if state, err := f.settled(mr, server.Hash(before.SHA)); state != "" || err != nil {
		return state, err
	}
	if code == http.StatusConflict {
		return "", fmt.Errorf("merge !%d at %s: %w", mr.IID, git.Short(server.Hash(before.SHA)),
			git.ErrLostRace)
	}
	return forge.MergeRefused, nil
}

// CancelMerge implements forge.Forge.
func (f *Forge) CancelMerge(ctx context.Context, number int) error {
	return f.server.Do(ctx, func(ctx context.Context) error {
		mr, err := f.get(ctx, number)
		if err != nil || mr.State != "opened" || !mr.MergeWhenPipelineSucceeds {
			return err
		}
		_, _, err = f.api.MergeRequests.CancelMergeWhenPipelineSucceeds(f.project, mr.IID,
			gl.WithContext(ctx))
		switch code(err) {
		// it is merged or closed, or the merge is not scheduled any more
		case http.StatusMethodNotAllowed, http.StatusNotAcceptable:
			return nil
		}
		return f.fail(fmt.Sprintf("keep !%d from being merged", number), err)
	})
}

// Reviews implements forge.Forge. GitLab reports when an approval was given, and not for
// which head: it counts for the newest head that GitLab knew by then. An approval right
// after a push may count for the older head, never the other way round.
func (f *Forge) Reviews(ctx context.Context, number int) (*forge.Reviews, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (*forge.Reviews, error) {
		approvals, _, err := f.api.MergeRequestApprovals.GetConfiguration(f.project, int64(number),
			gl.WithContext(ctx))
		if err != nil {
			return nil, f.fail(fmt.Sprintf("read the approvals of !%d", number), err)
		}
		reviewers, _, err := f.api.MergeRequests.GetMergeRequestReviewers(f.project, int64(number),
			gl.WithContext(ctx))
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
		return &forge.Reviews{Reviews: reviews(approvals, reviewers, versions),
			Required: required(approvals, mr)}, nil
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
			by[a.User.Username] = forge.Review{By: a.User.Username, Approved: true,
				Commit: headAt(versions, at), At: at}
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

// headAt returns the head at a time; the zero Hash if it is not known.
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
	case approvals.ApprovalsLeft > 0, status == "not_approved", status == "requested_changes",
		status == "policies_denied":
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
