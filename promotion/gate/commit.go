package gate

import (
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Kinds are the kinds of gates, in the order of verdicts: those of Commit, and then
// those of Planned.
var Kinds = slices.Concat(commitKinds, plannedKinds)

var (
	commitKinds  = []string{"reject", "hold", "freeze", "history", "after", "status", "soak", "windows"}
	plannedKinds = []string{"errors", "kept", "removals", "budget", "policy", "http", "approvals"}
)

// IsPlanned reports whether a kind of gate is one of Planned.
func IsPlanned(kind string) bool { return slices.Contains(plannedKinds, kind) }

// Commit answers the gates that need nothing but the commit: reject, hold, freeze
// and history where they speak against it, and after, status, soak and windows
// where the policy has them. There is one verdict of each kind, but for status and
// soak: those have one for each gate, the environment's before the ring's. Verdicts
// are in the order of Kinds.
func Commit(p Policy, f CommitFacts, s Skip) []Verdict {
	var vs []Verdict
	if f.Rejected != nil {
		vs = append(vs, Verdict{
			Gate: "reject", State: Blocked,
			Reason: git.Short(f.Commit) + " is rejected" + f.Rejected.why(), Since: f.Rejected.At.UTC(),
		})
	}
	if f.Aborted != nil && f.Rejected == nil {
		vs = append(vs, Verdict{
			Gate: "reject", State: Blocked,
			Reason: git.Short(f.Commit) + " was called off" + f.Aborted.why() + "; --commit " + git.Short(f.Commit) + " takes it up again", Since: f.Aborted.At.UTC(),
		})
	}
	vs = append(vs, ordered("hold", p.place()+" is held", f.Hold, f.Now)...)
	vs = append(vs, ordered("freeze", p.Environment+" is frozen", f.Freeze, f.Now)...)
	if !f.Reachable {
		vs = append(vs, Verdict{
			Gate: "history", State: Blocked,
			Reason: "rewritten history: the platform's branch does not have " + git.Short(f.Commit) + " any more; name the commit that comes next, with --commit",
		})
	}
	if !f.EnvironmentOnly || p.Rings {
		vs = append(vs, after(p, f)...)
	}
	if !f.EnvironmentOnly {
		vs = append(vs, statuses(p, f)...)
		vs = append(vs, soaks(p, f)...)
	}
	vs = append(vs, windows(p, f.Now)...)
	return skip(p, s, vs)
}

// place returns the place of the policy, as ENVIRONMENT/RING.
func (p Policy) place() string { return place(p.Environment, p.Ring) }

func place(environment, ring string) string {
	if ring == "" {
		return environment
	}
	return environment + "/" + ring
}

// ordered returns the verdict of an order, until it ends.
func ordered(gate, what string, order *Freeze, now time.Time) []Verdict {
	if order == nil {
		return nil
	}
	v := Verdict{Gate: gate, State: Blocked, Reason: what + order.why(), Since: order.At.UTC()}
	if !order.Until.IsZero() {
		if !now.Before(order.Until) {
			return nil
		}
		v.State, v.Until = Pending, order.Until.UTC()
		v.Reason += ", until " + instant(v.Until)
	}
	return []Verdict{v}
}

// why returns who gave the order, when, and for what reason.
func (f *Freeze) why() string {
	var why string
	if f.By != "" {
		why += " by " + printable(f.By)
	}
	if !f.At.IsZero() {
		why += " since " + instant(f.At)
	}
	if f.Reason != "" {
		why += ": " + printable(f.Reason)
	}
	return why
}
