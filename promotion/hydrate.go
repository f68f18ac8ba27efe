package promotion

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
)

// What GitOps Promoter reads of a hydrator: a file in the proposed branch and, where the
// output did not change, a note on its newest commit
// (https://gitops-promoter.readthedocs.io, Building a Custom Hydrator).
const (
	hydratorFile  = "hydrator.metadata"
	hydratorNotes = "refs/notes/hydrator.metadata"
	proposed      = "-next" // is what proposed branches end in
)

// hydratorMetadata says which commit a tree was made of.
type hydratorMetadata struct {
	DrySHA     string      `json:"drySha"`
	RepoURL    string      `json:"repoURL,omitempty"`
	Author     string      `json:"author,omitempty"`
	Date       time.Time   `json:"date"`
	Subject    string      `json:"subject,omitempty"`
	Body       string      `json:"body,omitempty"`
	References []reference `json:"references,omitempty"`
}

// reference is another commit that a tree was made of.
type reference struct {
	Commit referenced `json:"commit"`
}

type referenced struct {
	SHA     string `json:"sha"`
	RepoURL string `json:"repoURL,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// proposedOutput is the branch that proposes an environment's next tree. Where it is not
// there yet, it begins where the environment's own branch is.
func (pl *planner) proposedOutput(ctx context.Context, o *output) (*output, error) {
	branch := path.Join(o.branch+proposed, o.folder)
	tip := o.repository.refs[branchRef(branch)]
	if tip.IsZero() {
		tip = o.tip
	}
	return o.in(ctx, branch, tip)
}

// hydratorMetadata is what a tree is made of: the platform's head and, where the
// environment has its own files in another branch, the commit of these.
func (pl *planner) hydratorMetadata(st *stop) ([]byte, error) {
	objects := pl.state.platform.repository.remote.Objects()
	c, err := objects.Commit(pl.state.platform.head)
	if err != nil {
		return nil, err
	}
	subject, body, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	m := hydratorMetadata{
		DrySHA: pl.state.platform.head.String(), RepoURL: pl.state.platform.repository.url, Author: c.Author.Name + " <" + c.Author.Email + ">",
		Date: c.Author.When.UTC(), Subject: subject, Body: strings.TrimSpace(body),
	}
	if own := st.out.own.Commit; st.stage.Promotion.Source != nil && !own.IsZero() {
		other, err := objects.Commit(own)
		if err != nil {
			return nil, err
		}
		m.References = []reference{{referenced{SHA: own.String(), RepoURL: pl.state.platform.repository.url, Subject: firstLine(other.Message)}}}
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(m)
	return data.Bytes(), err
}

// hydrate makes the commit that proposes the platform's head for an environment. next is the
// environment in the branch that it is to be pushed to; nil where nothing is.
func (pl *planner) hydrate(ctx context.Context, st *stop) (out *Stop, next *stop, err error) {
	out = &Stop{Environment: st.stage.Name, Has: st.has()}
	switch {
	case st.out.repository == nil:
		out.State, out.Reason = Absent, st.out.absent
		return out, nil, nil
	case len(st.stage.Promotion.Rings) > 0:
		return nil, nil, errors.New("it has rings, which GitOps Promoter does not know: make them environments of their own, or promote with kalypso")
	}
	bases, err := pl.state.platform.bases.newest(1)
	if err != nil || len(bases) == 0 {
		return nil, nil, cmp.Or(err, errors.New("there is no commit yet"))
	}
	source := st.with(bases[0])
	orders, err := pl.judge.orders(ctx, st, source)
	if err != nil {
		return nil, nil, err
	}
	// What people ordered counts here as well.
	if gate.Overall(orders) != gate.Passed {
		out.State, out.Reason = Held, gate.Reason(orders)
		return out, nil, nil
	}
	at, err := pl.proposedOutput(ctx, st.out)
	if err != nil {
		return nil, nil, err
	}
	next = &stop{stage: st.stage, out: at}
	out.Branch = at.branch
	metadata, err := pl.hydratorMetadata(st)
	if err != nil {
		return nil, nil, err
	}
	step := &Step{Kind: Promote, Source: source}
	if err := pl.maker.prepare(ctx, next, step, change{title: fmt.Sprintf("Hydrate %s from %s", st.stage.Name, git.Short(pl.state.platform.head)), files: map[string][]byte{hydratorFile: metadata}}); err != nil {
		return nil, nil, err
	}
	out.Step = step
	switch {
	case step.Change.Errors > 0 && !st.stage.Promotion.AllowErrors:
		out.State, out.Reason = Blocked, count(step.Change.Errors, pl.state.platform.subject.Form().unit())+" with errors"
		return out, nil, nil
	case step.prepared.obstacle != "":
		out.State, out.Reason = Blocked, step.prepared.obstacle
		return out, nil, nil
	}
	out.State, out.Reason = Current, "nothing changes but the commit that it is made of, which a note says"
	return out, next, nil
}
