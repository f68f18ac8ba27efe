package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// chooser chooses the candidate of a stage, for an intent.
type chooser struct {
	pl     *Planner
	st     *session.Stage
	intent Intent
	// pairs are the pairs that the stage may get, by base commit; nil if it takes own files as they
	// are now.
	pairs map[tree.Revision][]tree.Source
}

// candidate is a base commit that a stage may get, with the verdicts of the gates that
// need only the commit.
type candidate struct {
	source   tree.Source
	kind     Kind
	verdicts []gate.Verdict
	ends     *tree.Hold // which ends if it is promoted by name
	contains []string   // rejected commits that come with it
}

func (c *candidate) state() gate.State { return gate.Overall(c.verdicts) }

// choose returns the candidate of the policy, or the commit that the intent names. It returns nil
// if there is nothing new. others are newer base commits, with the reasons why they are not the
// candidate. excluded are sources that are ruled out, with the reasons. If the policy advances to
// the latest that passes, choose then returns another commit. Otherwise it returns only the
// environment's own files.
func (ch *chooser) choose(ctx context.Context, excluded map[tree.Source]string) (*candidate,
	[]Other, error) {
	if ch.intent.Commit != "" {
		c, err := ch.named(ctx)
		return c, nil, err
	}
	has := ch.st.Has()
	if own := (tree.Source{Base: has.Base,
		Environment: tree.RevisionOf(ch.st.Environment.Own.Commit)}); ch.takesOwn() && own != has &&
		excluded[own] == "" {
		c, err := ch.pl.judge.gates(ctx, ch.st, own, ch.intent)
		if err != nil || ch.intent.Skip.OwnAtOnce || c.state() == gate.Passed {
			return c, nil, err
		}
	}
	newer, err := ch.pl.state.ComesAfter(ch.st)
	if err != nil {
		return nil, nil, err
	}
	all := newer
	if ch.st.TakesPairs() {
		bases := slices.Clone(newer)
		if has.Base != "" {
			bases = append(bases, source.Base{Commit: has.Base.Hash()})
		}
		if ch.pairs, err = ch.pl.state.Pairs(ctx, ch.st, bases); err != nil {
			return nil, nil, err
		}
	}
	newer, left := ch.withoutExcluded(newer, excluded)
	var c *candidate
	var others []Other
	ruled := false // a base commit is ruled out
	for of := range excluded {
		ruled = ruled || of.Base != has.Base
	}
	if way := ch.st.Policy.Promotion.Advance; !ruled || way == model.LatestPassed ||
		way == model.Lockstep || way == model.Batch {
		if c, others, err = ch.advance(ctx, newer); err != nil {
			return nil, nil, err
		}
	}
	others = newestFirst(append(left, others...), all)
	if c != nil && (c.state() == gate.Passed || ch.st.Policy.Promotion.Advance == model.Latest) {
		others = newerThan(c.source.Base, others, all)
	}
	if c != nil && c.state() == gate.Passed || has == (tree.Source{}) {
		return c, others, nil
	}
	// If no base commit can advance, the environment's own files need not wait for one.
	own, err := ch.configured(ctx, excluded)
	if err != nil || own == nil || c != nil && c.state() == gate.Pending &&
		own.state() != gate.Passed {
		return c, others, err
	}
	if c != nil {
		others = slices.Insert(others, 0,
			Other{Commit: string(c.source.Base), Reason: gate.Reason(c.verdicts)})
	}
	return own, others, nil
}

// newestFirst sorts others as base commits are.
func newestFirst(others []Other, bases []source.Base) []Other {
	at := make(map[string]int, len(bases))
	for i, b := range bases {
		at[b.Commit.String()] = i
	}
	slices.SortStableFunc(others,
		func(a, b Other) int { return cmp.Compare(at[a.Commit], at[b.Commit]) })
	return others
}

// newerThan leaves out others that are older than a candidate: they never come.
func newerThan(candidate tree.Revision, others []Other, bases []source.Base) []Other {
	older := map[string]bool{}
	after := false
	for _, b := range bases {
		older[b.Commit.String()] = after
		after = after || tree.RevisionOf(b.Commit) == candidate
	}
	return slices.DeleteFunc(others, func(o Other) bool { return older[o.Commit] })
}

// withoutExcluded leaves out the sources that are ruled out, and the base commits that have no
// other.
func (ch *chooser) withoutExcluded(newer []source.Base,
	excluded map[tree.Source]string) (kept []source.Base, out []Other) {
	for _, b := range newer {
		reason := ""
		isExcluded := func(of tree.Source) bool {
			reason = cmp.Or(reason, excluded[of])
			return excluded[of] != ""
		}
		before := ch.sources(b)
		after := slices.DeleteFunc(slices.Clone(before), isExcluded)
		if ch.pairs != nil {
			ch.pairs[tree.RevisionOf(b.Commit)] = after
		}
		if len(after) == 0 && len(before) > 0 {
			out = append(out, Other{Commit: b.Commit.String(), Reason: reason})
		} else {
			kept = append(kept, b)
		}
	}
	return kept, out
}

// withoutRefused leaves out the base commits that somebody rejected or cancelled, and the commits
// that are older than a cancelled one.
func (ch *chooser) withoutRefused(newer []source.Base) (kept []source.Base, refused []Other) {
	orders := ch.st.Environment.Orders
	var newest git.Hash // the newest cancelled commit
	for _, b := range newer {
		switch o, off := orders.Rejected[b.Commit], ch.st.Aborted(b.Commit); {
		case o != nil:
			refused = append(refused, Other{Commit: b.Commit.String(),
				Reason: "rejected by " + terminal.Line(o.By) + ": " + terminal.Line(o.Reason), Refused: true})
		case off != nil:
			if newest.IsZero() {
				newest = b.Commit
			}
			refused = append(refused, Other{Commit: b.Commit.String(),
				Reason:  "called off by " + terminal.Line(off.By) + ": " + terminal.Line(off.Reason),
				Refused: true})
		case !newest.IsZero():
			refused = append(refused, Other{Commit: b.Commit.String(),
				Reason: "older than " + git.Short(newest) + ", which was called off", Refused: true})
		default:
			kept = append(kept, b)
		}
	}
	return kept, refused
}

// leavesOutReverted reports whether the policy of a stage chooses among commits, so that it
// leaves out commits that newer ones revert.
func leavesOutReverted(st *session.Stage) bool {
	switch st.Policy.Promotion.Advance {
	case model.LatestPassed, model.Lockstep, model.Batch, "":
		return true
	}
	return false
}

// withoutReverted leaves out the base commits with changes that newer commits of the branch take
// back.
func (ch *chooser) withoutReverted(newer []source.Base) (kept []source.Base, reverted []Other,
	err error) {
	for _, b := range newer {
		why, err := ch.pl.judge.takenBack(ch.st, b.Commit)
		if err != nil {
			return nil, nil, err
		}
		if why == "" {
			kept = append(kept, b)
		} else {
			reverted = append(reverted, Other{Commit: b.Commit.String(), Reason: why, Refused: true})
		}
	}
	return kept, reverted, nil
}

// configured returns the stage's base commit with newer own files of the environment; nil if all of
// them are ruled out. If the rings before do not have newer ones either, it judges the present
// ones, so that people see the reason for the wait.
func (ch *chooser) configured(ctx context.Context, excluded map[tree.Source]string) (*candidate,
	error) {
	has := ch.st.Has()
	own := tree.Source{Base: has.Base, Environment: tree.RevisionOf(ch.st.Environment.Own.Commit)}
	if has.Base == "" {
		return nil, nil
	}
	sources := slices.Clone(ch.pairs[has.Base])
	if len(sources) == 0 && own != has {
		sources = append(sources, own)
	}
	return ch.best(ctx,
		slices.DeleteFunc(sources, func(of tree.Source) bool { return excluded[of] != "" }))
}

// named returns the candidate that the intent names; nil if the stage has it.
func (ch *chooser) named(ctx context.Context) (*candidate, error) {
	b, err := ch.pl.state.Platform.Resolve(ch.intent.Commit)
	if err != nil {
		return nil, err
	}
	has := ch.st.Has()
	if has.Base != "" && tree.RevisionOf(b.Commit) != has.Base {
		newer, err := ch.pl.state.Newer(has)
		if err != nil {
			return nil, err
		}
		_, known, err := ch.pl.state.Platform.Bases.Until(has.Base.Hash())
		if err != nil {
			return nil, err
		}
		if known && !slices.ContainsFunc(newer,
			func(n source.Base) bool { return n.Commit == b.Commit }) {
			return nil, fmt.Errorf("%s has %s, and %s comes before that: `kalypso rollback --env %s --to "+
				"%s` goes back, and keeps it there",
				ch.st.ID(), has.Base.Short(), git.Short(b.Commit), ch.st.Policy.Name, git.Short(b.Commit))
		}
	}
	of, err := ch.namedSource(ctx, b)
	if err != nil {
		return nil, err
	}
	c, err := ch.pl.judge.gates(ctx, ch.st, of, ch.intent)
	if err != nil {
		return nil, err
	}
	if ch.intent.reason() == "" && ch.intent.resumes == nil {
		for _, v := range c.verdicts {
			rejected := ch.st.Environment.Orders.Rejected[b.Commit] != nil // which a reason does not change
			if order := v.Gate == model.GateReject && !rejected || v.Gate == model.GateHold; order &&
				v.State != gate.Passed {
				reason, _, _ := strings.Cut(v.Reason, "; revert it")
				return nil, fmt.Errorf("%s; say why it comes all the same, with --reason", reason)
			}
		}
	}
	hold, _, err := ch.pl.records.Held(ctx, ch.st)
	if c.source == has && hold == nil {
		return nil, err
	}
	return c, err
}

// advance chooses among newer base commits by the policy.
func (ch *chooser) advance(ctx context.Context, newer []source.Base) (*candidate, []Other, error) {
	newer, refused := ch.withoutRefused(newer)
	if leavesOutReverted(ch.st) {
		var reverted []Other
		var err error
		if newer, reverted, err = ch.withoutReverted(newer); err != nil {
			return nil, nil, err
		}
		refused = append(refused, reverted...)
	}
	there, others, err := ch.arrived(ctx, newer)
	others = append(others, refused...)
	if err != nil || len(there) == 0 {
		return nil, others, err
	}
	p := ch.st.Policy.Promotion.Advance
	switch {
	case p == model.MatchUpstream:
		return ch.match(ctx, there, others)
	case p == model.Queue && ch.st.Has() != (tree.Source{}):
		return ch.queue(ctx, there, others)
	case p == model.Latest:
		c, err := ch.judged(ctx, there[0])
		for _, b := range there[1:] {
			others = append(others,
				Other{Commit: b.Commit.String(), Reason: "a newer commit is there: advance is latest"})
		}
		return c, others, err
	}
	c, others, err := ch.latestPassed(ctx, there, others)
	if err != nil || c == nil || c.kind != Promote {
		return c, others, err
	}
	switch p {
	case model.Lockstep:
		return ch.lockstep(ctx, c, there, others)
	case model.Batch:
		err = ch.pl.batch(ctx, ch.st, c)
	}
	return c, others, err
}

// arrived returns the base commits that are, or were, in the stages before this one, and
// why the others are not. If no stage comes before, it returns all of them.
func (ch *chooser) arrived(ctx context.Context, newer []source.Base) ([]source.Base, []Other,
	error) {
	before := ch.pl.state.Upstream(ch.st)
	if len(before) == 0 {
		return newer, nil, nil
	}
	if ch.st.TakesPairs() {
		return ch.paired(ctx, newer)
	}
	had := map[*session.Stage]map[tree.Revision]bool{}
	for _, up := range before {
		var err error
		if had[up], err = up.Had(ctx, newer); err != nil {
			return nil, nil, err
		}
	}
	policy := ch.st.GatePolicy()
	var there []source.Base
	var others []Other
	for _, b := range newer {
		var missing string
		reached := map[string]bool{}
		for _, up := range before {
			name := up.Policy.Name
			if policy.Rings {
				name = up.RingName()
			}
			if _, known := reached[name]; !known {
				reached[name] = true
			}
			if !had[up][tree.RevisionOf(b.Commit)] {
				reached[name] = false
				missing = up.ID()
			}
		}
		any := false
		for _, ok := range reached {
			any = any || ok
		}
		if missing == "" || policy.Any && any {
			there = append(there, b)
		} else {
			others = append(others,
				Other{Commit: b.Commit.String(), Reason: "it has not been in " + missing})
		}
	}
	return there, others, nil
}

// latestPassed chooses the newest commit that passes. If no commit passes, it chooses the newest
// commit that may still pass by itself, so that people see what the stage waits for.
func (ch *chooser) latestPassed(ctx context.Context, there []source.Base,
	others []Other) (*candidate, []Other, error) {
	var waiting *candidate
	for i, b := range there {
		if i == session.MaxJudged {
			break
		}
		if i%20 == 0 {
			if err := ch.preload(ctx, there[i:min(i+20, len(there))]); err != nil {
				return nil, nil, err
			}
		}
		c, err := ch.judged(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		if c.state() == gate.Passed {
			if waiting != nil {
				others = append(others,
					Other{Commit: string(waiting.source.Base), Reason: gate.Reason(waiting.verdicts)})
			}
			return c, others, nil
		}
		switch {
		case waiting == nil:
			waiting = c
			continue
		case waiting.state() == gate.Blocked && c.state() == gate.Pending:
			waiting, c = c, waiting
		case waiting.state() == gate.Pending && c.state() == gate.Blocked:
			continue // it does not come before the newer one, nor after it
		}
		others = append(others, Other{Commit: string(c.source.Base), Reason: gate.Reason(c.verdicts)})
	}
	return waiting, others, nil
}

// preload loads the statuses of several commits in the stages before, at once.
func (ch *chooser) preload(ctx context.Context, of []source.Base) error {
	var has []*session.Stage
	for _, up := range ch.pl.state.UpstreamAndSoaking(ch.st) {
		if up.Environment.Repository != nil && up.Environment.Record != nil {
			has = append(has, up)
		}
	}
	return loadVisits(ctx, has, of, func(up *session.Stage, b source.Base) (session.Visit, error) {
		return up.Environment.History.VisitOf(ctx, up.RingName(), tree.RevisionOf(b.Commit))
	})
}

// loadVisits loads the statuses of all visits of several stages at once: one call to the forge for
// each stage.
func loadVisits[T any](ctx context.Context, stages []*session.Stage, of []T,
	visit func(*session.Stage, T) (session.Visit, error)) error {
	for _, st := range stages {
		var commits []git.Hash
		for _, one := range of {
			v, err := visit(st, one)
			if err != nil {
				return err
			}
			commits = append(commits, v.All()...)
		}
		if err := st.Environment.Repository.Statuses().Load(ctx, commits...); err != nil {
			return err
		}
	}
	return nil
}

// match chooses the commit that all stages before this one have now.
func (ch *chooser) match(ctx context.Context, there []source.Base, others []Other) (*candidate,
	[]Other, error) {
	var common tree.Revision
	for _, up := range ch.pl.state.Upstream(ch.st) {
		switch is := up.Has().Base; {
		case ch.st.Policy.Promotion.Any && is == "":
		case common == "":
			common = is
		case is != common && !ch.st.Policy.Promotion.Any:
			return nil, append(others,
				Other{Commit: string(is),
					Reason: "what comes before does not agree: advance is match-upstream"}), nil
		}
	}
	var c *candidate
	for _, b := range there {
		if tree.RevisionOf(b.Commit) != common {
			others = append(others, Other{Commit: b.Commit.String(), Reason: "it is not what runs before: " +
				"advance is match-upstream"})
			continue
		}
		var err error
		if c, err = ch.judged(ctx, b); err != nil {
			return nil, nil, err
		}
	}
	return c, others, nil
}

// queue chooses the oldest of the base commits that have reached the stages before. It leaves out
// the commits that have not reached them, and the commits that left too early to ever pass.
func (ch *chooser) queue(ctx context.Context, there []source.Base, others []Other) (*candidate,
	[]Other, error) {
	for i, next := range slices.Backward(there) {
		c, err := ch.judged(ctx, next)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 && slices.ContainsFunc(c.verdicts,
			func(v gate.Verdict) bool { return v.Never && v.State == gate.Blocked }) {
			others = append(others, Other{Commit: next.Commit.String(), Reason: gate.Reason(c.verdicts)})
			continue
		}
		if v := slices.IndexFunc(c.verdicts,
			func(v gate.Verdict) bool { return v.State == gate.Blocked }); v >= 0 && i > 0 {
			c.verdicts[v].Reason += fmt.Sprintf("; newer commits wait for it, as advance is queue: "+
				"`kalypso promote --env %s --commit %s` lets them go on", ch.st.Policy.Name,
				git.Short(there[i-1].Commit))
		}
		for _, later := range there[:i] {
			others = append(others, Other{Commit: later.Commit.String(), Reason: "commits go one after " +
				"the other, and " + git.Short(next.Commit) + " is next: advance is queue"})
		}
		return c, others, nil
	}
	return nil, others, nil
}
