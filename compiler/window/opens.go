package window

import (
	"slices"
	"time"
)

// Opens returns the first time from t on that is in none of deny and, of each of allow,
// in one of its windows: so that the windows of a ring narrow those of its environment.
// The zero Time where there is none; over says that this is so because no window of one
// of allow comes any more.
func Opens(deny []Window, allow [][]Window, t time.Time) (at time.Time, over bool) {
	// From the end of one window to the begin or the end of another. A week has three of
	// each window, and after three weeks nothing new comes, whatever clocks do.
	steps := 9 * (len(deny) + 1)
	for _, own := range allow {
		steps += 9 * len(own)
	}
	for range steps {
		closed := false
		for _, w := range deny {
			if _, to := w.Next(t); w.Contains(t) && to.After(t) {
				t, closed = to, true
			}
		}
		if closed {
			continue
		}
		i := slices.IndexFunc(allow, func(own []Window) bool {
			return !slices.ContainsFunc(own, func(w Window) bool { return w.Contains(t) })
		})
		if i < 0 {
			return t, false
		}
		var first time.Time
		for _, w := range allow[i] {
			if from, _ := w.Next(t); !from.IsZero() && from.After(t) && (first.IsZero() || from.Before(first)) {
				first = from
			}
		}
		if first.IsZero() {
			return first, true
		}
		t = first
	}
	return time.Time{}, false
}
