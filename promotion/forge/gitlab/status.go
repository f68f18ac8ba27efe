package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Statuses implements forge.Forge. The jobs of GitLab are among them, by their names and
// with the user who ran them. At is when a status got its state: GitLab moves one from
// pending to success, and its creation time is the earlier one.
func (f *Forge) Statuses(ctx context.Context, commits []git.Hash) (map[git.Hash][]forge.Status, error) {
	return f.server.Statuses(ctx, commits, func(ctx context.Context, commit git.Hash) ([]forge.Status, error) {
		return f.statuses(ctx, commit, "")
	})
}

// statuses returns the statuses of a commit, with a name where it is not empty.
func (f *Forge) statuses(ctx context.Context, commit git.Hash, name string) ([]forge.Status, error) {
	o := gl.GetCommitStatusesOptions{All: gl.Ptr(true)}
	if name != "" {
		o.Name = &name
	}
	list, err := server.Pages(func(n int) ([]*gl.CommitStatus, int, error) {
		o.ListOptions = page(n)
		list, r, err := f.api.Commits.GetCommitStatuses(f.project, commit.String(), &o, gl.WithContext(ctx))
		return list, next(r), err
	})
	if code(err) == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, f.fail("read the statuses of "+git.Short(commit), err)
	}
	slices.SortFunc(list, func(a, b *gl.CommitStatus) int {
		return cmp.Or(since(a).Compare(since(b)), cmp.Compare(a.ID, b.ID))
	})
	statuses := make([]forge.Status, len(list))
	for i, s := range list {
		statuses[i] = forge.Status{
			Name: s.Name, State: state(s.Status), Description: s.Description, URL: s.TargetURL,
			By: s.Author.Username, At: since(s),
		}
	}
	return statuses, nil
}

// since returns when a status got its state.
func since(s *gl.CommitStatus) time.Time {
	at := timeOf(s.CreatedAt)
	if state(s.Status) == forge.Pending {
		return at
	}
	if finished := timeOf(s.FinishedAt); finished.After(at) {
		return finished
	}
	return at
}

// state converts a state: one that is neither success nor failure is pending, and a skipped
// job has not succeeded.
func state(s string) forge.State {
	switch s {
	case "success":
		return forge.Success
	case "failed", "canceled", "canceling":
		return forge.Failure
	}
	return forge.Pending
}

// buildStates are GitLab's states of statuses.
var buildStates = map[forge.State]gl.BuildStateValue{
	forge.Pending: gl.Pending, forge.Success: gl.Success, forge.Failure: gl.Failed,
}

// SetStatus implements forge.Forge. A pending status of which only the description has
// changed may keep the old one: GitLab has no transition from pending to pending.
func (f *Forge) SetStatus(ctx context.Context, commit git.Hash, s forge.Status) error {
	return f.server.Do(ctx, func(ctx context.Context) error {
		all, err := f.statuses(ctx, commit, s.Name)
		newest := forge.Newest(all, s.Name, func(author string) bool { return f.viewer == "" || author == f.viewer })
		if err != nil || newest.Same(s) {
			return err
		}
		_, _, err = f.api.Commits.SetCommitStatus(f.project, commit.String(), &gl.SetCommitStatusOptions{
			State: buildStates[s.State], Name: &s.Name, Description: &s.Description, TargetURL: optional(s.URL),
		}, gl.WithContext(ctx))
		if code(err) == http.StatusBadRequest && newest != nil && newest.State == s.State &&
			strings.Contains(err.Error(), "Cannot transition status") {
			return nil
		}
		failure := f.fail("set the status "+s.Name+" of "+git.Short(commit), err)
		if code(err) == http.StatusNotFound {
			return fmt.Errorf("%w: %w", forge.ErrUnknownCommit, failure)
		}
		return failure
	})
}

// optional returns nil for an empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
