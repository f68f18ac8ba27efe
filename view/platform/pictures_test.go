package platform_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/internal/testing/browser"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/view"
	"github.com/kalypso-io/kalypso/view/graph"
	"github.com/kalypso-io/kalypso/view/platform"
)

// update says that the test must write the pictures of the docs again.
var update = os.Getenv("KALYPSO_UPDATE") == "1"

// TestSlowPictures checks that the pictures of the docs show the current pages.
func TestSlowPictures(t *testing.T) {
	isolated.Slow(t, "it needs Chromium")
	const dir = "../../docs/pictures"
	root := filepath.Join(t.TempDir(), "retail")
	if err := os.CopyFS(root, os.DirFS("../../examples/retail")); err != nil {
		t.Fatal(err)
	}
	b, err := compiler.Compile(t.Context(), compiler.Request{Dir: root})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	feed := &view.Feed{}
	feed.Set(pages(t, b, platform.Options{Title: "retail.example/platform", Since: "HEAD"}), nil)
	server := httptest.NewServer(view.Handler(feed))
	t.Cleanup(server.CloseClientConnections)
	checkPath(t, b, filepath.Join(dir, "path.svg"))
	tab := browser.NewTab(t, "")
	for name, p := range map[string]struct {
		path   string
		height int64
	}{
		"fleet.png":      {"/", 440},
		"assignment.png": {"/assignments/prod/market.config_north.till-pilot/till-prod", 760},
	} {
		tab.CheckPicture(server.URL+p.path, filepath.Join(dir, name), p.height)
	}
}

// checkPath compares kalypso graph's picture of an assignment with a file.
func checkPath(t *testing.T, b *compiler.Build, file string) {
	t.Helper()
	n := slices.IndexFunc(b.Environments, func(e *engine.Environment) bool { return e.Name == "dev" })
	g, err := query.ConfigGraph(&compiler.Build{Platform: b.Platform, Declarations: b.Declarations, Environments: b.Environments[n : n+1]}, "dev/market.config_north/till-dev")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := graph.SVG(&got, g, true); err != nil {
		t.Fatal(err)
	}
	if update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, got.Bytes()) {
		t.Errorf("%s is not what kalypso graph draws (%v); `make docs` writes it anew", file, err)
	}
}
