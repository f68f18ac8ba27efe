// Package browser lets tests open pages in a real Chromium. It checks them for errors, for
// violations of the rules of accessibility, and for content wider than the window.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// InstallAxe returns the text of axe, which knows the rules of accessibility.
func InstallAxe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix",
		dir, "axe-core@4.14.1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Tab is a tab of a browser. It fails the test if a page reports an error.
type Tab struct {
	t      *testing.T
	ctx    context.Context
	axe    string
	mu     sync.Mutex
	expect []string // texts of messages that do not count as errors
}

// NewTab opens one. axe is the result of InstallAxe.
func NewTab(t *testing.T, axe string) *Tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.Flag("allow-file-access-from-files", false))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	out := &Tab{t: t, ctx: ctx, axe: axe, expect: []string{"404"}}
	listening := chromedp.Listen(ctx, func(event any) {
		out.mu.Lock()
		defer out.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("a script fails: %v", e.ExceptionDetails)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && !slices.ContainsFunc(out.expect,
				func(text string) bool { return strings.Contains(e.Entry.Text, text) }) {
				t.Errorf("%s: %s", e.Entry.URL, e.Entry.Text)
			}
		}
	})
	if listening != nil {
		t.Fatal(listening)
	}
	out.Do(Command(log.Enable, cdp.Empty{}), Command(runtime.Enable, cdp.Empty{}))
	return out
}

// Expect makes the test pass if a page reports an error with a text, such as a status.
func (b *Tab) Expect(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expect = append(b.expect, text)
}

// Do does something in the tab.
func (b *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// Command is a command of the browser's protocol.
func Command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// Text returns the result of a script in the page, as text.
func (b *Tab) Text(script string) string {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx,
		chromedp.Evaluate[string]("(async () => String(await ("+script+")))()", chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return out
}

// Run runs a script in the page.
func (b *Tab) Run(script string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[chromedp.Void](script)); err != nil {
		b.t.Fatal(err)
	}
}

// Await waits until a condition of the page holds, or of one that it leads to.
func (b *Tab) Await(condition string) {
	b.t.Helper()
	const left = "(-32000)" // the code if the browser has left the page
	for pages := 0; ; pages++ {
		_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(2*time.Minute)))
		if err == nil {
			return
		}
		if pages == 100 || !strings.Contains(err.Error(), left) {
			b.t.Fatalf("%s: %v", condition, err)
		}
	}
}

// Visit follows the links from the first page, to three pages of each kind, and returns the
// number of visited pages of each kind. The kind of a page is the first part of its path with the
// number of parts.
func (b *Tab) Visit(server string, large bool) map[string]int {
	seen, visited := map[string]bool{"/": true}, map[string]int{}
	for next := []string{"/"}; len(next) > 0; next = next[1:] {
		at := next[0]
		kind, _, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
		kind += fmt.Sprint(strings.Count(at, "/"))
		if visited[kind] == 3 {
			continue
		}
		visited[kind]++
		b.Do(chromedp.Navigate(server + at))
		if status := b.Text("performance.getEntriesByType('navigation')[0].responseStatus"); status != "200" {
			b.t.Errorf("%s: status %s", at, status)
		}
		if visited[kind] == 1 {
			b.LookAt(at, large)
		}
		for _, link := range strings.Fields(
			b.Text(`[...document.querySelectorAll("a[href]")].map((a) => a.getAttribute("href")).join("\n")`)) {
			if path, _, _ := strings.Cut(link, "?"); strings.HasPrefix(path, "/") && !seen[path] {
				seen[path] = true
				next = append(next, path)
			}
		}
	}
	return visited
}

// LookAt looks at a page in both themes, wide and narrow, and on paper. Of a large platform it
// looks once, as the pages are the same.
func (b *Tab) LookAt(at string, large bool) {
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1280} {
			if large && (theme == "dark" || width == 360) {
				continue
			}
			b.Do(chromedp.EmulateViewport(width, 900), Command(emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}))
			if wide := b.Text("document.documentElement.scrollWidth > innerWidth"); wide == "true" {
				b.t.Errorf("%s is wider than %d", at, width)
			}
			b.Run(b.axe + ";undefined")
			const rules = `{runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"]}`
			found := b.Text(`(await axe.run(document, ` + rules +
				`)).violations.map((v) => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map((n) => n.html).join(" | ")).join("\n")`)
			if found != "" {
				b.t.Errorf("%s, %s, %d wide: %s", at, theme, width, found)
			}
			b.picture(at, theme, width)
		}
	}
	b.Do(Command(page.PrintToPDF, page.PrintToPDFParams{}))
}

// pictures is the folder for pictures of all pages, to be looked at, or "".
var pictures = os.Getenv("KALYPSO_PICTURES")

// picture writes a picture of the page.
func (b *Tab) picture(at, theme string, width int64) {
	if pictures == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	name := strings.ReplaceAll(strings.TrimPrefix(b.t.Name()+at, "TestSlowBrowser/"), "/", "-")
	if err := os.WriteFile(filepath.Join(pictures, fmt.Sprintf("%s-%s-%d.png", name, theme, width)),
		picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Context returns the context for actions of the tab.
func (b *Tab) Context() context.Context { return b.ctx }
