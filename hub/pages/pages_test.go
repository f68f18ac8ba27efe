package pages_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/compiled"
	"github.com/kalypso-io/kalypso/hub/pages"
	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/browser"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/view"
)

func TestMain(m *testing.M) {
	if environment, commit, is := strings.Cut(os.Getenv(baseEnv), " "); is {
		if err := compiled.Serve(context.Background(), os.Stdin, os.Stdout, base{name: commit}, environment); err != nil {
			os.Exit(1)
		}
		return
	}
	isolated.Main(m)
}

const (
	newer = "2222222222222222222222222222222222222222"
	older = "1111111111111111111111111111111111111111"
)

// wanted wants four workloads on n clusters. One of the workloads has a new version.
func wanted(environment string, n int) *state.DesiredState {
	w := &state.DesiredState{Environment: environment, Repository: "https://git.example.com/ops", Branch: environment, Commits: []state.Commit{
		{ID: newer, Time: time.Unix(1_700_000_100, 0).UTC(), Author: "kalypso", Subject: "Promote bbbbbbbbbbbb to " + environment, Rings: []state.Ring{{Name: "canary", Base: "bbbbbbbbbbbbbbbb", Own: "cccc"}, {Name: "stores", Base: "bbbbbbbbbbbbbbbb", Own: "cccc"}}},
		{ID: older, Time: time.Unix(1_700_000_000, 0).UTC(), Author: "kalypso", Subject: "Promote aaaaaaaaaaaa to " + environment, Rings: []state.Ring{{Name: "canary", Base: "aaaaaaaaaaaaaaaa", Own: "cccc"}, {Name: "stores", Base: "aaaaaaaaaaaaaaaa", Own: "cccc"}},
			Was: map[string]string{"edge.canary/till-main": "d-till-1", "edge.stores/till-main": "d-till-1"}},
	}}
	for _, ring := range []string{"canary", "stores"} {
		f := state.Folder{Name: "edge." + ring, ClusterType: "edge", Ring: ring, Base: "bbbbbbbbbbbbbbbb", Listed: true}
		for _, name := range []string{"labels", "shop", "stock", "till"} {
			f.Targets = append(f.Targets, state.Target{Name: name + "-main", Workload: name, Workspace: "checkout", Version: "2.0.0", Backend: "flux", Namespace: environment + "-edge-" + name + "-main", Digest: "d-" + name})
		}
		w.Folders = append(w.Folders, f)
	}
	for i := range n {
		ring := "stores"
		if i%10 == 0 {
			ring = "canary"
		}
		w.Clusters = append(w.Clusters, state.Cluster{Name: fmt.Sprintf("store-%06d", i), Folder: "edge." + ring})
	}
	return w
}

// serve serves the pages of a hub with n clusters in each of two environments. It returns a
// function that reports the state of a cluster of prod.
func serve(t *testing.T, n int) (url string, report func(cluster int, reported state.ReportedState)) {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "hub.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	h, err := hub.Open(t.Context(), hub.Options{Store: db, StaleAfter: time.Hour, Now: time.Now, Problem: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { h.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	for i, name := range []string{"dev", "prod"} {
		if err := h.Want(t.Context(), i, wanted(name, max(n/10, 1)+i*(n-max(n/10, 1)))); err != nil {
			t.Fatal(err)
		}
	}
	report = func(cluster int, reported state.ReportedState) {
		r := &state.Report{Cluster: fmt.Sprintf("store-%06d", cluster), Received: time.Now(), By: "test", Snapshot: true}
		for i, name := range []string{"labels", "shop", "stock", "till"} {
			it := state.Item{Assignment: "prod/edge/" + name + "-main", Commit: newer, State: state.ReportedOK}
			if i == 3 {
				it.State, it.Message = reported, "Health check failed after 5m0s: timeout waiting for: [Deployment/checkout/till status: 'InProgress']"
			}
			if cluster%7 == 3 {
				it.Commit = older
			}
			r.Items = append(r.Items, it)
		}
		if _, err := h.Report(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	for i := range min(n-1, 500) {
		report(i, []state.ReportedState{state.ReportedOK, state.ReportedOK, state.ReportedFailed, state.ReportedProgressing, state.ReportedDrifted}[i%5])
	}
	pool := bases()
	t.Cleanup(pool.Close)
	source, feed := &pages.Source{Hub: h, Title: "retail", Why: func(string) string { return "" }, Compiled: pool}, &view.Feed{}
	go source.Follow(ctx, feed)
	for is := false; !is; { // the feed has the source
		recorder := httptest.NewRecorder()
		view.ObserverHandler(feed).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", nil))
		is = recorder.Code != http.StatusServiceUnavailable
	}
	s := httptest.NewServer(server.New(server.Options{Hub: h, Pages: view.ObserverHandler(feed, "/diagnostics", "/changes")}))
	t.Cleanup(s.CloseClientConnections)
	return s.URL, report
}

// TestAudit checks that a viewer of one environment does not see the audit of all.
func TestAudit(t *testing.T) {
	s := &pages.Source{}
	for _, i := range []*access.Identity{nil, {Grants: []access.Grant{{Role: access.Viewer}}}, {Grants: []access.Grant{{Role: access.Admin, Environment: "dev"}, {Role: access.Viewer}}}} {
		if _, err := s.Audit(access.With(t.Context(), i), ""); err == nil {
			t.Errorf("%+v sees the audit", i)
		}
	}
}

func page(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestColumns checks that pages have the hub's data, and no columns for data that a hub lacks.
func TestColumns(t *testing.T) {
	url, _ := serve(t, 20)
	for path, c := range map[string]struct{ has, hasNot []string }{
		"/workloads/till":                         {[]string{`<td>prod-edge-till-main</td><td class="number">18</td>`, `<td class="number">2</td>`}, []string{"Application", "Labels"}},
		"/cluster-types/prod/edge":                {[]string{`<td class="number">18</td>`}, []string{"Labels"}},
		"/cluster-types/prod/edge.canary":         {[]string{`<td>prod-edge-till-main</td><td class="number">2</td>`}, []string{"Labels"}},
		"/assignments/prod/edge.stores/till-main": {[]string{"<dt>Clusters</dt><dd>18</dd>"}, []string{"Application"}},
		"/clusters/prod":                          {[]string{"Last news", "<td>none</td>", "<td><time datetime="}, []string{"Labels", "Inventory"}},
	} {
		text := page(t, url+path)
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not have %s", path, want)
			}
		}
		for _, name := range c.hasNot {
			if strings.Contains(text, name) {
				t.Errorf("%s has %s", path, name)
			}
		}
	}
}

// TestPast checks lists of an earlier moment. Each part of a list shows the counts of the whole
// list, as lists of the present do, and links to the folder of each cluster.
func TestPast(t *testing.T) {
	url, _ := serve(t, 300)
	get := func(query string) string { return page(t, url+"/running?"+query) }
	const at = "environment=prod&workload=shop&at=2100-01-01T00:00"
	now := regexp.MustCompile(`>(\d+/\d+ ok)<`).FindStringSubmatch(get("environment=prod&workload=shop"))
	if now == nil {
		t.Fatal("there are no counts")
	}
	for _, page := range []string{"", "&page=2", "&state=behind"} {
		if text := get(at + page); !strings.Contains(text, ">"+now[1]+"<") {
			t.Errorf("of then%s there are not %s", page, now[1])
		}
	}
	if text := get(at + "&page=2"); strings.Contains(text, "store-000000<") || !strings.Contains(text, "page 2 of 2, 300 in all") || !strings.Contains(text, "store-000299<") {
		t.Error("the second page does not have the rest")
	}
	for path, c := range map[string]struct{ has, hasNot []string }{
		"/running?" + at:                     {[]string{"2100-01-01T00:00:00Z is to come", "/assignments/prod/edge.canary/shop-main", "/assignments/prod/edge.stores/shop-main"}, []string{"/assignments/prod/edge/"}},
		"/running?" + at + "&ring=canary":    {[]string{"/30 ok<", "store-000010<"}, []string{"store-000011<"}},
		"/running?" + at + "&base=none":      {[]string{"<td colspan=\"8\">None."}, nil},
		"/running?at=2100-01-01T00:00":       {[]string{"1320 in all"}, nil},
		"/running?at=2001-01-01":             {[]string{"this hub knows of nothing before 20", "<td colspan=\"8\">None."}, nil},
		"/history?ring=canary":               {[]string{"<p>ring canary, the newest first", "/assignments/prod/edge.canary/shop-main", "store-000290<"}, []string{"store-000291<", "/assignments/prod/edge/"}},
		"/history?state=behind&class=edge.b": {[]string{"Nothing has changed."}, nil},
		"/history?state=drifted":             {[]string{"is-drifted"}, []string{`<td><span class="badge is-failed">`}},
		"/clusters/prod/store-000010":        {[]string{"/assignments/prod/edge.canary/shop-main"}, []string{"/assignments/prod/edge/"}},
	} {
		text := page(t, url+path)
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not have %s", path, want)
			}
		}
		for _, name := range c.hasNot {
			if strings.Contains(text, name) {
				t.Errorf("%s has %s", path, name)
			}
		}
	}
}

// TestNames checks that a list without rows names the unknown names of its filter, and that short
// names work.
func TestNames(t *testing.T) {
	url, _ := serve(t, 800)
	for path, want := range map[string]string{
		"/running?ring=cannary":                      "there is no ring cannary; did you mean canary?",
		"/running?workload=tll&cluster=store-000001": "there is no workload tll; did you mean till?",
		"/running?cluster=store-00001":               "there is no cluster store-00001; did you mean store-00",
		"/running?base=bbbbbbb":                      "page 1 of ",
		"/running?class=canary":                      "store-000010",
		"/running?base=ccccccc":                      "there is no commit ccccccc",
		"/running?environment=prod&state=failed":     "Health check failed",
		"/history?workload=tll":                      "did you mean till?",
		"/history?environment=pro":                   "there is no environment pro, or you may not see it; did you mean prod?",
	} {
		if text := page(t, url+path); !strings.Contains(text, want) {
			t.Errorf("%s does not have %s", path, want)
		}
	}
	for path, link := range map[string]string{
		"/history?environment=prod&workload=till": `<a href="(/history\?environment=prod&amp;workload=till&amp;cursor=[A-Za-z0-9_-]+)" rel="next">`,
		"/clusters/prod/store-000001":             `<a href="(/history\?cluster=store-000001&amp;environment=prod)">All that changed`,
		"/assignments/prod/edge.stores/till-main": `The worst 100 of 720: <a href="(/running\?class=edge.stores&amp;deploymentTarget=till-main&amp;environment=prod)">`,
	} {
		found := regexp.MustCompile(link).FindStringSubmatch(page(t, url+path))
		if found == nil {
			t.Errorf("%s has no %s", path, link)
			continue
		}
		if text := page(t, url+strings.ReplaceAll(found[1], "&amp;", "&")); strings.Contains(text, "shop-main") && !strings.Contains(path, "clusters") || !strings.Contains(text, "till-main") {
			t.Errorf("%s is about something else", found[1])
		}
	}
	rollout := page(t, url+"/rollouts/prod")
	all := regexp.MustCompile(`The worst 100 of (\d+): <a href="(/running\?environment=prod&amp;state=failed%2Cmissing%2Cstale%2Cdrifted%2Cbehind%2Cprogressing)">`).FindStringSubmatch(rollout)
	if all == nil {
		t.Fatalf("the list of what is not ok does not say that it is cut: %s", rollout)
	}
	if text := page(t, url+strings.ReplaceAll(all[2], "&amp;", "&")); !strings.Contains(text, all[1]+" in all") || strings.Contains(text, `<span class="badge is-ok">`) {
		t.Errorf("the whole list does not have %s", all[1])
	}
}

// TestProblem checks that pages explain why the wanted state may be out of date. This includes a
// hub that has read nothing yet.
func TestProblem(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "hub.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	h, err := hub.Open(t.Context(), hub.Options{Store: db, StaleAfter: time.Hour, Now: time.Now, Problem: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	feed := &view.Feed{}
	feed.Set(&pages.Source{Hub: h, Title: "retail", Why: func(environment string) string {
		return map[string]string{"": "policy.cue:1:2: it is <broken>"}[environment]
	}}, nil)
	s := httptest.NewServer(server.New(server.Options{Hub: h, Pages: view.ObserverHandler(feed)}))
	t.Cleanup(s.Close)
	for _, path := range []string{"/", "/running", "/history", "/environments/prod"} {
		if text := page(t, s.URL+path); !strings.Contains(text, "What is wanted may be older than the branches: policy.cue:1:2: it is &lt;broken&gt;") {
			t.Errorf("%s does not say so: %s", path, text)
		}
	}
}

// TestSlowBrowser checks the pages of a hub in a real browser.
func TestSlowBrowser(t *testing.T) {
	isolated.Slow(t, "it needs Chromium, npm and a registry")
	axe := browser.InstallAxe(t)
	for _, n := range []int{10, 1000, 100_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			url, report := serve(t, n)
			tab := browser.NewTab(t, axe)
			visited := tab.Visit(url, n > 10)
			for _, kind := range []string{"1", "environments2", "rollouts2", "workloads2", "assignments4", "cluster-types3", "clusters2", "clusters3", "policies2", "configs2", "running1", "history1", "audit1", "compare3"} {
				if visited[kind] == 0 {
					t.Errorf("no link leads to %s", kind)
				}
			}
			follows(tab, url, n, report)
			withoutScripts(t, tab, url)
		})
	}
}

// follows checks that an open page updates its counts when reports arrive.
func follows(tab *browser.Tab, url string, n int, report func(int, state.ReportedState)) {
	tab.Do(chromedp.Navigate(url + "/rollouts/prod"))
	tab.Await(`document.querySelector(".counts a").innerText.endsWith("ok")`)
	before := tab.Text(`document.querySelector(".counts a").innerText`)
	report(n-1, state.ReportedOK)
	tab.Await(fmt.Sprintf(`document.querySelector(".counts a").innerText !== %q`, before))
}

// withoutScripts follows a number to its list, and filters it.
func withoutScripts(t *testing.T, tab *browser.Tab, url string) {
	tab.Do(browser.Command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(url+"/running?environment=prod&state=failed"))
	text, err := chromedp.Run(tab.Context(), chromedp.TextContent("main"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "Health check failed") || strings.Contains(text, "progressing 2.0.0") {
		t.Errorf("the list of what failed is %.300q", text)
	}
	tab.Do(browser.Command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{}))
}
