// Package performance says how well releases go, in the four measures of DORA
// (https://dora.dev/guides/dora-metrics-four-keys/). Releases go in; it keeps nothing.
package performance

import (
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/hub/store"
)

// Performance is how well the releases of an environment go. A release is a commit by which a
// ring got a change.
type Performance struct {
	Environment string
	Releases    int     // that were committed in the time
	PerWeek     float64 // how many that is in a week
	// Lead is how long those that were complete took, from the commit until all of it was ok.
	Completed int
	Lead      Quantiles
	// Failed are those of which more failed than the platform lets fail, and FailureRate is
	// their part of all that were complete or failed, from 0 to 1.
	Failed      int
	FailureRate float64
	// Restore is how long it took after a failure until all of the ring was ok again, by the
	// same release or a later one.
	Restored int
	Restore  Quantiles
}

// Quantiles are the time that half of all took at most, and that nine of ten did, in whole seconds.
type Quantiles struct{ Median, P90 time.Duration }

// Of returns how well releases went that were committed from a time on, until another one, by
// environment, in the order in which the environments are first met.
func Of(releases []store.Release, since, until time.Time) []Performance {
	var out []Performance
	at, ended := map[string]int{}, map[string]int{}
	leads, restores := map[string][]time.Duration{}, map[string][]time.Duration{}
	for _, r := range releases {
		if r.At.Before(since) || !r.At.Before(until) {
			continue
		}
		i, found := at[r.Environment]
		if !found {
			i = len(out)
			at[r.Environment] = i
			out = append(out, Performance{Environment: r.Environment})
		}
		p := &out[i]
		p.Releases++
		if !r.Completed.IsZero() || !r.Failed.IsZero() {
			ended[r.Environment]++
		}
		if !r.Completed.IsZero() {
			p.Completed++
			leads[r.Environment] = append(leads[r.Environment], max(r.Completed.Sub(r.Committed), 0))
		}
		if r.Failed.IsZero() {
			continue
		}
		p.Failed++
		if !r.Restored.IsZero() {
			p.Restored++
			restores[r.Environment] = append(restores[r.Environment], r.Restored.Sub(r.Failed))
		}
	}
	weeks := until.Sub(since).Hours() / (7 * 24)
	for i := range out {
		p := &out[i]
		p.Lead, p.Restore = quantiles(leads[p.Environment]), quantiles(restores[p.Environment])
		if weeks > 0 {
			p.PerWeek = float64(p.Releases) / weeks
		}
		if n := ended[p.Environment]; n > 0 {
			p.FailureRate = float64(p.Failed) / float64(n)
		}
	}
	return out
}

// quantiles are by the nearest rank.
func quantiles(all []time.Duration) Quantiles {
	if len(all) == 0 {
		return Quantiles{}
	}
	slices.Sort(all)
	rank := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1].Round(time.Second) }
	return Quantiles{rank(50), rank(90)}
}
