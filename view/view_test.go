package view

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/kalypso-io/kalypso/view/graph"
)

// hostile is a source that returns the same text in all places.
type hostile string

func fill[T any](s hostile) (*T, error) {
	out := new(T)
	s.into(reflect.ValueOf(out).Elem(), 0)
	return out, nil
}

func (s hostile) into(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(s))
	case reflect.Int:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(depth%2 == 0)
	case reflect.Slice:
		if depth < 6 {
			one := reflect.New(v.Type().Elem()).Elem()
			s.into(one, depth+1)
			v.Set(reflect.Append(v, one))
		}
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*graph.Graph]() {
			v.Set(reflect.ValueOf(&graph.Graph{Nodes: []graph.Node{{ID: string(s), Label: string(s), Kind: string(s), Detail: []string{string(s)}}}}))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.into(v.Field(i), depth+1)
			}
		}
	}
}

func (s hostile) PageData(context.Context) (*PageData, error) {
	about, err := fill[PageData](s)
	about.Built = about.Built.AddDate(1, 1, 1)
	return about, err
}
func (s hostile) Fleet(context.Context, string, Page) (*Fleet, error) {
	out, err := fill[Fleet](s)
	out.Environments[0].Unreadable = false
	out.Environments = append(out.Environments, out.Environments[0])
	return out, err
}
func (s hostile) Environment(context.Context, string) (*Environment, error) {
	return fill[Environment](s)
}
func (s hostile) Workload(context.Context, string, Page) (*Workload, error) { return fill[Workload](s) }
func (s hostile) Assignment(context.Context, string, string, string) (*Assignment, error) {
	out, err := fill[Assignment](s)
	out.Assigned = true
	return out, err
}
func (s hostile) ClusterType(context.Context, string, string, Page) (*ClusterType, error) {
	return fill[ClusterType](s)
}
func (s hostile) Clusters(context.Context, string, string, Page) (*Clusters, error) {
	return fill[Clusters](s)
}
func (s hostile) Cluster(context.Context, string, string) (*Cluster, error) { return fill[Cluster](s) }
func (s hostile) Policies(context.Context, string, string) (*Policies, error) {
	return fill[Policies](s)
}
func (s hostile) Configs(context.Context, string, string) (*Configs, error) { return fill[Configs](s) }
func (s hostile) Diagnostics(context.Context) (*Diagnostics, error)         { return fill[Diagnostics](s) }
func (s hostile) Search(context.Context, string, int) (*Search, error) {
	out, err := fill[Search](s)
	out.Hits[0].Page = append(out.Hits[0].Page, "x")
	return out, err
}
func (s hostile) Compare(context.Context, string, string) (*Comparison, error) {
	return fill[Comparison](s)
}
func (s hostile) Changes(context.Context, string) (*Changes, error) { return fill[Changes](s) }

// allPages are the paths of one page of each kind.
var allPages = []string{
	"/", "/environments/x", "/workloads/x", "/assignments/x/y/z", "/cluster-types/x/y", "/clusters/x", "/clusters/x/y",
	"/policies/x", "/configs/x", "/diagnostics", "/search?q=x", "/compare/x/y", "/changes", "/nothing",
}

// TestAllPages checks that allPages has each template of a page, that links lead to each page from
// the first one, and that a file has all pages. No other template includes the template of a page.
func TestAllPages(t *testing.T) {
	shown := map[string]bool{"document": true, "file-head": true, "file-page": true, "file-foot": true, "error": true}
	for _, observed := range []string{"running", "rollouts", "history", "audit"} {
		shown[observed] = true // hub/pages tests them
	}
	for _, address := range allPages {
		escaped, query, _ := strings.Cut(address, "?")
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := find(t.Context(), hostile("x"), escaped, values, false); err == nil {
			shown[p.Template] = true
		} else if address != "/nothing" {
			t.Error(err)
		}
	}
	names, err := filepath.Glob("templates/*.html")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	var text []byte
	for _, name := range names {
		html, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, html...)
	}
	for _, m := range regexp.MustCompile(`{{define "([^"]+)"`).FindAllSubmatch(text, -1) {
		if !shown[string(m[1])] && !bytes.Contains(text, []byte(`{{template "`+string(m[1])+`"`)) {
			t.Errorf("allPages has no page with the template %s", m[1])
		}
	}

	feed := &Feed{}
	feed.Set(hostile("x"), nil)
	h := Handler(feed)
	linked := []string{"/"}
	for i := 0; i < len(linked); i++ {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+linked[i], nil))
		for _, m := range regexp.MustCompile(`href="(/[^"?#]*)`).FindAllStringSubmatch(w.Body.String(), -1) {
			if !slices.Contains(linked, m[1]) {
				linked = append(linked, m[1])
			}
		}
	}
	f := &file{ctx: t.Context(), source: hostile("x"), has: map[string]bool{}, pageOf: map[string]string{}, equal: map[string]int{}}
	if err := f.collect(&PageData{Revision: "HEAD"}, true); err != nil {
		t.Fatal(err)
	}
	kinds := func(paths []string) map[string]bool {
		out := map[string]bool{}
		for _, p := range paths {
			segments := strings.Split(p, "/")
			out[fmt.Sprint(segments[1], len(segments))] = true
		}
		return out
	}
	onPages, inFile := kinds(linked), kinds(slices.Collect(maps.Keys(f.has)))
	for _, p := range allPages {
		kind := slices.Collect(maps.Keys(kinds([]string{p})))[0]
		if p == "/nothing" || strings.HasPrefix(p, "/search") {
			continue
		}
		if p == "/clusters/x/y" {
			inFile[kind] = true // a file has the lists of clusters only
		}
		if !onPages[kind] || !inFile[kind] {
			t.Errorf("%s: linked %v, in the file %v", p, onPages[kind], inFile[kind])
		}
	}
}

var hostileTexts = map[string]string{
	"markup":    `"><script>alert(1)</script><img src=x onerror=alert(1)>'`,
	"address":   `javascript:alert(1)`,
	"template":  `{{.}}${x}<!--`,
	"terminal":  "\x1b]0;x\x07\x1b[2J\x00",
	"direction": "a\u202Eb\u200B",
	"formula":   `=HYPERLINK("http://x","y")`,
	"no UTF-8":  "a\xff\xfeb",
	"long":      strings.Repeat("x", 10_000),
	"path":      "../../..//a b/%2f?q#f",
	"empty":     "",
}

// TestHostile checks that no text of a source becomes markup, a script or an address that
// runs one. It also checks that pages show invisible characters.
func TestHostile(t *testing.T) {
	for name, text := range hostileTexts {
		t.Run(name, func(t *testing.T) {
			feed := &Feed{}
			feed.Set(hostile(text), nil)
			h := Handler(feed)
			for _, page := range allPages {
				r := httptest.NewRequest(http.MethodGet, "http://localhost"+page, nil)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if want := map[bool]int{true: 404, false: 200}[page == "/nothing"]; w.Code != want {
					t.Errorf("%s: status %d", page, w.Code)
				}
				if !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
					t.Errorf("%s: no policy", page)
				}
				checkMarkup(t, page, w.Body.Bytes(), 2)
			}
			var out bytes.Buffer
			if err := WriteFile(t.Context(), &out, hostile(text), FileOptions{}); err != nil {
				t.Fatal(err)
			}
			checkMarkup(t, "file", out.Bytes(), 1)
		})
	}
}

// checkMarkup looks for scripts other than ours, and for attributes that run as a script.
func checkMarkup(t *testing.T, page string, text []byte, scripts int) {
	t.Helper()
	if i := bytes.IndexFunc(text, func(r rune) bool { return hidden(r) || r == '\uFEFF' }); i >= 0 {
		t.Errorf("%s: there is %q", page, text[i:i+1])
	}
	if len(text) > 3<<20 {
		t.Errorf("%s has %d bytes", page, len(text))
	}
	for z := html.NewTokenizer(bytes.NewReader(text)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		token := z.Token()
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		switch token.Data {
		case "script":
			if !slices.Contains(token.Attr, html.Attribute{Key: "type", Val: "application/gzip"}) { // that is data
				scripts--
			}
		case "img", "iframe", "object", "embed", "base", "form":
			if token.Data != "form" {
				t.Errorf("%s has <%s>", page, token.Data)
			}
		}
		for _, a := range token.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "href" && strings.HasPrefix(a.Val, "javascript:") {
				t.Errorf("%s: <%s %s=%q>", page, token.Data, a.Key, a.Val)
			}
		}
	}
	if scripts != 0 {
		t.Errorf("%s has %d scripts too many", page, -scripts)
	}
}

// TestOtherHosts checks that a page of the web cannot read the server through a name of its
// own.
func TestOtherHosts(t *testing.T) {
	feed := &Feed{}
	feed.Set(hostile("x"), nil)
	h := Handler(feed)
	for host, want := range map[string]int{
		"localhost": 200, "localhost:80": 200, "127.0.0.1:1": 200, "[::1]:1": 200, "[::1]": 200,
		"example.com": 403, "127.0.0.1.example.com": 403, "10.0.0.1": 403, "": 403, "localhost.": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, not %d", host, w.Code, want)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestFeed checks that a source is closed once, when it is neither current nor in use.
func TestFeed(t *testing.T) {
	var events []string
	feed := &Feed{}
	w := httptest.NewRecorder()
	Handler(feed).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("without a source: %d", w.Code)
	}
	set := func(name string) { feed.Set(hostile(name), func() { events = append(events, "close "+name) }) }
	set("a")
	source, _, _, done := feed.use()
	set("b")
	if source != hostile("a") || len(events) > 0 {
		t.Error("a was closed while it is used")
	}
	generation := feed.next(t.Context(), 0)
	done()
	changed := make(chan int)
	go func() { changed <- feed.next(t.Context(), generation) }()
	feed.Fail("no")
	if next := <-changed; next != generation+1 {
		t.Errorf("generation %d follows %d", next, generation)
	}
	if _, _, failure, done := feed.use(); failure != "no" {
		t.Errorf("failure %q", failure)
	} else {
		done()
	}
	feed.Close()
	if want := []string{"close a", "close b"}; !slices.Equal(events, want) {
		t.Errorf("%q, not %q", events, want)
	}
}

// TestPacked checks that packed pages are found by the path of the first page of their pack.
func TestPacked(t *testing.T) {
	p := &packer{}
	page := bytes.Repeat([]byte("x"), 300<<10)
	for _, path := range []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i"} {
		if err := p.add(path, page); err != nil {
			t.Fatal(err)
		}
	}
	out, err := p.finish()
	if err != nil {
		t.Fatal(err)
	}
	var first []string
	for _, one := range out.Packs {
		first = append(first, one.First)
	}
	if want := []string{"/a", "/e", "/h"}; !slices.Equal(first, want) || out.HTML != "" {
		t.Errorf("packs begin with %q, not %q", first, want)
	}
}
