package gitlab

import (
	"context"
	"fmt"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

var _ forge.Commenter = (*Forge)(nil)

// ChangeOf implements forge.Commenter.
func (f *Forge) ChangeOf(ctx context.Context, commit git.Hash, base string) (*forge.Change, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (*forge.Change, error) {
		list, _, err := f.api.Commits.ListMergeRequestsByCommit(f.project, commit.String(), gl.WithContext(ctx))
		if err != nil {
			return nil, f.fail("look for the merge request of "+commit.String(), err)
		}
		for _, mr := range list {
			if mr.State == "merged" && mr.TargetBranch == base {
				return change(mr), nil
			}
		}
		return nil, nil
	})
}

// SaveComment implements forge.Commenter.
func (f *Forge) SaveComment(ctx context.Context, number int, mark, text string) error {
	text = escapeCommands(text)
	return f.server.Do(ctx, func(ctx context.Context) error {
		notes, err := server.Pages(func(n int) ([]*gl.Note, int, error) {
			notes, r, err := f.api.Notes.ListMergeRequestNotes(f.project, int64(number), &gl.ListMergeRequestNotesOptions{
				ListOptions: page(n), OrderBy: gl.Ptr("created_at"), Sort: gl.Ptr("asc"),
			}, gl.WithContext(ctx))
			return notes, next(r), err
		})
		if err != nil {
			return f.fail(fmt.Sprintf("read the comments of the merge request !%d", number), err)
		}
		for _, note := range notes {
			if note.System || f.viewer != "" && note.Author.Username != f.viewer || !strings.HasPrefix(note.Body, mark) {
				continue
			}
			if strings.TrimSpace(note.Body) == strings.TrimSpace(text) {
				return nil
			}
			_, _, err := f.api.Notes.UpdateMergeRequestNote(f.project, int64(number), note.ID,
				&gl.UpdateMergeRequestNoteOptions{Body: &text}, gl.WithContext(ctx))
			return f.fail(fmt.Sprintf("update the comment on the merge request !%d", number), err)
		}
		_, _, err = f.api.Notes.CreateMergeRequestNote(f.project, int64(number),
			&gl.CreateMergeRequestNoteOptions{Body: &text}, gl.WithContext(ctx))
		return f.fail(fmt.Sprintf("comment on the merge request !%d", number), err)
	})
}
