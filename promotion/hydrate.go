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
	"github.com/kalypso-io/kalypso/internal/git/remote"
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

// Hydrate compiles the platform's head for the environments that were asked for, and
// pushes it to the branches that GitOps Promoter takes proposals from: <branch>-next or,
// where several environments share a branch, <branch>-next/<path>. Promoter decides what
// goes on: no gates are asked. Where nothing but the record changes, only a note says
// which commit it is made of.
func (s *Session) Hydrate(ctx context.Context) ([]*Stop, error) {
	var out []*Stop
	var errs []error
	for _, o := range s.askedOutputs() {
		stop, err := s.hydrate(ctx, &stop{stage: o.stage, out: o})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.stage.Name, err))
			continue
		}
		out = append(out, stop)
	}
	return out, errors.Join(errs...)
}

func (s *Session) hydrate(ctx context.Context, st *stop) (*Stop, error) {
	out := &Stop{Environment: st.stage.Name, Has: st.has()}
	switch {
	case st.out.repository == nil:
		out.State, out.Reason = Absent, st.out.absent
		return out, nil
	case len(st.stage.Promotion.Rings) > 0:
		return nil, errors.New("it has rings, which GitOps Promoter does not know: make them environments of their own, or promote with kalypso")
	}
	bases, err := s.platform.bases.newest(1)
	if err != nil || len(bases) == 0 {
		return nil, cmp.Or(err, errors.New("there is no commit yet"))
	}
	source := st.with(bases[0])
	facts, err := s.commitFacts(ctx, st, source)
	if err != nil {
		return nil, err
	}
	// What people ordered counts here as well.
	if orders := st.ordered(facts); gate.Overall(orders) != gate.Passed {
		out.State, out.Reason = Held, reasonOf(orders)
		return out, nil
	}
	next, err := s.proposedOutput(ctx, st.out)
	if err != nil {
		return nil, err
	}
	at := &stop{stage: st.stage, out: next}
	out.Branch = next.branch
	metadata, err := s.hydratorMetadata(st)
	if err != nil {
		return nil, err
	}
	step := &Step{Kind: Promote, Source: source}
	if err := s.prepare(ctx, at, step, change{title: fmt.Sprintf("Hydrate %s from %s", st.stage.Name, git.Short(s.platform.head)), files: map[string][]byte{hydratorFile: metadata}}); err != nil {
		return nil, err
	}
	out.Step = step
	switch {
	case step.Change.Errors > 0 && !st.stage.Promotion.AllowErrors:
		out.State, out.Reason = Blocked, count(step.Change.Errors, s.subject.Form().unit())+" with errors"
		return out, nil
	case step.prepared.obstacle != "":
		out.State, out.Reason = Blocked, step.prepared.obstacle
		return out, nil
	}
	tip := next.tip
	out.State, out.Reason = Current, "nothing changes but the commit that it is made of, which a note says"
	if !step.NoOp && !step.prepared.commit.IsZero() {
		update := remote.Update{Ref: branchRef(next.branch), Old: next.repository.refs[branchRef(next.branch)], New: step.prepared.commit}
		if err := next.repository.remote.Push(ctx, []remote.Update{update}, step.prepared.packs, false); err != nil {
			err = s.explainPush(at, err)
			if refused := (*RefusedError)(nil); errors.As(err, &refused) {
				return s.refused(at, out, refused), nil
			}
			return nil, err
		}
		tip = step.prepared.commit
		out.State, out.Reason = Proposed, "branch "+next.branch+" proposes "+step.Source.Describe()
	}
	notes, err := s.plainForge(next.repository)
	if err != nil {
		return nil, err
	}
	out.Tip = tip.String()
	return out, notes.Annotate(ctx, hydratorNotes, tip, fmt.Sprintf(`{"drySha":%q}`, s.platform.head))
}

// proposedOutput is the branch that proposes an environment's next tree. Where it is not
// there yet, it begins where the environment's own branch is.
func (s *Session) proposedOutput(ctx context.Context, o *output) (*output, error) {
	next := &output{stage: o.stage, repository: o.repository, folder: o.folder, own: o.own, orders: o.orders, branch: o.branch + proposed}
	if o.folder != "" {
		next.branch = path.Join(next.branch, o.folder)
	}
	next.tip = o.repository.refs[branchRef(next.branch)]
	if next.tip.IsZero() {
		next.tip = o.tip
	}
	next.history = &history{out: next}
	return next, next.look(ctx)
}

// hydratorMetadata is what a tree is made of: the platform's head and, where the
// environment has its own files in another branch, the commit of these.
func (s *Session) hydratorMetadata(st *stop) ([]byte, error) {
	objects := s.platform.repository.remote.Objects()
	c, err := objects.Commit(s.platform.head)
	if err != nil {
		return nil, err
	}
	subject, body, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	m := hydratorMetadata{
		DrySHA: s.platform.head.String(), RepoURL: s.platform.repository.url, Author: c.Author.Name + " <" + c.Author.Email + ">",
		Date: c.Author.When.UTC(), Subject: subject, Body: strings.TrimSpace(body),
	}
	if own := st.out.own.Commit; st.stage.Promotion.Source != nil && !own.IsZero() {
		other, err := objects.Commit(own)
		if err != nil {
			return nil, err
		}
		m.References = []reference{{referenced{SHA: own.String(), RepoURL: s.platform.repository.url, Subject: firstLine(other.Message)}}}
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(m)
	return data.Bytes(), err
}
