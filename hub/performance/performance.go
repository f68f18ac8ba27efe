// Package performance computes the four measures of DORA
// (https://dora.dev/guides/dora-metrics-four-keys/) from releases. It stores nothing.
package performance

import (
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
)

// Of returns the measures of the releases that were committed in a period, by environment. The
// environments are in the order of their first release. The list is never nil.
func Of(releases []api.Release, since, until time.Time) []api.Performance {
	out := []api.Performance{}
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
			out = append(out, api.Performance{Environment: r.Environment})
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
		p.LeadMedian, p.LeadP90 = quantile(leads[p.Environment], 50), quantile(leads[p.Environment], 90)
		p.Restore = quantile(restores[p.Environment], 50)
		if weeks > 0 {
			p.PerWeek = float64(p.Releases) / weeks
		}
		if n := ended[p.Environment]; n > 0 {
			p.FailureRate = float64(p.Failed) / float64(n)
		}
	}
	return out
}

// quantile returns the duration, in whole seconds, that a percentage of all durations do not
// exceed, by the nearest rank. It returns 0 if all is empty. It sorts all.
func quantile(all []time.Duration, percent int) int {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return int(all[(len(all)*percent+99)/100-1].Round(time.Second) / time.Second)
}
