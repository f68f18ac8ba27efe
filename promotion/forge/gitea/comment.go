package gitea

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

var _ forge.Commenter = (*Forge)(nil)

// ChangeOf implements forge.Commenter.
func (f *Forge) ChangeOf(ctx context.Context, commit git.Hash, base string) (*forge.Change, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (*forge.Change, error) {
		pr, r, err := f.api(ctx).GetCommitPullRequest(f.owner, f.name, commit.String())
		if code(r) == http.StatusNotFound {
			_, err := f.visible(ctx)
			return nil, err
		}
		if err != nil {
			return nil, f.fail("look for the pull request of "+commit.String(), r, err)
		}
		if !complete(pr) || !pr.HasMerged || pr.Base.Ref != base {
			return nil, nil
		}
		return change(pr), nil
	})
}

// SaveComment implements forge.Commenter.
func (f *Forge) SaveComment(ctx context.Context, number int, mark, text string) error {
	return f.server.Do(ctx, func(ctx context.Context) error {
		// This list has no pages, and the oldest is the first one.
		comments, r, err := f.api(ctx).ListIssueComments(f.owner, f.name, int64(number), gitea.ListIssueCommentOptions{})
		if err != nil {
			return f.fail(fmt.Sprintf("read the comments of the pull request #%d", number), r, err)
		}
		for _, c := range comments {
			if f.viewer != "" && (c.Poster == nil || c.Poster.UserName != f.viewer) || !strings.HasPrefix(c.Body, mark) {
				continue
			}
			if strings.TrimSpace(c.Body) == strings.TrimSpace(text) {
				return nil
			}
			_, r, err := f.api(ctx).EditIssueComment(f.owner, f.name, c.ID, gitea.EditIssueCommentOption{Body: text})
			return f.fail(fmt.Sprintf("update the comment on the pull request #%d", number), r, err)
		}
		_, r, err = f.api(ctx).CreateIssueComment(f.owner, f.name, int64(number), gitea.CreateIssueCommentOption{Body: text})
		return f.fail(fmt.Sprintf("comment on the pull request #%d", number), r, err)
	})
}
