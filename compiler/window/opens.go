package window

import (
	"slices"
	"time"
)

// Opens returns the first time from t on that is in no window of deny and in a window of
// each list in allow. So the windows of a ring narrow the windows of its environment. It
// returns the zero Time if there is no such time. over reports that the reason is a list in
// allow whose windows have all passed.
func Opens(deny []Window, allow [][]Window, t time.Time) (at time.Time, over bool) {
	// Each step moves from the end of one window to the begin or the end of another. A week
	// has three of each window. After three weeks nothing new comes, whatever clocks do.
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
			if from, _ := w.Next(t); !from.IsZero() && from.After(t) &&
				(first.IsZero() || from.Before(first)) {
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
