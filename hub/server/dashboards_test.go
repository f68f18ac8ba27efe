package server_test

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// A hub answers all questions of the dashboards that query it. Each list of its API has rows with
// values in every column. Its metrics have each name, label and value that PromQL selects.
func TestDashboards(t *testing.T) {
	s := serve(t, hubtest.SQLite(t)())
	token, now := releasedTwice(s), time.Now()
	replace := strings.NewReplacer(
		"${environment:csv}", "prod,dev", "${__from:date:iso}", now.Add(-time.Hour).UTC().Format(time.RFC3339),
		"${__to:date:iso}", now.Add(time.Hour).UTC().Format(time.RFC3339))
	metrics := s.expect(200, token, "GET", "/metrics", nil)
	files, err := filepath.Glob("../dashboards/*-api.json")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var content any
		if err := json.Unmarshal(text, &content); err != nil {
			t.Fatal(err)
		}
		asked := 0
		find(content, func(q query) {
			asked++
			problem := "is asked of " + q.Datasource.Type
			switch q.Datasource {
			case datasource{"yesoreyeram-infinity-datasource", "${hub}"}:
				values := url.Values{}
				for _, p := range q.Options.Params {
					values.Set(p.Key, replace.Replace(p.Value))
				}
				problem = lacks(q, s.expect(200, token, "GET", q.URL+"?"+values.Encode(), nil))
			case datasource{"prometheus", "${prometheus}"}:
				problem = unknown(q, metrics)
			}
			if problem != "" {
				t.Errorf("%s: %s%s %s", filepath.Base(file), q.URL, q.Expr, problem)
			}
		})
		if asked < 4 {
			t.Errorf("%s asks %d questions", file, asked)
		}
	}
}

// releasedTwice fills a hub with data in every state that dashboards show. It returns a token of a
// viewer.
func releasedTwice(s *served) string {
	s.Helper()
	w := hubtest.New(1).Wanted()
	ring := func(base string) []state.Ring { return []state.Ring{{Name: "canary", Base: base, Own: base}} }
	begin := time.Now().Add(-30 * time.Minute)
	w.Commits = []state.Commit{
		{ID: commit, Time: begin.Add(time.Minute), Author: "ann", Subject: "Promote it", Rings: ring(platformCommit)},
		{ID: "bb", Time: begin, Author: "ann", Subject: "Promote it", Rings: ring("s")},
	}
	for i := range w.Folders {
		w.Folders[i].Ring = "canary"
	}
	if err := s.hub.Want(s.Context(), 0, w); err != nil {
		s.Fatal(err)
	}
	r := state.Report{Cluster: "c0", Received: time.Now(), At: time.Now()}
	for i, is := range []state.ReportedState{state.ReportedFailed, state.ReportedDrifted} {
		target := w.Folders[1].Targets[i] // of edge.a, as c0 is
		item := state.Item{Assignment: "prod/edge/" + target.Name, Digest: target.Digest, State: is, Message: "why"}
		r.Items = append(r.Items, item)
	}
	if _, err := s.hub.Report(s.Context(), &r); err != nil {
		s.Fatal(err)
	}
	err := s.hub.Do(s.Context(), func(ctx context.Context, tx *store.Tx) (*state.Changes, error) {
		for _, note := range []func() (int, error){
			func() (int, error) { return tx.Fail(ctx, "prod", "canary", "bb", begin.Add(2*time.Minute)) },
			func() (int, error) { return tx.Complete(ctx, "prod", "canary", "bb", begin.Add(3*time.Minute)) },
			func() (int, error) { return tx.Restore(ctx, "prod", "canary", begin.Add(3*time.Minute)) },
		} {
			if _, err := note(); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return s.token(api.Token{Role: "viewer"})
}

type datasource struct{ Type, UID string }

// query is a question of a dashboard: a list of the API, or PromQL.
type query struct {
	Datasource datasource
	URL        string
	Root       string `json:"root_selector"`
	Options    struct {
		Params []struct{ Key, Value string }
	} `json:"url_options"`
	Columns []struct{ Selector, Type string }
	Expr    string
	Legend  string `json:"legendFormat"`
}

// find calls f with each question of a dashboard: of panels, and of variables.
func find(in any, f func(query)) {
	switch v := in.(type) {
	case []any:
		for _, one := range v {
			find(one, f)
		}
	case map[string]any:
		if v["url"] != nil && v["columns"] != nil || v["expr"] != nil {
			var q query
			data, err := json.Marshal(v)
			if err == nil {
				err = json.Unmarshal(data, &q)
			}
			if err != nil {
				panic(err) // it was JSON before
			}
			f(q)
			return
		}
		for _, one := range v {
			find(one, f)
		}
	}
}

// lacks returns a column of a list that has no value in any row of an answer. It returns "" if
// every column has a value in some row.
func lacks(q query, text string) string {
	var answer map[string]json.RawMessage
	var rows []map[string]any
	if json.Unmarshal([]byte(text), &answer) != nil || json.Unmarshal(answer[q.Root], &rows) != nil || len(rows) == 0 {
		return "has no rows in " + q.Root + ": " + text
	}
	for _, c := range q.Columns {
		has := slices.ContainsFunc(rows, func(row map[string]any) bool {
			var value any = row
			for name := range strings.SplitSeq(c.Selector, ".") {
				object, _ := value.(map[string]any)
				value = object[name]
			}
			switch v := value.(type) {
			case float64:
				return c.Type == "number"
			case string:
				_, err := time.Parse(time.RFC3339, v)
				return c.Type == "string" || c.Type == "timestamp" && err == nil
			}
			return false
		})
		if !has {
			return "has no " + c.Type + " " + c.Selector + " in any row: " + text
		}
	}
	return ""
}

var (
	selectors = regexp.MustCompile(`(kalypso_\w+)\{(.*?)\}`)
	matchers  = regexp.MustCompile(`(\w+)(=~?)"(.*?)"`)
	grouping  = regexp.MustCompile(`by \((.*?)\)|\{\{(.*?)\}\}`)
)

// unknown returns a selector of PromQL that finds no metric, or "" if all selectors find one.
func unknown(q query, metrics string) string {
	all := selectors.FindAllStringSubmatch(q.Expr, -1)
	if len(all) == 0 {
		return "selects no metric"
	}
	for _, m := range all {
		series := regexp.MustCompile(`(?m)^`+m[1]+`\{.*\}`).FindAllString(metrics, -1)
		labels := []string{`\w+="`} // there is one
		for _, l := range matchers.FindAllStringSubmatch(m[2], -1) {
			value := regexp.QuoteMeta(l[3])
			if l[2] == "=~" {
				value = ".*" // a variable
			}
			labels = append(labels, "[{,]"+l[1]+`="`+value+`"`)
		}
		for _, by := range grouping.FindAllStringSubmatch(q.Expr+q.Legend, -1) {
			for name := range strings.SplitSeq(by[1]+by[2], ",") {
				labels = append(labels, "[{,]"+strings.TrimSpace(name)+`="`)
			}
		}
		for _, label := range labels {
			if !slices.ContainsFunc(series, regexp.MustCompile(label).MatchString) {
				return "finds no " + m[1] + " with " + label
			}
		}
	}
	return ""
}
