package metrics

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

const dashboards = "../dashboards"

// PostgreSQL answers all questions of the dashboards that query its views. With the data of two
// clusters and three releases, each question has an answer. (TestDashboards in hub/server checks
// the other dashboards.)
func TestSlowDashboards(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	name := hubtest.Postgres(t)()
	hubtest.Open(t, name)
	db := hubtest.SQL(t, name)
	left, err := os.ReadFile("../store/testdata/older/1.sql")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`X'([0-9a-f]+)'`).ReplaceAllString(string(left), `'\x$1'`)
	if _, err := db.ExecContext(t.Context(), rows+`UPDATE assignment SET state = 3 WHERE state = 0`); err != nil { // one has failed, and one has drifted
		t.Fatal(err)
	}
	for _, file := range committed(t) {
		if strings.HasSuffix(file, "-api.json") {
			continue
		}
		asked := questions(contentOf(t, file))
		if len(asked) < 4 {
			t.Errorf("%s has %d questions", file, len(asked))
		}
		for _, sql := range asked {
			var first any
			rows, err := db.QueryContext(t.Context(), expand(sql))
			if err == nil {
				first, err = firstOf(rows)
			}
			if err == nil && first == nil {
				err = errors.New("there is no answer")
			}
			if err != nil {
				t.Errorf("%s: %v:\n%s", filepath.Base(file), err, sql)
			}
		}
	}
}

// firstOf returns the first value of the first row, and reads all of them.
func firstOf(rows *sql.Rows) (first any, err error) {
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(any)
	}
	for n := 0; rows.Next(); n++ {
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}
		if n == 0 {
			first = *values[0].(*any)
		}
	}
	return first, rows.Err()
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

// contentOf returns the JSON of a dashboard.
func contentOf(t *testing.T, file string) (content any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// questions returns the SQL and the PromQL in a dashboard: of panels, and of variables.
func questions(in any) (out []string) {
	switch v := in.(type) {
	case []any:
		for _, one := range v {
			out = append(out, questions(one)...)
		}
	case map[string]any:
		for name, one := range v {
			if sql, is := one.(string); is && sql != "" && (name == "rawSql" || name == "expr" || name == "query" && v["type"] == "query") {
				out = append(out, sql)
			}
			out = append(out, questions(one)...)
		}
	}
	return out
}

// expand replaces Grafana's macros and variables.
func expand(sql string) string {
	sql = regexp.MustCompile(`\$__timeFilter\((TO_TIMESTAMP\([^)]*\)|[^)]*)\)`).ReplaceAllString(sql, "$1 BETWEEN '2023-11-14T22:00:00Z' AND '2023-11-14T23:00:00Z'")
	return regexp.MustCompile(`\$(environment|ring)`).ReplaceAllString(sql, "'prod', 'wide'")
}

// Prometheus accepts the rules and the PromQL of the dashboards.
func TestSlowRules(t *testing.T) {
	isolated.Long(t, "runs promtool") // TestNames looks at the names
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("there is no promtool: .ci/tools long installs it")
	}
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var asked []rule
	for _, file := range committed(t) {
		if strings.HasSuffix(file, "-api.json") {
			for _, promQL := range questions(contentOf(t, file)) {
				asked = append(asked, rule{fmt.Sprintf("question_%d", len(asked)), promQL})
			}
		}
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboards", "rules": asked}}})
	if err != nil || len(asked) == 0 {
		t.Fatal(asked, err)
	}
	file := filepath.Join(t.TempDir(), "dashboards.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, rules := range []string{filepath.Join(dashboards, "rules.yaml"), file} {
		if out, err := exec.Command(promtool, "check", "rules", rules).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
