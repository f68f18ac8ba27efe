package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// pull is a pull request of the REST API.
type pull struct {
	Number      int        `json:"number"`
	NodeID      string     `json:"node_id"`
	State       string     `json:"state"`
	Title       string     `json:"title"`
	Body        string     `json:"body"`
	Draft       bool       `json:"draft"`
	MergedAt    *time.Time `json:"merged_at"`
	MergeCommit string     `json:"merge_commit_sha"` // of a test merge before the merge
	Head        side       `json:"head"`
	Base        side       `json:"base"`
	User        *user      `json:"user"`
	Labels      []label    `json:"labels"`
	AutoMerge   *struct{}  `json:"auto_merge"`
	Reviewers   []user     `json:"requested_reviewers"`
	Teams       []team     `json:"requested_teams"`
}

// side is the head or the base of a pull request.
type side struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo *struct {
		ID int64 `json:"id"`
	} `json:"repo"` // nil for a deleted fork
}

type label struct {
	Name string `json:"name"`
}

type team struct {
	Slug string `json:"slug"`
}

func (p *pull) head() git.Hash { return server.Hash(p.Head.SHA) }

func (p *pull) change(r *repo) *forge.Change {
	out := &forge.Change{
		Number: p.Number, URL: r.Repository() + "/pull/" + strconv.Itoa(p.Number),
		Head: p.head(), Base: p.Base.Ref, Title: p.Title, Body: p.Body,
		Author: p.User.name(), Draft: p.Draft, State: forge.ChangeOpen,
	}
	for _, l := range p.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	switch {
	case p.MergedAt != nil:
		out.State, out.Merged = forge.ChangeMerged, server.Hash(p.MergeCommit)
	case p.State != "open":
		out.State = forge.ChangeClosed
	}
	return out
}

// FindChange lists the pull requests of the branch: GitHub's search would find them later.
func (r *repo) FindChange(ctx context.Context, head, base string) (found *forge.Change, err error) {
	err = r.client.Run(ctx, func(ctx context.Context) error {
		p, err := r.find(ctx, head, base)
		if p != nil {
			found = p.change(r)
		}
		return err
	})
	return found, err
}

// find returns the open pull request between two branches. It returns nil if there is no such
// request.
func (r *repo) find(ctx context.Context, head, base string) (*pull, error) {
	var found *pull
	err := pages(ctx, r, "pulls", values{"head": r.owner + ":" + head, "base": base, "state": "open"},
		func(page []pull) bool {
			// GitHub ignores unknown filters.
			i := slices.IndexFunc(page, func(p pull) bool {
				return p.Head.Ref == head && p.Base.Ref == base && p.State == "open" &&
					p.Head.Repo != nil && p.Base.Repo != nil && p.Head.Repo.ID == p.Base.Repo.ID
			})
			if i >= 0 {
				found = &page[i]
			}
			return found == nil
		})
	if err == nil && found != nil {
		err = found.check()
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the pull request from %s to %s: %w", head, base, err)
	}
	return found, nil
}

// pull reads one pull request.
func (r *repo) pull(ctx context.Context, number int) (*pull, error) {
	p := &pull{}
	if err := r.get(ctx, "pulls/"+strconv.Itoa(number), nil, p); err != nil {
		return nil, err
	}
	if p.Number != number {
		return nil, errNoPull
	}
	return p, p.check()
}

var errNoPull = errors.New("GitHub answers with something that is no such pull request")

// check returns an error for an answer without the required fields of a pull request.
func (p *pull) check() error {
	if p.Number <= 0 || p.NodeID == "" || p.Base.Ref == "" || p.head().IsZero() || p.State != "open" &&
		p.State != "closed" {
		return errNoPull
	}
	return nil
}

// CloseChange comments before it closes, so that no pull request is closed without its
// reason.
func (r *repo) CloseChange(ctx context.Context, number int, comment string) error {
	err := r.client.Run(ctx, func(ctx context.Context) error {
		p, err := r.pull(ctx, number)
		if err != nil || p.State != "open" {
			return err
		}
		if comment != "" {
			if err := r.Comment(ctx, number, comment); err != nil {
				return err
			}
		}
		return r.send(ctx, server.Idempotent, http.MethodPatch, "pulls/"+strconv.Itoa(number),
			map[string]string{"state": "closed"}, nil)
	})
	if err != nil {
		return fmt.Errorf("closing pull request %d: %w", number, err)
	}
	return nil
}

// comment is a comment of the REST API.
type comment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User *user  `json:"user"`
}

// Comment adds a comment unless it is the viewer's newest one. It reads all comments to find
// that one: the API lists them oldest first only.
func (r *repo) Comment(ctx context.Context, number int, text string) error {
	return r.comment(ctx, number, text,
		func(
			ctx context.Context, path, viewer string,
		) (*comment, error) {
			var newest *comment
			err := pages(ctx, r, path, nil, func(page []comment) bool {
				for i := range page {
					if c := &page[i]; viewer != "" && c.User.name() == viewer {
						newest = c
					}
				}
				return viewer != ""
			})
			if newest == nil || !sameText(newest.Body, text) {
				return nil, err
			}
			return newest, err
		})
}

// SaveComment implements forge.Commenter. The comment is the viewer's first one with the mark.
// With the token of a job, GitHub does not return the viewer. Then only the mark identifies the
// comment.
func (r *repo) SaveComment(ctx context.Context, number int, mark, text string) error {
	return r.comment(ctx, number, text, func(
		ctx context.Context, path, viewer string,
	) (*comment, error) {
		var own *comment
		err := pages(ctx, r, path, nil, func(page []comment) bool {
			i := slices.IndexFunc(page, func(c comment) bool {
				return (viewer == "" || c.User.name() == viewer) && strings.HasPrefix(c.Body, mark)
			})
			if i >= 0 {
				own = &page[i]
			}
			return own == nil
		})
		return own, err
	})
}

// comment writes the text of the comment that find returns. If find returns nil, it writes a new
// comment. find gets the path of all comments and the viewer.
func (r *repo) comment(ctx context.Context, number int, text string,
	find func(ctx context.Context, path, viewer string) (*comment, error)) error {
	path := "issues/" + strconv.Itoa(number) + "/comments"
	body := map[string]string{"body": text}
	err := r.client.Run(ctx, func(ctx context.Context) error {
		viewer, err := r.Viewer(ctx)
		if err != nil {
			return err
		}
		switch old, err := find(ctx, path, viewer); {
		case err != nil:
			return err
		case old == nil:
			return r.send(ctx, server.Write, http.MethodPost, path, body, nil)
		case sameText(old.Body, text):
			return nil
		default:
			return r.send(ctx, server.Idempotent, http.MethodPatch,
				"issues/comments/"+strconv.FormatInt(old.ID, 10), body, nil)
		}
	})
	if err != nil {
		return fmt.Errorf("commenting on pull request %d: %w", number, err)
	}
	return nil
}

// SaveChange requests a reviewer once: one who has reviewed, or was removed, is not
// requested again.
func (r *repo) SaveChange(ctx context.Context, spec forge.ChangeSpec) (saved *forge.Change,
	err error) {
	err = r.client.Run(ctx, func(ctx context.Context) error {
		p, err := r.open(ctx, spec)
		if err != nil {
			return err
		}
		for _, step := range []func(context.Context, *pull, forge.ChangeSpec) error{r.edit, r.setDraft,
			r.label, r.askReviewers} {
			if err := step(ctx, p, spec); err != nil {
				return fmt.Errorf("updating pull request %d: %w", p.Number, err)
			}
		}
		saved = p.change(r)
		return nil
	})
	return saved, err
}

// open returns the open pull request. If there is no such request, it opens one. Another process
// may open it at the same time, and the list that has it then may be outdated for a moment.
func (r *repo) open(ctx context.Context, spec forge.ChangeSpec) (*pull, error) {
	find := func() (*pull, error) { return r.find(ctx, spec.Head, spec.Base) }
	p, err := find()
	if p != nil || err != nil {
		return p, err
	}
	p = &pull{}
	err = r.send(ctx, server.Write, http.MethodPost, "pulls", map[string]any{
		"head": spec.Head, "base": spec.Base, "title": spec.Title, "body": spec.Body,
		"draft": spec.Draft, "maintainer_can_modify": false,
	}, p)
	switch {
	case err == nil:
		err = p.check()
	case isRefusal(err, http.StatusUnprocessableEntity, "draft pull requests are not supported"):
		err = fmt.Errorf("%w: %w", forge.ErrUnsupported, err)
	case isRefusal(err, http.StatusUnprocessableEntity, "already exists"):
		if other, findErr := server.Appears(ctx, r.client.Server, find); other != nil || findErr != nil {
			return other, findErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the pull request from %s to %s: %w", spec.Head, spec.Base, err)
	}
	return p, nil
}

// edit updates title and body.
func (r *repo) edit(ctx context.Context, p *pull, spec forge.ChangeSpec) error {
	changes := map[string]string{}
	if !sameText(p.Title, spec.Title) {
		changes["title"] = spec.Title
	}
	if !sameText(p.Body, spec.Body) {
		changes["body"] = spec.Body
	}
	if len(changes) == 0 {
		return nil
	}
	if err := r.send(ctx, server.Idempotent, http.MethodPatch, "pulls/"+strconv.Itoa(p.Number),
		changes, nil); err != nil {
		return err
	}
	p.Title, p.Body = spec.Title, spec.Body
	return nil
}

// setDraft uses GraphQL: REST has no call for it.
func (r *repo) setDraft(ctx context.Context, p *pull, spec forge.ChangeSpec) error {
	if p.Draft == spec.Draft {
		return nil
	}
	operation, text := "MarkReady",
		`mutation MarkReady($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }`
	if spec.Draft {
		operation, text = "ConvertToDraft",
			`mutation ConvertToDraft($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) { clientMutationId } }`
	}
	if err := r.client.graphQL(ctx, server.Idempotent, operation, text, map[string]any{"id": p.NodeID},
		nil); err != nil {
		return err
	}
	p.Draft = spec.Draft
	return nil
}

// label adds the missing labels. Labels that the repository lacks are created only after
// adding them has failed, so that a token without that permission can use existing ones.
func (r *repo) label(ctx context.Context, p *pull, spec forge.ChangeSpec) error {
	missing := lacking(spec.Labels, p.Labels, func(l label) string { return l.Name })
	if len(missing) == 0 {
		return nil
	}
	path := "issues/" + strconv.Itoa(p.Number) + "/labels"
	in := map[string][]string{"labels": missing}
	err := r.send(ctx, server.Idempotent, http.MethodPost, path, in, &p.Labels)
	if !isRefusal(err, http.StatusUnprocessableEntity) && !isRefusal(err, http.StatusNotFound) {
		return err
	}
	for _, name := range missing {
		err := r.send(ctx, server.Idempotent, http.MethodPost, "labels",
			map[string]string{"name": name, "color": "ededed"}, nil)
		if err != nil && !isRefusal(err, http.StatusUnprocessableEntity, "already exists") {
			return err
		}
	}
	return r.send(ctx, server.Idempotent, http.MethodPost, path, in, &p.Labels)
}

// lacking returns the names that a list does not have, ignoring case, each once.
func lacking[T any](names []string, has []T, name func(T) string) []string {
	var out []string
	for _, wanted := range names {
		is := func(s string) bool { return strings.EqualFold(s, wanted) }
		if !slices.ContainsFunc(has, func(t T) bool { return is(name(t)) }) &&
			!slices.ContainsFunc(out, is) {
			out = append(out, wanted)
		}
	}
	return out
}

// askReviewers requests the reviews that were never requested. A review removes its
// reviewer from the list of requests, and another request would withdraw the review.
func (r *repo) askReviewers(ctx context.Context, p *pull, spec forge.ChangeSpec) error {
	asked := []string{p.User.name()} // authors cannot review
	for _, u := range p.Reviewers {
		asked = append(asked, u.Login)
	}
	for _, t := range p.Teams {
		asked = append(asked, r.owner+"/"+t.Slug)
	}
	itself := func(s string) string { return s }
	if len(lacking(spec.Reviewers, asked, itself)) == 0 {
		return nil
	}
	before, err := r.askedBefore(ctx, p.Number)
	if err != nil {
		return err
	}
	missing := lacking(spec.Reviewers, append(asked, before...), itself)
	if len(missing) == 0 {
		return nil
	}
	users, teams := []string{}, []string{}
	for _, name := range missing {
		organization, slug, isTeam := strings.Cut(name, "/")
		switch {
		case !isTeam:
			users = append(users, name)
		case strings.EqualFold(organization, r.owner):
			teams = append(teams, slug)
		default:
			return fmt.Errorf("the team %s cannot review for %s: it is of another organization", name,
				r.owner)
		}
	}
	return r.send(ctx, server.Idempotent, http.MethodPost,
		"pulls/"+strconv.Itoa(p.Number)+"/requested_reviewers",
		map[string][]string{"reviewers": users, "team_reviewers": teams}, nil)
}

// askedBefore returns all whose review was ever requested, teams as ORGANISATION/TEAM.
func (r *repo) askedBefore(ctx context.Context, number int) ([]string, error) {
	var out []string
	err := pages(ctx, r, "issues/"+strconv.Itoa(number)+"/events", nil, func(page []struct {
		Event    string `json:"event"`
		Reviewer *user  `json:"requested_reviewer"`
		Team     *team  `json:"requested_team"`
	}) bool {
		for _, e := range page {
			switch {
			case e.Event != "review_requested":
			case e.Reviewer != nil:
				out = append(out, e.Reviewer.Login)
			case e.Team != nil:
				out = append(out, r.owner+"/"+e.Team.Slug)
			}
		}
		return true
	})
	return out, err
}

var _ forge.Commenter = (*repo)(nil)

// ChangeOf implements forge.Commenter.
func (r *repo) ChangeOf(ctx context.Context, commit git.Hash, base string) (found *forge.Change,
	err error) {
	err = r.client.Run(ctx, func(ctx context.Context) error {
		return pages(ctx, r, "commits/"+commit.String()+"/pulls", nil, func(page []pull) bool {
			for i := range page {
				if p := &page[i]; p.MergedAt != nil && p.Base.Ref == base && p.check() == nil {
					found = p.change(r)
				}
			}
			return found == nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the pull request of %s: %w", commit, err)
	}
	return found, nil
}
