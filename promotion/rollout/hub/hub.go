// Package hub reads reports of rollouts from a hub, which knows the wanted assignments as
// well. Its states are taken as they are, so that a promotion and the hub's own answers
// never differ.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// Source reads reports from a hub. Its methods may be called by several goroutines.
type Source struct {
	client  *api.Client
	address string
	now     func() time.Time
}

var _ rollout.Source = (*Source)(nil)

// New returns the source of a hub at an address.
func New(client *api.Client, address string, now func() time.Time) *Source {
	return &Source{client, address, now}
}

// Name returns "hub ADDRESS".
func (s *Source) Name() string { return "hub " + s.address }

// Reports returns a report for each wanted assignment and cluster that has ever reported to the
// hub. It returns an error if the hub does not know a wanted commit yet, because its states are
// then about another commit. The error is a *forge.AuthError if the hub requires another token,
// and a *forge.UnavailableError if the hub does not answer.
func (s *Source) Reports(ctx context.Context, w *rollout.DesiredState) ([]rollout.Report, error) {
	wanted := make(map[string]*rollout.Assignment, len(w.Assignments))
	for i := range w.Assignments {
		wanted[w.Assignments[i].ID] = &w.Assignments[i]
	}
	at := s.now()
	var out []rollout.Report
	commit, err := s.client.Rollout(ctx, w.Environment, w.Ring, func(r *state.Row) error {
		id := r.ID()
		if a := wanted[id]; a != nil && (r.State != state.Missing || len(a.Clusters) == 0) {
			out = append(out, reportOf(id, r, at))
		}
		return nil
	})
	switch {
	case api.IsAuth(err):
		return nil, &forge.AuthError{Host: s.address, Problem: err.Error(),
			Hint: "give a token of role viewer, or one that may do more"}
	case api.IsUnavailable(err):
		if silent := (*api.UnavailableError)(nil); errors.As(err, &silent) {
			err = silent.Err // the message names the hub already
		}
		return nil, &forge.UnavailableError{Host: s.address, Err: err}
	case err != nil:
		return nil, err
	case commit == "":
		return nil, fmt.Errorf("it has not read the GitOps branch of %s yet", w.Environment)
	}
	if slices.ContainsFunc(w.Commits, func(c git.Hash) bool { return c.String() == commit }) {
		return out, nil
	}
	return nil, fmt.Errorf("it is at commit %.10s of the GitOps branch of %s, and what is rolled "+
		"out is in %s", terminal.Line(commit), w.Environment, newest(w))
}

func newest(w *rollout.DesiredState) string {
	if len(w.Commits) == 0 {
		return "any commit as it was generated"
	}
	return fmt.Sprintf("%.10s", w.Commits[0])
}

// states are the hub's as promotions have them. Missing is not a report, but of a cluster that
// the platform does not list and that reports others of its type.
var states = map[state.State]rollout.State{
	state.OK: rollout.Healthy, state.Progressing: rollout.Progressing,
	state.Behind: rollout.Progressing, state.Drifted: rollout.Progressing,
	state.Suspended: rollout.Suspended,
	state.Stale:     rollout.Stale, state.Missing: rollout.Unknown, state.Failed: rollout.Failed,
}

// reportOf returns a row of the hub as a report. The hub has judged how old it is: it is as of
// now, unless it is stale.
func reportOf(id string, r *state.Row, now time.Time) rollout.Report {
	out := rollout.Report{Assignment: id, Cluster: terminal.Line(r.Cluster), State: states[r.State],
		By: terminal.Line(cmp.Or(r.By, "the hub")), At: now, Since: r.Holds()}
	switch r.State {
	case state.OK:
	case state.Missing:
		out.Message = "reports, and not this"
	case state.Stale:
		out.At = r.Seen
		out.Message = "last reported at " + r.Seen.UTC().Format(time.RFC3339)
	case state.Behind, state.Drifted:
		what := map[state.State]string{state.Behind: "is behind", state.Drifted: "has drifted"}[r.State]
		if commit := r.Runs(); commit != "" {
			what += ", at commit " + commit[:min(10, len(commit))]
		}
		out.Message = terminal.Line(strings.TrimSuffix(what+": "+r.Message, ": "))
	default:
		out.Message = terminal.Line(r.Message)
	}
	return out
}
