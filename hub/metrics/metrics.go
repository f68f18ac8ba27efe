// Package metrics exports a hub's view of the clusters, and the hub's own health, to Prometheus.
// Labels are bounded: there are no names of clusters, and workload names are optional.
package metrics

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
)

// Metrics collects the metrics of a hub. Any number of goroutines may use it.
type Metrics struct {
	hub         *hub.Hub
	perWorkload bool
	registry    *prometheus.Registry // the metrics of the program itself, without the fleet
	reports     *prometheus.CounterVec
	seconds     prometheus.Histogram

	mu       sync.Mutex
	read     time.Time
	releases []api.Release
}

// New returns the metrics of a hub. wantedAt returns the time when the wanted state was last read.
// If that time is not known, wantedAt is nil.
func New(h *hub.Hub, wantedAt func() time.Time, perWorkload bool) *Metrics {
	m := &Metrics{
		hub: h, perWorkload: perWorkload, registry: prometheus.NewRegistry(),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kalypso_hub_reports_total",
			Help: "Reports, by their result: taken, unlisted (no environment has the cluster), resend " +
				"(the hub needs the items), invalid, busy or error."}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "kalypso_hub_report_seconds",
			Help:    "How long a report took until it was stored.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}}),
	}
	for _, result := range []string{resultTaken, resultUnlisted, resultResend, resultInvalid,
		resultBusy, resultError} {
		m.reports.WithLabelValues(result)
	}
	m.registry.MustRegister(m.reports, m.seconds, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kalypso_hub_queue",
			Help: "Reports that wait to be stored."}, func() float64 { return float64(h.Waiting()) }))
	if wantedAt != nil {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kalypso_hub_wanted_age_seconds",
			Help: "How long ago it was last seen what the GitOps " +
				"branches want; since the hub began where it never was."},
			func() float64 { return h.Now().Sub(wantedAt()).Seconds() }))
	}
	return m
}

// The results of reports.
const (
	resultTaken    = "taken"
	resultUnlisted = "unlisted"
	resultResend   = "resend"
	resultInvalid  = "invalid"
	resultBusy     = "busy"
	resultError    = "error"
)

// Report counts a report.
func (m *Metrics) Report(outcome state.Outcome, err error, took time.Duration) {
	result := resultTaken
	switch {
	case errors.Is(err, hub.ErrBusy):
		result = resultBusy
	case errors.Is(err, hub.ErrText):
		result = resultInvalid
	case err != nil:
		result = resultError
	case outcome.Unlisted && !outcome.Early:
		result = resultUnlisted
	case outcome.Resend:
		result = resultResend
	}
	m.reports.WithLabelValues(result).Inc()
	m.seconds.Observe(took.Seconds())
}

// Serve answers with the metrics of some environments. If of is nil, it adds the metrics of the hub
// itself.
func (m *Metrics) Serve(w http.ResponseWriter, r *http.Request, of state.Environments) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&fleet{m, of})
	gatherers := prometheus.Gatherers{registry}
	if of == nil {
		gatherers = append(gatherers, m.registry)
	}
	promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// readEvery is the maximum age of the releases in metrics. readTimeout is how long the database may
// take, because Prometheus waits 10 seconds.
const (
	readEvery   = time.Minute
	readTimeout = 5 * time.Second
)

// all returns all releases.
func (m *Metrics) all() ([]api.Release, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.hub.Now()
	if !m.read.IsZero() && now.Sub(m.read) < readEvery {
		return m.releases, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	releases, err := m.hub.Store().ReleasesSince(ctx, nil, time.Time{})
	if err != nil {
		return nil, err
	}
	m.read, m.releases = now, releases
	return releases, nil
}

// fleet collects the hub's view of some environments at the time of the scrape.
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
		"those of them that were completed, and that failed, which may be the same.", "environment",
		"result")
)

// leadBuckets are the upper bounds of lead times: a minute to a week.
var leadBuckets = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

// Describe sends no descriptions, because the labels of kalypso_assignments depend on the hub's
// options.
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
		for result, n := range map[string]uint64{"started": t.started, "completed": t.completed,
			"failed": t.failed} {
			to <- prometheus.MustNewConstMetric(releases, prometheus.CounterValue, float64(n), environment,
				result)
		}
	}
}
