package model

import "time"

// Promotion describes how commits reach an environment, and the conditions for them. It holds
// the fields about promotion of the environment's entry in the platform's base.
// Declaration holds the other fields.
type Promotion struct {
	After   []string // environments
	Any     bool     // one of After is enough; else all are needed
	Advance Advance
	Every   time.Duration // between two commits, for Batch
	Gates   Gates
	Rings   []Ring // in the order of the platform; nil without rings
	// OwnChanges describes how changes of the environment's own files reach its rings.
	OwnChanges OwnChanges
	// Source is the place of the environment's own files; nil for the folder of the platform's
	// branch.
	Source *EnvironmentSource

	Write       Write
	AutoMerge   bool
	MergeMethod string // "" if the repository's settings decide
	Labels      []string
	Reviewers   []string
	Skippable   []string // names of gates
	AllowErrors bool
	AllowKept   bool
}

// Ring returns the ring with a name. It returns nil if there is no such ring.
func (p *Promotion) Ring(name string) *Ring {
	for i := range p.Rings {
		if p.Rings[i].Name == name {
			return &p.Rings[i]
		}
	}
	return nil
}

// OwnChanges describes how changes of an environment's own files reach its rings. The zero
// value is the default: a ring with After takes own files that soaked in the rings before it.
type OwnChanges struct {
	Written bool // the base has the field
	// AtOnce lets a ring with After take the newest own files as soon as the rings before it
	// rolled them out.
	AtOnce bool
	// Clusters lets every ring take own files at once if they only add clusters to it.
	Clusters bool
}

// SoaksOwn reports whether a ring waits for own files to soak in the rings before it.
func (p *Promotion) SoaksOwn(r *Ring) bool { return !p.OwnChanges.AtOnce && p.SoakOf(r) > 0 }

// SoakOf returns how long a commit soaks in the rings before a ring. It returns 0 if no ring is
// before it.
func (p *Promotion) SoakOf(r *Ring) (span time.Duration) {
	for _, g := range []*SoakGate{p.Gates.Soak, r.Gates.Soak} {
		if len(r.After) > 0 && g != nil && g.Environment == "" {
			span = max(span, g.For)
		}
	}
	return span
}

// Advance is the way to choose the candidate commit.
type Advance string

// The ways to choose a candidate.
const (
	LatestPassed  Advance = "latest-passed"
	Latest        Advance = "latest"
	MatchUpstream Advance = "match-upstream"
	Queue         Advance = "queue"
	Lockstep      Advance = "lockstep"
	Batch         Advance = "batch"
)

// Write is the way to write a tree to an environment's branch.
type Write string

// The ways to write.
const (
	WriteDefault     Write = "" // WritePullRequest if there is a forge
	WritePush        Write = "push"
	WritePullRequest Write = "pull-request"
)

// EnvironmentSource is the place of an environment's own files: a folder of a branch of the
// platform's repository.
type EnvironmentSource struct {
	Branch string `json:"branch"`
	Path   string `json:"path"` // "." for the branch's root
}

// Ring is a part of an environment's cluster types.
type Ring struct {
	Name   string
	Select Selector // over cluster types
	After  []string // rings
	Gates  Gates
}

// Gates are the conditions for a commit. A nil or empty field is not a condition.
type Gates struct {
	Rollout   *RolloutGate
	Status    []StatusGate
	Soak      *SoakGate
	Approvals *ApprovalsGate
	Windows   []Window
	HTTP      []HTTPGate
	Policy    []PolicyGate
	Budget    *BudgetGate
	// OwnApprovals are required in addition to Approvals if the environment's own files change.
	OwnApprovals *ApprovalsGate
}

// The names of kinds of gates that code refers to. Package promotion/gate has the table of all
// kinds.
const (
	GateErrors    = "errors" // also a value of allow, like kept
	GateKept      = "kept"
	GateReject    = "reject"
	GateHold      = "hold"
	GateAfter     = "after"
	GateSoak      = "soak"
	GateApprovals = "approvals"
)

// ChangeFields are the fields of the planned change that a policy gate may constrain, sorted.
// They are the fields of gate.Change; a test compares both.
var ChangeFields = []string{"added", "assignments", "base", "changed", "clusterTypes", "clusters",
	"counts", "created", "deleted", "emptied", "environment", "errors", "kept", "own", "removals",
	"removed", "ring", "updated"}

// RolloutGate is the condition that enough clusters have rolled out a commit.
type RolloutGate struct {
	Source     string // any, status, kubernetes, report or none
	Min        string // a percentage, as "99.5%"
	MaxFailed  int
	Timeout    time.Duration // 0 for never
	StaleAfter time.Duration // 0 for never
	Exclude    bool          // stale reports do not count
	AllowEmpty bool          // a commit that assigns nothing passes
	Status     []StatusGate
	By         []string
}

// StatusGate is the condition that a commit status on the base commit succeeds.
type StatusGate struct {
	Name string   `json:"name"` // * matches any text
	By   []string `json:"by,omitempty"`
}

// SoakGate is the condition that no failure occurs during a time span.
type SoakGate struct {
	For         time.Duration
	Environment string // "" for the environments, or the rings, in After
	// Restart lets a failure during the time only restart the time. Without it, the failure
	// also blocks.
	Restart bool
}

// ApprovalsGate is the condition that enough people have approved.
type ApprovalsGate struct {
	Count int      `json:"count"`
	From  []string `json:"from,omitempty"` // nil for anyone except the author
}

// Window is a time in which commits may, or may not, be promoted. Package window reads From and
// To.
type Window struct {
	Deny bool   `json:"deny"`
	From string `json:"from"`
	To   string `json:"to"`
	TZ   string `json:"tz"`
	Why  string `json:"why,omitempty"`
}

// HTTPGate is the condition that a service approves.
type HTTPGate struct {
	Name, URL string
	Timeout   time.Duration
	TokenFrom string // an environment variable; "" without a token
}

// PolicyGate is a constraint on the planned change.
type PolicyGate struct {
	Name   string
	Change Expr // open at every level except where it closes itself, as in a Contract
	Hint   string
}

// BudgetGate bounds the changes of one step. There is no bound for a nil field.
type BudgetGate struct {
	Assignments  *int `json:"assignments,omitempty"`
	ClusterTypes *int `json:"clusterTypes,omitempty"`
	Clusters     *int `json:"clusters,omitempty"`
}

// Declaration is an environment as the platform's base declares it.
type Declaration struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Formerly are the earlier names, newest first.
	Formerly []string `json:"-"`
	After    []string `json:"after"`
	// GitOps is the unchecked setting of the base; nil if the base does not set it.
	GitOps *GitOps `json:"gitops,omitempty"`
	// Evaluation bounds the costs of the environment's evaluation; empty for kalypso's own
	// bounds.
	Evaluation EvaluationBounds `json:"evaluation"`
	// Promotion describes how commits reach the environment, according to the base.
	Promotion Promotion `json:"-"`
	// Invalid reports whether the base has errors in the environment. Promotion may then be
	// incomplete.
	Invalid bool `json:"-"`
	// NoRings reports whether the environment's own files have both rings and errors, so that
	// the rings of Promotion are unknown.
	NoRings bool `json:"-"`
	// Beyond is the bound of costs that these files exceed; "" if that is not the error.
	Beyond string `json:"-"`
}

// EvaluationBounds are the bounds of the costs of an environment's evaluation, as the base
// writes them; "" for kalypso's own.
type EvaluationBounds struct {
	CPU    string `json:"cpu"`    // such as 10m
	Memory string `json:"memory"` // such as 8Gi
}
