// Package metrics gives Prometheus what a hub knows, and how it fares. Labels are bounded: there
// are no names of clusters, and those of workloads only where they are asked for.
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

// Metrics are those of a hub. Any number of goroutines may use it.
type Metrics struct {
	hub         *hub.Hub
	perWorkload bool
	registry    *prometheus.Registry // of the program, and not of what it knows
	reports     *prometheus.CounterVec
	seconds     prometheus.Histogram

	mu       sync.Mutex
	read     time.Time
	releases []api.Release
}

// New returns the metrics of a hub. wantedAt returns when what is wanted was last read; nil where
// nobody knows.
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
	for _, result := range []string{resultTaken, resultUnlisted, resultResend, resultInvalid, resultBusy, resultError} {
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

// Serve answers with the metrics of some environments, and of the hub itself where those are all.
func (m *Metrics) Serve(w http.ResponseWriter, r *http.Request, of state.Environments) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&fleet{m, of})
	gatherers := prometheus.Gatherers{registry}
	if of == nil {
		gatherers = append(gatherers, m.registry)
	}
	promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// readEvery is how old what is known of releases may be, and readTimeout how long the database may
// take: Prometheus waits 10 seconds.
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
