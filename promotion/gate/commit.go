package gate

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Commit evaluates the gates that need only the commit. These are reject, hold, freeze and
// history if they are against it, and after, status, soak and windows if the policy has them.
// There is one verdict of each kind, except for status and soak. They have a verdict for each
// gate, the environment's before the ring's. Verdicts are in the order of the table of kinds.
func Commit(p Policy, f CommitFacts, s Skip) []Verdict {
	var vs []Verdict
	for _, k := range table {
		if k.commit != nil {
			vs = append(vs, k.name(k.commit(p, f))...)
		}
	}
	return skip(p, s, vs)
}

// rejectVerdicts returns the verdict of an order to reject the commit, or to cancel it, and of
// orders to reject commits that it contains.
func rejectVerdicts(_ Policy, f CommitFacts) []Verdict {
	order, id := cmp.Or(f.Rejected, f.Aborted), git.Short(f.Commit)
	if order == nil {
		return contains(f)
	}
	reason := id + " is rejected" + order.why()
	if f.Rejected == nil {
		reason = id + " was called off" + order.why() + "; --commit " + id + " takes it up again"
	}
	return []Verdict{{State: Blocked, Reason: reason, Since: order.At.UTC()}}
}

// contains returns the verdict of orders against commits that the commit contains.
func contains(f CommitFacts) []Verdict {
	if len(f.Contains) == 0 {
		return nil
	}
	first, id := f.Contains[0], git.Short(f.Commit)
	reason := fmt.Sprintf("%s contains %s, which is rejected%s", id, git.Short(first.Commit),
		first.why())
	if more := len(f.Contains) - 1; more > 0 {
		reason += fmt.Sprintf(", and %d more that are", more)
	}
	if f.Named != "" {
		return []Verdict{{State: Passed, Reason: reason, Since: first.At.UTC(), Skipped: f.Named}}
	}
	reason += fmt.Sprintf("; revert it, take the rejection back with `kalypso reject %s --undo`, or "+
		"name %s with --commit and --reason", git.Short(first.Commit), id)
	return []Verdict{{State: Blocked, Reason: reason, Since: first.At.UTC()}}
}

func holdVerdicts(p Policy, f CommitFacts) []Verdict {
	return ordered(p.place()+" is held", f.Hold, f.Now)
}

func freezeVerdicts(p Policy, f CommitFacts) []Verdict {
	return ordered(p.Environment+" is frozen", f.Freeze, f.Now)
}

// historyVerdicts returns the verdict on a commit that the history of the platform's branch lost.
func historyVerdicts(p Policy, f CommitFacts) []Verdict {
	if f.Reachable {
		return nil
	}
	if f.Commit.IsZero() {
		return blocked("not promoted: what " + p.place() + " has was built from files, as `kalypso " +
			"build` does it, and from no commit of the platform; name the commit that comes next, with " +
			"--commit")
	}
	return blocked("rewritten history: the platform's branch does not have " + git.Short(f.Commit) +
		" any more; name the commit that comes next, with --commit")
}

func blocked(reason string) []Verdict { return []Verdict{{State: Blocked, Reason: reason}} }

// place returns the place of the policy, as ENVIRONMENT/RING.
func (p Policy) place() string { return place(p.Environment, p.Ring) }

func place(environment, ring string) string {
	if ring == "" {
		return environment
	}
	return environment + "/" + ring
}

// ordered returns the verdict of an order, until it ends.
func ordered(what string, order *Freeze, now time.Time) []Verdict {
	if order == nil {
		return nil
	}
	v := Verdict{State: Blocked, Reason: what + order.why(), Since: order.At.UTC()}
	if !order.Until.IsZero() {
		if !now.Before(order.Until) {
			return nil
		}
		v.State, v.Until = Pending, order.Until.UTC()
		v.Reason += ", until " + instant(v.Until)
	}
	return []Verdict{v}
}

// why returns the author of the order, its time, and its reason.
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
