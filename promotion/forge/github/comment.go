package github

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

var _ forge.Commenter = (*repo)(nil)

// ChangeOf implements forge.Commenter.
func (r *repo) ChangeOf(ctx context.Context, commit git.Hash, base string) (*forge.Change, error) {
	var found *pull
	err := pages(ctx, r, "commits/"+commit.String()+"/pulls", nil, func(page []pull) bool {
		for i := range page {
			if p := &page[i]; p.MergedAt != nil && p.Base.Ref == base && p.check() == nil {
				found = p
			}
		}
		return found == nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the pull request of %s: %w", commit, err)
	}
	if found == nil {
		return nil, nil
	}
	return found.change(r), nil
}

// comment is a comment of the REST API.
type comment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User *user  `json:"user"`
}

// SaveComment implements forge.Commenter. GitHub does not say who asks with the token of a job:
// then the mark alone tells which comment it is.
func (r *repo) SaveComment(ctx context.Context, number int, mark, text string) error {
	issue := "issues/" + strconv.Itoa(number) + "/comments"
	var own *comment
	err := r.ensure(ctx,
		func() (bool, error) {
			viewer, err := r.Viewer(ctx)
			if err != nil {
				return false, err
			}
			own = nil
			err = pages(ctx, r, issue, nil, func(page []comment) bool {
				for i := range page {
					if c := &page[i]; own == nil && (viewer == "" || c.User.name() == viewer) && strings.HasPrefix(c.Body, mark) {
						own = c
					}
				}
				return own == nil
			})
			return err == nil && own != nil && sameText(own.Body, text), err
		},
		func() error {
			body := map[string]string{"body": text}
			if own != nil {
				return r.send(ctx, again, http.MethodPatch, "issues/comments/"+strconv.FormatInt(own.ID, 10), body, nil)
			}
			return r.send(ctx, write, http.MethodPost, issue, body, nil)
		})
	if err != nil {
		return fmt.Errorf("commenting on pull request %d: %w", number, err)
	}
	return nil
}
