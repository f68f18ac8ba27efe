package application_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
)

// elsewhere is shop with its chart in a registry.
var elsewhere = shop.with(folder{"kalypso.yaml": "name: shop\nmanifests:\n  helm: {oci: \"oci://charts.example.test/shop\", version: 1.x}\n"})

// pin locks the chart of elsewhere, vendors it, and returns the file with it.
func pin(t *testing.T, dir, version string) string {
	t.Helper()
	text := strings.ReplaceAll(chart, "version: 1.0.0", "version: "+version)
	data := commandtest.Chart(t, txtar.Parse([]byte(text)), "chart/")
	vendor := filepath.Join(dir, dependency.VendorDir)
	d, err := dependency.OpenStore("", vendor).Put(data)
	must(t, err, dependency.NewLock([]dependency.Entry{{
		Source:   dependency.Source{Kind: dependency.Chart, URL: "oci://charts.example.test/shop", Version: "1.x"},
		Revision: version, Content: d, Size: int64(len(data)),
	}}).Write(dir))
	digits := strings.TrimPrefix(string(d), "sha256:")
	return filepath.Join(vendor, "sha256", digits[:2], digits)
}

// A chart of elsewhere renders as the same chart does in the application's folder.
func TestLockedChart(t *testing.T) {
	t.Parallel()
	dir := elsewhere.in(t)
	pin(t, dir, "1.0.0")
	equal(t, "its tree", afresh(t, dir), afresh(t, shop.in(t)))
}

// A chart that is pinned again is another source, though the manifests be the same; one
// that is pinned as it was is not.
func TestPinIsRecorded(t *testing.T) {
	t.Parallel()
	dir, out := elsewhere.in(t), t.TempDir()
	for _, c := range []struct {
		version string
		anew    bool
	}{{"1.0.0", true}, {"1.0.0", false}, {"1.0.1", true}, {"1.0.1", false}} {
		pin(t, dir, c.version)
		for environment, changes := range written(t, dir, out) {
			if changes.Recorded != c.anew {
				t.Errorf("%s of %s: %+v", environment, c.version, changes)
			}
		}
	}
}

// Without its chart no target is rendered: the tree stays as it is.
func TestChartIsLost(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(file string) error
		want string
	}{
		{"missing", os.Remove, "K3012 "},
		{"tampered", func(file string) error { return os.WriteFile(file, []byte("else"), 0o666) }, "K3013 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, out := elsewhere.in(t), t.TempDir()
			file := pin(t, dir, "1.0.0")
			written(t, dir, out)
			before := read(t, out)
			must(t, c.lose(file))
			_, said := write(t, dir, out)
			if len(said) != 1 || !strings.HasPrefix(said[0], c.want) || !strings.HasSuffix(said[0], " @kalypso.yaml:3:3") {
				t.Errorf("said %q", said)
			}
			equal(t, "its tree", read(t, out), before)
			a, err := application.Project(t.Context(), request(dir))
			must(t, err)
			if !a.Failed() || slices.ContainsFunc(a.Targets, func(t application.Target) bool { return !t.Failed }) {
				t.Error("a target is rendered")
			}
		})
	}
}
