package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Merge compares the branches itself before it merges. GitHub always refuses a head that has
// moved. It only refuses a base that has moved if the branch's protection requires up-to-date
// branches. Without that rule, a push to the base between the two requests is not detected.
// Neither is a push while a merge is scheduled.
func (r *repo) Merge(
	ctx context.Context, number int, head git.Hash, o forge.MergeOptions,
) (state forge.MergeState, err error) {
	err = r.client.Run(ctx, func(ctx context.Context) error {
		for pause := time.Second; ; pause *= 2 {
			state, err = r.merge(ctx, number, head, o)
			if !errors.Is(err, errAllowed) || pause > maxAllowedPause {
				return err
			}
			if err := r.client.Wait(ctx, pause); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return "", fmt.Errorf("merging pull request %d: %w", number, err)
	}
	return state, nil
}

// maxAllowedPause is the longest wait after errAllowed; the first one is a second, and each
// later one twice as long.
const maxAllowedPause = 4 * time.Second

// errAllowed is that a refused pull request may be mergeable by now.
var errAllowed = errors.New("it changes from refused to allowed, and back")

func (r *repo) merge(ctx context.Context, number int, head git.Hash,
	o forge.MergeOptions) (forge.MergeState, error) {
	p, err := r.pull(ctx, number)
	if err != nil {
		return "", err
	}
	if err := p.stillAt(head); err != nil {
		return "", err
	}
	if p.MergedAt != nil {
		return forge.MergeDone, nil
	}
	if err := r.upToDate(ctx, p, head); err != nil {
		return "", err
	}
	methods, err := r.methods(ctx, o)
	if err != nil {
		return "", err
	}
	methods, err = r.mergeNow(ctx, p, head, methods, o)
	switch {
	case err == nil:
		return forge.MergeDone, nil
	case isRefusal(err, http.StatusConflict),
		isRefusal(err, http.StatusMethodNotAllowed, "branch was modified"):
		return "", fmt.Errorf("%w: %w", git.ErrLostRace, err)
	case !isRefusal(err, http.StatusMethodNotAllowed):
		return "", err
	case !o.WhenAllowed:
		return forge.MergeRefused, nil
	case p.AutoMerge != nil:
		return forge.MergeWaiting, nil
	}
	if isRefusal(err, http.StatusMethodNotAllowed, "merge queue") {
		if queued, err := r.enqueue(ctx, p, head); queued || err != nil {
			return forge.MergeWaiting, err
		}
		methods, o = []string{""}, forge.MergeOptions{} // the queue has its own settings
	}
	return r.mergeLater(ctx, p, head, methods, o)
}

// stillAt returns an error unless a pull request is open or merged, at a head.
func (p *pull) stillAt(head git.Hash) error {
	switch {
	case p.head() != head:
		return fmt.Errorf("%w: its head is %s, and not %s", git.ErrLostRace, git.Short(p.head()),
			git.Short(head))
	case p.MergedAt == nil && p.State != "open":
		return fmt.Errorf("%w: it is closed", git.ErrLostRace)
	}
	return nil
}

// upToDate returns an error unless the head contains the base.
func (r *repo) upToDate(ctx context.Context, p *pull, head git.Hash) error {
	var got struct {
		BehindBy *int `json:"behind_by"`
	}
	err := r.get(ctx, "compare/"+url.PathEscape(p.Base.Ref)+"..."+head.String(),
		values{"per_page": "1"}, &got)
	if err != nil {
		return err
	}
	if got.BehindBy == nil || *got.BehindBy != 0 {
		return fmt.Errorf("%w: the branch %s has moved", git.ErrLostRace, p.Base.Ref)
	}
	return nil
}

// methods returns the merge methods to try. A token that may not see which ones the
// repository allows tries them all.
func (r *repo) methods(ctx context.Context, o forge.MergeOptions) ([]string, error) {
	if o.Method != "" {
		return []string{o.Method}, nil
	}
	s, err := r.setup(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range []struct {
		name    string
		allowed *bool
	}{{"squash", s.Squash}, {"merge", s.Merge}, {"rebase", s.Rebase}} {
		if m.allowed == nil || *m.allowed {
			out = append(out, m.name)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the repository allows no way to merge")
	}
	return out, nil
}

// notAllowed is a part of the message about a method that the repository does not allow. Messages
// about rules that are not satisfied yet do not contain it.
const notAllowed = "not allowed on this repository"

// mergeNow merges with the first method that the repository allows. It returns that method and
// the methods after it.
func (r *repo) mergeNow(ctx context.Context, p *pull, head git.Hash, methods []string,
	o forge.MergeOptions) ([]string, error) {
	for {
		in := map[string]string{"sha": head.String(), "merge_method": methods[0]}
		if o.Title != "" {
			in["commit_title"] = o.Title
		}
		if o.Message != "" {
			in["commit_message"] = o.Message
		}
		err := r.send(ctx, server.Write, http.MethodPut, "pulls/"+strconv.Itoa(p.Number)+"/merge", in,
			nil)
		if len(methods) == 1 || !isRefusal(err, http.StatusMethodNotAllowed, notAllowed) {
			return methods, err
		}
		methods = methods[1:]
	}
}

const (
	autoMergeText = `mutation AutoMerge($id: ID!, $head: GitObjectID!, $method: PullRequestMergeMethod, $title: String, $message: String) {
  enablePullRequestAutoMerge(input: {pullRequestId: $id,
    expectedHeadOid: $head, mergeMethod: $method,
    commitHeadline: $title, commitBody: $message}) { clientMutationId }
}`
	enqueueText = `mutation Enqueue($id: ID!, $head: GitObjectID!) {
  enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) { clientMutationId }
}`
	waitsText = `query Waits($id: ID!) {
  node(id: $id) { ... on PullRequest { isInMergeQueue } }
}`
	cancelText = `mutation Cancel($id: ID!) {
  disablePullRequestAutoMerge(input: {pullRequestId: $id}) { clientMutationId }
}`
	dequeueText = `mutation Dequeue($id: ID!) {
  dequeuePullRequest(input: {id: $id}) { clientMutationId }
}`
)

// enqueue adds a pull request to the base's merge queue, which accepts only pull requests that
// are ready.
func (r *repo) enqueue(ctx context.Context, p *pull, head git.Hash) (bool, error) {
	err := r.client.graphQL(ctx, server.Idempotent, "Enqueue", enqueueText,
		map[string]any{"id": p.NodeID, "head": head.String()}, nil)
	if err == nil || isGraphQL(err, unprocessable, "already in", "already queued") {
		return true, nil
	} else if isGraphQL(err, unprocessable) {
		return false, nil
	}
	return false, err
}

// mergeLater lets GitHub merge once its rules allow it: by itself, or by the branch's merge
// queue.
func (r *repo) mergeLater(ctx context.Context, p *pull, head git.Hash, methods []string,
	o forge.MergeOptions) (forge.MergeState, error) {
	variables := map[string]any{"id": p.NodeID, "head": head.String()}
	for name, value := range (values{"method": strings.ToUpper(methods[0]), "title": o.Title,
		"message": o.Message}) {
		if value != "" {
			variables[name] = value
		}
	}
	err := r.client.graphQL(ctx, server.Idempotent, "AutoMerge", autoMergeText, variables, nil)
	switch {
	case err == nil:
		return forge.MergeWaiting, nil
	case len(methods) > 1 && isGraphQL(err, unprocessable, notAllowed):
		return r.mergeLater(ctx, p, head, methods[1:], o)
	case isGraphQL(err, unprocessable, "clean status", "unstable status"):
		return "", errAllowed
	case !isGraphQL(err, unprocessable):
		return "", err
	}
	// Only the message shows whether the reason is the head, or that auto-merge is disabled.
	now, err := r.pull(ctx, p.Number)
	if err != nil {
		return "", err
	}
	if err := now.stillAt(head); err != nil {
		return "", err
	}
	if now.MergedAt != nil {
		return forge.MergeDone, nil
	}
	return forge.MergeRefused, nil
}

// CancelMerge implements forge.Forge: it cancels a scheduled merge, and removes the pull
// request from a merge queue, which old servers do not have.
func (r *repo) CancelMerge(ctx context.Context, number int) error {
	err := r.client.Run(ctx, func(ctx context.Context) error {
		p, err := r.pull(ctx, number)
		if err != nil || p.State != "open" {
			return err
		}
		id := map[string]any{"id": p.NodeID}
		if p.AutoMerge != nil {
			err := r.client.graphQL(ctx, server.Idempotent, "Cancel", cancelText, id, nil)
			if err != nil && !isGraphQL(err, unprocessable) {
				return err
			}
		}
		var got struct {
			Node struct {
				Queued bool `json:"isInMergeQueue"`
			} `json:"node"`
		}
		err = r.client.graphQL(ctx, server.Read, "Waits", waitsText, id, &got)
		if errors.As(err, new(*graphQLError)) || err == nil && !got.Node.Queued {
			return nil
		}
		if err == nil {
			err = r.client.graphQL(ctx, server.Idempotent, "Dequeue", dequeueText, id, nil)
		}
		if isGraphQL(err, unprocessable) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("keeping pull request %d from being merged: %w", number, err)
	}
	return nil
}

// Reviews ignores comments, and takes a dismissal for the end of all earlier reviews of its
// reviewer, as GitHub's own rules do.
func (r *repo) Reviews(ctx context.Context, number int) (all *forge.Reviews, err error) {
	err = r.client.Run(ctx, func(ctx context.Context) error {
		all, err = r.reviews(ctx, number)
		return err
	})
	return all, err
}

func (r *repo) reviews(ctx context.Context, number int) (*forge.Reviews, error) {
	newest := map[string]forge.Review{}
	err := pages(ctx, r, "pulls/"+strconv.Itoa(number)+"/reviews", nil, func(page []struct {
		User  *user  `json:"user"`
		State string `json:"state"`
		// Association is the relation of the reviewer to the repository. Anybody may review a
		// public repository, but only reviews by its members count.
		Association string    `json:"author_association"`
		Commit      string    `json:"commit_id"`
		At          time.Time `json:"submitted_at"`
	}) bool {
		for _, review := range page { // oldest first
			by := review.User.name()
			if !slices.Contains([]string{"OWNER", "MEMBER", "COLLABORATOR"}, review.Association) {
				continue
			}
			switch review.State {
			case "APPROVED", "CHANGES_REQUESTED":
				if by != "" {
					newest[by] = forge.Review{By: by, Approved: review.State == "APPROVED",
						Commit: server.Hash(review.Commit), At: review.At}
				}
			case "DISMISSED":
				delete(newest, by)
			}
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("reading the reviews of pull request %d: %w", number, err)
	}
	required, err := r.required(ctx, number)
	if err != nil {
		return nil, fmt.Errorf("asking what pull request %d still requires: %w", number, err)
	}
	return &forge.Reviews{Reviews: forge.ByReviewer(newest), Required: required}, nil
}

// required returns GitHub's own decision. Without a rule that requires reviews, GitHub has no
// decision, and the result is Unknown.
func (r *repo) required(ctx context.Context, number int) (forge.Requirement, error) {
	var got struct {
		Repository struct {
			PullRequest struct {
				ReviewDecision string `json:"reviewDecision"`
			} `json:"pullRequest"`
		} `json:"repository"`
	}
	err := r.client.graphQL(ctx, server.Read, "ReviewDecision", `query ReviewDecision($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { reviewDecision } }
}`, map[string]any{"owner": r.owner, "name": r.name, "number": number}, &got)
	if err != nil && !isGraphQL(err, "FORBIDDEN") {
		return forge.Unknown, err
	}
	switch got.Repository.PullRequest.ReviewDecision {
	case "APPROVED":
		return forge.Satisfied, nil
	case "REVIEW_REQUIRED", "CHANGES_REQUESTED":
		return forge.Unsatisfied, nil
	}
	return forge.Unknown, nil
}
