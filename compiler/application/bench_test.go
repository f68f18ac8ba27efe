package application_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/application"
)

// Each of 200 targets has its own values and those above it. If one changes, only that one
// is written.
func TestManyTargets(t *testing.T) {
	t.Parallel()
	app := many(50, "1", "dev", "test", "stage", "prod")
	dir, out := app.in(t), t.TempDir()
	written(t, dir, out)
	got := read(t, out)
	for _, environment := range []string{"dev", "test", "stage", "prod"} {
		for i := range 50 {
			name := fmt.Sprintf("%s/t%03d/manifests.yaml", environment, i)
			want := fmt.Sprintf("apiVersion: shop.example/v1\nkind: ConfigMap\nmetadata:\n  name: shop-t%03d\ndata:\n  chart: own\n  i: %d\n  version: 1\n", i, i)
			if got[name] != want {
				t.Errorf("%s is %q, want %q", name, got[name], want)
			}
		}
	}
	if len(got) != 400 {
		t.Errorf("%d files", len(got))
	}

	app.with(folder{"environments/stage/t007/values.yaml": "i: 7\nversion: 2\n"}).replace(t, dir)
	for environment, c := range written(t, dir, out) {
		want := ""
		if environment == "stage" {
			want = "t007/manifests.yaml"
		}
		if strings.Join(c.Written, " ") != want || len(c.Removed) > 0 {
			t.Errorf("%s: wrote %q, removed %q", environment, c.Written, c.Removed)
		}
	}
}

// Benchmark200Targets projects 200 targets of one chart, rendered in process, and does not
// write the output.
func Benchmark200Targets(b *testing.B) {
	dir := many(50, "1", "dev", "test", "stage", "prod").in(b)
	for b.Loop() {
		a, err := application.Project(b.Context(), request(dir))
		if err != nil || a.Failed() || len(a.Targets) != 200 {
			b.Fatal(err, a)
		}
	}
}
