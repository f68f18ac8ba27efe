package httpclient

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestReader(t *testing.T) {
	for _, c := range []struct {
		text string
		most int64
		want string
		fits bool
	}{
		{"", 0, "", true}, {"x", 0, "", false}, {"four", 4, "four", true}, {"fifth", 4, "fift", false}, {"four", 100, "four", true},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text)), iotest.DataErrReader(strings.NewReader(c.text))} {
			got, err := ReadAll(r, c.most)
			if tooLong := (*TooLongError)(nil); string(got) != c.want || errors.As(err, &tooLong) == c.fits || c.fits && err != nil {
				t.Errorf("%q up to %d: %q, %v", c.text, c.most, got, err)
			}
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1": true, "127.8.9.1:80": true, "[::1]:5000": true, "::1": true, "[::ffff:127.0.0.1]:1": true,
		"example.com": false, "example.com:443": false, "10.0.0.1": false, "localhost.example.com": false, "": false,
	} {
		if IsLoopback(host) != want {
			t.Errorf("%s: %t", host, !want)
		}
	}
}

// A request is repeated as often as the options allow, and bodies are limited.
func TestTransport(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, strings.Repeat("x", 100))
	}))
	t.Cleanup(server.Close)
	repeat := func(r *http.Response, err error) (bool, error) { return err == nil && r.StatusCode == 429, err }
	client := &http.Client{Transport: Transport(Options{
		Repeat: repeat, Retries: 2, First: time.Millisecond, Most: time.Millisecond,
		Body: func(*http.Response) int64 { return 10 },
	})}
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if tooLong := (*TooLongError)(nil); asked != 3 || len(body) != 10 || !errors.As(err, &tooLong) || tooLong.Most != 10 {
		t.Errorf("%d requests, %d bytes, %v", asked, len(body), err)
	}
}

// A proxy that refuses, or does not exist, is named in the place of the server.
func TestProxyError(t *testing.T) {
	answers := func(code int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		t.Cleanup(server.Close)
		return server.URL
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct {
		proxy, url, want string
	}{
		{answers(http.StatusForbidden), "https://server.example.test", "it answers 403 Forbidden"},
		{answers(http.StatusProxyAuthRequired), "https://server.example.test", "it answers 407 Proxy Authentication Required"},
		{answers(http.StatusProxyAuthRequired), "http://server.example.test", "it answers 407 Proxy Authentication Required"},
		{gone.URL, "https://server.example.test", "refused"},
		{gone.URL, "http://server.example.test", "refused"},
		{answers(http.StatusForbidden), "http://server.example.test", ""}, // which may be the server's own
	} {
		t.Setenv("HTTP_PROXY", c.proxy)
		t.Setenv("HTTPS_PROXY", c.proxy)
		t.Setenv("NO_PROXY", "")
		response, err := (&http.Client{Transport: Transport(Options{})}).Get(c.url)
		if err == nil {
			_ = response.Body.Close()
		}
		var proxy *ProxyError
		if named := errors.As(err, &proxy); named != (c.want != "") {
			t.Errorf("%s by %s: %v", c.url, c.proxy, err)
		} else if named && ("http://"+proxy.Proxy != c.proxy || !strings.Contains(proxy.Error(), c.want)) {
			t.Errorf("%s by %s: %v, want %s", c.url, c.proxy, proxy, c.want)
		}
	}
}
