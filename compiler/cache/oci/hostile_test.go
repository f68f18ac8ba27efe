package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/internal/testing/ocitest"
)

// readsManifest and readsBlob report whether a request is one that a Get makes.
func readsManifest(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/")
}

func readsBlob(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/")
}

// changing forwards requests to the registry, and changes the body of some answers.
func changing(which func(*http.Request) bool, change func([]byte) []byte) ocitest.Proxy {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !which(r) {
			next.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		body := answer.Body.Bytes()
		if answer.Code == http.StatusOK {
			body = change(body)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body)
	}
}

func flip(data []byte) []byte {
	out := bytes.Clone(data)
	out[len(out)/2] ^= 1
	return out
}

// endless answers some requests with bytes until the client stops reading.
func endless(which func(*http.Request) bool, contentType string, length int64, sent *atomic.Int64) ocitest.Proxy {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !which(r) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType)
		if length > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(length))
		}
		for chunk := make([]byte, 1<<16); ; {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
}

// For any answer of a registry, Get returns the stored data or an error.
func TestGetFromLiar(t *testing.T) {
	anonymous(t)
	data := bytes.Repeat([]byte("a result. "), 1000)
	for name, c := range map[string]struct {
		proxy ocitest.Proxy
		want  string
	}{
		"a bit of the data":     {changing(readsBlob, flip), "digest"},
		"a bit of the manifest": {changing(readsManifest, flip), "digest"},
		"short data":            {changing(readsBlob, func(b []byte) []byte { return b[:len(b)/2] }), "Content-Length"},
		"long data":             {changing(readsBlob, func(b []byte) []byte { return append(b, b...) }), "Content-Length"},
		"short manifest":        {changing(readsManifest, func(b []byte) []byte { return b[:len(b)/2] }), "digest"},
		"no manifest":           {changing(readsManifest, func([]byte) []byte { return nil }), "digest"},
		"data that breaks off": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if !readsBlob(r) {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:100])
			panic(http.ErrAbortHandler)
		}, "EOF"},
		"a page": {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<p>Welcome to the hotel</p>")
		}, "no entry of kalypso's cache"},
		"no media type": {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "x")
		}, "Content-Type"},
		"nothing allowed": {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(w, "no", http.StatusForbidden)
		}, "the credentials do not allow this"},
		"round and round": {func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, "redirects"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ocitest.New(t, nil)
			put(t, quick(t, r, Options{}), "entry/"+hash, data)
			r.Behind(c.proxy)
			got, err := quick(t, r, Options{}).Get(t.Context(), "entry/"+hash)
			if wrong := (*RegistryError)(nil); !errors.As(err, &wrong) || errors.Is(err, cache.ErrNotFound) || got != nil {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q does not say %q", err, c.want)
			}
			r.Behind(nil)
			wantData(t, quick(t, r, Options{}), "entry/"+hash, data)
		})
	}
}

// A body without an end costs neither memory nor time.
func TestGetEndless(t *testing.T) {
	anonymous(t)
	for name, c := range map[string]struct {
		which       func(*http.Request) bool
		contentType string
		length      int64
	}{
		"data":                    {readsBlob, "application/octet-stream", 0},
		"manifest":                {readsManifest, manifestType, 0},
		"manifest that says it":   {readsManifest, manifestType, 1 << 40},
		"manifest above the most": {readsManifest, manifestType, maxManifest + 1},
		"answer of another kind":  {readsManifest, "text/plain", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := ocitest.New(t, nil)
			put(t, quick(t, r, Options{}), "entry/"+hash, []byte("data"))
			var sent atomic.Int64
			r.Behind(endless(c.which, c.contentType, c.length, &sent))
			client := quick(t, r, Options{})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := client.Get(t.Context(), "entry/"+hash)
			runtime.ReadMemStats(&after)
			if err == nil || errors.Is(err, cache.ErrNotFound) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			// This includes the allocations of the registry, which are small.
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
				t.Errorf("%d bytes allocated", grown)
			}
		})
	}
}

// A registry that hangs costs only the timeout, at any request.
func TestGetHangs(t *testing.T) {
	anonymous(t)
	hang := func(which func(*http.Request) bool, begin int) ocitest.Proxy {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if !which(r) {
				next.ServeHTTP(w, r)
				return
			}
			if begin > 0 {
				w.Header().Set("Content-Length", "4")
				_, _ = w.Write(make([]byte, begin))
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}
	}
	for name, proxy := range map[string]ocitest.Proxy{
		"before the manifest": hang(readsManifest, 0),
		"before the data":     hang(readsBlob, 0),
		"in the data":         hang(readsBlob, 1),
	} {
		t.Run(name, func(t *testing.T) {
			r := ocitest.New(t, nil)
			put(t, quick(t, r, Options{}), "entry/"+hash, []byte("data"))
			r.Behind(proxy)
			_, err := quick(t, r, Options{Timeout: 50 * time.Millisecond}).Get(t.Context(), "entry/"+hash)
			if err == nil || !strings.Contains(err.Error(), "takes too long") {
				t.Errorf("%v", err)
			}
		})
	}
}

// failing answers the first n requests with a status, and Retry-After.
func failing(n int64, status int) ocitest.Proxy {
	var left atomic.Int64
	left.Store(n)
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if left.Add(-1) < 0 {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(status)
	}
}

func TestRepeats(t *testing.T) {
	anonymous(t)
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			r := ocitest.New(t, nil)
			c := quick(t, r, Options{})
			r.Behind(failing(retries, status))
			put(t, c, "entry/"+hash, []byte("data"))
			r.Behind(failing(retries, status))
			wantData(t, c, "entry/"+hash, []byte("data"))

			r.Behind(failing(1<<60, status))
			before := r.Requests()
			_, err := c.Get(t.Context(), "entry/"+hash)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprint(status)) {
				t.Errorf("%v", err)
			}
			if n := r.Requests() - before; n != 1+retries {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// An error that is permanent is not retried.
func TestDoesNotRepeat(t *testing.T) {
	anonymous(t)
	r := ocitest.New(t, nil)
	r.Behind(failing(1<<60, http.StatusForbidden))
	if _, err := quick(t, r, Options{}).Get(t.Context(), "entry/"+hash); err == nil {
		t.Error("no error")
	}
	if n := r.Requests(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// If a registry has lost the data of an entry, the entry is missing, and can be stored again.
func TestLostData(t *testing.T) {
	anonymous(t)
	r := ocitest.New(t, nil)
	c := quick(t, r, Options{})
	put(t, c, "entry/"+hash, []byte("data"))
	r.Behind(func(w http.ResponseWriter, request *http.Request, next http.Handler) {
		if strings.Contains(request.URL.Path, "/blobs/sha256:") {
			http.NotFound(w, request)
			return
		}
		next.ServeHTTP(w, request)
	})
	wantMissing(t, c, "entry/"+hash)
	r.Behind(nil)
	put(t, c, "entry/"+hash, []byte("data"))
	wantData(t, c, "entry/"+hash, []byte("data"))
}

// Tags with other content are errors.
func TestForeignManifests(t *testing.T) {
	anonymous(t)
	const key = "entry/of-something-else"
	layer := layerOf([]byte("data"))
	good := func() ocispec.Manifest {
		var m ocispec.Manifest
		text, err := newManifest(key, layer)
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, change := range map[string]func(*ocispec.Manifest){
		"an image":            func(m *ocispec.Manifest) { m.ArtifactType = "" },
		"another artifact":    func(m *ocispec.Manifest) { m.ArtifactType = "application/vnd.acme.v1" },
		"another key":         func(m *ocispec.Manifest) { m.Annotations[KeyAnnotation] = "entry/other" },
		"no key":              func(m *ocispec.Manifest) { m.Annotations = nil },
		"no layer":            func(m *ocispec.Manifest) { m.Layers = nil },
		"two layers":          func(m *ocispec.Manifest) { m.Layers = append(m.Layers, layer) },
		"a layer of its own":  func(m *ocispec.Manifest) { m.Layers[0].MediaType = "application/gzip" },
		"a huge layer":        func(m *ocispec.Manifest) { m.Layers[0].Size = maxData + 1 },
		"a negative layer":    func(m *ocispec.Manifest) { m.Layers[0].Size = -1 },
		"a path for a digest": func(m *ocispec.Manifest) { m.Layers[0].Digest = "sha256:../../../../etc/passwd" },
		"another digest":      func(m *ocispec.Manifest) { m.Layers[0].Digest = digest.SHA512.FromString("data") },
		"a weak digest":       func(m *ocispec.Manifest) { m.Layers[0].Digest = "md5:d41d8cd98f00b204e9800998ecf8427e" },
		"another schema":      func(m *ocispec.Manifest) { m.SchemaVersion = 3 },
		"an index":            func(m *ocispec.Manifest) { m.MediaType = ocispec.MediaTypeImageIndex },
	} {
		m := good()
		change(&m)
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseManifest(text, key); err == nil {
			t.Errorf("%s gives %v", name, got)
		}
	}
	for _, text := range []string{"", "null", "[]", "{}", "{", `"x"`, strings.Repeat("[", 1<<20), "\xff\xfe"} {
		if got, err := parseManifest([]byte(text), key); err == nil {
			t.Errorf("%.20q gives %v", text, got)
		}
	}
	text, err := json.Marshal(good())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parseManifest(text, key); err != nil || got.Digest != layer.Digest || got.Size != layer.Size {
		t.Errorf("a good one gives %v, %v", got, err)
	}
}

// An accepted manifest describes a layer that may be fetched.
func FuzzParseManifest(f *testing.F) {
	text, err := newManifest("entry/a", layerOf([]byte("data")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(flip(text))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		layer, err := parseManifest(text, "entry/a")
		if err != nil {
			return
		}
		if layer.Size < 0 || layer.Size > maxData || layer.Digest.Validate() != nil || layer.Digest.Algorithm() != "sha256" || layer.URLs != nil || layer.Data != nil {
			t.Errorf("%+v", layer)
		}
	})
}

// Messages of a registry are printed as one line, without the URLs of
// redirects, which may be signed.
func TestErrorsArePrintable(t *testing.T) {
	anonymous(t)
	r := ocitest.New(t, nil)
	r.Behind(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"errors": [{"code": "DENIED", "message": "quota\n\u001b[31mred\u202e`+strings.Repeat("x", 4000)+`"}]}`)
	})
	_, err := quick(t, r, Options{}).Get(t.Context(), "entry/"+hash)
	if err == nil || !strings.Contains(err.Error(), "quota") || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x1b\u202e") {
		t.Errorf("%q", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, target := range map[string]string{
		"nobody":   gone.URL + "/data?X-Signature=hunter2",
		"an error": "/v2/?X-Signature=hunter2",
	} {
		r.Behind(func(w http.ResponseWriter, request *http.Request, _ http.Handler) {
			if request.URL.Path != "/v2/" {
				http.Redirect(w, request, target, http.StatusTemporaryRedirect)
				return
			}
			w.WriteHeader(http.StatusTeapot)
		})
		if _, err := quick(t, r, Options{}).Get(t.Context(), "entry/"+hash); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
