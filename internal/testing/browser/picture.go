package browser

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

// CheckPicture checks that a PNG file shows a page as it looks in a window of 1000 pixels and a
// height. Fonts, times and versions of the browser may differ a little. With KALYPSO_UPDATE=1 it
// writes the file instead.
func (b *Tab) CheckPicture(url, file string, height int64) {
	b.t.Helper()
	b.Do(chromedp.EmulateViewport(1000, height), chromedp.Navigate(url))
	got, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if os.Getenv("KALYPSO_UPDATE") == "1" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	if share := b.different(want, got); share > 0.1 {
		b.t.Errorf("%.0f %% of %s is not what the page looks like; `make docs` writes it anew", 100*share,
			filepath.Base(file))
	}
}

// different is the share of pixels that differ by more than shades.
func (b *Tab) different(want, got []byte) float64 {
	b.t.Helper()
	var of [2]image.Image
	for i, data := range [][]byte{want, got} {
		decoded, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			b.t.Fatal(err)
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
