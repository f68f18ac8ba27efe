package gate

import (
	"context"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Kind describes a kind of gate.
type Kind struct {
	Name   string // in verdicts, in the policy's skippable and allow, and in --skip-gate
	Skip   Permission
	Effect Effect
	Cause  Cause
	// One of these evaluates the gates of the kind. Verdicts are in the order of Policy.Gates
	// and have no Gate yet.
	commit func(Policy, CommitFacts) []Verdict
	change func(context.Context, Policy, ChangeFacts) []Verdict
}

// The columns of a Kind. No value is zero, so that a test finds a column that a row leaves out.
type (
	Permission int // who may skip the gate
	Effect     int // how the gate affects its stage while it does not pass
	Cause      int // the events that can change the answer
)

// The values of columns.
const (
	Nobody  Permission = iota + 1 // it is an order or a fact
	Anybody                       // if the policy's skippable has the gate

	Holds    Effect = iota + 1 // the stage is held for any candidate
	Waits                      // nothing is proposed
	Proposes                   // a change request is opened, for people to see the change

	Event     Cause = iota + 1 // time, a report, a status or an order
	Candidate                  // only another commit or policy: another candidate may pass
	Response                   // of people or a service, asked in every run
)

// table has all kinds, in the order of verdicts.
var table = []Kind{
	{model.GateReject, Nobody, Waits, Event, rejectVerdicts, nil},
	{model.GateHold, Nobody, Holds, Event, holdVerdicts, nil},
	{"freeze", Nobody, Holds, Event, freezeVerdicts, nil},
	{"history", Nobody, Waits, Event, historyVerdicts, nil},
	{model.GateAfter, Anybody, Waits, Event, afterVerdicts, nil},
	{"status", Anybody, Waits, Event, statuses, nil},
	{model.GateSoak, Anybody, Waits, Event, soakVerdicts, nil},
	{"windows", Anybody, Waits, Event, windows, nil},
	{model.GateErrors, Nobody, Waits, Candidate, nil, failures},
	{model.GateKept, Nobody, Waits, Candidate, nil, keptVerdicts},
	{"removals", Anybody, Waits, Candidate, nil, removals},
	{"budget", Anybody, Proposes, Candidate, nil, budgets},
	{"policy", Anybody, Proposes, Candidate, nil, policies},
	{"http", Anybody, Proposes, Response, nil, services},
	{model.GateApprovals, Anybody, Proposes, Response, nil, approvals},
}

// Advance is the Gate of verdicts with which the policy's way to advance makes a candidate
// wait. Package plan evaluates it; it has no Kind.
const Advance = "advance"

// Kind returns the kind of the verdict's gate; the zero Kind for Advance.
func (v Verdict) Kind() Kind { return kindOf(v.Gate) }

// OfChange reports whether Planned evaluates the kind, and Commit does not.
func (k Kind) OfChange() bool { return k.change != nil }

func kindOf(name string) Kind {
	for _, k := range table {
		if k.Name == name {
			return k
		}
	}
	return Kind{}
}

// name sets the Gate of verdicts.
func (k Kind) name(vs []Verdict) []Verdict {
	for i := range vs {
		vs[i].Gate = k.Name
	}
	return vs
}
