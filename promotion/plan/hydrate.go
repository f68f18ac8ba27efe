package plan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Files that GitOps Promoter reads from a hydrator: a file in the proposed branch and, if the
// output did not change, a note on its newest commit. See https://gitops-promoter.readthedocs.io,
// Building a Custom Hydrator.
const (
	hydratorFile = "hydrator.metadata"
	proposed     = "-next" // is the end of the names of proposed branches
)

// hydratorMetadata names the commits that a tree was compiled from.
type hydratorMetadata struct {
	DrySHA     string      `json:"drySha"`
	RepoURL    string      `json:"repoURL,omitempty"`
	Author     string      `json:"author,omitempty"`
	Date       time.Time   `json:"date"`
	Subject    string      `json:"subject,omitempty"`
	Body       string      `json:"body,omitempty"`
	References []reference `json:"references,omitempty"`
}

// reference is one more commit that a tree was compiled from.
type reference struct {
	Commit commitReference `json:"commit"`
}

type commitReference struct {
	SHA     string `json:"sha"`
	RepoURL string `json:"repoURL,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// proposedEnvironment returns an environment in the branch that proposes its next tree. If
// that branch does not exist, it begins at the environment's own branch.
func (pl *Planner) proposedEnvironment(ctx context.Context,
	env *session.Environment) (*session.Environment, error) {
	branch := path.Join(env.Branch+proposed, env.Folder)
	tip := env.Repository.Refs[session.BranchRef(branch)]
	if tip.IsZero() {
		tip = env.Tip
	}
	return env.In(ctx, branch, tip)
}

// hydratorMetadata returns the metadata of a tree: the platform's head and, if the environment's
// own files are in another branch, their commit.
func (pl *Planner) hydratorMetadata(st *session.Stage) ([]byte, error) {
	objects := pl.state.Platform.Repository.Remote.Objects()
	c, err := objects.Commit(pl.state.Platform.Head)
	if err != nil {
		return nil, err
	}
	subject, body, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	m := hydratorMetadata{
		DrySHA: pl.state.Platform.Head.String(), RepoURL: pl.state.Platform.Repository.URL,
		Author: c.Author.Name + " <" + c.Author.Email + ">",
		Date:   c.Author.When.UTC(), Subject: subject, Body: strings.TrimSpace(body),
	}
	if own := st.Environment.Own.Commit; st.Policy.Promotion.Source != nil && !own.IsZero() {
		other, err := objects.Commit(own)
		if err != nil {
			return nil, err
		}
		m.References = []reference{{commitReference{SHA: own.String(),
			RepoURL: pl.state.Platform.Repository.URL, Subject: message.FirstLine(other.Message)}}}
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(m)
	return data.Bytes(), err
}

// Hydrate compiles the platform's head for an environment, and makes the commit that proposes it.
// next is the environment in the branch that the commit is for; nil if there is nothing to push.
func (pl *Planner) Hydrate(ctx context.Context, st *session.Stage) (out *StageStatus,
	next *session.Stage, err error) {
	out = &StageStatus{Environment: st.Policy.Name, Has: st.Has()}
	switch {
	case st.Environment.Repository == nil:
		out.State, out.Reason = Absent, st.Environment.Absent
		return out, nil, nil
	case len(st.Policy.Promotion.Rings) > 0:
		return nil, nil, errors.New("it has rings, which GitOps Promoter does not know: make them " +
			"environments of their own, or promote with kalypso")
	}
	bases, err := pl.state.Platform.Bases.Newest(1)
	if err != nil || len(bases) == 0 {
		return nil, nil, cmp.Or(err, errors.New("there is no commit yet"))
	}
	source := st.SourceWith(bases[0])
	orders, err := pl.judge.orders(ctx, st, source)
	if err != nil {
		return nil, nil, err
	}
	// People's orders count here as well.
	if gate.Overall(orders) != gate.Passed {
		out.State, out.Reason = Held, gate.Reason(orders)
		return out, nil, nil
	}
	at, err := pl.proposedEnvironment(ctx, st.Environment)
	if err != nil {
		return nil, nil, err
	}
	next = &session.Stage{Policy: st.Policy, Environment: at}
	out.Branch = at.Branch
	metadata, err := pl.hydratorMetadata(st)
	if err != nil {
		return nil, nil, err
	}
	step := &Step{Kind: Promote, Source: source}
	if err := pl.maker.prepare(ctx, next, step, extra{title: fmt.Sprintf("Hydrate %s from %s",
		st.Policy.Name, git.Short(pl.state.Platform.Head)),
		files: map[string][]byte{hydratorFile: metadata}}); err != nil {
		return nil, nil, err
	}
	out.Step = step
	switch {
	case step.Change.Errors > 0 && !st.Policy.Promotion.AllowErrors:
		out.State, out.Reason = Blocked,
			message.Count(step.Change.Errors, pl.state.Platform.Subject.Form().Unit())+" with errors"
		return out, nil, nil
	case step.Prepared.obstacle != "":
		out.State, out.Reason = Blocked, step.Prepared.obstacle
		return out, nil, nil
	}
	out.State, out.Reason = Current,
		"nothing changes but the commit that it is made of, which a note says"
	return out, next, nil
}
