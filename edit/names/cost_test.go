package names

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// large returns a platform with 1,000 entities in 20 files.
func large() []File {
	var files []File
	for n := range 20 {
		var b strings.Builder
		b.WriteString("package platform\n\n")
		for i := range 10 {
			k := n*10 + i
			fmt.Fprintf(&b, "clusterTypes: \"type-%d\": {\n\tdescription: \"A type.\"\n\treconciler: \"reconciler-%d\"\n\tlabels: {region: \"r%d\", size: \"s%d\"}\n}\n", k, k, k%10, k%5)
			fmt.Fprintf(&b, "reconcilers: \"reconciler-%d\": flux: {}\n", k)
			fmt.Fprintf(&b, "workloads: \"app-%d\": {\n\tworkspace: \"team-%d\"\n\tdeploymentTargets: web: {environment: \"dev\", dependsOn: [\"app-%d-web\"], labels: tier: \"t%d\"}\n}\n", k, k%20, k/2, k%3)
			fmt.Fprintf(&b, "schedulingPolicies: \"policy-%d\": {\n\tdeploymentTargets: workload: \"app-%d\"\n\tclusterTypes: {name: \"type-%d\", labels: region: \"r%d\"}\n}\n", k, k, k, k%10)
			fmt.Fprintf(&b, "configs: \"config-%d\": {\n\tmatch: {clusterType: \"type-%d\", region: \"r%d\"}\n\tvalues: {key%d: \"v\", db: {host: \"h\", port: %d}}\n}\n", k, k, k%10, k, k)
		}
		files = append(files, File{fmt.Sprintf("file%02d.cue", n), []byte(b.String())})
	}
	return append(files, File{"base.cue", []byte("package platform\n\nenvironments: {dev: {}}\n")})
}

// cursorOf returns the place of the questions about a large platform.
func cursorOf(x *Index) int {
	return bytes.Index(x.byPath["file10.cue"].Text, []byte("type-105")) + 2
}

// TestCost checks that unchanged files are not read again, and that answers need few resources.
// It counts allocations, because times depend on the machine.
func TestCost(t *testing.T) {
	files := large()
	x := New(files, nil)
	changed := append([]File{}, files...)
	changed[3].Text = append([]byte("// A comment.\n"), changed[3].Text...)
	y := New(changed, x)
	for name, f := range y.byPath {
		if same := f == x.byPath[name]; same != (name != changed[3].Path) {
			t.Errorf("%s: read again: %v", name, !same)
		}
	}
	at := cursorOf(x)
	for _, c := range []struct {
		name string
		most float64
		ask  func() int
		want int
	}{
		{"index after a change", 60_000, func() int { return len(New(changed, x).files) }, 21},
		{"complete", 20_000, func() int {
			return len(x.Complete("file10.cue", bytes.Index(x.byPath["file10.cue"].Text, []byte("reconciler-"))+3))
		}, 200},
		{"definition", 2_000, func() int { return len(x.Definition("file10.cue", at)) }, 1},
		{"references", 2_000, func() int { return len(x.References("file10.cue", at, true)) }, 3},
		{"rename", 2_000, func() int { edits, _ := x.Rename("file10.cue", at, "other"); return len(edits) }, 3},
		{"hover", 2_000, func() int { h, _ := x.Hover(t.Context(), "file10.cue", at, nil); return len(h.Lines) }, 3},
	} {
		if got := c.ask(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		if n := testing.AllocsPerRun(1, func() { c.ask() }); n > c.most {
			t.Errorf("%s: %.0f allocations, at most %.0f were expected", c.name, n, c.most)
		}
	}
}

func BenchmarkIndex(b *testing.B) {
	files := large()
	x := New(files, nil)
	changed := append([]File{}, files...)
	changed[3].Text = append([]byte("// A comment.\n"), changed[3].Text...)
	at := cursorOf(x)
	for name, ask := range map[string]func(){
		"cold":       func() { New(files, nil) },
		"change":     func() { New(changed, x) },
		"complete":   func() { x.Complete("file10.cue", bytes.Index(x.byPath["file10.cue"].Text, []byte("reconciler-"))+3) },
		"references": func() { x.References("file10.cue", at, true) },
		"rename":     func() { _, _ = x.Rename("file10.cue", at, "other") },
		"hover":      func() { x.Hover(b.Context(), "file10.cue", at, nil) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				ask()
			}
		})
	}
}
