package platform_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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
	"github.com/chromedp/chromedp/kb"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/internal/starter"
	"github.com/kalypso-io/kalypso/internal/testing/generate"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/view"
	"github.com/kalypso-io/kalypso/view/platform"
)

func TestMain(m *testing.M) { isolated.Main(m) }

// TestSlowBrowser looks at the pages in a real browser: of the platform that init writes, which
// has 3 assignments, and of generated ones.
func TestSlowBrowser(t *testing.T) {
	isolated.Slow(t, "it needs Chromium, npm and a registry")
	axe := installAxe(t)
	for _, n := range []int{3, 1000, 20_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			dir := t.TempDir()
			writePlatform(t, dir, n)
			b, err := compiler.Compile(t.Context(), compiler.Request{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
			if got := len(query.Assignments(b)); got != n {
				t.Fatalf("%d assignments, not %d", got, n)
			}
			tab := newTab(t, axe)
			feed := &view.Feed{}
			feed.Set(platform.New(b, platform.Options{Title: "first"}), nil)
			server := httptest.NewServer(view.Handler(feed))
			t.Cleanup(server.CloseClientConnections)
			tab.visitAll(server.URL, n)
			tab.useKeyboard(server.URL)
			tab.readWithoutScripts(server.URL)
			tab.search(server.URL, query.Assignments(b)[0].DeploymentTarget)
			tab.follow(server.URL, func() { feed.Set(platform.New(b, platform.Options{Title: "second"}), nil) })
			tab.openFile(b, n)
		})
	}
}

func writePlatform(t *testing.T, dir string, n int) {
	t.Helper()
	if n > 3 {
		if _, err := generate.Write(dir, 1, generate.ForAssignments(n)); err != nil {
			t.Fatal(err)
		}
		return
	}
	files, err := starter.Platform{Repository: starter.Repository{Name: "shop", Environments: []string{"dev", "stage", "prod"}, CI: "github"}, Reconciler: "flux"}.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// installAxe returns the text of axe, which knows the rules of accessibility.
func installAxe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir, "axe-core@4.14.1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tab is one of a browser. It fails the test where a page reports an error.
type tab struct {
	t   *testing.T
	ctx context.Context
	axe string
}

func newTab(t *testing.T, axe string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("allow-file-access-from-files", false))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	var mu sync.Mutex
	out := &tab{t, ctx, axe}
	listening := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("a script fails: %v", e.ExceptionDetails)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "404") {
				t.Errorf("%s: %s", e.Entry.URL, e.Entry.Text)
			}
		}
	})
	if listening != nil {
		t.Fatal(listening)
	}
	out.do(command(log.Enable, cdp.Empty{}), command(runtime.Enable, cdp.Empty{}))
	return out
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// command is a command of the browser's protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// text returns what a script of the page gives.
func (b *tab) text(script string) string {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("(async () => String(await ("+script+")))()", chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return out
}

// run runs a script in the page.
func (b *tab) run(script string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[chromedp.Void](script)); err != nil {
		b.t.Fatal(err)
	}
}

// await waits until a condition of the page holds.
func (b *tab) await(condition string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(2*time.Minute))); err != nil {
		b.t.Fatalf("%s: %v", condition, err)
	}
}

// visitAll follows the links from the first page, to three pages of each kind.
func (b *tab) visitAll(server string, assignments int) {
	seen, visited := map[string]bool{"/": true}, map[string]int{}
	for next := []string{"/"}; len(next) > 0; next = next[1:] {
		at := next[0]
		kind, _, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
		kind += fmt.Sprint(strings.Count(at, "/"))
		if visited[kind] == 3 {
			continue
		}
		visited[kind]++
		b.do(chromedp.Navigate(server + at))
		if status := b.text("performance.getEntriesByType('navigation')[0].responseStatus"); status != "200" {
			b.t.Errorf("%s: status %s", at, status)
		}
		if visited[kind] == 1 {
			b.lookAt(at, assignments > 3)
		}
		for _, link := range strings.Fields(b.text(`[...document.querySelectorAll("a[href]")].map((a) => a.getAttribute("href")).join("\n")`)) {
			if path, _, _ := strings.Cut(link, "?"); strings.HasPrefix(path, "/") && !seen[path] {
				seen[path] = true
				next = append(next, path)
			}
		}
	}
	for _, kind := range []string{"1", "environments2", "workloads2", "assignments4", "cluster-types3", "policies2", "configs2", "diagnostics1"} {
		if visited[kind] == 0 {
			b.t.Errorf("no link leads to %s", kind)
		}
	}
	sum := 0
	b.do(chromedp.Navigate(server + "/"))
	for _, count := range regexp.MustCompile(`(\d+) assignments?(?:,|\s|$)`).FindAllStringSubmatch(b.text(`document.querySelector(".matrix tbody").innerText`), -1) {
		n, _ := strconv.Atoi(count[1])
		sum += n
	}
	if workloads := b.text(`document.querySelectorAll(".matrix tbody tr").length`); workloads != "200" && sum != assignments {
		b.t.Errorf("the matrix counts %d assignments, not %d", sum, assignments)
	}
}

// lookAt looks at a page in both themes, wide and narrow, and on paper. Of a large platform it
// looks once, as the pages are the same.
func (b *tab) lookAt(at string, large bool) {
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1280} {
			if large && (theme == "dark" || width == 360) {
				continue
			}
			b.do(chromedp.EmulateViewport(width, 900), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}))
			if wide := b.text("document.documentElement.scrollWidth > innerWidth"); wide == "true" {
				b.t.Errorf("%s is wider than %d", at, width)
			}
			b.run(b.axe + ";undefined")
			const rules = `{runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"]}`
			found := b.text(`(await axe.run(document, ` + rules + `)).violations.map((v) => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map((n) => n.html).join(" | ")).join("\n")`)
			if found != "" {
				b.t.Errorf("%s, %s, %d wide: %s", at, theme, width, found)
			}
			b.picture(at, theme, width)
		}
	}
	b.do(command(page.PrintToPDF, page.PrintToPDFParams{}))
}

// pictures is the folder for pictures of all pages, to be looked at; "" for none.
var pictures = os.Getenv("KALYPSO_PICTURES")

// picture writes a picture of the page.
func (b *tab) picture(at, theme string, width int64) {
	if pictures == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	name := strings.ReplaceAll(strings.TrimPrefix(b.t.Name()+at, "TestSlowBrowser/"), "/", "-")
	if err := os.WriteFile(filepath.Join(pictures, fmt.Sprintf("%s-%s-%d.png", name, theme, width)), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// useKeyboard skips to the content, and follows a link.
func (b *tab) useKeyboard(server string) {
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server+"/"), chromedp.KeyEvent(kb.Tab))
	if focus := b.text("document.activeElement.className"); focus != "skip" {
		b.t.Errorf("the first tab stop is %q, and not the link to the content", focus)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(`document.activeElement.id === "main"`)
	b.do(chromedp.Focus(".matrix tbody a"), chromedp.KeyEvent(kb.Enter))
	b.await(`location.pathname.startsWith("/workloads/") && document.querySelector("h1").innerText !== "Fleet"`)
}

// search finds an assignment by its name, while it is typed.
func (b *tab) search(server, name string) {
	b.do(chromedp.Navigate(server+"/"), chromedp.SendKeys("header input[type=search]", name))
	b.await(fmt.Sprintf(`[...document.querySelectorAll("main table a")].some((a) => a.innerText === %q)`, name))
}

func (b *tab) readWithoutScripts(server string) {
	b.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(server+"/"))
	text, err := chromedp.Run(b.ctx, chromedp.TextContent("main"))
	if err != nil {
		b.t.Fatal(err)
	}
	if !strings.Contains(text, "assignment") {
		b.t.Errorf("without scripts there is %q", text)
	}
	b.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{}))
}

// follow waits until an open page shows what changes.
func (b *tab) follow(server string, change func()) {
	b.do(chromedp.Navigate(server + "/diagnostics"))
	b.await(`document.querySelector("header .title").innerText.includes("first")`)
	change()
	b.await(`document.querySelector("header .title").innerText.includes("second")`)
}

// openFile looks at the same in one file.
func (b *tab) openFile(c *compiler.Build, assignments int) {
	name := filepath.Join(b.t.TempDir(), "fleet.html")
	f, err := os.Create(name)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := view.WriteFile(b.t.Context(), f, platform.New(c, platform.Options{Title: "file"}), view.FileOptions{}); err != nil {
		b.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		b.t.Fatal(err)
	}
	if info.Size() > 20e6 {
		b.t.Errorf("the file of %d assignments has %d bytes", assignments, info.Size())
	}
	at := (&url.URL{Scheme: "file", Path: name}).String()
	b.do(chromedp.Navigate(at))
	if title := b.text(`document.querySelector(".page h1").innerText`); title != "Fleet" {
		b.t.Errorf("the file begins with %q", title)
	}
	b.t.Logf("%d assignments: a file of %d bytes, ready after %s ms", assignments, info.Size(), b.text("performance.getEntriesByType('navigation')[0].loadEventEnd"))
	b.lookAt("file", assignments > 3)
	a := query.Assignments(c)[0]
	b.run(fmt.Sprintf("location.hash = %q", "/workloads/"+a.Workload))
	shown := `[...document.querySelectorAll(".page")].filter((p) => getComputedStyle(p).display !== "none")`
	one := func(title string) {
		b.await(fmt.Sprintf(`%s.map((p) => p.querySelector("h1").innerText).join() === %q`, shown, title))
	}
	one(a.Workload)
	b.run(shown + `[0].querySelector("table a").click()`)
	b.await(shown + `[0].id.startsWith("/assignments/") && ` + shown + `.length === 1`)
	b.run("history.back()")
	one(a.Workload)
	b.run(`location.hash = "/"`)
	one("Fleet")
	b.do(chromedp.SendKeys("#search", a.DeploymentTarget))
	b.await(fmt.Sprintf(`document.querySelector("#found a")?.innerText === %q`, a.DeploymentTarget))
	b.do(chromedp.SendKeys(".page.shown input[data-filter]", "nothing has this name"))
	if rows := b.text(`document.querySelectorAll(".matrix tbody tr:not([hidden])").length`); rows != "0" {
		b.t.Errorf("the filter leaves %s rows", rows)
	}
}
