package gitea

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// Statuses implements forge.Forge. The jobs of Actions are among them.
func (f *Forge) Statuses(ctx context.Context, commits []git.Hash) (map[git.Hash][]forge.Status, error) {
	return f.server.Statuses(ctx, commits, f.statuses)
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
		isViewer := func(author string) bool { return f.viewer == "" || strings.EqualFold(author, f.viewer) }
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
