package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// fleet is the wanted state of hosts with one assignment each.
type fleet struct {
	hosts   int
	commits []state.Commit
	digest  string
}

// commit adds a commit that wants a digest of the assignment.
func (f *fleet) commit(digest string) *state.DesiredState {
	commits := append([]state.Commit{{ID: fmt.Sprintf("%040x", len(f.commits)+1)}}, f.commits...)
	if len(f.commits) > 0 && f.digest != digest {
		commits[1].Was = map[string]string{state.Key("edge", "hello-main"): f.digest}
	}
	f.commits, f.digest = commits, digest
	w := &state.DesiredState{Environment: "prod", Commits: commits, Folders: []state.Folder{{
		Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "hello-main", Workload: "hello", Version: digest, Digest: digest}},
	}}}
	for i := range f.hosts {
		w.Clusters = append(w.Clusters, state.Cluster{Name: host(i), Folder: "edge"})
	}
	return w
}

func host(i int) string { return fmt.Sprintf("host%05d", i) }

// says reports that a host runs the n-th commit.
func (r *running) says(c *clock, i, commit int, s state.ReportedState, message string) {
	r.t.Helper()
	r.report(state.Report{Cluster: host(i), Received: c.now(), Items: []state.Item{{Assignment: "prod/edge/hello-main", Commit: fmt.Sprintf("%040x", commit), State: s, Message: message}}})
}

func (r *running) counts() state.Tally {
	r.t.Helper()
	r.look()
	groups := r.Fleet().Count(state.Filter{Environments: state.In("prod"), Workload: "hello"})
	if len(groups) != 1 {
		r.t.Fatalf("%d groups", len(groups))
	}
	return groups[0].Tally
}

// A hub that compares commits, or overwrites the reported state, answers five questions wrongly.
// TestRollback asks the first: after a rollback, a failed version does not count as failed any
// more.
func TestRollback(t *testing.T) {
	c, f := newClock(), &fleet{hosts: 1}
	r := start(t, hubtest.SQLite(t)(), c, time.Hour)
	r.want(f.commit("a"))
	r.says(c, 0, 1, state.ReportedOK, "")
	r.want(f.commit("b"))
	r.says(c, 0, 2, state.ReportedFailed, "no such image")
	if got := r.counts(); got[state.Failed] != 1 {
		t.Fatalf("b failed, and the counts are %v", got)
	}
	r.want(f.commit("a"))
	if got := r.counts(); got[state.Behind] != 1 {
		t.Errorf("b still runs, and the counts are %v", got)
	}
	c.pass(time.Second)
	r.says(c, 0, 3, state.ReportedOK, "")
	if got := r.counts(); got[state.OK] != 1 {
		t.Errorf("a runs again, and the counts are %v", got)
	}
	r.want(f.commit("b"))
	r.want(f.commit("a")) // rolled back before any report
	if got := r.counts(); got[state.OK] != 1 {
		t.Errorf("a runs, and the counts are %v", got)
	}
}

// TestUnrelatedCommit adds commits about something else. A comparison of commits would then show no
// host as deployed.
func TestUnrelatedCommit(t *testing.T) {
	c, f := newClock(), &fleet{hosts: 3}
	r := start(t, hubtest.SQLite(t)(), c, time.Hour)
	r.want(f.commit("a"))
	for i := range 2 {
		r.says(c, i, 1, state.ReportedOK, "")
	}
	for range 5 {
		r.want(f.commit("a"))
	}
	r.says(c, 2, 4, state.ReportedOK, "")
	if got := r.counts(); got[state.OK] != 3 {
		t.Errorf("the counts are %v", got)
	}
}

// TestNobodyReports checks clusters that have not reported. They are missing, and the counts
// include every cluster that should report.
func TestNobodyReports(t *testing.T) {
	c, f := newClock(), &fleet{hosts: 100}
	r := start(t, hubtest.SQLite(t)(), c, time.Hour)
	r.want(f.commit("a"))
	if got := r.counts(); got[state.Missing] != 100 || got.Wanted() != 100 {
		t.Errorf("the counts are %v", got)
	}
	for i := range 73 {
		r.says(c, i, 1, state.ReportedOK, "")
	}
	if got := r.counts(); got[state.OK] != 73 || got.Wanted() != 100 {
		t.Errorf("73 of 100 are ok, and the counts are %v", got)
	}
}

// TestPast checks the history of an assignment.
func TestPast(t *testing.T) {
	c, f := newClock(), &fleet{hosts: 1}
	r := start(t, hubtest.SQLite(t)(), c, time.Hour)
	r.want(f.commit("a"))
	var want []string
	note := func(s string) {
		want = append([]string{c.now().Format(time.TimeOnly) + " " + s}, want...)
	}
	note("->missing")
	for _, s := range []state.ReportedState{state.ReportedProgressing, state.ReportedFailed, state.ReportedProgressing, state.ReportedOK} {
		c.pass(time.Minute)
		was := r.counts()
		for i, n := range was {
			if n == 1 {
				note(state.State(i).String() + "->" + s.String())
			}
		}
		r.says(c, 0, 1, s, "")
	}
	rows, _, err := r.Store().History(context.Background(), store.Filter{Filter: state.Filter{Cluster: host(0)}}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range rows {
		got = append(got, x.At.Format(time.TimeOnly)+" "+x.Was+"->"+x.State)
	}
	equal(t, "what happened and the history", want, got)
}

// TestTenThousandHosts counts many hosts. A query for the newest row of each host would take 93 s.
func TestTenThousandHosts(t *testing.T) {
	const hosts = 10_000
	c, f := newClock(), &fleet{hosts: hosts}
	r := start(t, hubtest.SQLite(t)(), c, time.Hour)
	r.want(f.commit("a"))
	r.want(f.commit("b"))
	at := make(chan int)
	done := make(chan error)
	for range 64 { // of many simultaneous reports, many are written at once
		go func() {
			var failed error
			for i := range at {
				report := state.Report{Cluster: host(i), Received: c.now(), Items: []state.Item{{Assignment: "prod/edge/hello-main", Commit: fmt.Sprintf("%040x", 1+i%2), State: state.ReportedOK}}}
				if i%100 == 1 {
					report.Items[0].State, report.Items[0].Message = state.ReportedFailed, "no such image"
				}
				if _, err := r.Report(context.Background(), &report); err != nil {
					failed = err
				}
			}
			done <- failed
		}()
	}
	for i := range hosts {
		at <- i
	}
	close(at)
	for range 64 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if got := r.counts(); got[state.Behind] != 5000 || got[state.OK] != 4900 || got[state.Failed] != 100 {
		t.Errorf("the counts are %v", got)
	}
	n := 0
	r.Fleet().List(state.Filter{States: []state.State{state.Failed}}, state.Position{}, func(row state.Row) bool {
		if n++; row.Message != "no such image" {
			t.Errorf("%+v", row)
		}
		return true
	})
	if n != 100 {
		t.Errorf("%d of them are listed as failed", n)
	}
}
