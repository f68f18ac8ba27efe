package metrics

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func TestMain(m *testing.M) { isolated.Main(m) }

var now = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)

// newHub returns a hub of prod, with the clusters c0 to c2, and dev, with c9.
func newHub(t *testing.T) *hub.Hub {
	h, err := hub.Open(t.Context(), hub.Options{Store: hubtest.Open(t, hubtest.SQLite(t)()), StaleAfter: time.Hour, Now: func() time.Time { return now }, Problem: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { h.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	for i, e := range []struct {
		name     string
		clusters []string
	}{{"dev", []string{"c9"}}, {"prod", []string{"c0", "c1", "c2"}}} {
		w := &state.DesiredState{Environment: e.name, Commits: []state.Commit{{ID: "a", Time: now.Add(-10 * time.Minute), Rings: []state.Ring{{Name: "canary", Base: "s"}}}},
			Folders: []state.Folder{{Name: "edge", ClusterType: "edge", Ring: "canary", Listed: true, Targets: []state.Target{{Name: "web", Workload: "shop", Digest: "d"}}}}}
		for _, c := range e.clusters {
			w.Clusters = append(w.Clusters, state.Cluster{Name: c, Folder: "edge"})
		}
		if err := h.Want(t.Context(), i, w); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []string{"c9 a", "c0 a", "c0 b", "c0 a"} { // two clusters are c0
		c, uid, _ := strings.Cut(of, " ")
		_, err := h.Report(t.Context(), &state.Report{Cluster: c, UID: uid, Received: now, At: now, Snapshot: true, Items: []state.Item{
			{Assignment: "prod/edge/web", Digest: "d", State: state.ReportedOK}, {Assignment: "dev/edge/web", Digest: "d", State: state.ReportedOK}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func scrape(m *Metrics, environment string) string {
	w := httptest.NewRecorder()
	m.Serve(w, httptest.NewRequest("GET", "/metrics", nil), state.In(environment))
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	m := New(newHub(t), func() time.Time { return now.Add(-90 * time.Second) }, false)
	m.Report(state.Outcome{}, nil, time.Millisecond)
	m.Report(state.Outcome{Unlisted: true}, nil, time.Millisecond)
	m.Report(state.Outcome{Resend: true}, nil, time.Millisecond)
	m.Report(state.Outcome{}, hub.ErrBusy, time.Millisecond)
	m.Report(state.Outcome{}, hub.ErrText, time.Millisecond)
	m.Report(state.Outcome{}, errors.New("full"), time.Minute)
	all := scrape(m, "")
	for _, line := range []string{
		`kalypso_assignments{environment="prod",ring="canary",state="ok"} 1`,
		`kalypso_assignments{environment="prod",ring="canary",state="missing"} 2`,
		`kalypso_assignments{environment="dev",ring="canary",state="failed"} 0`,
		`kalypso_rollout_ratio{environment="prod",ring="canary"} 0.3333333333333333`,
		`kalypso_clusters{environment="prod",state="heard"} 1`,
		`kalypso_clusters{environment="prod",state="never"} 2`,
		`kalypso_clusters{environment="prod",state="stale"} 0`,
		`kalypso_cluster_conflicts{environment="prod"} 1`, `kalypso_cluster_conflicts{environment="dev"} 0`,
		`kalypso_releases_total{environment="prod",result="started"} 1`,
		`kalypso_releases_total{environment="prod",result="completed"} 0`,
		`kalypso_releases_total{environment="prod",result="failed"} 0`,
		`kalypso_hub_reports_total{result="taken"} 1`, `kalypso_hub_reports_total{result="unlisted"} 1`, `kalypso_hub_reports_total{result="resend"} 1`,
		`kalypso_hub_reports_total{result="busy"} 1`, `kalypso_hub_reports_total{result="invalid"} 1`, `kalypso_hub_reports_total{result="error"} 1`,
		`kalypso_hub_report_seconds_count 6`, `kalypso_hub_queue 0`, `kalypso_hub_wanted_age_seconds 90`,
	} {
		if !strings.Contains(all, "\n"+line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
	if dev := scrape(m, "dev"); strings.Contains(dev, "prod") || strings.Contains(dev, "kalypso_hub") || !strings.Contains(dev, `kalypso_rollout_ratio{environment="dev",ring="canary"} 1`) {
		t.Errorf("of dev alone:\n%s", dev)
	}
}

func TestLeadTime(t *testing.T) {
	h := newHub(t)
	err := h.Do(t.Context(), func(ctx context.Context, tx *store.Tx) (*state.Changes, error) {
		_, err := tx.Complete(ctx, "dev", "canary", "a", now)
		return nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	m := New(h, nil, true)
	if is := scrape(m, ""); !strings.Contains(is, `kalypso_assignments{environment="prod",ring="canary",state="ok",workload="shop"} 1`) || strings.Contains(is, "wanted_age") {
		t.Errorf("per workload:\n%s", is)
	}
	is := scrape(m, "dev")
	for _, line := range []string{
		`kalypso_release_lead_time_seconds_bucket{environment="dev",le="300"} 0`, `kalypso_release_lead_time_seconds_bucket{environment="dev",le="900"} 1`,
		`kalypso_release_lead_time_seconds_sum{environment="dev"} 600`, `kalypso_release_lead_time_seconds_count{environment="dev"} 1`,
	} {
		if !strings.Contains(is, "\n"+line+"\n") {
			t.Errorf("there is no %s in\n%s", line, is)
		}
	}
}

// Rules and dashboards use only metrics that exist.
func TestNames(t *testing.T) {
	is := scrape(New(newHub(t), func() time.Time { return now }, false), "")
	for _, file := range []string{"../dashboards/rules.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`kalypso_[a-z_]+`).FindAllString(string(text), -1) {
			if !strings.Contains(is, "\n"+name+"{") && !strings.Contains(is, "\n"+name+" ") {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
}
