package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/promotion/forge"
)

// SaveChange requests a reviewer once: one who has reviewed, or was removed, is not
// requested again.
func (r *repo) SaveChange(ctx context.Context, spec forge.ChangeSpec) (*forge.Change, error) {
	p, err := r.open(ctx, spec)
	if err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context, *pull, forge.ChangeSpec) error{r.edit, r.setDraft,
		r.label, r.askReviewers} {
		if err := step(ctx, p, spec); err != nil {
			return nil, fmt.Errorf("updating pull request %d: %w", p.Number, err)
		}
	}
	return p.change(r), nil
}

// open returns the open pull request, a new one where there is none. Another process may
// open it at the same time, or the answer may be lost; and the list that has it then may be
// outdated for a moment.
func (r *repo) open(ctx context.Context, spec forge.ChangeSpec) (*pull, error) {
	for try := 1; ; try++ {
		p, err := r.find(ctx, spec.Head, spec.Base)
		if p != nil || err != nil {
			return p, err
		}
		p = &pull{}
		err = r.send(ctx, write, http.MethodPost, "pulls", map[string]any{
			"head": spec.Head, "base": spec.Base, "title": spec.Title, "body": spec.Body,
			"draft": spec.Draft, "maintainer_can_modify": false,
		}, p)
		switch {
		case err == nil:
			err = p.check()
			return p, openError(spec, err)
		case isRefusal(err, http.StatusUnprocessableEntity, "draft pull requests are not supported"):
			return nil, openError(spec, fmt.Errorf("%w: %w", forge.ErrUnsupported, err))
		case try == attempts || !isLost(err) && !isRefusal(err, http.StatusUnprocessableEntity, "already exists"):
			return nil, openError(spec, err)
		}
		if err := r.client.pause(ctx, backoff(try), err); err != nil {
			return nil, err
		}
	}
}

// openError adds the operation to an error; nil for none.
func openError(spec forge.ChangeSpec, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("opening the pull request from %s to %s: %w", spec.Head, spec.Base, err)
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
	if err := r.send(ctx, again, http.MethodPatch, "pulls/"+strconv.Itoa(p.Number), changes, nil); err != nil {
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
	if err := r.client.graphQL(ctx, again, operation, text, map[string]any{"id": p.NodeID}, nil); err != nil {
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
	err := r.send(ctx, again, http.MethodPost, path, in, &p.Labels)
	if !isRefusal(err, http.StatusUnprocessableEntity) && !isRefusal(err, http.StatusNotFound) {
		return err
	}
	for _, name := range missing {
		err := r.send(ctx, again, http.MethodPost, "labels", map[string]string{"name": name, "color": "ededed"}, nil)
		if err != nil && !isRefusal(err, http.StatusUnprocessableEntity, "already exists") {
			return err
		}
	}
	return r.send(ctx, again, http.MethodPost, path, in, &p.Labels)
}

// lacking returns the names that a list does not have, ignoring case, each once.
func lacking[T any](names []string, has []T, name func(T) string) []string {
	var out []string
	for _, wanted := range names {
		is := func(s string) bool { return strings.EqualFold(s, wanted) }
		if !slices.ContainsFunc(has, func(t T) bool { return is(name(t)) }) && !slices.ContainsFunc(out, is) {
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
			return fmt.Errorf("the team %s cannot review for %s: it is of another organization", name, r.owner)
		}
	}
	return r.send(ctx, again, http.MethodPost, "pulls/"+strconv.Itoa(p.Number)+"/requested_reviewers",
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
