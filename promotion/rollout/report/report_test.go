package report_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/report"
)

const commit = "0c9c2e41d6f0a3b1f5f2a9b8c7d6e5f4a3b2c1d0"

const good = `{
  "apiVersion": "kalypso.io/v1alpha1",
  "kind": "RolloutReport",
  "cluster": "edge-7",
  "commit": "` + commit + `",
  "reports": [
    {"assignment": "prod/edge/a", "state": "healthy", "at": "2026-01-02T15:04:05Z"},
    {"assignment": "prod/edge/b", "state": "failed", "message": "Install the packages"},
    {"assignment": "prod/edge/c", "state": "progressing", "message": "depends on prod/edge/b"}
  ]
}
`

func TestParse(t *testing.T) {
	f, err := report.Parse("x.json", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if f.Cluster != "edge-7" || f.Commit.String() != commit || len(f.Reports) != 3 {
		t.Errorf("got %+v", f)
	}
	want := report.Entry{Assignment: "prod/edge/a", State: rollout.Healthy, At: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)}
	if f.Reports[0] != want {
		t.Errorf("got %+v, want %+v", f.Reports[0], want)
	}
}

func TestParseErrors(t *testing.T) {
	for name, c := range map[string]struct{ old, with, want string }{
		"another kind":        {"RolloutReport", "Report", `x.json:3:11: "Report" is not RolloutReport`},
		"another version":     {"v1alpha1", "v2", `x.json:2:17: "kalypso.io/v2" is not kalypso.io/v1alpha1`},
		"a short commit":      {commit, "0c9c2e4", `x.json:5:13: "0c9c2e4" is no id of a commit, in full`},
		"no commit at all":    {commit, strings.Repeat("0", 40), `x.json:5:13: "` + strings.Repeat("0", 40) + `" is no id of a commit, in full`},
		"an unknown field":    {`"cluster"`, `"host"`, `x.json:4:3: unknown field "host"`},
		"a field twice":       {`"cluster"`, `"kind"`, `x.json:4:3: field kind is here twice`},
		"in another case":     {`"cluster"`, `"Cluster"`, `x.json:4:3: unknown field "Cluster"`},
		"no string":           {`"edge-7"`, "7", `x.json:4:14: expected a string`},
		"null":                {`"edge-7"`, "null", `x.json:4:14: expected a string`},
		"a list":              {`"edge-7"`, "[[[]]]", `x.json:4:14: expected a string`},
		"an unknown state":    {`"healthy"`, `"succeeded"`, `x.json:7:44: "succeeded" is not healthy or progressing or failed`},
		"not for a report":    {`"healthy"`, `"unknown"`, `x.json:7:44: "unknown" is not healthy or progressing or failed`},
		"a missing field":     {`, "state": "failed"`, ``, `x.json:8:5: field state is missing`},
		"a missing one above": {"\"commit\": \"" + commit + "\",\n", "", `x.json:1:1: field commit is missing`},
		"no time":             {"2026-01-02T15:04:05Z", "yesterday", `x.json:7:61: "yesterday" is no time as 2006-01-02T15:04:05Z`},
		"no JSON":             {`"edge-7",`, `edge-7,`, `x.json:4:14: is no JSON: invalid character 'e' looking for beginning of value`},
		"no comma":            {`"edge-7",`, `"edge-7"`, `x.json:5:3: is no JSON: invalid character '"' after object key:value pair`},
		"the end":             {"\n  ]\n}\n", "", `x.json:9:95: ends too early`},
		"more":                {"]\n}\n", "]\n}\n{}", `x.json:12:1: there is more after the end`},
		"no array":            {"[\n    {\"assignment\": \"prod/edge/a\"", "{\n    \"x\": {\"assignment\": \"prod/edge/a\"", `x.json:6:14: expected an array`},
		"no UTF-8":            {"edge-7", "edge\xff", `x.json:4:19: is no UTF-8`},
		"a long text":         {"edge-7", strings.Repeat("x", 1<<17), `x.json:4:14: has more than 65536 bytes`},
	} {
		text := strings.Replace(good, c.old, c.with, 1)
		if text == good {
			t.Fatalf("%s: nothing is replaced", name)
		}
		_, err := report.Parse("x.json", []byte(text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// FuzzParse: a file of reports has known states and a commit, or an error with a place in it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"apiVersion": "kalypso.io/v1alpha1", "reports": [{}]}`))
	f.Add([]byte("{\"a\":\n:::"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := report.Parse("f", data)
		if bad := (*report.Error)(nil); err != nil {
			if !errors.As(err, &bad) || bad.At.Line < 1 || bad.At.Column < 1 || bad.At.Line > strings.Count(string(data), "\n")+1 {
				t.Fatalf("%v has no place in the file", err)
			}
			return
		}
		for _, r := range parsed.Reports {
			if r.State != rollout.Healthy && r.State != rollout.Progressing && r.State != rollout.Failed {
				t.Fatalf("got state %q", r.State)
			}
		}
		if parsed.Commit.IsZero() {
			t.Fatal("there is no commit")
		}
	})
}

func wanted(id string) *rollout.DesiredState {
	return &rollout.DesiredState{Commits: []git.Hash{plumbing.NewHash(id)}, Assignments: []rollout.Assignment{{ID: "prod/edge/a"}, {ID: "prod/edge/b"}}}
}

// write writes files into a folder, which it returns.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReports(t *testing.T) {
	dir := write(t, map[string]string{"7.json": good, "8.json": strings.Replace(good, "edge-7", "edge-8", 1), "README.md": "of these"})
	for path, want := range map[string]int{dir: 4, filepath.Join(dir, "7.json"): 2} {
		got, err := report.New(path).Reports(t.Context(), wanted(commit))
		if err != nil || len(got) != want {
			t.Errorf("%s: got %v, %v", path, got, err)
		}
	}
	got, err := report.New(dir).Reports(t.Context(), wanted(strings.Repeat("1", 40)))
	if err != nil || got[0].State != rollout.Progressing || got[0].Message != "still at commit 0c9c2e41d6: healthy " {
		t.Errorf("what an older commit made is not what is wanted: got %+v, %v", got, err)
	}
}

func TestReportsErrors(t *testing.T) {
	bad := write(t, map[string]string{"7.json": good, "8.json": "{"})
	if _, err := report.New(bad).Reports(t.Context(), wanted(commit)); !errors.As(err, new(*report.Error)) {
		t.Errorf("got %v", err)
	}
	if _, err := report.New(filepath.Join(bad, "missing")).Reports(t.Context(), wanted(commit)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{pipe, filepath.Dir(pipe)} {
		if _, err := report.New(path).Reports(t.Context(), wanted(commit)); err == nil || !strings.Contains(err.Error(), "is no regular file") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := report.New(bad).Reports(ctx, wanted(commit)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
