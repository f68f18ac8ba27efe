package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// With --local, only people at the machine get in, and nobody gets in through it.
func TestLocal(t *testing.T) {
	s := serve(t, hubtest.SQLite(t)())
	web := httptest.NewServer(server.New(server.Options{Hub: s.hub}))
	defer web.Close()
	to, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.SetXForwarded() }})
	defer proxy.Close()
	const foreign = "a page of another site has sent the request"
	ask := func(base, method, path, host string, headers ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		text, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(text)
	}
	for _, c := range []struct {
		what, base, method, path, host string
		headers                        []string
		status                         int
		want                           string
	}{
		{"here", web.URL, "GET", "/v1/environments", "", nil, 200, "prod"},
		{"localhost", web.URL, "GET", "/v1/environments", "localhost:8080", nil, 200, "prod"},
		{"by IPv6", web.URL, "GET", "/v1/environments", "[::1]:8080", nil, 200, "prod"},
		{"a proxy", proxy.URL, "GET", "/v1/environments", "", nil, 403, "through a proxy, as its header X-Forwarded-"},
		{"Forwarded", web.URL, "GET", "/v1/environments", "", []string{"Forwarded", "for=192.0.2.1"}, 403, "its header Forwarded says"},
		{"X-Real-IP", web.URL, "GET", "/v1/environments", "", []string{"X-Real-IP", "192.0.2.1"}, 403, "its header X-Real-Ip says"},
		{"Via", web.URL, "GET", "/v1/environments", "", []string{"Via", "1.1 proxy"}, 403, "its header Via says"},
		{"another name", web.URL, "GET", "/v1/environments", "evil.example", nil, 403, "for another name than localhost and 127.0.0.1; without --local, it takes tokens from anywhere"},
		{"a page elsewhere", web.URL, "POST", "/v1/reports", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, foreign},
		{"one of another port", web.URL, "POST", "/v1/reports", "", []string{"Sec-Fetch-Site", "same-site"}, 403, foreign},
		{"one in an old browser", web.URL, "POST", "/v1/reports", "", []string{"Origin", "https://evil.example"}, 403, foreign},
		{"one of another port in an old browser", web.URL, "POST", "/v1/reports", "localhost:8080", []string{"Origin", "http://localhost:3000"}, 403, foreign},
		{"one of another name of this machine", web.URL, "POST", "/v1/reports", "localhost:8080", []string{"Origin", "http://127.0.0.1:8080"}, 403, foreign},
		{"one of no origin", web.URL, "POST", "/v1/reports", "", []string{"Origin", "null"}, 403, foreign},
		{"its DELETE", web.URL, "DELETE", "/v1/clusters/oslo", "", []string{"Origin", "https://evil.example"}, 403, foreign},
		{"a link there", web.URL, "GET", "/v1/environments", "", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 200, "prod"},
		{"a page of the hub", web.URL, "POST", "/v1/reports", "", []string{"Sec-Fetch-Site", "same-origin", "Origin", web.URL}, 400, "body"},
		{"one in an old browser of the hub", web.URL, "POST", "/v1/reports", "localhost:8080", []string{"Origin", "http://localhost:8080"}, 400, "body"},
		{"a script", web.URL, "POST", "/v1/reports", "", nil, 400, "body"},
		{"a script's DELETE", web.URL, "DELETE", "/v1/clusters/nobody", "", nil, 404, ""},
		{"what anybody may ask", proxy.URL, "GET", "/healthz", "", nil, 200, "ok"},
	} {
		status, text := ask(c.base, c.method, c.path, c.host, c.headers...)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", c.what, status, text)
		}
	}
}
