package application_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/application"
)

// A file that is too large for a source is refused with the bound, and a way out.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	dir := shop.in(t)
	f, err := os.Create(filepath.Join(dir, "chart", "large.bin"))
	must(t, err)
	must(t, f.Truncate(64<<20+1))
	must(t, f.Close())
	a, err := application.Project(t.Context(), request(dir))
	must(t, err)
	want := []string{"K3014 the chart in ./chart cannot be read: large.bin is larger than 64 MiB @kalypso.yaml:2:26"}
	if got := lines(a.Diagnostics); !slices.Equal(got, want) || a.Diagnostics[0].Hint != "make it smaller, or divide it" {
		t.Errorf("got %q, %q", got, a.Diagnostics[0].Hint)
	}
}
