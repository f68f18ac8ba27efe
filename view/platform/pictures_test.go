package platform_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/build"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/internal/testing/browser"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/view"
	"github.com/kalypso-io/kalypso/view/graph"
	"github.com/kalypso-io/kalypso/view/platform"
)

// update says that the pictures of the docs are to be written anew.
var update = os.Getenv("KALYPSO_UPDATE") == "1"

// TestSlowPictures holds that the pictures of the docs show what pages look like. Fonts and
// versions of the browser may differ a little.
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
	feed.Set(platform.New(b, platform.Options{Title: "retail.example/platform", Since: "HEAD"}), nil)
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
		tab.Do(chromedp.EmulateViewport(1000, p.height), chromedp.Navigate(server.URL+p.path))
		got, err := chromedp.Run(tab.Context(), chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if share := different(t, want, got); share > 0.1 {
			t.Errorf("%.0f %% of docs/pictures/%s is not what the page looks like; `make docs` writes it anew", 100*share, name)
		}
	}
}

// checkPath holds a picture of what kalypso graph draws of an assignment.
func checkPath(t *testing.T, b *compiler.Build, file string) {
	t.Helper()
	n := slices.IndexFunc(b.Environments, func(e *build.Environment) bool { return e.Name == "dev" })
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

// different is the share of pixels that differ by more than shades.
func different(t *testing.T, a, b []byte) float64 {
	t.Helper()
	var of [2]image.Image
	for i, data := range [][]byte{a, b} {
		decoded, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		of[i] = decoded
	}
	bounds := of[0].Bounds()
	if bounds != of[1].Bounds() {
		return 1
	}
	count := 0
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			p, _, _, _ := of[0].At(x, y).RGBA()
			q, _, _, _ := of[1].At(x, y).RGBA()
			if max(p, q)-min(p, q) > 0x4000 {
				count++
			}
		}
	}
	return float64(count) / float64(bounds.Dx()*bounds.Dy())
}
