package platform_test

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/internal/starter"
	"github.com/kalypso-io/kalypso/internal/testing/browser"
	"github.com/kalypso-io/kalypso/internal/testing/generate"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/view"
	"github.com/kalypso-io/kalypso/view/platform"
)

func TestMain(m *testing.M) { isolated.Main(m) }

// TestSlowBrowser checks the pages in a real browser: the pages of the platform that init
// writes, which has 3 assignments, and of generated platforms.
func TestSlowBrowser(t *testing.T) {
	isolated.Slow(t, "it needs Chromium, npm and a registry")
	axe := browser.InstallAxe(t)
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
			if got := len(listed(t, b)); got != n {
				t.Fatalf("%d assignments, not %d", got, n)
			}
			tab := browser.NewTab(t, axe)
			feed := &view.Feed{}
			feed.Set(pages(t, b, platform.Options{Title: "first"}), nil)
			server := httptest.NewServer(view.Handler(feed))
			t.Cleanup(server.CloseClientConnections)
			visitAll(tab, t, server.URL, n)
			useKeyboard(tab, t, server.URL)
			readWithoutScripts(tab, t, server.URL)
			search(tab, server.URL, listed(t, b)[0].DeploymentTarget)
			follow(tab, server.URL, func() { feed.Set(pages(t, b, platform.Options{Title: "second"}), nil) })
			openFile(tab, t, b, n)
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
	files, err := starter.Platform{Repository: starter.Repository{Name: "shop", Environments: []string{"dev", "stage", "prod"}, CI: "github"}, Reconciler: starter.Reconciler{Name: "flux", Pulls: true}}.Files()
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

// visitAll looks at pages of all kinds.
func visitAll(b *browser.Tab, t *testing.T, server string, assignments int) {
	visited := b.Visit(server, assignments > 3)
	for _, kind := range []string{"1", "environments2", "workloads2", "assignments4", "cluster-types3", "policies2", "configs2", "diagnostics1"} {
		if visited[kind] == 0 {
			t.Errorf("no link leads to %s", kind)
		}
	}
	sum := 0
	b.Do(chromedp.Navigate(server + "/"))
	for _, count := range regexp.MustCompile(`(\d+) assignments?(?:,|\s|$)`).FindAllStringSubmatch(b.Text(`document.querySelector(".matrix tbody").innerText`), -1) {
		n, _ := strconv.Atoi(count[1])
		sum += n
	}
	if workloads := b.Text(`document.querySelectorAll(".matrix tbody tr").length`); workloads != "200" && sum != assignments {
		t.Errorf("the matrix counts %d assignments, not %d", sum, assignments)
	}
}

// useKeyboard skips to the content, and follows a link.
func useKeyboard(b *browser.Tab, t *testing.T, server string) {
	b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server+"/"), chromedp.KeyEvent(kb.Tab))
	if focus := b.Text("document.activeElement.className"); focus != "skip" {
		t.Errorf("the first tab stop is %q, and not the link to the content", focus)
	}
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Await(`document.activeElement.id === "main"`)
	b.Do(chromedp.Focus(".matrix tbody a"), chromedp.KeyEvent(kb.Enter))
	b.Await(`location.pathname.startsWith("/workloads/") && document.querySelector("h1").innerText !== "Fleet"`)
}

// search finds an assignment by its name, while it is typed.
func search(b *browser.Tab, server, name string) {
	b.Do(chromedp.Navigate(server+"/"), chromedp.SendKeys("header input[type=search]", name))
	b.Await(fmt.Sprintf(`[...document.querySelectorAll("main table a")].some((a) => a.innerText === %q)`, name))
}

func readWithoutScripts(b *browser.Tab, t *testing.T, server string) {
	b.Do(browser.Command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(server+"/"))
	text, err := chromedp.Run(b.Context(), chromedp.TextContent("main"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "assignment") {
		t.Errorf("without scripts there is %q", text)
	}
	b.Do(browser.Command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{}))
}

// follow waits until an open page shows a change.
func follow(b *browser.Tab, server string, change func()) {
	b.Do(chromedp.Navigate(server + "/diagnostics"))
	b.Await(`document.querySelector("header .title").innerText.includes("first")`)
	change()
	b.Await(`document.querySelector("header .title").innerText.includes("second")`)
}

// openFile looks at the same in one file.
func openFile(b *browser.Tab, t *testing.T, c *compiler.Build, assignments int) {
	name := filepath.Join(t.TempDir(), "fleet.html")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.WriteFile(t.Context(), f, pages(t, c, platform.Options{Title: "file"}), view.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 20e6 {
		t.Errorf("the file of %d assignments has %d bytes", assignments, info.Size())
	}
	at := (&url.URL{Scheme: "file", Path: name}).String()
	b.Do(chromedp.Navigate(at))
	if title := b.Text(`document.querySelector(".page h1").innerText`); title != "Fleet" {
		t.Errorf("the file begins with %q", title)
	}
	t.Logf("%d assignments: a file of %d bytes, ready after %s ms", assignments, info.Size(), b.Text("performance.getEntriesByType('navigation')[0].loadEventEnd"))
	b.LookAt("file", assignments > 3)
	a := listed(t, c)[0]
	b.Run(fmt.Sprintf("location.hash = %q", "/workloads/"+a.Workload))
	shown := `[...document.querySelectorAll(".page")].filter((p) => getComputedStyle(p).display !== "none")`
	one := func(title string) {
		b.Await(fmt.Sprintf(`%s.map((p) => p.querySelector("h1").innerText).join() === %q`, shown, title))
	}
	one(a.Workload)
	b.Run(shown + `[0].querySelector("table a").click()`)
	b.Await(shown + `[0].id.startsWith("/assignments/") && ` + shown + `.length === 1`)
	b.Run("history.back()")
	one(a.Workload)
	b.Run(`location.hash = "/"`)
	one("Fleet")
	b.Do(chromedp.SendKeys("#search", a.DeploymentTarget))
	b.Await(fmt.Sprintf(`document.querySelector("#found a")?.innerText === %q`, a.DeploymentTarget))
	b.Do(chromedp.SendKeys(".page.shown input[data-filter]", "nothing has this name"))
	if rows := b.Text(`document.querySelectorAll(".matrix tbody tr:not([hidden])").length`); rows != "0" {
		t.Errorf("the filter leaves %s rows", rows)
	}
}

// pages returns the source of a build's pages.
func pages(t *testing.T, b *compiler.Build, o platform.Options) *platform.Platform {
	t.Helper()
	p, err := platform.New(t.Context(), b, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// listed returns the assignments of a build.
func listed(t *testing.T, b *compiler.Build) []query.Assignment {
	t.Helper()
	all, err := query.Assignments(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
