package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kalypso-io/kalypso/hub/state"
)

// fleet collects what a hub knows of some environments, as it is when it is asked.
type fleet struct {
	*Metrics
	environments state.Environments
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	assignments = describe("kalypso_assignments", "Assignments on clusters that are wanted, by state.",
		"environment", "ring", "state")
	workloads = describe("kalypso_assignments", "Assignments on clusters that are wanted, by state.",
		"environment", "ring", "workload", "state")
	ratio = describe("kalypso_rollout_ratio", "The part of wanted assignments on clusters "+
		"that is ok, from 0 to 1.", "environment", "ring")
	clusters = describe("kalypso_clusters", "Clusters, by what is known of them: heard, stale "+
		"(no news lately) or never.", "environment", "state")
	conflicts = describe("kalypso_cluster_conflicts", "Names of clusters that two clusters report "+
		"by, within an hour.", "environment")
	leadTime = describe("kalypso_release_lead_time_seconds", "From the commit of a release until "+
		"all of it was ok.", "environment")
	releases = describe("kalypso_releases_total", "Releases of rings: all that were started, and "+
		"those of them that were completed, and that failed, which may be the same.", "environment", "result")
)

// leadBuckets are the upper bounds of lead times: a minute to a week.
var leadBuckets = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

// Describe sends nothing: the labels of kalypso_assignments are chosen when the hub starts.
func (f *fleet) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics.
func (f *fleet) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	filter := state.Filter{Environments: f.environments}
	by := []state.Dimension{state.ByEnvironment, state.ByRing}
	for _, g := range f.hub.Fleet().Count(filter, by...) {
		if wanted := g.Tally.Wanted(); wanted > 0 {
			gauge(ratio, float64(g.Tally[state.OK])/float64(wanted), g.Values...)
		}
	}
	desc := assignments
	if f.perWorkload {
		by, desc = append(by, state.ByWorkload), workloads
	}
	for _, g := range f.hub.Fleet().Count(filter, by...) {
		for _, s := range state.States() {
			gauge(desc, float64(g.Tally[s]), append(g.Values[:len(g.Values):len(g.Values)], s.String())...)
		}
	}
	for _, w := range f.hub.Fleet().Environments() {
		if f.environments.Has(w.Environment) {
			heard, stale, never := f.hub.Fleet().Clusters(w.Environment)
			for name, n := range map[string]int{"heard": heard, "stale": stale, "never": never} {
				gauge(clusters, float64(n), w.Environment, name)
			}
			gauge(conflicts, float64(len(f.hub.Fleet().Conflicts(w.Environment))), w.Environment)
		}
	}
	f.released(to)
}

// times are the lead times of an environment.
type times struct {
	started, completed, failed uint64
	sum                        float64
	buckets                    map[float64]uint64
}

// released sends the metrics of releases.
func (f *fleet) released(to chan<- prometheus.Metric) {
	all, err := f.all()
	if err != nil {
		to <- prometheus.NewInvalidMetric(releases, err)
		return
	}
	of := map[string]*times{}
	for _, r := range all {
		if !f.environments.Has(r.Environment) {
			continue
		}
		t := of[r.Environment]
		if t == nil {
			t = &times{buckets: map[float64]uint64{}}
			for _, b := range leadBuckets {
				t.buckets[b.Seconds()] = 0
			}
			of[r.Environment] = t
		}
		t.started++
		if !r.Failed.IsZero() {
			t.failed++
		}
		if r.Completed.IsZero() {
			continue
		}
		t.completed++
		took := max(r.Completed.Sub(r.Committed), 0)
		t.sum += took.Seconds()
		for _, b := range leadBuckets {
			if took <= b {
				t.buckets[b.Seconds()]++
			}
		}
	}
	for environment, t := range of {
		to <- prometheus.MustNewConstHistogram(leadTime, t.completed, t.sum, t.buckets, environment)
		for result, n := range map[string]uint64{"started": t.started, "completed": t.completed, "failed": t.failed} {
			to <- prometheus.MustNewConstMetric(releases, prometheus.CounterValue, float64(n), environment, result)
		}
	}
}
