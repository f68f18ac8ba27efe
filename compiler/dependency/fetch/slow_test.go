package fetch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/dependency"
)

// expiring returns a Fetcher whose time for a source ends when the test calls expire.
func expiring(t testing.TB) (f *Fetcher, expire func()) {
	t.Helper()
	over := make(chan struct{}, 1)
	f, err := New(Options{wait: time.Millisecond, limit: func(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
		if d != time.Minute {
			t.Errorf("a source may take %s", d)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		go func() {
			select {
			case <-over:
				cancel(cause)
			case <-ctx.Done():
			}
		}()
		return ctx, func() { cancel(nil) }
	}})
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return f, func() {
		select {
		case over <- struct{}{}:
		default:
		}
	}
}

// trickle writes a little of an answer, calls said, and never ends the answer.
func trickle(w http.ResponseWriter, r *http.Request, text string, said func()) {
	w.Header().Set("Content-Length", "1000000")
	for _, b := range []byte(text) {
		_, _ = w.Write([]byte{b})
		_ = http.NewResponseController(w).Flush()
	}
	said()
	<-r.Context().Done()
}

// A source ends after its time though its server sends without a pause: the error names it
// and the flag. The same Fetcher has other sources.
func TestSlow(t *testing.T) {
	const index = "apiVersion: v1\nentries:\n  podinfo:\n  - {name: podinfo, version: 1.2.0, urls: [slow/podinfo-1.2.0.tgz]}\n"
	for name, c := range map[string]struct {
		source dependency.Source // its URL is the path on the server
		slow   string            // the path that is never served whole
		begins string
	}{
		"the index of charts":   {podinfo("/repo", "1.2.0"), "/repo/index.yaml", "apiVersion"},
		"a chart":               {podinfo("/charts", "1.2.0"), "/charts/slow/podinfo-1.2.0.tgz", "\x1f\x8b"},
		"the refs of git":       {dependency.Source{Kind: dependency.Git, URL: "/git", Branch: "main"}, "/git/info/refs", "001e# service"},
		"a manifest of OCI":     {dependency.Source{Kind: dependency.OCI, URL: "oci:/a/b", Tag: "v1"}, "/v2/a/b/manifests/v1", `{"schema`},
		"a chart in a registry": {dependency.Source{Kind: dependency.Chart, URL: "oci:/a", Chart: "podinfo", Version: ">=1"}, "/v2/a/tags/list", `{"name"`},
		"the objects of git":    {dependency.Source{Kind: dependency.Git, URL: "/objects", Branch: "main"}, "/objects/git-upload-pack", "0008NAK\nPACK"},
	} {
		t.Run(name, func(t *testing.T) {
			good, _ := chartHost(t, "1.2.0")
			f, expire := expiring(t)
			h := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == c.slow:
					w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
					switch path.Base(c.slow) {
					case "refs":
						w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
					case "git-upload-pack":
						w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
					}
					trickle(w, r, c.begins, expire)
				case r.URL.Path == "/objects/info/refs":
					w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
					_, _ = w.Write([]byte("001e# service=git-upload-pack\n0000004f" + strings.Repeat("1", 40) + " refs/heads/main\x00ofs-delta shallow\n0000"))
				case r.URL.Path == "/charts/index.yaml":
					_, _ = w.Write([]byte(index))
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			s := c.source
			if below, isOCI := strings.CutPrefix(s.URL, "oci:"); isOCI {
				s.URL = "oci://" + strings.TrimPrefix(h.URL, "http://") + below
			} else {
				s.URL = h.URL + s.URL
			}
			_, _, err := f.Resolve(t.Context(), s)
			wantSlow(t, err, s)
			_, data, err := f.Resolve(t.Context(), podinfo(good.URL+"/charts", "1.2.0"))
			must(t, err)
			wantChart(t, data, "1.2.0")
		})
	}
}

// So does one that is not reached over HTTP.
func TestSlowGitDaemon(t *testing.T) {
	isolate(t)
	f, expire := expiring(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended); _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = connection.Write([]byte("00"))
				expire()
				<-ended
				_ = connection.Close()
			}()
		}
	}()
	s := dependency.Source{Kind: dependency.Git, URL: "git://127.0.0.1:" + strconv.Itoa(listener.Addr().(*net.TCPAddr).Port) + "/x", Branch: "main"}
	_, _, err = f.Resolve(t.Context(), s)
	wantSlow(t, err, s)
}

func wantSlow(t *testing.T, err error, s dependency.Source) {
	t.Helper()
	var failed *Error
	if !errors.As(err, &failed) || failed.Source != s || failed.Problem != "it takes longer than 1m0s" || !strings.Contains(failed.Hint, "--source-timeout") {
		t.Errorf("%v (%+v)", err, failed)
	}
}
