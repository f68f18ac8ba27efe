package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// Merge compares the branches itself before it merges: GitHub refuses a head that has
// moved, but a base that has moved only where the branch's protection requires up-to-date
// branches. Without that rule, a push to the base between the two requests is not detected,
// nor is one while a merge is scheduled.
func (r *repo) Merge(ctx context.Context, number int, head git.Hash, o forge.MergeOptions) (forge.MergeState, error) {
	for try := 1; ; try++ {
		state, err := r.merge(ctx, number, head, o)
		if again := errors.Is(err, errAllowed) || isLost(err); again && try < attempts {
			err = r.client.pause(ctx, backoff(try), err)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return "", fmt.Errorf("merging pull request %d: %w", number, err)
		}
		return state, nil
	}
}

// errAllowed is that a refused pull request may be mergeable by now.
var errAllowed = errors.New("it changes from refused to allowed, and back")

func (r *repo) merge(ctx context.Context, number int, head git.Hash, o forge.MergeOptions) (forge.MergeState, error) {
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
	case isRefusal(err, http.StatusConflict), isRefusal(err, http.StatusMethodNotAllowed, "branch was modified"):
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
		return fmt.Errorf("%w: its head is %s, and not %s", git.ErrLostRace, git.Short(p.head()), git.Short(head))
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
	err := r.get(ctx, "compare/"+url.PathEscape(p.Base.Ref)+"..."+head.String(), values{"per_page": "1"}, &got)
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

// notAllowed is in the message about a method that the repository does not allow, and not
// in those about rules that are not satisfied yet.
const notAllowed = "not allowed on this repository"

// mergeNow merges with the first method that the repository allows. It returns that one and
// those after it.
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
		err := r.send(ctx, write, http.MethodPut, "pulls/"+strconv.Itoa(p.Number)+"/merge", in, nil)
		if len(methods) == 1 || !isRefusal(err, http.StatusMethodNotAllowed, notAllowed) {
			return methods, err
		}
		methods = methods[1:]
	}
}

const (
	autoMergeText = `mutation AutoMerge($id: ID!, $head: GitObjectID!, $method: PullRequestMergeMethod, $title: String, $message: String) {
  enablePullRequestAutoMerge(input: {pullRequestId: $id, expectedHeadOid: $head, mergeMethod: $method,
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

// enqueue adds a pull request to the base's merge queue, which accepts only those that are
// ready.
func (r *repo) enqueue(ctx context.Context, p *pull, head git.Hash) (bool, error) {
	err := r.client.graphQL(ctx, again, "Enqueue", enqueueText, map[string]any{"id": p.NodeID, "head": head.String()}, nil)
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
	for name, value := range (values{"method": strings.ToUpper(methods[0]), "title": o.Title, "message": o.Message}) {
		if value != "" {
			variables[name] = value
		}
	}
	err := r.client.graphQL(ctx, again, "AutoMerge", autoMergeText, variables, nil)
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
	// Only the message tells whether the reason is the head, or that auto-merge is
	// disabled.
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
	p, err := r.pull(ctx, number)
	if err == nil && p.State == "open" {
		err = r.cancel(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("keeping pull request %d from being merged: %w", number, err)
	}
	return nil
}

func (r *repo) cancel(ctx context.Context, p *pull) error {
	id := map[string]any{"id": p.NodeID}
	if p.AutoMerge != nil {
		if err := r.client.graphQL(ctx, again, "Cancel", cancelText, id, nil); err != nil && !isGraphQL(err, unprocessable) {
			return err
		}
	}
	var got struct {
		Node struct {
			Queued bool `json:"isInMergeQueue"`
		} `json:"node"`
	}
	err := r.client.graphQL(ctx, read, "Waits", waitsText, id, &got)
	if errors.As(err, new(*graphQLError)) || err == nil && !got.Node.Queued {
		return nil
	}
	if err == nil {
		err = r.client.graphQL(ctx, again, "Dequeue", dequeueText, id, nil)
	}
	if isGraphQL(err, unprocessable) {
		return nil
	}
	return err
}
