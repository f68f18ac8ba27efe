package gitea

import (
	"context"
	"fmt"
	"net/http"

	"code.gitea.io/sdk/gitea"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Merge implements forge.Forge. The head must contain the base: otherwise Gitea would make
// a tree that nobody has reviewed, and the error is git.ErrLostRace. A merge that Gitea
// makes by itself later has no such check: the branch's protection should block merging of
// outdated heads.
func (f *Forge) Merge(ctx context.Context, number int, head git.Hash, o forge.MergeOptions) (forge.MergeState, error) {
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
		_, r, err := f.api(ctx).MergePullRequest(f.owner, f.name, int64(number), gitea.MergePullRequestOption{
			Style: style, Title: o.Title, Message: o.Message, HeadCommitId: head.String(), MergeWhenChecksSucceed: o.WhenAllowed,
		})
		if err != nil {
			return "", f.fail(fmt.Sprintf("merge #%d", number), r, err)
		}
		return f.merged(ctx, number, head, o, code(r))
	})
}

// settled returns the result without merging; "" for none.
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

// style returns the merge style for a method, or an error where the repository does not
// allow it. Rebasing a head that contains the base is a fast-forward.
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
	return "", fmt.Errorf("the repository %s/%s does not allow to merge by %q", f.owner, f.name, method)
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
