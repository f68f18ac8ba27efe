package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// afterVerdicts reports whether the commit has passed the stages before: it was there, and its
// rollout has succeeded.
func afterVerdicts(p Policy, f CommitFacts) []Verdict {
	switch {
	case len(p.After) == 0:
		return nil
	case f.EnvironmentOnly && f.AtOnce != "":
		return p.notAsked("", printable(f.AtOnce))
	case f.EnvironmentOnly && !p.Rings:
		return p.notAsked("", OwnFiles)
	}
	return []Verdict{each(p, f, rolledOut).verdict("")}
}

// soakVerdicts reports, for each soak gate, whether the commit has run long enough in the gate's
// stages.
func soakVerdicts(p Policy, f CommitFacts) []Verdict {
	var vs []Verdict
	for _, g := range p.Gates {
		switch {
		case g.Soak == nil:
		case f.EnvironmentOnly && f.AtOnce != "":
			vs = append(vs, p.notAsked(g.Soak.Environment, printable(f.AtOnce))...)
		case f.EnvironmentOnly && (!p.Rings || p.OwnAtOnce || g.Soak.Environment != ""):
			vs = append(vs, p.notAsked(g.Soak.Environment, OwnFiles)...)
		default:
			vs = append(vs, soak(p, f, g.Soak).verdict(g.Soak.Environment))
		}
	}
	return vs
}

// OwnFiles is the reason why gates about other environments do not apply, and the Name of
// verdicts about only own files.
const OwnFiles = "own files"

// notAsked returns the verdict of a gate that does not apply. It returns no verdict for
// environments without rings, because all of their gates about other environments do not apply.
func (p Policy) notAsked(name, why string) []Verdict {
	if p.Ring == "" {
		return nil
	}
	return []Verdict{{Name: name, State: Passed, Reason: "not asked: " + why}}
}

func soak(p Policy, f CommitFacts, g *model.SoakGate) answer {
	ran := func(s Stay) answer {
		if !s.Came.After(s.Since) || f.Inherits || s.Since.IsZero() {
			return soaked(s, f.Now, g)
		}
		there := s.Since
		s.Since, s.As = s.Came, tree.Source{}
		a := soaked(s, f.Now, g)
		if a.State == Pending && !a.fails {
			a.reason += fmt.Sprintf(
				"; its files are there since %s, which counts if it changes nothing here", instant(there))
		}
		return a
	}
	switch {
	case g.Environment != "":
		return everywhere(f.Stays, g.Environment, "", ran)
	case len(p.After) == 0:
		return answer{State: Blocked, reason: "nothing to soak in for " + Span(g.For) +
			": the gate names no environment, and " + p.place() + " is after none"}
	}
	return each(p, f, ran)
}

// each evaluates all stages before, or stops at one of them if that is enough.
func each(p Policy, f CommitFacts, ask func(Stay) answer) answer {
	var parts []answer
	for _, name := range p.After {
		environment, ring := name, ""
		if p.Rings {
			environment, ring = p.Environment, name
		}
		part := everywhere(f.Stays, environment, ring, ask)
		part.name = name
		parts = append(parts, part)
	}
	if p.Any {
		return some(parts)
	}
	whole := all(parts)
	if len(parts) == 1 {
		whole.name = parts[0].name
	}
	return whole
}

// everywhere evaluates all rings of an environment, or the named one. If a ring has two stays,
// both have to pass.
func everywhere(stays []Stay, environment, ring string, ask func(Stay) answer) answer {
	var here []Stay
	for _, s := range stays {
		if s.Environment == environment && (ring == "" || s.Ring == ring) {
			here = append(here, s)
		}
	}
	if len(here) == 0 {
		return ask(Stay{Environment: environment, Ring: ring})
	}
	slices.SortFunc(here, func(a, b Stay) int {
		return cmp.Or(
			strings.Compare(a.Ring, b.Ring), a.Entered.Compare(b.Entered), a.Since.Compare(b.Since),
			a.Left.Compare(b.Left),
			strings.Compare(string(a.State), string(b.State)), strings.Compare(a.Reason, b.Reason),
		)
	})
	var parts []answer
	for _, s := range here {
		parts = append(parts, ask(s))
	}
	return all(parts)
}

// rolledOut reports whether the rollout of a stay has succeeded.
func rolledOut(s Stay) answer {
	a := answer{State: Pending, since: s.Since}
	switch {
	case s.Missed:
		a = answer{State: Blocked, reason: "has not had it, and has a newer one", never: true}
	case !s.Held:
		a.since = time.Time{}
		a.reason = "has not had it yet"
	case s.State == forge.Success:
		a.State, a.reason = Passed, "the rollout succeeded"
	case s.State == forge.Failure:
		a.State, a.reason = Blocked, "the rollout failed, and has to succeed"
	case !s.Left.IsZero():
		a.State, a.reason, a.never = Blocked, "it left before its rollout succeeded", true
	case s.Since.IsZero():
		a.reason = "nobody has reported yet"
	default:
		a.reason = "is rolling out"
	}
	a.reason = place(s.Environment, s.Ring) + ": " + a.reason
	reason := printable(s.Reason)
	switch rest, begins := strings.CutPrefix(reason, "rolling out"); {
	case !s.Held || reason == "":
	case begins && a.State == Pending:
		a.reason += rest // it is reported once
	case a.State == Passed && unicode.IsDigit(rune(reason[0])): // it may be another count by now
		a.reason += "; at that time: " + reason
	default:
		a.reason += "; " + reason
	}
	if a.State == Passed && s.Failing != "" {
		a.reason += "; since " + instant(s.FailingSince) + ": " + printable(s.Failing)
	}
	a.reason += s.sameFilesText()
	return a
}

// sameFilesText names the base commit that first had the files of a stay. It returns "" if this
// commit did.
func (s *Stay) sameFilesText() string {
	if s.As == (tree.Source{}) {
		return ""
	}
	return "; its files there are those of " + s.As.Describe()
}

// soaked reports whether a stay has lasted long enough without a failure. The stay starts when
// its rollout was reported to have succeeded, or when all failures ended. It ends now, or when
// the commit left.
func soaked(s Stay, now time.Time, g *model.SoakGate) answer {
	a, wanted := rolledOut(s), g.For
	where := place(s.Environment, s.Ring)
	switch {
	case s.Held && s.State != forge.Success && s.State != forge.Failure && !s.Left.IsZero():
		a.reason = fmt.Sprintf("left %s before its rollout succeeded; wanted there for %s", where,
			Span(wanted))
		return a
	case a.State != Passed:
		a.reason += fmt.Sprintf("; then %s to soak", Span(wanted))
		return a
	case s.Since.IsZero():
		a.State, a.reason = Pending,
			fmt.Sprintf("nobody says since when %s runs it; wanted for %s", where, Span(wanted))
		return a
	}
	if s.Failing != "" {
		a.State, a.since, a.never = Blocked, s.FailingSince, !s.Left.IsZero()
		a.reason = fmt.Sprintf("%s fails since %s, after its rollout succeeded: %s", where,
			instant(s.FailingSince), printable(s.Failing))
		switch {
		case a.never:
			a.reason += "; the commit left it then"
		case g.Restart:
			a.State, a.fails = Pending, true
			fallthrough
		default:
			a.reason += fmt.Sprintf("; the %s begin anew when all is ok", Span(wanted))
		}
		return a
	}
	again := ""
	if s.OKSince.After(s.Since) {
		s.Since, a.since = s.OKSince, s.OKSince
		again = ", anew after a failure"
	}
	if left := s.Left; !left.IsZero() && left.Sub(s.Since) < wanted {
		a.never = true
		a.State, a.reason = Blocked,
			fmt.Sprintf("left %s after %s of %s", where, elapsed(left.Sub(s.Since)), Span(wanted))
		return a
	}
	if ran := now.Sub(s.Since); ran < wanted {
		a.State, a.until = Pending, s.Since.Add(wanted)
		a.reason = fmt.Sprintf("soaking in %s for %s of %s, until %s", where, elapsed(ran), Span(wanted),
			instant(a.until)) + again + s.sameFilesText()
		return a
	}
	a.reason = fmt.Sprintf("soaked in %s for %s, since %s", where, Span(wanted), instant(s.Since)) +
		again + s.sameFilesText()
	return a
}
