package people

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	whole "github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/pages"
	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/testing/browser"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/view"
)

// authorize lets a test answer the page on which the issuer asks for the person.
func (f *fake) authorize(mux *http.ServeMux) {
	page := template.Must(template.New("").Parse(`<!doctype html><html lang="en"><title>Issuer</title><main><h1>Who are you?</h1><a id="ann" href="{{.}}">Ann</a></main>`))
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		f.nonce, f.challenge = q.Get("nonce"), q.Get("code_challenge")
		_ = page.Execute(w, q.Get("redirect_uri")+"?"+url.Values{"state": {q.Get("state")}, "code": {"the-code"}}.Encode())
	})
}

// withPages has a hub serve its pages, with the environments dev and prod. change changes the
// pages, and listens receives a value whenever a page listens to changes.
func (h *hub) withPages() (change func(), listens chan struct{}) {
	t := h.t
	is, err := whole.Open(t.Context(), whole.Options{Store: h.db, StaleAfter: time.Hour, Now: time.Now, Problem: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { is.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	clusters := []state.Cluster{{Name: "store-1", Folder: "edge"}}
	change = func() {
		clusters = append(clusters, state.Cluster{Name: "store-2", Folder: "edge"})
		for i, name := range []string{"dev", "prod"} {
			f := state.Folder{Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "shop-main", Workload: "shop", Version: "1.0.0", Digest: "d"}}}
			w := &state.DesiredState{Environment: name, Branch: name, Commits: []state.Commit{{ID: "c", Rings: []state.Ring{{Base: "b", Own: "b"}}}}, Folders: []state.Folder{f}, Clusters: clusters[:len(clusters)-1]}
			if err := is.Want(t.Context(), i, w); err != nil {
				t.Fatal(err)
			}
		}
	}
	change()
	source, feed := &pages.Source{Hub: is, Title: "retail", Why: func(string) string { return "" }}, &view.Feed{}
	go source.Follow(ctx, feed)
	listens = make(chan struct{}, 100)
	identify := func(r *http.Request) (*access.Identity, error) {
		i, err := h.people.Identify(r)
		if r.URL.Path == "/events" {
			listens <- struct{}{}
		}
		return i, err
	}
	h.pages = server.New(server.Options{Hub: is, Tokens: access.NewTokens(h.db, time.Now), People: identify, SignIn: h.people.Handler(), Pages: view.ObserverHandler(feed, "/policies/", "/configs/", "/diagnostics", "/changes")})
	return change, listens
}

// TestSlowBrowser signs people in and out in a real browser. The issuer is another site.
func TestSlowBrowser(t *testing.T) {
	isolated.Slow(t, "it needs Chromium, npm and a registry")
	axe := browser.InstallAxe(t)
	begin := func(t *testing.T) (*hub, *browser.Tab, func(), chan struct{}) {
		f := newFake(t)
		f.URL = strings.Replace(f.URL, "127.0.0.1", "localhost", 1)
		h := newHub(t, f, rulesText)
		change, listens := h.withPages()
		t.Cleanup(h.CloseClientConnections)
		return h, browser.NewTab(t, axe), change, listens
	}
	at := func(t *testing.T, tab *browser.Tab, address, heading string) {
		t.Helper()
		tab.Await(`location.href === "` + address + `" && document.readyState === "complete" && document.querySelector("h1")?.innerText === "` + heading + `"`)
	}
	issuer := func(tab *browser.Tab, h *hub) {
		tab.Await(`location.href.startsWith("` + h.fake.URL + `/authorize?") && document.querySelector("#ann") !== null`)
	}
	click := func(tab *browser.Tab, selector string) {
		tab.Run(`document.querySelector("` + selector + `").click();undefined`)
	}
	t.Run("in and out", func(t *testing.T) {
		h, tab, _, _ := begin(t)
		tab.Do(chromedp.Navigate(h.URL + "/rollouts/prod?x=1"))
		issuer(tab, h)
		click(tab, "#ann")
		at(t, tab, h.URL+"/rollouts/prod?x=1", "Rollout of prod")
		if text := tab.Text(`document.querySelector("footer").innerText`); !strings.Contains(text, "You are ann@example.com: sign out.") {
			t.Errorf("the page says %q", text)
		}
		tab.LookAt("/rollouts/prod", false)
		click(tab, `footer a[href='/sign-in/out']`)
		at(t, tab, h.URL+"/sign-in/out", "Sign out")
		tab.LookAt("/sign-in/out", false)
		click(tab, "button")
		at(t, tab, h.URL+"/sign-in/out", "Signed out")
		tab.LookAt("/sign-in/out-done", false)
		tab.Do(chromedp.Navigate(h.URL + "/"))
		issuer(tab, h) // nobody is signed in any more
		if cookies := tab.Text("document.cookie"); cookies != "" {
			t.Errorf("scripts see %s", cookies)
		}
	})
	t.Run("a session that ends", func(t *testing.T) {
		h, tab, change, listens := begin(t)
		tab.Expect("401")
		h.fake.claims = func(c map[string]any) {
			c["iat"], c["exp"] = h.people.Now().Unix(), h.people.Now().Add(time.Hour).Unix()
		}
		tab.Do(chromedp.Navigate(h.URL + "/environments/prod"))
		issuer(tab, h)
		click(tab, "#ann")
		at(t, tab, h.URL+"/environments/prod", "prod")
		<-listens
		h.later.Add(int64(time.Hour))
		click(tab, `nav a[href='/history']`) // a script opens it
		issuer(tab, h)
		click(tab, "#ann")
		at(t, tab, h.URL+"/history", "History")
		<-listens
		h.later.Add(int64(time.Hour))
		change() // the open page must show the change
		issuer(tab, h)
		click(tab, "#ann")
		at(t, tab, h.URL+"/history", "History")
		<-listens
		h.later.Add(int64(time.Hour))
		tab.Run(`document.dispatchEvent(new Event("visibilitychange"));undefined`) // a page that is seen again listens
		issuer(tab, h)
	})
	t.Run("a group without a role", func(t *testing.T) {
		h, tab, _, _ := begin(t)
		tab.Expect("403")
		h.fake.claims = func(c map[string]any) { c["groups"] = []string{"visitors"} }
		tab.Do(chromedp.Navigate(h.URL + "/environments/prod"))
		issuer(tab, h)
		click(tab, "#ann")
		tab.Await(`document.querySelector("h1")?.innerText === "No role"`)
		if text := tab.Text(`document.querySelector("main").innerText`); !strings.Contains(text, "You are ann@example.com, and none of your groups has a role here.") {
			t.Errorf("the page says %q", text)
		}
		tab.LookAt("/sign-in/callback", false)
		h.fake.claims = func(c map[string]any) { c["groups"] = []string{"staff"} } // of dev only
		click(tab, "main a")
		issuer(tab, h)
		click(tab, "#ann")
		tab.Await(`document.querySelector("h1")?.innerText === "Not found"`)
		if text := tab.Text(`document.querySelector("main").innerText`); !strings.Contains(text, "there is no environment prod, or you may not see it") {
			t.Errorf("the page says %q", text)
		}
	})
	t.Run("an issuer that is away", func(t *testing.T) {
		h, tab, _, _ := begin(t)
		tab.Expect("503")
		h.fake.down = true
		tab.Do(chromedp.Navigate(h.URL + "/environments/prod"))
		tab.Await(`document.querySelector("h1")?.innerText === "Nobody can sign in now"`)
		tab.LookAt("/sign-in/", false)
	})
}
