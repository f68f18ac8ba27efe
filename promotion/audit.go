package promotion

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// Event is something that happened to a ring of an environment.
type Event struct {
	// Time is when it is said to have happened: by the forge's clock, where it told of
	// the commit, or else by the commit.
	Time        time.Time   `json:"time"`
	Environment string      `json:"environment"` // "" for all of them
	Ring        string      `json:"ring,omitempty"`
	What        string      `json:"what"` // promoted, configured, rolled back, held, released, removed, changed, success, failure, or what was ordered: frozen, thawed, rejected, readmitted, aborted, resumed
	Source      tree.Source `json:"source"`
	Commit      string      `json:"commit,omitempty"` // of the GitOps repository
	By          string      `json:"by,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	// Clock is as in records: tree.ClockSet where Time is what a run was told.
	Clock string `json:"clock,omitempty"`
	// Gates is the digest of the gates' answers that the commit has.
	Gates string `json:"gates,omitempty"`
}

// Audit rebuilds what happened to environments from the history of their branches, the
// statuses of their commits and the orders, oldest first. since leaves out what was
// before; the zero Time for all.
func (au *auditor) Audit(ctx context.Context, since time.Time) ([]Event, error) {
	var out []Event
	for _, st := range au.state.asked() {
		if st.out.unreadable {
			return nil, fmt.Errorf("%s: %s", st.id(), st.out.absent)
		}
		if st.out.repository == nil {
			continue
		}
		events, err := au.auditStop(ctx, st, since)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", st.id(), err)
		}
		out = append(out, events...)
	}
	orders, err := au.auditOrders(ctx)
	if err != nil {
		return nil, err
	}
	gone, err := au.auditGone(ctx)
	if err != nil {
		return nil, err
	}
	out = slices.Concat(out, orders, gone)
	for _, name := range au.state.request.Environments {
		if au.state.outputs[name] == nil && !slices.ContainsFunc(out, func(e Event) bool { return e.Environment == name }) {
			return nil, &UnknownError{What: "environment", Name: name, Known: au.state.known()}
		}
	}
	out = slices.DeleteFunc(out, func(e Event) bool { return e.Time.Before(since) })
	slices.SortStableFunc(out, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return out, nil
}

// auditStop compares each commit of the branch with the one before it, from the one on
// that was there at a time.
func (au *auditor) auditStop(ctx context.Context, st *stop, since time.Time) ([]Event, error) {
	states, err := st.out.history.all(ctx)
	if err != nil {
		return nil, err
	}
	states = slices.Clone(states)
	slices.Reverse(states)
	var before past
	// What came long after of what was there at the beginning is said of the commit before.
	if n := slices.IndexFunc(states, func(p past) bool { return !p.Committer.When.Before(since) }); n < 0 {
		states = states[max(0, len(states)-1):]
	} else if n > 1 {
		before, states = states[n-2], states[n-1:]
	}
	if err := au.preloadHistory(ctx, st, states); err != nil {
		return nil, err
	}
	var out []Event
	for _, now := range states {
		events, err := au.difference(ctx, st, before, now)
		if err != nil {
			return nil, err
		}
		out = append(out, events...)
		before = now
	}
	return out, nil
}

// auditGone returns what statuses of base commits tell of environments that are not in
// the policy any more, and of those whose branches are gone.
func (au *auditor) auditGone(ctx context.Context) ([]Event, error) {
	bases, err := au.state.platform.bases.newest(mostNew)
	if err != nil {
		return nil, err
	}
	var out []Event
	done := map[*ledger]bool{}
	for _, stage := range au.state.platform.stages {
		o := au.state.outputs[stage.Name]
		if o.repository == nil || done[au.state.ledger(o)] {
			continue
		}
		ledger := au.state.ledger(o)
		done[ledger] = true
		for some := range slices.Chunk(bases, 100) {
			var commits []git.Hash
			for _, b := range some {
				commits = append(commits, b.Commit)
			}
			if err := ledger.load(ctx, commits...); err != nil {
				return nil, err
			}
			for _, c := range commits {
				for _, said := range ledger.loaded(c) {
					id, own := strings.CutPrefix(said.Name, statusName(""))
					environment, ring, _ := strings.Cut(id, "/")
					if known := au.state.outputs[environment]; !own || id == "gates" || known != nil && !known.tip.IsZero() || !au.audits(environment, ring) {
						continue
					}
					e := Event{Time: said.At.UTC(), Environment: environment, Ring: ring, What: string(said.State), By: terminal.Line(said.By), Reason: terminal.Line(said.Description)}
					if e.Source.Base = tree.RevisionOf(c); said.State == forge.Pending {
						e.What = "promoted"
					}
					out = append(out, e)
				}
			}
		}
	}
	return out, nil
}

// audits says whether a ring of an environment was asked for.
func (au *auditor) audits(environment, ring string) bool {
	return (len(au.state.request.Environments) == 0 || slices.Contains(au.state.request.Environments, environment)) && (au.state.request.Ring == "" || ring == au.state.request.Ring)
}

// preloadHistory asks for the statuses of all commits of a history at once.
func (au *auditor) preloadHistory(ctx context.Context, st *stop, states []past) error {
	var commits []git.Hash
	for _, p := range states {
		commits = append(commits, p.ID)
	}
	return st.out.repository.ledger().load(ctx, commits...)
}

// difference says what a commit did to a ring.
func (au *auditor) difference(ctx context.Context, st *stop, before, now past) ([]Event, error) {
	ring := st.ringName()
	had, has := st.out.sourceIn(before.record, ring), st.out.sourceIn(now.record, ring)
	e := Event{
		Time: now.Committer.When.UTC(), Environment: st.stage.Name, Ring: ring, Source: has, Commit: now.ID.String(),
		By: trailerOf(now.Message, "Promoted-By"), Reason: trailerOf(now.Message, "Kalypso-Reason"), Gates: trailerOf(now.Message, "Kalypso-Gates-Digest"),
		Clock: trailerOf(now.Message, "Kalypso-Clock"),
	}
	if skipped := trailerOf(now.Message, "Kalypso-Skip-Gates"); skipped != "" {
		e.Reason = "past " + skipped + ": " + e.Reason
	}
	if e.By == "" {
		e.By = terminal.Line(now.Author.Name)
	}
	byHand := trailerOf(now.Message, "Kalypso-Environment") == ""
	if byHand && len(now.Parents) < 2 { // a merge is a way to promote
		e.Reason = "by hand: " + terminal.Line(firstLine(now.Message))
	}
	back, err := au.wentBack(ctx, st, byHand, before, now)
	if err != nil {
		return nil, err
	}
	switch wasHeld, held := st.out.holdIn(before.record, ring), st.out.holdIn(now.record, ring); {
	case now.record == nil && before.record == nil:
		return nil, nil
	case now.record == nil:
		e.What = "removed"
	case has.Base != had.Base && held != nil, back: // promotion ends holds
		e.What = "rolled back"
	case has.Base != had.Base:
		e.What = "promoted"
	case has.Environment != had.Environment:
		e.What = "configured"
	case held != nil && !sameHold(held, wasHeld):
		e.What = "held"
	case held == nil && wasHeld != nil:
		e.What = "released"
	case byHand:
		e.What, e.Reason = "changed", "by hand: "+terminal.Line(firstLine(now.Message))
	default:
		return nil, nil // it was about another ring
	}
	said, err := st.out.repository.ledger().of(ctx, now.ID)
	if err != nil {
		return nil, err
	}
	events := []Event{e}
	for _, status := range said {
		if status.Name != statusName(st.id()) {
			continue
		}
		if status.State == "pending" {
			events[0].Time = status.At.UTC()
			continue
		}
		events = append(events, Event{
			Time: status.At.UTC(), Environment: st.stage.Name, Ring: ring, What: string(status.State), Source: has,
			Commit: now.ID.String(), By: terminal.Line(status.By), Reason: terminal.Line(status.Description),
		})
	}
	return events, nil
}

// wentBack says whether a commit by hand is a rollback.
func (au *auditor) wentBack(ctx context.Context, st *stop, byHand bool, before, now past) (bool, error) {
	had, has := st.out.sourceIn(before.record, st.ringName()), st.out.sourceIn(now.record, st.ringName())
	if !byHand || had == has || before.record == nil || now.record == nil {
		return false, nil
	}
	return au.records.isBack(ctx, st, had, has, before)
}

// ordered are what orders are called that were given, or taken back.
var ordered = map[string]string{
	"freeze": "frozen", "thaw": "thawed", "reject": "rejected", "readmit": "readmitted", "abort": "aborted", "resume": "resumed",
}

// auditOrders returns what was ordered about the environments that were asked for, by the
// log of each repository and, of orders that somebody wrote by hand, by those that stand.
func (au *auditor) auditOrders(ctx context.Context) ([]Event, error) {
	var out []Event
	of := map[*repository]bool{}
	asked := au.state.askedOutputs()
	for _, o := range au.state.outputs {
		if o.repository != nil && (len(asked) == 0 || slices.Contains(asked, o)) {
			of[o.repository] = true
		}
	}
	for _, url := range slices.Sorted(maps.Keys(au.state.opener.known)) {
		r := au.state.opener.known[url]
		if !of[r] {
			continue
		}
		all, err := r.orderLog(ctx)
		if err != nil {
			return nil, err
		}
		standing, err := r.readOrders(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range standing {
			if !slices.ContainsFunc(all, func(logged *order) bool { return logged.id == o.id }) {
				all = append(all, o)
			}
		}
		for _, o := range all {
			if e, known := eventOf(o); known && (e.Environment == "" || au.audits(e.Environment, au.state.request.Ring)) {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// eventOf returns an order as something that happened; false for one of an unknown kind.
func eventOf(o *order) (Event, bool) {
	e := Event{Time: o.at.UTC(), What: ordered[o.Kind], By: terminal.Line(o.By), Reason: terminal.Line(o.Reason)}
	switch o.Kind {
	case "reject", "readmit":
		e.Source.Base = tree.RevisionOf(tree.Revision(o.About).Hash())
	case "abort", "resume":
		var commit git.Hash
		e.Environment, e.Ring, commit = o.candidate()
		e.Source.Base = tree.RevisionOf(commit)
	default:
		e.Environment = o.About
	}
	return e, e.What != ""
}
