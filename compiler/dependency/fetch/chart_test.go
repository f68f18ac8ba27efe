package fetch

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/repo"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// saveChart writes the archive of a chart, as `helm package` does.
func saveChart(t testing.TB, dir, name, version string) (file string) {
	t.Helper()
	file, err := chartutil.Save(&chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: version},
		Templates: []*chart.File{{Name: "templates/a.yaml", Data: []byte("version: " + version)}},
	}, dir)
	must(t, err)
	return file
}

// chartHost serves a chart repository at /charts, as `helm repo index` makes it,
// with podinfo in some versions.
func chartHost(t testing.TB, versions ...string) (h *host, dir string) {
	t.Helper()
	isolate(t)
	root := t.TempDir()
	dir = filepath.Join(root, "charts")
	must(t, os.Mkdir(dir, 0o777))
	for _, v := range versions {
		saveChart(t, dir, "podinfo", v)
	}
	h = serve(t, http.FileServer(http.Dir(root)))
	reindex(t, dir, "", nil)
	return h, dir
}

// reindex writes the index of a repository, with the charts at another base, and
// changes in it.
func reindex(t testing.TB, dir, base string, change func(*repo.IndexFile)) {
	t.Helper()
	index, err := repo.IndexDirectory(dir, base)
	must(t, err)
	index.SortEntries()
	if change != nil {
		change(index)
	}
	must(t, index.WriteFile(filepath.Join(dir, "index.yaml"), 0o666))
}

func podinfo(url, version string) dependency.Source {
	return dependency.Source{Kind: dependency.Chart, URL: url, Chart: "podinfo", Version: version}
}

func wantChart(t testing.TB, data []byte, version string) {
	t.Helper()
	if got := files(t, data); !slices.Contains(got, "podinfo/templates/a.yaml: version: "+version) {
		t.Errorf("got %q, want version %s", got, version)
	}
}

func TestChartVersions(t *testing.T) {
	h, _ := chartHost(t, "1.2.0", "1.10.0", "2.0.0-rc.1", "v3.0.0", "3.1.0+build.1")
	for wanted, version := range map[string]string{
		"1.2.0": "1.2.0", ">=1.2 <2": "1.10.0", "1.x": "1.10.0", "~1.2": "1.2.0", "2.0.0-rc.1": "2.0.0-rc.1",
		">=2.0.0-0 <3": "2.0.0-rc.1", "3.0.0": "v3.0.0", "*": "3.1.0+build.1", "3.1.0+build.1": "3.1.0+build.1",
	} {
		for _, url := range []string{h.URL + "/charts", h.URL + "/charts/"} {
			e, data := resolving(t, podinfo(url, wanted))
			if e.Revision != version {
				t.Errorf("%s: %s, want %s", wanted, e.Revision, version)
			}
			wantChart(t, data, version)
		}
	}
	for wanted, want := range map[string]string{
		"4.x":    "no version is in the range 4.x; there are: 3.1.0+build.1, v3.0.0, 2.0.0-rc.1, 1.10.0, 1.2.0",
		"2.0.0":  "no version is in the range 2.0.0",
		"newest": `"newest" is no range of versions`,
	} {
		_, _, err := quick(t).Resolve(t.Context(), podinfo(h.URL+"/charts", wanted))
		wantError[error](t, err, want)
	}
	misspelt := podinfo(h.URL+"/charts", "1.2.0")
	misspelt.Chart = "podnfo"
	_, _, err := quick(t).Resolve(t.Context(), misspelt)
	wantError[*NotFoundError](t, err, "the chart repository has no chart podnfo; there are: podinfo")
	_, _, err = quick(t).Resolve(t.Context(), podinfo(h.URL, "1.2.0"))
	wantError[*NotFoundError](t, err, "there is no /index.yaml on 127.0.0.1")
}

// The index is read once for all charts of a repository.
func TestChartIndexOnce(t *testing.T) {
	h, _ := chartHost(t, "1.2.0", "1.3.0")
	f := quick(t)
	for _, v := range []string{"1.2.0", "1.3.0", "1.x"} {
		_, _, err := f.Resolve(t.Context(), podinfo(h.URL+"/charts", v))
		must(t, err)
	}
	if n := len(h.asked()); n != 4 {
		t.Errorf("%d requests for an index and three charts", n)
	}
}

// Charts may be elsewhere than their index.
func TestChartURLs(t *testing.T) {
	h, dir := chartHost(t, "1.2.0")
	other := serve(t, http.FileServer(http.Dir(filepath.Dir(dir))))
	for name, at := range map[string]string{
		"relative":      "podinfo-1.2.0.tgz",
		"from the root": "/charts/podinfo-1.2.0.tgz",
		"upwards":       "../charts/podinfo-1.2.0.tgz",
		"same server":   h.URL + "/charts/podinfo-1.2.0.tgz",
		"other server":  other.URL + "/charts/podinfo-1.2.0.tgz",
	} {
		t.Run(name, func(t *testing.T) {
			reindex(t, dir, "", func(i *repo.IndexFile) { i.Entries["podinfo"][0].URLs = []string{at} })
			_, data := resolving(t, podinfo(h.URL+"/charts", "1.2.0"))
			wantChart(t, data, "1.2.0")
		})
	}
	for _, at := range []string{"file:///etc/passwd", "ftp://example.com/a", "http://", "oci://EXAMPLE.com/A:1", ":", "oci:///"} {
		reindex(t, dir, "", func(i *repo.IndexFile) { i.Entries["podinfo"][0].URLs = []string{at} })
		_, _, err := quick(t).Resolve(t.Context(), podinfo(h.URL+"/charts", "1.2.0"))
		wantError[*Error](t, err, "")
	}
	reindex(t, dir, "", func(i *repo.IndexFile) { i.Entries["podinfo"][0].URLs = nil })
	_, _, err := quick(t).Resolve(t.Context(), podinfo(h.URL+"/charts", "1.2.0"))
	wantError[*Error](t, err, "does not say where version 1.2.0 is")
}

// Credentials go only to the server of the repository.
func TestChartCredentials(t *testing.T) {
	h, dir := chartHost(t, "1.2.0")
	other := serve(t, http.FileServer(http.Dir(filepath.Dir(dir))))
	away := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
	}))
	h.behind(guarded)
	source := podinfo(h.URL+"/charts", "1.2.0")
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*AuthError](t, err, "answers 401 Unauthorized")

	config := filepath.Join(t.TempDir(), "repositories.yaml")
	t.Setenv("HELM_REPOSITORY_CONFIG", config)
	entry := func(pass, more string) {
		write(t, config, fmt.Sprintf("apiVersion: \"\"\nrepositories:\n- name: a\n  url: %s/charts/\n  username: %s\n  password: %s\n%s", h.URL, username, pass, more))
	}
	entry("wrong-wrong", "")
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*AuthError](t, err, "answers 401 Unauthorized")
	if hint := err.(*AuthError).Hint; !strings.Contains(hint, "--force-update") {
		t.Error(hint)
	}
	entry(password, "")
	_, data := resolving(t, source)
	wantChart(t, data, "1.2.0")

	for _, base := range []string{other.URL, away.URL} {
		reindex(t, dir, base+"/charts", nil)
		resolving(t, source)
	}
	h.behind(func(w http.ResponseWriter, r *http.Request) bool {
		if guarded(w, r) {
			return true
		}
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
			return true
		}
		return false
	})
	reindex(t, dir, "", nil)
	resolving(t, source)
	asked := append(other.asked(), away.asked()...)
	for _, r := range asked {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("%s has credentials of another server", r.URL)
		}
	}
	if len(asked) < 6 {
		t.Errorf("%d requests", len(asked))
	}
	// Unless helm's configuration allows it.
	reindex(t, dir, other.URL+"/charts", nil)
	entry(password, "  pass_credentials_all: true\n")
	resolving(t, source)
	for _, r := range other.asked() {
		if r.Header.Get("Authorization") == "" {
			t.Error("pass_credentials_all does nothing")
		}
	}
}

func TestChartTLS(t *testing.T) {
	h, _ := chartHost(t, "1.2.0")
	secure := httptest.NewUnstartedServer(h.handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	source := podinfo(secure.URL+"/charts", "1.2.0")
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "certificate")

	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	config := filepath.Join(dir, "repositories.yaml")
	t.Setenv("HELM_REPOSITORY_CONFIG", config)
	write(t, config, fmt.Sprintf("repositories:\n- url: %s/charts\n  caFile: %s\n", secure.URL, ca))
	_, data := resolving(t, source)
	wantChart(t, data, "1.2.0")

	write(t, ca, "nothing")
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "has no certificate")
}

func TestChartRepeats(t *testing.T) {
	h, _ := chartHost(t, "1.2.0")
	source := podinfo(h.URL+"/charts", "1.2.0")
	for _, status := range []int{0, http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		h.behind(failing(2, status))
		_, data := resolving(t, source)
		wantChart(t, data, "1.2.0")
	}
	// If a response body breaks off, the fetcher starts over.
	breaks := 2
	h.behind(func(w http.ResponseWriter, r *http.Request) bool {
		if breaks == 0 || !strings.HasSuffix(r.URL.Path, ".tgz") {
			return false
		}
		breaks--
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write([]byte("x"))
		return true
	})
	_, data := resolving(t, source)
	wantChart(t, data, "1.2.0")
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusTeapot} {
		h.behind(failing(1<<30, status))
		h.asked()
		if _, _, err := quick(t).Resolve(t.Context(), source); err == nil {
			t.Errorf("%d is no error", status)
		}
		if n := len(h.asked()); n != 1 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
	h.Close()
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "connection refused")
}

func TestChartHostile(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
		"a page":          {text("<!doctype html><p>Welcome"), "is not one of Helm's"},
		"no YAML":         {text("a: [\x01"), "cannot be read"},
		"nothing":         {text(""), "is not one of Helm's"},
		"another type":    {text("apiVersion: v1\nentries:\n  podinfo: 7\n"), "cannot be read"},
		"anchors":         {text(bomb()), "cannot be read"},
		"directives":      {text(strings.Repeat("%TAG !a! b\n", 200) + "---\napiVersion: v1\n"), "there are more than 100 %TAG directives"},
		"many charts":     {text("apiVersion: v1\nentries: {" + strings.Repeat("a: [],", 32_000) + "}\n"), "it has too many entries"},
		"in itself":       {text("apiVersion: v1\nentries: &a\n  <<: *a\n"), "anchor a contains itself"},
		"endless":         {endless, "more than the"},
		"round and round": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "redirects too often"},
		"another scheme": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, "without TLS"},
		"signed": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/a?sig="+password, http.StatusFound)
		}, "127.0.0.1:1"},
		"an escape": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "\x1b[2J", http.StatusTeapot)
		}, "418"},
	} {
		t.Run(name, func(t *testing.T) {
			isolate(t)
			h := serve(t, http.HandlerFunc(c.answer))
			_, _, err := quick(t).Resolve(t.Context(), podinfo(h.URL, "1.2.0"))
			wantError[*Error](t, err, c.want)
		})
	}
}

func text(s string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
}

func endless(w http.ResponseWriter, r *http.Request) {
	for chunk := make([]byte, 1<<20); r.Context().Err() == nil; {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// bomb is an index whose anchors expand to millions of versions.
func bomb() string {
	out := "apiVersion: v1\na0: &a0 [{version: 1.2.0}]\n"
	for i := range 12 {
		out += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	return out + "entries:\n  podinfo: *a12\n"
}

// A chart that does not match the index or the lock is refused. So is a chart that no build
// could read.
func TestChartTampered(t *testing.T) {
	h, dir := chartHost(t, "1.2.0", "1.3.0")
	source := podinfo(h.URL+"/charts", "1.2.0")
	pinned, _ := resolving(t, source)
	saved := filepath.Join(dir, "podinfo-1.2.0.tgz")
	other, err := os.ReadFile(filepath.Join(dir, "podinfo-1.3.0.tgz"))
	must(t, err, os.WriteFile(saved, other, 0o666))
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "tampered with")

	// The index changes with it: then only the lock detects it.
	reindex(t, dir, "", func(i *repo.IndexFile) {
		for _, v := range i.Entries["podinfo"] {
			v.Version, v.URLs, v.Digest = "1.2.0", []string{"podinfo-1.2.0.tgz"}, ""
		}
	})
	_, err = quick(t).Fetch(t.Context(), pinned)
	wantError[*ChangedError](t, err, "1.2.0 was "+string(pinned.Content))

	must(t, os.WriteFile(saved, []byte("no archive"), 0o666))
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "not to be trusted")

	must(t, os.Remove(saved))
	reindex(t, dir, "", nil)
	_, err = quick(t).Fetch(t.Context(), pinned)
	wantError[*NotFoundError](t, err, "no version 1.2.0 of podinfo any more; there are: 1.3.0")
}

func TestChartProxy(t *testing.T) {
	h, _ := chartHost(t, "1.2.0")
	target, err := url.Parse(h.URL)
	must(t, err)
	proxy := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Host = target.Host
		h.handler.ServeHTTP(w, r)
	}))
	t.Setenv("HTTP_PROXY", proxy.URL)
	_, data := resolving(t, podinfo("http://charts.example.test/charts", "1.2.0"))
	wantChart(t, data, "1.2.0")
	if asked := proxy.asked(); len(asked) != 4 || asked[0].URL.Host != "charts.example.test" {
		t.Errorf("%d requests", len(asked))
	}
}

// FuzzIndex reads any index.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nentries:\n  podinfo:\n  - version: 1.0.0\n    urls: [a.tgz]\n    digest: \"00\"\n"))
	f.Add([]byte(`{"apiVersion": "v1", "entries": {"podinfo": [{"version": "1.0.0"}]}}`))
	f.Add([]byte(bomb()))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := parseIndex(data)
		if err != nil {
			return
		}
		for _, name := range i.charts() {
			released, ok, err := i.releases(name)
			if !ok || err == nil && released == nil {
				t.Errorf("%q: %t, %v", name, ok, err)
			}
			_, _ = newestRelease("*", released)
		}
	})
}

func TestUnknownKind(t *testing.T) {
	isolate(t)
	_, _, err := quick(t).Resolve(t.Context(), dependency.Source{Kind: "svn", URL: "x"})
	wantError[*Error](t, err, `nothing fetches sources of the kind "svn"`)
	if dependency.MaxSize > httpclient.MaxBody(&http.Response{StatusCode: http.StatusOK}) {
		t.Error("content that is kept is not read")
	}
}
