package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/window"
)

// opening is a window of the policy that could be parsed.
type opening struct {
	model.Window
	Parsed window.Window
}

// windows reports whether commits may enter at a time. No window that denies may contain the
// time. For each gate with other windows, one of them must contain it. So the windows of a ring
// narrow the windows of its environment.
func windows(p Policy, f CommitFacts) []Verdict {
	var deny []opening
	var allow [][]opening // by gate
	for _, g := range p.Gates {
		var own []opening
		for _, w := range g.Windows {
			parsed, err := window.Parse(w.From, w.To, w.TZ)
			if err != nil {
				return blocked("the window " + describe(w) + " cannot be read: " + err.Error())
			}
			o := opening{w, parsed}
			if w.Deny {
				deny = append(deny, o)
			} else {
				own = append(own, o)
			}
		}
		if len(own) > 0 {
			allow = append(allow, own)
		}
	}
	switch {
	case len(deny)+len(allow) == 0:
		return nil
	case f.Now.IsZero():
		return []Verdict{{State: Pending, Reason: "what time it is is not known"}}
	}
	return []Verdict{windowAnswer(deny, allow, f.Now).verdict("")}
}

func windowAnswer(deny []opening, allow [][]opening, now time.Time) answer {
	denied := slices.DeleteFunc(slices.Clone(deny),
		func(o opening) bool { return !o.Parsed.Contains(now) })
	if len(denied) > 0 {
		return closed("no commits "+list(descriptions(denied), " and "), begin(denied, now), deny, allow,
			now)
	}
	var open []opening
	for _, own := range allow {
		i := slices.IndexFunc(own, func(o opening) bool { return o.Parsed.Contains(now) })
		if i < 0 {
			return closed("commits only "+list(descriptions(own), " or "), time.Time{}, deny, allow, now)
		}
		open = append(open, own[i])
	}
	if len(open) > 0 {
		return answer{State: Passed, reason: "within " + list(descriptions(open), " and "),
			since: last(open, now)}
	}
	return answer{State: Passed, reason: "outside of " + list(descriptions(deny), " and ")}
}

// closed returns the answer if no commit may enter now, with the time when commits may enter, if
// ever.
func closed(why string, since time.Time, deny []opening, allow [][]opening, now time.Time) answer {
	until, state := opens(deny, allow, now)
	a := answer{State: state, since: since, until: until}
	switch {
	case !until.IsZero():
		a.reason = why + "; open " + instant(until)
	case state == Blocked:
		a.reason = why + "; none of the times comes again"
	default:
		a.reason = why + "; no open time was found"
	}
	return a
}

// opens finds the first time at which commits may come. If no window that allows
// commits comes any more, it is Blocked. If it finds no time within the steps that a
// sensible policy needs, it is Pending.
func opens(deny []opening, allow [][]opening, t time.Time) (time.Time, State) {
	others := make([][]window.Window, len(allow))
	for i, own := range allow {
		others[i] = parsed(own)
	}
	at, over := window.Opens(parsed(deny), others, t)
	if over {
		return at, Blocked
	}
	return at, Pending
}

func parsed(of []opening) []window.Window {
	var out []window.Window
	for _, o := range of {
		out = append(out, o.Parsed)
	}
	return out
}

// begin returns when the first of the windows that contain a time began.
func begin(windows []opening, now time.Time) time.Time {
	var first time.Time
	for _, o := range windows {
		if from, _ := o.Parsed.Next(now); first.IsZero() || from.Before(first) {
			first = from
		}
	}
	return first
}

// last returns when the last of the windows that contain a time began.
func last(windows []opening, now time.Time) time.Time {
	var at time.Time
	for _, o := range windows {
		if from, _ := o.Parsed.Next(now); from.After(at) {
			at = from
		}
	}
	return at
}

func descriptions(windows []opening) []string {
	var texts []string
	for _, o := range windows {
		texts = append(texts, describe(o.Window))
	}
	return texts
}

// describe returns a window as the policy has it.
func describe(w model.Window) string {
	text := fmt.Sprintf("%s to %s %s", w.From, w.To, w.TZ)
	if w.Why != "" {
		text += " (" + printable(w.Why) + ")"
	}
	return text
}
