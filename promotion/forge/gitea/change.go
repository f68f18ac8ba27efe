package gitea

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// drafts are the prefixes of drafts by the default of WORK_IN_PROGRESS_PREFIXES
// (https://docs.gitea.com/administration/config-cheat-sheet).
var drafts = server.Drafts{Prefix: "WIP: ", Pattern: lazyregexp.New(`(?i)^\s*((wip:|\[wip\])\s*)+`)}

// FindChange implements forge.Forge.
func (f *Forge) FindChange(ctx context.Context, head, base string) (*forge.Change, error) {
	return server.Ask(ctx, f.server, func(ctx context.Context) (*forge.Change, error) {
		found, err := f.find(ctx, head, base)
		return change(found), err
	})
}

func (f *Forge) find(ctx context.Context, head, base string) (*gitea.PullRequest, error) {
	list, r, err := pages(func(o gitea.ListOptions) ([]*gitea.PullRequest, *gitea.Response, error) {
		return f.api(ctx).ListRepoPullRequests(f.owner, f.name,
			gitea.ListPullRequestsOptions{ListOptions: o, State: gitea.StateOpen})
	})
	if code(r) == http.StatusNotFound {
		if _, err := f.visible(ctx); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, f.fail("look for the pull request of "+head, r, err)
	}
	for _, pr := range list {
		if complete(pr) && pr.Head.RepoID == pr.Base.RepoID && pr.Head.Ref == head &&
			pr.Base.Ref == base && pr.State == gitea.StateOpen {
			return pr, nil
		}
	}
	return nil, nil
}

// complete reports whether a pull request has its branches.
func complete(pr *gitea.PullRequest) bool { return pr != nil && pr.Head != nil && pr.Base != nil }

// SaveChange implements forge.Forge. Reviewers who have reviewed are not requested again,
// nor is the author.
func (f *Forge) SaveChange(ctx context.Context, spec forge.ChangeSpec) (*forge.Change, error) {
	spec.Title = drafts.Title(spec.Title, spec.Draft)
	return server.Ask(ctx, f.server, func(ctx context.Context) (*forge.Change, error) {
		pr, err := f.find(ctx, spec.Head, spec.Base)
		if err == nil && pr == nil {
			pr, err = f.open(ctx, spec)
		}
		if err == nil {
			pr, err = f.update(ctx, pr, spec)
		}
		if err == nil {
			err = f.label(ctx, pr, spec.Labels)
		}
		if err == nil {
			err = f.request(ctx, pr, spec.Reviewers)
		}
		return change(pr), err
	})
}

// open opens a pull request, or finds the one that another process has opened, which lists
// may show later.
func (f *Forge) open(ctx context.Context, spec forge.ChangeSpec) (*gitea.PullRequest, error) {
	pr, r, err := f.api(ctx).CreatePullRequest(f.owner, f.name, gitea.CreatePullRequestOption{
		Head: spec.Head, Base: spec.Base, Title: spec.Title, Body: spec.Body,
	})
	if err == nil && complete(pr) {
		return pr, nil
	}
	doing := "open a pull request from " + spec.Head + " to " + spec.Base
	if c := code(r); err != nil && c != http.StatusConflict && c != http.StatusUnprocessableEntity {
		return nil, f.fail(doing, r, err)
	}
	opened, findErr := server.Appears(ctx, f.server,
		func() (*gitea.PullRequest, error) { return f.find(ctx, spec.Head, spec.Base) })
	if opened != nil || findErr != nil {
		return opened, findErr
	}
	if err == nil {
		err = errHidden
	}
	return nil, f.fail(doing, r, err)
}

// update writes the title and the body if they differ.
func (f *Forge) update(ctx context.Context, pr *gitea.PullRequest,
	spec forge.ChangeSpec) (*gitea.PullRequest, error) {
	if pr.Title == spec.Title && pr.Body == spec.Body {
		return pr, nil
	}
	updated, r, err := f.api(ctx).EditPullRequest(f.owner, f.name, pr.Index,
		gitea.EditPullRequestOption{Title: spec.Title, Body: &spec.Body})
	if err == nil && !complete(updated) {
		return pr, nil
	}
	return updated, f.fail(fmt.Sprintf("update the pull request #%d", pr.Index), r, err)
}

// label adds the missing labels of a pull request, and creates labels that the repository lacks.
func (f *Forge) label(ctx context.Context, pr *gitea.PullRequest, names []string) error {
	lacking := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(pr.Labels, func(l *gitea.Label) bool { return l.Name == name })
	})
	if len(lacking) == 0 {
		return nil
	}
	known, r, err := pages(func(o gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
		return f.api(ctx).ListRepoLabels(f.owner, f.name, gitea.ListLabelsOptions{ListOptions: o})
	})
	if err != nil {
		return f.fail("read the labels", r, err)
	}
	var ids []int64
	for _, name := range lacking {
		at := slices.IndexFunc(known, func(l *gitea.Label) bool { return l.Name == name })
		if at < 0 {
			made, r, err := f.api(ctx).CreateLabel(f.owner, f.name,
				gitea.CreateLabelOption{Name: name, Color: "#1d76db"})
			if err != nil {
				return f.fail("make the label "+name, r, err)
			}
			known, at = append(known, made), len(known)
		}
		ids = append(ids, known[at].ID)
	}
	labels, r, err := f.api(ctx).AddIssueLabels(f.owner, f.name, pr.Index,
		gitea.IssueLabelsOption{Labels: ids})
	if err == nil {
		pr.Labels = labels
	}
	return f.fail(fmt.Sprintf("label the pull request #%d", pr.Index), r, err)
}

// request requests the missing reviewers.
func (f *Forge) request(ctx context.Context, pr *gitea.PullRequest, reviewers []string) error {
	asked := map[string]bool{}
	for _, u := range pr.RequestedReviewers {
		asked[strings.ToLower(u.UserName)] = true
	}
	for _, t := range pr.RequestedReviewersTeams {
		asked["/"+strings.ToLower(t.Name)] = true
	}
	if pr.Poster != nil {
		asked[strings.ToLower(pr.Poster.UserName)] = true
	}
	lacking := func() (o gitea.PullReviewRequestOptions) {
		for _, name := range reviewers {
			if _, team, ok := strings.Cut(name, "/"); ok {
				if !asked["/"+strings.ToLower(team)] {
					o.TeamReviewers = append(o.TeamReviewers, team)
				}
			} else if !asked[strings.ToLower(name)] {
				o.Reviewers = append(o.Reviewers, name)
			}
		}
		return o
	}
	if o := lacking(); len(o.Reviewers)+len(o.TeamReviewers) == 0 {
		return nil
	}
	reviews, err := f.reviews(ctx, int(pr.Index))
	if err != nil {
		return err
	}
	for _, review := range reviews {
		if review.Reviewer != nil {
			asked[strings.ToLower(review.Reviewer.UserName)] = true
		}
		if review.ReviewerTeam != nil {
			asked["/"+strings.ToLower(review.ReviewerTeam.Name)] = true
		}
	}
	o := lacking()
	if len(o.Reviewers)+len(o.TeamReviewers) == 0 {
		return nil
	}
	r, err := f.api(ctx).CreateReviewRequests(f.owner, f.name, pr.Index, o)
	return f.fail(fmt.Sprintf("ask for reviews of the pull request #%d", pr.Index), r, err)
}

// CloseChange implements forge.Forge.
func (f *Forge) CloseChange(ctx context.Context, number int, comment string) error {
	return f.server.Do(ctx, func(ctx context.Context) error {
		pr, err := f.get(ctx, number)
		if err != nil || pr.State != gitea.StateOpen {
			return err
		}
		if comment != "" {
			if err := f.Comment(ctx, number, comment); err != nil {
				return err
			}
		}
		closed := gitea.StateClosed
		_, r, err := f.api(ctx).EditPullRequest(f.owner, f.name, int64(number),
			gitea.EditPullRequestOption{State: &closed})
		return f.fail(fmt.Sprintf("close the pull request #%d", number), r, err)
	})
}

func (f *Forge) get(ctx context.Context, number int) (*gitea.PullRequest, error) {
	pr, r, err := f.api(ctx).GetPullRequest(f.owner, f.name, int64(number))
	if err == nil && !complete(pr) {
		return nil, fmt.Errorf("read the pull request #%d: %s says neither where it comes from nor "+
			"where it goes", number, f.server.Host())
	}
	return pr, f.fail(fmt.Sprintf("read the pull request #%d", number), r, err)
}

// Comment implements forge.Forge.
func (f *Forge) Comment(ctx context.Context, number int, text string) error {
	return f.server.Do(ctx, func(ctx context.Context) error {
		// This list has no pages, and the newest is the last one.
		comments, r, err := f.api(ctx).ListIssueComments(f.owner, f.name, int64(number),
			gitea.ListIssueCommentOptions{})
		if err != nil {
			return f.fail(fmt.Sprintf("read the comments of the pull request #%d", number), r, err)
		}
		for _, c := range slices.Backward(comments) {
			if f.viewer == "" || c.Poster != nil && c.Poster.UserName == f.viewer {
				if strings.TrimSpace(c.Body) == strings.TrimSpace(text) {
					return nil
				}
				break
			}
		}
		_, r, err = f.api(ctx).CreateIssueComment(f.owner, f.name, int64(number),
			gitea.CreateIssueCommentOption{Body: text})
		return f.fail(fmt.Sprintf("comment on the pull request #%d", number), r, err)
	})
}

// change converts a pull request; nil for nil.
func change(pr *gitea.PullRequest) *forge.Change {
	if !complete(pr) {
		return nil
	}
	c := &forge.Change{
		Number: int(pr.Index), URL: pr.HTMLURL, Head: server.Hash(pr.Head.Sha), Base: pr.Base.Ref,
		Title: drafts.Strip(pr.Title), Body: pr.Body,
		// Old versions do not report it.
		Draft: pr.Draft || drafts.Pattern.MatchString(pr.Title), State: forge.ChangeOpen,
	}
	for _, l := range pr.Labels {
		c.Labels = append(c.Labels, l.Name)
	}
	if pr.Poster != nil {
		c.Author = pr.Poster.UserName
	}
	switch {
	case pr.HasMerged:
		c.State = forge.ChangeMerged
		if pr.MergedCommitID != nil {
			c.Merged = server.Hash(*pr.MergedCommitID)
		}
	case pr.State == gitea.StateClosed:
		c.State = forge.ChangeClosed
	}
	return c
}

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
		comments, r, err := f.api(ctx).ListIssueComments(f.owner, f.name, int64(number),
			gitea.ListIssueCommentOptions{})
		if err != nil {
			return f.fail(fmt.Sprintf("read the comments of the pull request #%d", number), r, err)
		}
		for _, c := range comments {
			if f.viewer != "" && (c.Poster == nil || c.Poster.UserName != f.viewer) ||
				!strings.HasPrefix(c.Body, mark) {
				continue
			}
			if strings.TrimSpace(c.Body) == strings.TrimSpace(text) {
				return nil
			}
			_, r, err := f.api(ctx).EditIssueComment(f.owner, f.name, c.ID,
				gitea.EditIssueCommentOption{Body: text})
			return f.fail(fmt.Sprintf("update the comment on the pull request #%d", number), r, err)
		}
		_, r, err = f.api(ctx).CreateIssueComment(f.owner, f.name, int64(number),
			gitea.CreateIssueCommentOption{Body: text})
		return f.fail(fmt.Sprintf("comment on the pull request #%d", number), r, err)
	})
}
