// Package audit rebuilds the history of promotions, with their times, authors and reasons, from
// the histories of GitOps branches, statuses and orders. It does not write anything.
package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/changes"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/verify"
)

// Auditor rebuilds the history of promotions.
type Auditor struct {
	state   *session.State
	records *verify.Records
	effects map[*session.Environment]*effects
}

// New returns an Auditor of a state.
func New(state *session.State, records *verify.Records) *Auditor {
	return &Auditor{state, records, map[*session.Environment]*effects{}}
}

// Event is something that happened to a ring of an environment.
type Event struct {
	// Time is the forge's time if the forge has statuses of the commit, and else the commit's
	// time.
	Time        time.Time `json:"time"`
	Environment string    `json:"environment"` // "" for all of them
	Ring        string    `json:"ring,omitempty"`
	// promoted, configured, rolled back, held, released, merged against a gate, removed, changed,
	// success, failure, failing, ok again, or an order: frozen, thawed, rejected, readmitted,
	// aborted, resumed
	What   string      `json:"what"`
	Source tree.Source `json:"source"`
	Commit string      `json:"commit,omitempty"` // of the GitOps repository
	By     string      `json:"by,omitempty"`
	Reason string      `json:"reason,omitempty"`
	// Clock is as in records: tree.ClockSet if the clock of the run was set.
	Clock string `json:"clock,omitempty"`
	// Gates is the digest of the gates' answers that the commit has.
	Gates string `json:"gates,omitempty"`
	// Change counts the changes of the commit on all clusters of the environment, by the records
	// before and after. It is nil if the counts are not known, and for events that do not change a
	// tree.
	Change *effect.Counts `json:"change,omitempty"`
}

// Audit rebuilds the events of the environments of the request from a time on. It uses the
// history of their branches, the statuses of their commits and the orders. Events are sorted by
// time. The zero Time is for all events.
func (au *Auditor) Audit(ctx context.Context, since time.Time) ([]Event, error) {
	var out []Event
	for _, st := range au.state.Requested() {
		if st.Environment.Unreadable {
			return nil, fmt.Errorf("%s: %s", st.ID(), st.Environment.Absent)
		}
		if st.Environment.Repository == nil {
			continue
		}
		events, err := au.stage(ctx, st, since)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", st.ID(), err)
		}
		out = append(out, events...)
	}
	orders, err := au.orders(ctx)
	if err != nil {
		return nil, err
	}
	gone, err := au.removed(ctx)
	if err != nil {
		return nil, err
	}
	out = slices.Concat(out, orders, gone)
	for _, name := range au.state.Request.Environments {
		if au.state.Environments[name] == nil &&
			!slices.ContainsFunc(out, func(e Event) bool { return e.Environment == name }) {
			return nil, &session.UnknownError{What: "environment", Name: name, Known: au.state.Names(),
				Diagnostics: au.state.Platform.Lacks}
		}
	}
	out = slices.DeleteFunc(out, func(e Event) bool { return e.Time.Before(since) })
	slices.SortStableFunc(out, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return out, nil
}

// stage compares each commit of the branch with the one before it, from the one that was
// there at a time.
func (au *Auditor) stage(ctx context.Context, st *session.Stage, since time.Time) ([]Event, error) {
	states, err := st.Environment.History.All(ctx)
	if err != nil {
		return nil, err
	}
	states = slices.Clone(states)
	slices.Reverse(states)
	first, err := au.indexAt(ctx, st, states, since)
	if err != nil {
		return nil, err
	}
	var before session.Past
	if first > 0 {
		before = states[first-1]
	}
	states = states[first:]
	var out []Event
	var steps []step
	for _, now := range states {
		events, err := au.difference(ctx, st, before, now)
		if err != nil {
			return nil, err
		}
		if len(events) > 0 && changesTree(events[0].What) && !events[0].Time.Before(since) {
			steps = append(steps, step{changes.Step{Before: before, Now: now}, len(out)})
		}
		out = append(out, events...)
		before = now
	}
	return out, au.count(ctx, st.Environment, steps, out)
}

// removed returns the events in statuses of base commits about environments that the policy no
// longer has, and about environments whose branches are gone.
func (au *Auditor) removed(ctx context.Context) ([]Event, error) {
	bases, err := au.state.Platform.Bases.Newest(session.MaxNew)
	if err != nil {
		return nil, err
	}
	var out []Event
	done := map[*ledger.Statuses]bool{}
	for _, stage := range au.state.Platform.Policies {
		env := au.state.Environments[stage.Name]
		if env.Repository == nil || done[au.state.Statuses(env)] {
			continue
		}
		statuses := au.state.Statuses(env)
		done[statuses] = true
		for some := range slices.Chunk(bases, 100) {
			var commits []git.Hash
			for _, b := range some {
				commits = append(commits, b.Commit)
			}
			if err := statuses.Load(ctx, commits...); err != nil {
				return nil, err
			}
			for _, c := range commits {
				for _, status := range statuses.Loaded(c) {
					id, own := strings.CutPrefix(status.Name, ledger.StatusName(""))
					environment, ring, _ := strings.Cut(id, "/")
					if strings.Contains(id, ":") { // its health
						continue
					}
					if known := au.state.Environments[environment]; !own || id == "gates" || known != nil &&
						!known.Tip.IsZero() || !au.audits(environment, ring) {
						continue
					}
					e := Event{Time: status.At.UTC(), Environment: environment, Ring: ring,
						What: string(status.State), By: terminal.Line(status.By),
						Reason: terminal.Line(status.Description)}
					if e.Source.Base = tree.RevisionOf(c); status.State == forge.Pending {
						e.What = "promoted"
					}
					out = append(out, e)
				}
			}
		}
	}
	return out, nil
}

// audits reports whether a ring of an environment is one of the request.
func (au *Auditor) audits(environment, ring string) bool {
	return (len(au.state.Request.Environments) == 0 || slices.Contains(au.state.Request.Environments,
		environment)) && (au.state.Request.Ring == "" || ring == au.state.Request.Ring)
}

// indexAt returns the index of the state that a stage had at a time. The states are sorted from the
// oldest on. It loads the statuses of the commits from there on. The first report of a commit's
// rollout shows when it arrived, because the commit itself may be as old as its source.
func (au *Auditor) indexAt(ctx context.Context, st *session.Stage, states []session.Past,
	since time.Time) (int, error) {
	const atOnce = 100
	statuses := st.Environment.Repository.Statuses()
	for end := len(states); end > 0; end -= atOnce {
		var commits []git.Hash
		for _, p := range states[max(0, end-atOnce):end] {
			commits = append(commits, p.ID)
		}
		if err := statuses.Load(ctx, commits...); err != nil {
			return 0, err
		}
		for i := end - 1; i >= max(0, end-atOnce); i-- {
			if slices.ContainsFunc(statuses.Loaded(states[i].ID), func(s forge.Status) bool {
				return s.Name == ledger.StatusName(st.ID()) && s.State == forge.Pending && s.At.Before(since)
			}) {
				return i, nil
			}
		}
	}
	return 0, nil
}

// difference returns the events of a stage that a commit caused.
func (au *Auditor) difference(ctx context.Context, st *session.Stage, before,
	now session.Past) ([]Event, error) {
	ring := st.RingName()
	had, has := st.Environment.SourceIn(before.Record, ring), st.Environment.SourceIn(now.Record, ring)
	e := Event{
		Time: now.Committer.When.UTC(), Environment: st.Policy.Name, Ring: ring, Source: has,
		Commit: now.ID.String(),
		By:     message.Trailer(now.Message, message.ByTrailer), Reason: reasonOf(now.Message),
		Gates: message.Trailer(now.Message, "Kalypso-Gates-Digest"),
		Clock: message.Trailer(now.Message, "Kalypso-Clock"),
	}
	if e.By == "" {
		e.By = terminal.Line(now.Author.Name)
	}
	manual := message.Trailer(now.Message, "Kalypso-Environment") == ""
	if manual && len(now.Parents) < 2 { // a merge is a way to promote
		e.Reason = "by hand: " + terminal.Line(message.FirstLine(now.Message))
	}
	back, err := au.wentBack(ctx, st, manual, before, now)
	if err != nil {
		return nil, err
	}
	switch wasHeld, held := st.Environment.HoldIn(before.Record, ring),
		st.Environment.HoldIn(now.Record, ring); {
	case now.Record == nil && before.Record == nil:
		return nil, nil
	case now.Record == nil:
		e.What = "removed"
	// promotion ends holds
	case has.Base != had.Base && held != nil, has != had && held != nil && held.Environment != "",
		back:
		e.What = "rolled back"
	case has.Base != had.Base:
		e.What = "promoted"
	case has.Environment != had.Environment:
		e.What = "configured"
	case held != nil && !session.SameHold(held, wasHeld):
		e.What = "held"
	case held == nil && wasHeld != nil:
		e.What = "released"
	case manual:
		e.What, e.Reason = "changed", "by hand: "+terminal.Line(message.FirstLine(now.Message))
	default:
		return nil, nil // it was about another ring
	}
	events := []Event{e}
	if has != had {
		if events, err = au.decided(ctx, st, e, before, now); err != nil {
			return nil, err
		}
	}
	if ended := message.Trailer(now.Message, message.EndsTrailer); ended != "" {
		released := events[0]
		released.What, released.Reason = "released",
			"the hold by "+ended+"; a commit was promoted by name"
		events = append(events, released)
	}
	return au.reported(ctx, st, events, now)
}

// decided returns the event of a landing. The event names the person who merged it against a
// gate, or who named its commit. If a merge ended a hold, the release of the hold follows as a
// second event.
func (au *Auditor) decided(ctx context.Context, st *session.Stage, e Event, before,
	now session.Past) ([]Event, error) {
	merged, err := au.records.MergedAgainst(ctx, st.Environment, now)
	if err != nil {
		return nil, err
	}
	if merged != nil {
		e.What, e.By, e.Reason = "merged against "+merged.Gate, cmp.Or(merged.By, "somebody, by a push"),
			merged.Reason
	}
	ring := st.RingName()
	named := st.Environment.NamedIn(now.Record, ring)
	if named != nil && (merged != nil || message.Trailer(now.Message, message.NamedTrailer) == "") {
		by := "named by " + terminal.Line(named.By)
		if named.Reason != "" {
			by += ": " + terminal.Line(named.Reason)
		}
		e.Reason = strings.TrimPrefix(e.Reason+"; "+by, "; ")
	}
	events := []Event{e}
	was, held := st.Environment.HoldIn(before.Record, ring), st.Environment.HoldIn(now.Record, ring)
	if merged != nil && was != nil && held == nil {
		released := e
		released.What, released.Reason = "released",
			"the hold by "+terminal.Line(was.By+": "+was.Reason)+"; a proposal was merged"
		events = append(events, released)
	}
	return events, nil
}

// reported returns the events of a landing, dated by its pending status if it has one. The
// reports of clusters and people about it follow, in the order of its statuses.
func (au *Auditor) reported(ctx context.Context, st *session.Stage, events []Event,
	now session.Past) ([]Event, error) {
	statuses, err := st.Environment.Repository.Statuses().Of(ctx, now.ID)
	if err != nil {
		return nil, err
	}
	landing := len(events)
	for _, status := range statuses {
		what := string(status.State)
		if status.Name == ledger.HealthName(st.ID()) {
			what = map[forge.State]string{forge.Failure: "failing", forge.Success: "ok again"}[status.State]
		} else if status.Name != ledger.StatusName(st.ID()) {
			continue
		}
		if status.State == "pending" {
			for i := range landing {
				events[i].Time = status.At.UTC()
			}
			continue
		}
		events = append(events, Event{
			Time: status.At.UTC(), Environment: st.Policy.Name, Ring: st.RingName(), What: what,
			Source: events[0].Source,
			Commit: now.ID.String(), By: terminal.Line(status.By), Reason: terminal.Line(status.Description),
		})
	}
	return events, nil
}

// reasonOf returns the reason in a commit's message, "" if policies decided it.
func reasonOf(text string) string {
	reason := message.Trailer(text, message.ReasonTrailer)
	past := message.Trailer(text, message.SkipTrailer)
	contains := message.Trailer(text, message.RejectedTrailer)
	named := message.Trailer(text, message.NamedTrailer) != ""
	var how []string
	if named {
		how = append(how, "by name")
	}
	if contains != "" {
		how = append(how, "although it contains rejected "+contains)
	}
	if past != "" {
		how = append(how, "past "+past)
	}
	return strings.Join(slices.DeleteFunc([]string{strings.Join(how, ", "), reason},
		func(s string) bool { return s == "" }), ": ")
}

// wentBack reports whether a commit that kalypso did not make is a rollback.
func (au *Auditor) wentBack(ctx context.Context, st *session.Stage, manual bool, before,
	now session.Past) (bool, error) {
	had, has := st.Environment.SourceIn(before.Record, st.RingName()),
		st.Environment.SourceIn(now.Record, st.RingName())
	if !manual || had == has || before.Record == nil || now.Record == nil {
		return false, nil
	}
	return au.records.IsBack(ctx, st, had, has, before)
}

// ordered maps the kind of an order to its name in the past tense.
var ordered = map[string]string{
	"freeze": "frozen", "thaw": "thawed", "reject": "rejected", "readmit": "readmitted",
	"abort": "aborted", "resume": "resumed",
}

// orders returns the orders about the environments of the request, from the log of each
// repository. It also returns orders in force that somebody wrote by hand, which the log lacks.
func (au *Auditor) orders(ctx context.Context) ([]Event, error) {
	var out []Event
	of := map[*session.Repository]bool{}
	asked := au.state.RequestedEnvironments()
	for _, env := range au.state.Environments {
		if env.Repository != nil && (len(asked) == 0 || slices.Contains(asked, env)) {
			of[env.Repository] = true
		}
	}
	for _, r := range au.state.Repositories() {
		if !of[r] {
			continue
		}
		all, err := r.OrderLog(ctx)
		if err != nil {
			return nil, err
		}
		standing, err := r.Orders(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range standing {
			if !slices.ContainsFunc(all, func(logged *ledger.Order) bool { return logged.ID == o.ID }) {
				all = append(all, o)
			}
		}
		for _, o := range all {
			if e, known := eventOf(o); known &&
				(e.Environment == "" || au.audits(e.Environment, au.state.Request.Ring)) {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// eventOf returns an order as an event; false for one of an unknown kind.
func eventOf(o *ledger.Order) (Event, bool) {
	e := Event{Time: o.At.UTC(), What: ordered[o.Kind], By: terminal.Line(o.By),
		Reason: terminal.Line(o.Reason)}
	switch o.Kind {
	case "reject", "readmit":
		e.Source.Base = tree.RevisionOf(tree.Revision(o.About).Hash())
	case "abort", "resume":
		var commit git.Hash
		e.Environment, e.Ring, commit = o.Candidate()
		e.Source.Base = tree.RevisionOf(commit)
	default:
		e.Environment = o.About
	}
	return e, e.What != ""
}
