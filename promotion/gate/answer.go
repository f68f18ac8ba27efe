package gate

import (
	"cmp"
	"slices"
	"time"
)

// answer is the answer of one part of a gate, such as one ring of an environment.
type answer struct {
	name string // of an environment or a ring; "" for a part of such
	State
	reason       string
	since, until time.Time
	// never is true if a blocked answer stays blocked unless people skip the gate, because the
	// commit left too early.
	never bool
	// fails is true if a pending answer waits for the end of a failure.
	fails bool
}

// all returns the answer if every part has to pass. Its reasons are the reasons of the
// parts that do not pass.
func all(parts []answer) answer {
	var whole answer
	worst := func(s State) []answer {
		return slices.DeleteFunc(slices.Clone(parts), func(a answer) bool { return a.State != s })
	}
	blocked, pending := worst(Blocked), worst(Pending)
	switch {
	case len(blocked) > 0:
		whole = answer{State: Blocked, since: latest(blocked),
			never: slices.ContainsFunc(blocked, func(a answer) bool { return a.never })}
	case len(pending) > 0:
		whole = answer{State: Pending, since: latest(pending), until: pending[0].until,
			fails: slices.ContainsFunc(pending, func(a answer) bool { return a.fails })}
		for _, a := range pending {
			if a.until.IsZero() || whole.until.IsZero() {
				whole.until = time.Time{}
			} else if a.until.After(whole.until) {
				whole.until = a.until
			}
		}
	default:
		whole = answer{State: Passed, since: latest(parts)}
		whole.reason = list(reasons(parts), "; ")
		return whole
	}
	whole.reason = list(reasons(append(blocked, pending...)), "; ")
	return whole
}

// some returns the answer if one part is enough: the first that passed, or the reasons to wait.
func some(parts []answer) answer {
	whole := answer{State: Blocked, fails: true,
		never: !slices.ContainsFunc(parts, func(a answer) bool { return !a.never })}
	for _, a := range parts {
		switch {
		case a.State == Passed:
			a.reason += " (one is enough)"
			return a
		case a.State == Pending:
			whole.State, whole.fails = Pending, whole.fails && a.fails
			if !a.until.IsZero() && (whole.until.IsZero() || a.until.Before(whole.until)) {
				whole.until = a.until
			}
		}
	}
	whole.since = latest(parts)
	whole.reason = "one is enough: " + list(reasons(parts), "; ")
	return whole
}

func reasons(parts []answer) []string {
	var texts []string
	for _, a := range parts {
		texts = append(texts, a.reason)
	}
	return texts
}

// latest returns when the newest part of an answer began.
func latest(parts []answer) time.Time {
	if len(parts) == 0 {
		return time.Time{}
	}
	return slices.MaxFunc(parts, func(a, b answer) int { return a.since.Compare(b.since) }).since
}

// verdict returns the answer as the verdict of a gate with a name.
func (a answer) verdict(name string) Verdict {
	return Verdict{
		Name: cmp.Or(name, a.name), State: a.State, Reason: a.reason,
		Since: utc(a.since), Until: utc(a.until), Never: a.never, Fails: a.State == Pending && a.fails,
	}
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// Reason returns the reason why a commit cannot advance, in one line. It is about the first
// blocked gate, or else the first pending gate.
func Reason(verdicts []Verdict) string {
	for _, state := range []State{Blocked, Pending} {
		for _, v := range verdicts {
			if v.State == state {
				return v.Gate + ": " + v.Reason
			}
		}
	}
	return "every gate is passed"
}
