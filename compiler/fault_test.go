package compiler_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/internal/testing/generate"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// TestOneBrokenConfigOfManyFailsWhatItMatches breaks one of hundreds of configs, and changes the
// values of all assignments. Assignments that the broken config matches must keep their folders,
// byte for byte. All other folders must be written again.
func TestOneBrokenConfigOfManyFailsWhatItMatches(t *testing.T) { oneBrokenConfigOfMany(t) }

func TestSlowOneBrokenConfigOfManyFailsWhatItMatches(t *testing.T) {
	isolated.Slow(t, "its platform has 600 assignments")
	oneBrokenConfigOfMany(t)
}

func oneBrokenConfigOfMany(t *testing.T) {
	const victim, region = "storage-us-east-1", "us-east-1"
	platform, out := t.TempDir(), t.TempDir()
	size := generate.Size{Assignments: howMany(t, 100, 600, 600), Workloads: howMany(t, 10, 30, 30), TargetsPerWorkload: 4, ClusterTypes: howMany(t, 20, 40, 40), Policies: 12, Configs: howMany(t, 300, 2000, 2000),
		ConfigSchemas: 3, Overlap: 10, StructuredShare: 0.1, DistinctTuples: true}
	if _, err := generate.Write(platform, 1, size); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(platform, filepath.FromSlash(name)), []byte("package platform\n"+text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b, _, err := compiler.Write(t.Context(), compiler.Request{Dir: platform}, compiler.Output{Dir: out})
	if err != nil || b.Failed() {
		t.Fatalf("the platform is not valid: %v %v", err, b)
	}
	e := b.Environments[0]
	if n := len(e.Model.Configs); n != size.Configs {
		t.Fatalf("%d configs, want %d", n, size.Configs)
	}
	var matched, others []string
	for _, a := range e.Schedule.Assignments {
		if a.ClusterType.Labels["region"] == region {
			matched = append(matched, a.ID(e.Name))
		} else {
			others = append(others, a.ID(e.Name))
		}
	}
	if len(matched) < 10 || len(others) < 10 {
		t.Fatalf("%s matches %d assignments, and %d not: too few to tell", victim, len(matched), len(others))
	}
	before := folders(files(t, out))

	write("environments/dev/broken.cue", `configs: "`+victim+`": values: STORAGE_URL: 7`)
	write("environments/dev/everywhere.cue", `configs: everywhere: {match: {}, values: EVERYWHERE: "yes"}`)
	b, changed, err := compiler.Write(t.Context(), compiler.Request{Dir: platform}, compiler.Output{Dir: out})
	if err != nil {
		t.Fatal(err)
	}
	if !b.Failed() {
		t.Fatal("a broken config is no error")
	}
	e = b.Environments[0]
	var failed []string
	for i, a := range e.Schedule.Assignments {
		if e.Failed(i) {
			failed = append(failed, a.ID(e.Name))
		}
	}
	if !slices.Equal(failed, matched) {
		t.Errorf("%d assignments fail, and %s matches %d:\n%q\nwant\n%q", len(failed), victim, len(matched), failed, matched)
	}
	if s := e.Counts; s.Kept != len(matched) || s.Assignments != len(others) || s.Failed != 0 {
		t.Errorf("the summary is %+v; %d are kept, and %d built", s, len(matched), len(others))
	}
	slices.Sort(matched)
	slices.Sort(others)
	did := changed.Changes[e.Name].Assignments
	if kept := slices.Sorted(slices.Values(did.Kept)); !slices.Equal(kept, matched) {
		t.Errorf("kept are %q, want %q", kept, matched)
	}
	if written := slices.Sorted(slices.Values(did.Changed)); !slices.Equal(written, others) || len(did.Added)+len(did.Removed)+did.Unchanged > 0 {
		t.Errorf("written are %+v, want %q", did, others)
	}
	after := folders(files(t, out))
	for _, id := range matched {
		if !maps.Equal(before[id], after[id]) {
			t.Errorf("%s fails, and its folder is another", id)
		}
	}
	for _, id := range others {
		if !strings.Contains(after[id]["platform-config.yaml"], "EVERYWHERE") {
			t.Errorf("%s does not fail, and is not written", id)
		}
	}
}
