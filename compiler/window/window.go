// Package window says when commits may come to an environment, and when not.
//
// In comes what a window of the schema says, out comes when it is: everything is
// computed from the time that is given, and from the time zones as the machine
// knows them, or else as they were when the program was built.
package window

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for machines that know no time zones, such as bare containers
)

// Window is a time that comes once, or every week. It is immutable.
type Window struct {
	// from and to are what clocks show where it begins and ends, as if they showed
	// UTC. Of a window that comes every week they are in one week, or to is in the
	// next.
	from, to time.Time
	weekly   bool
	zone     *time.Location
}

// Error says which field of a window is wrong, and why.
type Error struct {
	Field string // from, to or tz
	Why   string
}

func (e *Error) Error() string { return e.Field + ": " + e.Why }

// days are the days of a week, as windows name them, from someWeek on.
var days = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// someWeek is a Monday.
var someWeek = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

const week = 7 * 24 * time.Hour

// Parse reads a window from its fields: two moments of a week ("fri 16:00") or of
// the calendar ("2026-12-20T00:00"), and the IANA name of the time zone whose
// clocks show them. What clocks show twice is the first time, and what they skip
// the time at which they do. The error is an *Error.
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
	if !w.weekly && !w.first(w.from).Before(w.first(w.to)) {
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
		return time.Time{}, false, fmt.Errorf("%q is neither a time of the week, as %q, nor a date and time that there is, as %q", text, "fri 16:00", "2026-12-20T00:00")
	}
	return someWeek.AddDate(0, 0, day).Add(time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute), true, nil
}

// Contains says whether t is in the window. It begins with from, and to is the
// first time after it.
func (w Window) Contains(t time.Time) bool {
	from, to := w.Next(t)
	return !to.IsZero() && !t.Before(from)
}

// Next returns when the window is that t is in, or else when it is next; zero
// times where it will not be again.
func (w Window) Next(t time.Time) (from, to time.Time) {
	if !w.weekly {
		if from, to = w.first(w.from), w.first(w.to); t.Before(to) {
			return from, to
		}
		return time.Time{}, time.Time{}
	}
	// The one of the week before may not have ended, even where clocks were set by
	// a day. The next is missing where clocks skip it.
	for n := shown(t.In(w.zone)).Sub(someWeek)/week - 2; ; n++ {
		from, to = w.first(w.from.Add(n*week)), w.first(w.to.Add(n*week))
		if from.Before(to) && t.Before(to) {
			return from, to
		}
	}
}

// shown is what clocks show at t, as if they showed UTC.
func shown(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// first returns the first time at which clocks show a time, or a later one.
func (w Window) first(shows time.Time) time.Time {
	// No clock is two days ahead of UTC, and none is set by as much.
	t := shows.Add(-48 * time.Hour).In(w.zone)
	for {
		_, offset := t.Zone()
		at := shows.Add(-time.Duration(offset) * time.Second).In(w.zone)
		_, next := t.ZoneBounds()
		switch {
		case at.Before(t):
			return t // clocks skip it
		case next.IsZero() || at.Before(next):
			return at
		}
		t = next
	}
}
