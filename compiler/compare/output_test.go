package compare_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// edit replaces text in a file of a platform.
type edit struct{ file, from, to string }

// build compiles a platform with edits into a folder.
func build(t *testing.T, platform, out string, edits ...edit) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(platform)); err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		name := filepath.Join(dir, e.file)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b, []byte(e.from)) {
			t.Fatalf("%s has no %q", e.file, e.from)
		}
		if err := os.WriteFile(name, bytes.ReplaceAll(b, []byte(e.from), []byte(e.to)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b, _, err := compiler.Write(t.Context(), compiler.Request{Dir: dir}, compiler.Output{Dir: out})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range b.Diagnostics {
		if d.Severity == diag.Error {
			t.Fatalf("%s %s", d.Code, d.Message)
		}
	}
}

func read(t *testing.T, dir string) []compare.Folder {
	t.Helper()
	folders, _, err := compare.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

func report(t *testing.T, before, after []compare.Folder) *compare.Report {
	t.Helper()
	r, err := compare.Compare(before, after, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func texts(t *testing.T, r *compare.Report) string {
	t.Helper()
	var b bytes.Buffer
	for _, o := range []compare.TextOptions{{}, {Stat: true}} {
		if err := compare.WriteText(&b, r, o); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func encode(t *testing.T, r *compare.Report) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// golden compares with a file of testdata; KALYPSO_UPDATE=1 writes it again.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if os.Getenv("KALYPSO_UPDATE") != "" {
		if err := os.WriteFile(name, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s:\n%s", name, got)
	}
}

// outputs are edits of real platforms.
var outputs = []struct {
	name, platform string
	edits          []edit
}{
	{"values", "../../examples/hello-world", []edit{
		{"configs.cue", `GREETING:    "Hello, world"`, `GREETING: "Good morning"`},
		{"environments/dev/configs.cue", `"debug"`, `"trace"`},
	}},
	{"lists", "../../examples/factory", []edit{
		{"environments/plant/configs.cue", `timezone: "Europe/Berlin"`, `timezone: "Europe/Vienna"`},
		{"environments/plant/configs.cue", `"startup-checks": ["power", "network"]`, `"startup-checks": ["power", "disk", "network"]`},
		{"environments/plant/configs.cue", `interval: "60s", `, ``},
	}},
	{"version", "../../testdata/platform", []edit{
		{"platform.cue", `version:     "1.1.0"`, `version:     "1.2.0"`},
		{"environments/dev/dev.cue", `*"info"`, `*"debug"`},
	}},
	{"workload", "../../testdata/platform", []edit{{"platform.cue", "test: {", "trial: {"}}},
}

func TestOutputs(t *testing.T) {
	for _, c := range outputs {
		t.Run(c.name, func(t *testing.T) {
			out, flat := t.TempDir(), t.TempDir()
			build(t, c.platform, out)
			before := read(t, out)
			if r := report(t, before, read(t, out)); !r.Empty() || len(r.Groups) > 0 || r.Assignments.Unchanged == 0 || r.ClusterTypes.Unchanged == 0 {
				t.Errorf("an output differs from itself: %+v", r)
			}
			build(t, c.platform, flat, c.edits...)
			after := read(t, flat)
			r := report(t, before, after)
			golden(t, c.name+".txt", texts(t, r))
			golden(t, c.name+".json", encode(t, r))
			mirrored(t, before, after)
			// One environment's folder is an output of its own.
			name := before[0].Environment
			one := read(t, filepath.Join(out, name))
			want := slices.DeleteFunc(slices.Clone(before), func(f compare.Folder) bool { return f.Environment != name })
			if r := report(t, want, one); len(one) == 0 || !r.Empty() {
				t.Errorf("a flat output is not that of its environment: %+v", r)
			}
		})
	}
}

// mirrored checks that exchanging the outputs exchanges additions and removals, and before
// and after.
func mirrored(t *testing.T, before, after []compare.Folder) {
	t.Helper()
	a, b := report(t, before, after), report(t, after, before)
	b.Assignments.Added, b.Assignments.Removed = b.Assignments.Removed, b.Assignments.Added
	b.ClusterTypes.Added, b.ClusterTypes.Removed = b.ClusterTypes.Removed, b.ClusterTypes.Added
	b.Total.Added, b.Total.Removed = b.Total.Removed, b.Total.Added
	b.Objects.Created, b.Objects.Deleted = b.Objects.Deleted, b.Objects.Created
	for _, r := range []*compare.Report{a, b} { // removed objects are described, and added ones are not
		r.Removed, r.Added, r.Changed = nil, nil, nil
		r.Objects.Created, r.Objects.Deleted = nil, nil
	}
	other := map[string]string{"added": "removed", "removed": "added"}
	for i := range b.Counts {
		c := &b.Counts[i]
		c.Added, c.Removed = c.Removed, c.Added
		if o := other[c.Own]; o != "" {
			c.Own = o
		}
	}
	for i := range b.Groups {
		g := &b.Groups[i]
		g.From, g.To = g.To, g.From
		if o := other[string(g.Kind)]; o != "" {
			g.Kind = compare.Kind(o)
		}
		g.Diff = ""
	}
	for i := range a.Groups {
		a.Groups[i].Diff = "" // lines may be matched in another way
	}
	unordered := func(r *compare.Report) string {
		var groups []string
		for _, g := range r.Groups {
			text, err := json.Marshal(g)
			if err != nil {
				t.Fatal(err)
			}
			groups = append(groups, string(text))
		}
		slices.Sort(groups)
		r.Groups = nil
		return encode(t, r) + strings.Join(groups, "\n")
	}
	if got, want := unordered(b), unordered(a); got != want {
		t.Errorf("the mirrored report differs:\n%s\n%s", got, want)
	}
}

func TestWorkers(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	build(t, outputs[0].platform, before)
	build(t, outputs[0].platform, after, outputs[0].edits...)
	want := ""
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range []int{1, 2, 3, 8} {
		runtime.GOMAXPROCS(n)
		got := encode(t, report(t, read(t, before), read(t, after)))
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("with %d workers the report is another", n)
		}
	}
}

// If a cluster type lists no clusters, the number of affected clusters is unknown.
func TestStatCountsListedClusters(t *testing.T) {
	r := &compare.Report{Clusters: &compare.Clusters{Concerned: 2}, Counts: []compare.Counts{
		{Environment: "prod", ClusterType: "kiosk", Changed: 1}, {Environment: "prod", ClusterType: "store", Lists: true, Clusters: 2, Changed: 2},
	}}
	var b strings.Builder
	if err := compare.WriteText(&b, r, compare.TextOptions{Stat: true}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"prod/kiosk  0 added  1 changed  0 removed  0 unchanged  -\n", "prod/store  0 added  2 changed  0 removed  0 unchanged  2 clusters\n"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("%q lacks %q", b.String(), line)
		}
	}
}
