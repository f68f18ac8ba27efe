// Package window decides when commits may reach an environment.
//
// Its input is the fields of a window in the schema. Its output is the times when the
// window is open. It computes them only from the given time and from the rules of time
// zones. The machine has these rules; if it does not, the package uses the rules at the
// time when the program was built.
package window

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for machines that know no time zones, such as bare containers
)

// Window is a span of time that comes once, or every week. It is immutable.
type Window struct {
	// from and to are the times on the clock when it begins and ends, as if the clock
	// showed UTC. For a weekly window, both are in one week, or to is in the next.
	from, to time.Time
	weekly   bool
	zone     *time.Location
}

// Error reports the wrong field of a window, and the reason.
type Error struct {
	Field string // from, to or tz
	Why   string
}

// Error returns the field and the reason.
func (e *Error) Error() string { return e.Field + ": " + e.Why }

// days are the days of a week, as windows name them, from someWeek on.
var days = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// someWeek is a Monday.
var someWeek = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

const week = 7 * 24 * time.Hour

// Parse reads a window from its fields. from and to are two moments of a week ("fri 16:00")
// or of the calendar ("2026-12-20T00:00"). tz is the IANA name of the time zone whose
// clocks show them. The error is an *Error.
func Parse(from, to, tz string) (Window, error) {
	zone, err := time.LoadLocation(tz)
	if err != nil || tz == "" || tz == "Local" { // the last are names of Go's only
		return Window{}, &Error{"tz", fmt.Sprintf("%q is no time zone that is known", tz)}
	}
	w := Window{zone: zone}
	var weeklyTo bool
	if w.from, w.weekly, err = moment(from); err != nil {
		return Window{}, &Error{"from", err.Error()}
	}
	if w.to, weeklyTo, err = moment(to); err != nil {
		return Window{}, &Error{"to", err.Error()}
	}
	switch {
	case w.weekly != weeklyTo:
		return Window{}, &Error{"to", "one of from and to is a time of the week, and the other is a date"}
	case w.from.Equal(w.to):
		return Window{}, &Error{"to", "the window ends when it begins"}
	case w.weekly && w.to.Before(w.from):
		w.to = w.to.Add(week)
	case w.to.Before(w.from):
		return Window{}, &Error{"to", "the window ends before it begins"}
	}
	if _, end := w.Next(time.Time{}); !w.weekly && end.IsZero() {
		return Window{}, &Error{"to", fmt.Sprintf("clocks of %s skip the window", tz)}
	}
	return w, nil
}

// moment reads a moment, as if it were of UTC.
func moment(text string) (t time.Time, weekly bool, err error) {
	if t, err = time.Parse("2006-01-02T15:04", text); err == nil {
		return t, false, nil
	}
	name, clock, _ := strings.Cut(text, " ")
	day := slices.Index(days, name)
	t, err = time.Parse("15:04", clock)
	if day < 0 || err != nil || len(clock) != len("15:04") {
		return time.Time{}, false,
			fmt.Errorf("%q is neither a time of the week, as %q, nor a date and time that there is, as %q",
				text, "fri 16:00", "2026-12-20T00:00")
	}
	return someWeek.AddDate(0, 0,
		day).Add(time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute), true, nil
}

// Contains reports whether t is in the window: whether clocks show a time in it then. Of a time
// that they show twice, both are in it.
func (w Window) Contains(t time.Time) bool {
	from, to := w.Next(t)
	return !to.IsZero() && !t.Before(from)
}

// Next returns the begin and the end of the window that contains t, or else of the next
// one. It returns zero times if the window never comes again. If clocks are put back within
// the window, or into it, it may come twice.
func (w Window) Next(t time.Time) (from, to time.Time) {
	begin := t.AddDate(0, 0, -21) // no window that t is in began earlier
	if !w.weekly {
		begin = w.from.AddDate(0, 0, -3)
	}
	for begin = begin.In(w.zone); ; {
		_, offset := begin.Zone()
		ahead := time.Duration(offset) * time.Second
		first, last := begin.ZoneBounds() // in which clocks are not changed
		n := time.Duration(0)
		if w.weekly {
			n = shown(begin).Sub(someWeek)/week - 2
		}
		for ; ; n++ {
			at, end := w.from.Add(n*week-ahead), w.to.Add(n*week-ahead)
			if !first.IsZero() && at.Before(first) {
				at = first
			}
			if !last.IsZero() && end.After(last) {
				end = last
			}
			switch {
			case !at.Before(end): // clocks skip it, or show it at another time
			case at.Equal(to):
				to = end
			case to.After(t):
				return from, to
			default:
				from, to = at, end
			}
			if !w.weekly || !last.IsZero() && !w.from.Add((n+1)*week-ahead).Before(last) || last.IsZero() &&
				to.After(t) {
				break
			}
		}
		if last.IsZero() || !w.weekly && last.After(w.to.AddDate(0, 0, 3)) {
			if to.After(t) {
				return from, to
			}
			return time.Time{}, time.Time{}
		}
		begin = last.In(w.zone)
	}
}

// shown returns the time on the clock at t, as if the clock showed UTC.
func shown(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
