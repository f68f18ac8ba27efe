package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

const token = "secret-token"

// serve returns a server that uses a handler, its URL, and the time that it has waited.
func serve(t *testing.T, handle http.HandlerFunc) (*server.Server, string, *time.Duration) {
	t.Helper()
	test := httptest.NewServer(handle)
	t.Cleanup(test.Close)
	base, err := url.Parse(test.URL)
	if err != nil {
		t.Fatal(err)
	}
	waited, now := time.Duration(0), time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	s, err := server.New(server.Options{
		Base: base, Header: "Authorization", Credentials: "Bearer " + token,
		Clock: server.Clock{
			Now: func() time.Time { return now.Add(waited) },
			Wait: func(ctx context.Context, d time.Duration) error {
				waited += d
				return ctx.Err()
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, test.URL, &waited
}

func request(ctx context.Context, s *server.Server, method, address, body string) (string, error) {
	return server.Ask(ctx, s, func(ctx context.Context) (string, error) {
		r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		response, err := s.Client().Do(r)
		if err != nil {
			return "", err
		}
		data, err := io.ReadAll(response.Body)
		return fmt.Sprint(response.StatusCode, " ", string(data)), err
	})
}

func TestRedirect(t *testing.T) {
	retryAfter := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { retryAfter++ }))
	t.Cleanup(elsewhere.Close)
	s, base, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/elsewhere":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/moved":
			http.Redirect(w, r, "/here", http.StatusMovedPermanently)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			_, _ = fmt.Fprint(w, r.Method, " ", r.Header.Get("Authorization"))
		}
	})
	for _, test := range []struct{ method, path, want string }{
		{"GET", "/here", "200 GET Bearer " + token}, {"GET", "/moved", "200 GET Bearer " + token}, {"POST", "/moved", "301 "},
		{"GET", "/elsewhere", "307 "}, {"POST", "/elsewhere", "307 "}, {"GET", "/loop", "302 "},
	} {
		got, err := request(t.Context(), s, test.method, base+test.path, "")
		if err != nil || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s %s: %s, %v", test.method, test.path, got, err)
		}
	}
	if _, err := request(t.Context(), s, "GET", elsewhere.URL, ""); err == nil || retryAfter > 0 {
		t.Error("another server was asked", retryAfter, err)
	}
}

// A request that was not obeyed is made again as it was; a write that may have been is
// for its method.
func TestRepeat(t *testing.T) {
	for _, test := range []struct {
		method, header, value string
		status                int
		requests, methods     int
		waited                time.Duration
	}{
		{"POST", "Retry-After", "20", 429, 2, 1, 20 * time.Second},
		{"POST", "Retry-After", "Mon, 02 Nov 2026 09:00:05 GMT", 403, 2, 1, 5 * time.Second},
		{"POST", "X-RateLimit-Remaining", "0", 403, 2, 1, time.Second},
		{"POST", "RateLimit-Reset", "9", 429, 2, 1, 9 * time.Second},
		{"POST", "Retry-After", "-5", 429, 2, 1, time.Second},
		{"POST", "Retry-After", "20", 503, 2, 2, time.Second},
		{"GET", "Retry-After", "20", 503, 2, 1, 20 * time.Second},
		{"GET", "X", "", 500, 2, 1, time.Second},
		{"POST", "X", "", 500, 2, 2, time.Second},
		{"POST", "X", "", 501, 1, 1, 0},
	} {
		requests, methods := 0, 0
		s, base, waited := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if requests++; requests == 1 {
				w.Header().Set(test.header, test.value)
				w.WriteHeader(test.status)
			}
			_, _ = w.Write(body)
		})
		_, err := server.Ask(t.Context(), s, func(ctx context.Context) (string, error) {
			methods++
			answer, err := request(ctx, s, test.method, base, "body")
			if err == nil && !strings.HasSuffix(answer, " body") {
				t.Error(answer)
			}
			return answer, err
		})
		if err != nil || requests != test.requests || methods != test.methods || *waited != test.waited {
			t.Errorf("%v: %d requests, %d methods, %s, %v", test, requests, methods, *waited, err)
		}
	}
}

func TestLimits(t *testing.T) {
	s, base, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/short" {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("x"))
			return
		}
		for chunk := make([]byte, 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	for _, path := range []string{"/long", "/short"} {
		_, err := request(t.Context(), s, "GET", base+path, "")
		if unavailable := (*forge.UnavailableError)(nil); !errors.As(err, &unavailable) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := server.Pages(func(number int) ([]int, int, error) { return []int{1}, number + 1, nil }); err == nil {
		t.Error("a list without an end was read")
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, base, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(500)
	})
	if _, err := request(ctx, s, "POST", base, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestStatuses(t *testing.T) {
	var commits []git.Hash
	for i := range 20 {
		commits = append(commits, git.ID(git.BlobKind, []byte{byte(i / 2)}))
	}
	all, err := server.Statuses(t.Context(), 4, commits, func(_ context.Context, c git.Hash) ([]forge.Status, error) {
		return []forge.Status{{Name: c.String()}}, nil
	})
	if err != nil || len(all) != 10 {
		t.Error(all, err)
	}
	wrong := errors.New("wrong")
	if all, err := server.Statuses(t.Context(), 4, commits, func(context.Context, git.Hash) ([]forge.Status, error) { return nil, wrong }); err != wrong {
		t.Error(all, err)
	}
}
