package plan

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/observe"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/verify"
)

// judge gathers the facts for gates, and evaluates them.
type judge struct {
	state    *session.State
	records  *verify.Records
	observer *observe.Observer
	maker    *maker
	same     map[refusal]bool       // candidates that were compiled to find out whether they inherit
	differ   map[*session.Stage]int // the number of them that do not
}

// ordersAgainst returns the verdicts of orders and of the history, which apply without a policy.
func ordersAgainst(st *session.Stage, facts gate.CommitFacts) []gate.Verdict {
	return gate.Commit(gate.Policy{Environment: st.Policy.Name, Ring: st.RingName()}, facts,
		gate.Skip{})
}

// commitFacts gathers the facts about a base commit for the gates of a stage.
func (j *judge) commitFacts(ctx context.Context, st *session.Stage,
	of tree.Source) (gate.CommitFacts, error) {
	commit := of.Base.Hash()
	hold, err := j.holdFacts(ctx, st)
	if err != nil {
		return gate.CommitFacts{}, err
	}
	facts := gate.CommitFacts{
		Now: j.state.Now, Commit: commit,
		EnvironmentOnly: st.Has().Base == of.Base && st.Has() != (tree.Source{}),
		Hold:            hold,
		Freeze:          freezeOf(st.Environment.Orders.Frozen),
		Rejected:        freezeOf(st.Environment.Orders.Rejected[commit]),
		Aborted:         freezeOf(st.Aborted(commit)),
	}
	if rejected := st.Environment.Orders.Rejected; len(rejected) > 0 {
		brings, err := j.state.Brings(st, commit)
		if err != nil {
			return facts, err
		}
		for _, c := range brings {
			if o := rejected[c.Commit]; o != nil && c.Commit != commit {
				facts.Contains = append(facts.Contains, gate.Rejection{Commit: c.Commit, Freeze: *freezeOf(o)})
			}
		}
	}
	_, reachable, err := j.state.Platform.Bases.Until(commit)
	if err != nil {
		return facts, err
	}
	facts.Reachable = reachable
	seen := map[*session.Stage]bool{}
	for _, other := range j.state.UpstreamAndSoaking(st) {
		within := other.Policy == st.Policy
		if seen[other] || facts.EnvironmentOnly && !within { // own files were never there
			continue
		}
		seen[other] = true
		stay, err := j.observer.Stay(ctx, other, of, within && (facts.EnvironmentOnly || st.TakesPairs()))
		if err != nil {
			return facts, fmt.Errorf("%s: %w", other.ID(), err)
		}
		facts.Stays = append(facts.Stays, stay)
	}
	facts.Statuses,
		err = j.state.Platform.Repository.StatusesOf(ctx, j.state.Statuses(st.Environment), commit)
	facts.StatusesKnown = err == nil
	return facts, err
}

// holdFacts returns the hold of a stage, unless its time is over, or nil.
func (j *judge) holdFacts(ctx context.Context, st *session.Stage) (*gate.Freeze, error) {
	hold, since, err := j.records.Held(ctx, st)
	if err == nil && hold == nil && st.Environment.Repository != nil && st.Environment.Record == nil {
		move, failed := j.state.Moved(ctx, st) // it is held in its old place
		if err = failed; move != nil && move.Former != nil && move.Gone == "" {
			hold = move.Former.Hold(st.RingName())
		}
	}
	if err != nil || hold == nil {
		return nil, err
	}
	until, _ := time.Parse(time.RFC3339, hold.Until)
	if !until.IsZero() && !j.state.Now.Before(until) {
		return nil, nil
	}
	return &gate.Freeze{Reason: hold.Reason, By: hold.By, At: since, Until: until}, nil
}

// freezeOf returns an order in the form for gates, or nil.
func freezeOf(o *ledger.Order) *gate.Freeze {
	if o == nil {
		return nil
	}
	return &gate.Freeze{Reason: o.Reason, By: o.By, At: o.At, Until: o.Until}
}

// orders returns the verdicts of orders and of the history about commits in a stage.
func (j *judge) orders(ctx context.Context, st *session.Stage, of tree.Source) ([]gate.Verdict,
	error) {
	facts, err := j.commitFacts(ctx, st, of)
	if err != nil {
		return nil, err
	}
	return ordersAgainst(st, facts), nil
}

// change evaluates the gates of a prepared change, and replaces their earlier verdicts.
func (j *judge) change(ctx context.Context, st *session.Stage, step *Step, skip gate.Skip) error {
	facts, err := j.changeFacts(ctx, st, step)
	if err != nil {
		return err
	}
	ofCommit := slices.DeleteFunc(slices.Clone(step.Verdicts),
		func(v gate.Verdict) bool { return v.Kind().OfChange() })
	step.Verdicts = append(ofCommit, gate.Planned(ctx, policyOf(st, step), *facts, skip)...)
	return nil
}

// changeFacts gathers the facts about a planned change for gates.
func (j *judge) changeFacts(ctx context.Context, st *session.Stage, step *Step) (*gate.ChangeFacts,
	error) {
	facts := &gate.ChangeFacts{
		Now: j.state.Now, Change: step.Change, Head: step.Prepared.Commit, Post: post,
		Satisfies: j.state.Platform.Subject.Satisfies,
		OwnFiles:  st.Has() != (tree.Source{}) && st.Has().Environment != step.Source.Environment,
	}
	if !st.WantsApprovals() {
		return facts, nil
	}
	r := st.Environment.Repository
	switch {
	case r.Plain:
		reviews, err := plainApprovals(ctx, r, st.Policy.Name, step.Prepared.Commit)
		facts.Reviews, facts.Author = &forge.Reviews{Reviews: reviews},
			cmp.Or(j.state.Request.By, j.state.Request.Author(j.state.Now).Email)
		return facts, err
	case st.Writes() == model.WritePush:
		facts.NoReviews = "commits are pushed to branch " + st.Environment.Branch +
			" directly: promotion.write is push"
		return facts, nil
	}
	open, err := r.Forge.FindChange(ctx, st.PromotionBranch(), st.Environment.Branch)
	if err != nil || open == nil {
		return facts, err
	}
	facts.Author = open.Author
	step.URL = open.URL
	facts.Reviews, err = r.Forge.Reviews(ctx, open.Number)
	return facts, err
}

// policyOf returns the requirements of a planned change's gates. If no file changes, the change
// needs no approval.
func policyOf(st *session.Stage, step *Step) gate.Policy {
	p := st.GatePolicy()
	if step.NoOp {
		for i := range p.Gates {
			p.Gates[i].Approvals, p.Gates[i].OwnApprovals = nil, nil
		}
	}
	return p
}

// gates evaluates the gates that need only the commits.
func (j *judge) gates(ctx context.Context, st *session.Stage, of tree.Source,
	intent Intent) (*candidate, error) {
	facts, err := j.commitFacts(ctx, st, of)
	if err != nil {
		return nil, err
	}
	switch {
	case !facts.EnvironmentOnly || of.Environment != tree.RevisionOf(st.Environment.Own.Commit):
	case intent.Skip.OwnAtOnce:
		facts.AtOnce = "at once: " + intent.Skip.Reason
	case intent.onlyClusters:
		facts.AtOnce = "it only adds clusters"
	}
	c := &candidate{source: of, kind: Promote}
	switch has := st.Has(); {
	case has == (tree.Source{}):
		c.kind = First
	case has.Base == of.Base:
		c.kind = Configure
	}
	for _, r := range facts.Contains {
		c.contains = append(c.contains, git.Short(r.Commit))
	}
	if intent.Commit != "" { // a person requests this commit
		facts.Aborted = nil
		if intent.reason() != "" && intent.lets(message.RejectedTrailer, strings.Join(c.contains, ", ")) {
			if facts.Named = intent.reason(); intent.by() != "" {
				facts.Named += ", by " + intent.by()
			}
		}
		if hold := facts.Hold; hold != nil && intent.reason() != "" {
			if ends := (&tree.Hold{By: hold.By, Reason: hold.Reason}); intent.lets(message.EndsTrailer,
				describeHold(ends)) {
				c.ends, facts.Hold = ends, nil
			}
		}
	}
	policy := st.GatePolicy()
	c.verdicts = gate.Commit(policy, facts, intent.Skip)
	if inherits, err := j.inherits(ctx, st, of, policy, facts, intent, c); err != nil {
		return nil, err
	} else if inherits {
		facts.Inherits = true
		c.verdicts = gate.Commit(policy, facts, intent.Skip)
	}
	if policy.Rings && policy.OwnAtOnce && !facts.EnvironmentOnly &&
		st.Has().Environment != of.Environment {
		verdicts, err := j.ownFirst(ctx, st, policy, of, intent)
		if err != nil {
			return nil, err
		}
		c.verdicts = append(c.verdicts, verdicts...)
	}
	return c, nil
}

// maxDiffer is the largest number of candidates of a stage that are compiled to find out whether
// they inherit a time.
const maxDiffer = MaxTried

// inherits reports whether a candidate that does not pass would pass with the time of its files
// in the stages before. The candidate must also give the stage the same files as the first commit
// there that had them.
func (j *judge) inherits(ctx context.Context, st *session.Stage, of tree.Source, policy gate.Policy,
	facts gate.CommitFacts, intent Intent, c *candidate) (bool, error) {
	first := tree.Source{}
	for _, stay := range facts.Stays {
		if stay.As == (tree.Source{}) {
			continue
		}
		is := tree.Source{Base: stay.As.Base, Environment: of.Environment}
		if stay.Environment == st.Policy.Name {
			is = stay.As
		}
		if newer, err := j.newerBase(is.Base, first.Base); err != nil {
			return false, err
		} else if newer {
			first = is
		}
	}
	facts.Inherits = true
	if first == (tree.Source{}) || c.state() == gate.Passed ||
		gate.Overall(gate.Commit(policy, facts, intent.Skip)) != gate.Passed {
		return false, nil
	}
	key := refusal{st.ID(), of}
	same, known := j.same[key]
	if known || j.differ[st] >= maxDiffer {
		return same, nil
	}
	var trees [2]tree.ID
	for i, source := range []tree.Source{first, of} {
		step := &Step{Kind: Promote, Source: source}
		if err := j.maker.prepare(ctx, st, step, extra{}); err != nil {
			return false, err
		}
		trees[i] = step.Tree
	}
	if same = trees[0] != "" && trees[0] == trees[1]; !same {
		j.differ[st]++
	}
	j.same[key] = same
	return same, nil
}

// newerBase reports whether a base commit is newer than another one, or that is "".
func (j *judge) newerBase(base, than tree.Revision) (bool, error) {
	if than == "" {
		return true, nil
	}
	newer, found, err := j.state.Platform.Bases.Until(than.Hash())
	return found && slices.ContainsFunc(newer[:len(newer)-1],
		func(b source.Base) bool { return tree.RevisionOf(b.Commit) == base }), err
}

// ownFirst returns the verdicts that keep a base commit with new files of the environment from a
// ring after others. Those files have to pass the rings as well.
func (j *judge) ownFirst(ctx context.Context, st *session.Stage, policy gate.Policy, of tree.Source,
	intent Intent) ([]gate.Verdict, error) {
	facts := gate.CommitFacts{Now: j.state.Now, Commit: of.Base.Hash(), Reachable: true,
		EnvironmentOnly: true}
	for _, up := range j.state.Upstream(st) {
		stay, err := j.observer.Stay(ctx, up, of, true)
		if err != nil {
			return nil, err
		}
		facts.Stays = append(facts.Stays, stay)
	}
	verdicts := gate.Commit(gate.Policy{Environment: policy.Environment, Ring: policy.Ring,
		After: policy.After, Rings: true, Skippable: policy.Skippable}, facts, intent.Skip)
	verdicts = slices.DeleteFunc(verdicts, func(v gate.Verdict) bool { return v.State == gate.Passed })
	for i := range verdicts {
		verdicts[i].Name = "own files"
		verdicts[i].Reason = fmt.Sprintf("with the environment's own files of %s: %s",
			of.Environment.Short(), verdicts[i].Reason)
	}
	return verdicts, nil
}

// takenBack returns the newer commit of the branch that reverts a base commit that a stage does
// not have, or a commit that it contains. It returns "" if there is no such commit.
func (j *judge) takenBack(st *session.Stage, base git.Hash) (string, error) {
	brings, err := j.state.Brings(st, base)
	if err != nil {
		return "", err
	}
	for _, c := range brings {
		switch {
		case c.By.IsZero():
		case c.Commit == base:
			return "taken back by " + git.Short(c.By), nil
		default:
			return fmt.Sprintf("left out because it contains %s, which %s takes back", git.Short(c.Commit),
				git.Short(c.By)), nil
		}
	}
	return "", nil
}

// plainApprovals returns the signed tags that approve of a commit.
func plainApprovals(ctx context.Context, r *session.Repository, environment string,
	commit git.Hash) ([]forge.Review, error) {
	f, ok := r.Forge.(*plain.Forge)
	if !ok {
		return nil, nil
	}
	return f.Approvals(ctx, environment, commit.String())
}

// Proposable reports whether people may look at a step: only gates that a change request
// is for, or that may pass by themselves, do not pass.
func Proposable(step *Step) bool {
	return !slices.ContainsFunc(step.Verdicts, func(v gate.Verdict) bool {
		return v.State != gate.Passed && v.Kind().Effect != gate.Proposes
	})
}

// post sends a request to the service of an http gate, and returns the answer.
func post(ctx context.Context, g model.HTTPGate, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if g.TokenFrom != "" {
		token := os.Getenv(g.TokenFrom)
		if token == "" {
			return nil, fmt.Errorf("the environment has no $%s, which has the token", g.TokenFrom)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{
		Transport:     httpclient.Transport(httpclient.Options{Dial: g.Timeout, Answer: g.Timeout}),
		CheckRedirect: httpclient.Redirect,
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", response.Status)
	}
	return httpclient.ReadAll(response.Body, maxAnswer)
}

// maxAnswer is the largest number of bytes of an http gate's answer.
const maxAnswer = 1 << 16
