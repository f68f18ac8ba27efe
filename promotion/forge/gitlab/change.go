package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// drafts are as in https://docs.gitlab.com/user/project/merge_requests/drafts/.
var drafts = server.Drafts{Prefix: "Draft: ",
	Pattern: lazyregexp.New(`(?i)^\s*((draft:|\[draft\]|\(draft\))\s*)+`)}

// action matches a line that GitLab would execute and remove
// (https://docs.gitlab.com/user/project/quick_actions/).
var action = lazyregexp.New(`(?m)^([ \t]*)/([A-Za-z])`)

// escapeCommands returns a text without quick actions: titles of commits, which are in
// descriptions, could otherwise approve and merge as kalypso's user.
func escapeCommands(text string) string { return action.ReplaceAllString(text, `$1\/$2`) }

// FindChange implements forge.Forge.
func (f *Forge) FindChange(ctx context.Context, head, base string) (*forge.Change, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (*forge.Change, error) {
		found, err := f.find(ctx, head, base)
		return change(found), err
	})
}

func (f *Forge) find(ctx context.Context, head, base string) (*gl.BasicMergeRequest, error) {
	list, err := server.Pages(func(number int) ([]*gl.BasicMergeRequest, int, error) {
		list, r, err := f.api.MergeRequests.ListProjectMergeRequests(f.project,
			&gl.ListProjectMergeRequestsOptions{
				ListOptions: page(number), State: gl.Ptr("opened"), SourceBranch: &head, TargetBranch: &base,
			}, gl.WithContext(ctx))
		return list, next(r), err
	})
	if err != nil {
		return nil, f.fail("look for the merge request of "+head, err)
	}
	for _, mr := range list {
		if mr.SourceProjectID == mr.TargetProjectID && mr.SourceBranch == head &&
			mr.TargetBranch == base && mr.State == "opened" {
			return mr, nil
		}
	}
	return nil, nil
}

// SaveChange implements forge.Forge. Lines that GitLab would execute as commands get a
// backslash before them.
func (f *Forge) SaveChange(ctx context.Context, spec forge.ChangeSpec) (*forge.Change, error) {
	spec.Title, spec.Body = drafts.Title(spec.Title, spec.Draft), escapeCommands(spec.Body)
	return server.Ask(ctx, f.server, func(ctx context.Context) (*forge.Change, error) {
		reviewers, err := f.users(ctx, spec.Reviewers)
		if err != nil {
			return nil, err
		}
		mr, err := f.find(ctx, spec.Head, spec.Base)
		if err == nil && mr == nil {
			mr, err = f.open(ctx, spec, reviewers)
		}
		if err == nil {
			mr, err = f.update(ctx, mr, spec, reviewers)
		}
		return change(mr), err
	})
}

// open opens a merge request, or finds the one that another process has opened, which lists
// may show later.
func (f *Forge) open(ctx context.Context, spec forge.ChangeSpec,
	reviewers []int64) (*gl.BasicMergeRequest, error) {
	labels := gl.LabelOptions(spec.Labels)
	mr, _, err := f.api.MergeRequests.CreateMergeRequest(f.project, &gl.CreateMergeRequestOptions{
		Title: &spec.Title, Description: &spec.Body, SourceBranch: &spec.Head, TargetBranch: &spec.Base,
		Labels: &labels, ReviewerIDs: &reviewers,
	}, gl.WithContext(ctx))
	if err == nil {
		return &mr.BasicMergeRequest, nil
	}
	failed := f.fail("open a merge request from "+spec.Head+" to "+spec.Base, err)
	if code(err) != http.StatusConflict {
		return nil, failed
	}
	opened, err := server.Appears(ctx, f.server,
		func() (*gl.BasicMergeRequest, error) { return f.find(ctx, spec.Head, spec.Base) })
	if opened == nil && err == nil {
		return nil, failed
	}
	return opened, err
}

// update writes the fields that differ.
func (f *Forge) update(ctx context.Context, mr *gl.BasicMergeRequest, spec forge.ChangeSpec,
	reviewers []int64) (*gl.BasicMergeRequest, error) {
	var o gl.UpdateMergeRequestOptions
	differs := false
	if mr.Title != spec.Title {
		o.Title, differs = &spec.Title, true
	}
	if mr.Description != spec.Body {
		o.Description, differs = &spec.Body, true
	}
	if labels := without(spec.Labels, mr.Labels); len(labels) > 0 {
		add := gl.LabelOptions(labels)
		o.AddLabels, differs = &add, true
	}
	var have []int64
	for _, r := range mr.Reviewers {
		have = append(have, r.ID)
	}
	if lacking := without(reviewers, have); len(lacking) > 0 {
		all := append(have, lacking...)
		o.ReviewerIDs, differs = &all, true
	}
	if !differs {
		return mr, nil
	}
	updated, _, err := f.api.MergeRequests.UpdateMergeRequest(f.project, mr.IID, &o,
		gl.WithContext(ctx))
	if err != nil {
		return nil, f.fail(fmt.Sprintf("update the merge request !%d", mr.IID), err)
	}
	return &updated.BasicMergeRequest, nil
}

// without returns the first list without the elements of some, in the same order.
func without[T comparable](all, some []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(t T) bool { return slices.Contains(some, t) })
}

// users returns the ids of users.
func (f *Forge) users(ctx context.Context, names []string) ([]int64, error) {
	var ids []int64
	for _, name := range names {
		if strings.Contains(name, "/") {
			return nil, fmt.Errorf("the reviewers %s: %w: GitLab asks groups by its approval rules",
				terminal.Line(name), forge.ErrUnsupported)
		}
		users, _, err := f.api.Users.ListUsers(&gl.ListUsersOptions{Username: &name}, gl.WithContext(ctx))
		if err != nil {
			return nil, f.fail("look for the reviewer "+terminal.Line(name), err)
		}
		found := slices.IndexFunc(users,
			func(u *gl.User) bool { return strings.EqualFold(u.Username, name) })
		if found < 0 {
			return nil, fmt.Errorf("%s has no user %s, who is to review", f.server.Host(),
				terminal.Line(name))
		}
		ids = append(ids, users[found].ID)
	}
	return ids, nil
}

// CloseChange implements forge.Forge.
func (f *Forge) CloseChange(ctx context.Context, number int, comment string) error {
	return f.server.Do(ctx, func(ctx context.Context) error {
		mr, err := f.get(ctx, number)
		if err != nil || mr.State != "opened" {
			return err
		}
		if comment != "" {
			if err := f.Comment(ctx, number, comment); err != nil {
				return err
			}
		}
		_, _, err = f.api.MergeRequests.UpdateMergeRequest(f.project, int64(number),
			&gl.UpdateMergeRequestOptions{StateEvent: gl.Ptr("close")}, gl.WithContext(ctx))
		return f.fail(fmt.Sprintf("close the merge request !%d", number), err)
	})
}

func (f *Forge) get(ctx context.Context, number int) (*gl.MergeRequest, error) {
	mr, _, err := f.api.MergeRequests.GetMergeRequest(f.project, int64(number),
		&gl.GetMergeRequestsOptions{IncludeDivergedCommitsCount: gl.Ptr(true)}, gl.WithContext(ctx))
	return mr, f.fail(fmt.Sprintf("read the merge request !%d", number), err)
}

// Comment implements forge.Forge.
func (f *Forge) Comment(ctx context.Context, number int, text string) error {
	text = escapeCommands(text)
	return f.server.Do(ctx, func(ctx context.Context) error {
		newest, err := f.newestNote(ctx, number)
		if err != nil || newest != nil && strings.TrimSpace(newest.Body) == strings.TrimSpace(text) {
			return err
		}
		_, _, err = f.api.Notes.CreateMergeRequestNote(f.project, int64(number),
			&gl.CreateMergeRequestNoteOptions{Body: &text}, gl.WithContext(ctx))
		return f.fail(fmt.Sprintf("comment on the merge request !%d", number), err)
	})
}

// newestNote returns the newest comment of the viewer. It returns nil if there is no such
// comment.
func (f *Forge) newestNote(ctx context.Context, number int) (*gl.Note, error) {
	found, err := server.Pages(func(n int) ([]*gl.Note, int, error) {
		notes, r, err := f.api.Notes.ListMergeRequestNotes(f.project, int64(number),
			&gl.ListMergeRequestNotesOptions{
				ListOptions: page(n), OrderBy: gl.Ptr("created_at"), Sort: gl.Ptr("desc"),
			}, gl.WithContext(ctx))
		for _, note := range notes {
			if !note.System && (f.viewer == "" || note.Author.Username == f.viewer) {
				return []*gl.Note{note}, 0, nil
			}
		}
		return nil, next(r), err
	})
	if err != nil || len(found) == 0 {
		return nil, f.fail(fmt.Sprintf("read the comments of the merge request !%d", number), err)
	}
	return found[0], nil
}

// change converts a merge request; nil for nil.
func change(mr *gl.BasicMergeRequest) *forge.Change {
	if mr == nil {
		return nil
	}
	c := &forge.Change{
		Number: int(mr.IID), URL: mr.WebURL, Head: server.Hash(mr.SHA), Base: mr.TargetBranch,
		Title: drafts.Strip(mr.Title), Body: mr.Description, Labels: mr.Labels,
		Draft: mr.Draft, State: forge.ChangeOpen,
	}
	if mr.Author != nil {
		c.Author = mr.Author.Username
	}
	switch mr.State {
	case "merged":
		c.State, c.Merged = forge.ChangeMerged, merged(mr)
	case "closed":
		c.State = forge.ChangeClosed
	}
	return c
}

// merged returns the commit that a merge made: the merge commit, which is on top of the
// squashed one, or the head itself after a fast-forward.
func merged(mr *gl.BasicMergeRequest) git.Hash {
	for _, id := range []string{mr.MergeCommitSHA, mr.SquashCommitSHA} {
		if id != "" {
			return server.Hash(id)
		}
	}
	return server.Hash(mr.SHA)
}

var _ forge.Commenter = (*Forge)(nil)

// ChangeOf implements forge.Commenter.
func (f *Forge) ChangeOf(ctx context.Context, commit git.Hash, base string) (*forge.Change, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (*forge.Change, error) {
		list, _, err := f.api.Commits.ListMergeRequestsByCommit(f.project, commit.String(),
			gl.WithContext(ctx))
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
			notes, r, err := f.api.Notes.ListMergeRequestNotes(f.project, int64(number),
				&gl.ListMergeRequestNotesOptions{
					ListOptions: page(n), OrderBy: gl.Ptr("created_at"), Sort: gl.Ptr("asc"),
				}, gl.WithContext(ctx))
			return notes, next(r), err
		})
		if err != nil {
			return f.fail(fmt.Sprintf("read the comments of the merge request !%d", number), err)
		}
		for _, note := range notes {
			if note.System || f.viewer != "" && note.Author.Username != f.viewer ||
				!strings.HasPrefix(note.Body, mark) {
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
