package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
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
func (r *repo) FindChange(ctx context.Context, head, base string) (*forge.Change, error) {
	p, err := r.find(ctx, head, base)
	if p == nil || err != nil {
		return nil, err
	}
	return p.change(r), nil
}

// find returns the open pull request between two branches; nil for none.
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
	err := r.close(ctx, number, comment)
	if err != nil {
		return fmt.Errorf("closing pull request %d: %w", number, err)
	}
	return nil
}

func (r *repo) close(ctx context.Context, number int, comment string) error {
	p, err := r.pull(ctx, number)
	if err != nil || p.State != "open" {
		return err
	}
	if comment != "" {
		if err := r.Comment(ctx, number, comment); err != nil {
			return err
		}
	}
	return r.send(ctx, again, http.MethodPatch, "pulls/"+strconv.Itoa(number), map[string]string{"state": "closed"}, nil)
}

// Comment reads all comments to find the viewer's newest one: the API lists them oldest
// first only.
func (r *repo) Comment(ctx context.Context, number int, text string) error {
	path := "issues/" + strconv.Itoa(number) + "/comments"
	err := r.ensure(ctx,
		func() (bool, error) {
			viewer, err := r.Viewer(ctx)
			if viewer == "" || err != nil {
				return false, err
			}
			newest := ""
			err = pages(ctx, r, path, nil, func(page []struct {
				Body string `json:"body"`
				User *user  `json:"user"`
			}) bool {
				for _, c := range page {
					if c.User.name() == viewer {
						newest = c.Body
					}
				}
				return true
			})
			return err == nil && newest != "" && sameText(newest, text), err
		},
		func() error {
			return r.send(ctx, write, http.MethodPost, path, map[string]string{"body": text}, nil)
		})
	if err != nil {
		return fmt.Errorf("commenting on pull request %d: %w", number, err)
	}
	return nil
}
