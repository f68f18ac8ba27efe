package metrics

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

const dashboards = "../dashboards"

// PostgreSQL answers all questions of the dashboards.
func TestSlowDashboards(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	name := hubtest.Postgres(t)()
	hubtest.Open(t, name)
	db := hubtest.SQL(t, name)
	for _, file := range committed(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var content any
		if err := json.Unmarshal(text, &content); err != nil {
			t.Fatal(err)
		}
		asked := questions(content)
		if len(asked) < 4 {
			t.Errorf("%s has %d questions", file, len(asked))
		}
		for _, sql := range asked {
			rows, err := db.QueryContext(t.Context(), expand(sql))
			if err == nil {
				for rows.Next() {
				}
				err = rows.Err()
				_ = rows.Close()
			}
			if err != nil {
				t.Errorf("%s: %v:\n%s", filepath.Base(file), err, sql)
			}
		}
	}
}

// committed returns the files of the dashboards.
func committed(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dashboards, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no dashboards, %v", err)
	}
	return files
}

// questions returns the SQL in a dashboard: of panels, and of variables.
func questions(in any) (out []string) {
	switch v := in.(type) {
	case []any:
		for _, one := range v {
			out = append(out, questions(one)...)
		}
	case map[string]any:
		for name, one := range v {
			if sql, is := one.(string); is && sql != "" && (name == "rawSql" || name == "query" && v["type"] == "query") {
				out = append(out, sql)
			}
			out = append(out, questions(one)...)
		}
	}
	return out
}

// expand replaces what Grafana replaces.
func expand(sql string) string {
	sql = regexp.MustCompile(`\$__timeFilter\((TO_TIMESTAMP\([^)]*\)|[^)]*)\)`).ReplaceAllString(sql, "$1 BETWEEN '2026-11-25T09:00:00Z' AND '2026-11-25T10:00:00Z'")
	return regexp.MustCompile(`\$(environment|ring)`).ReplaceAllString(sql, "'prod', 'dev'")
}

// The rules are what Prometheus takes.
func TestSlowRules(t *testing.T) {
	isolated.Long(t, "runs promtool") // TestNames looks at the names
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("there is no promtool: .ci/tools long installs it")
	}
	if out, err := exec.Command(promtool, "check", "rules", filepath.Join(dashboards, "rules.yaml")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
