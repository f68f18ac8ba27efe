package oci

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/dnstest"
	"github.com/kalypso-io/kalypso/internal/testing/ocitest"
)

func TestOpen(t *testing.T) {
	anonymous(t)
	for reference, want := range map[string]struct {
		name  string
		plain bool
	}{
		"oci://registry.example.com/acme/cache": {"registry.example.com/acme/cache", false},
		"oci://registry.acme.example:5000/c":    {"registry.acme.example:5000/c", false},
		"oci://localhost/c":                     {"localhost/c", true},
		"oci://localhost:5000/c":                {"localhost:5000/c", true},
		"oci://127.0.0.1:5000/c":                {"127.0.0.1:5000/c", true},
		"oci://127.1.2.3/c":                     {"127.1.2.3/c", true},
		"oci://[::1]:5000/c":                    {"[::1]:5000/c", true},
		"oci://[::1]/c":                         {"[::1]/c", true},
		"oci://10.0.0.1:5000/c":                 {"10.0.0.1:5000/c", false},
		"oci://localhost.acme.example/c":        {"localhost.acme.example/c", false},
		"oci+http://registry.acme.example/a/b":  {"registry.acme.example/a/b", true},
		"oci+http://registry.acme.example:80/a": {"registry.acme.example:80/a", true},
	} {
		c, err := Open(reference, Options{})
		if err != nil {
			t.Errorf("%s: %v", reference, err)
			continue
		}
		if c.String() != want.name || c.repository.PlainHTTP != want.plain || c.ReadOnly() {
			t.Errorf("%s is %s, plain %t, read-only %t", reference, c, c.repository.PlainHTTP, c.ReadOnly())
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	anonymous(t)
	for reference, want := range map[string]string{
		"":                                "oci://HOST/REPOSITORY",
		"registry.example.com/acme/cache": "oci://HOST/REPOSITORY",
		"https://registry.example.com/acme/cache":     "oci://HOST/REPOSITORY",
		"OCI://registry.example.com/acme/cache":       "oci://HOST/REPOSITORY",
		"oci:///cache":                                "no host",
		"oci://registry.example.com":                  "a repository is missing",
		"oci://registry.example.com/":                 "a repository is missing",
		"oci://gh cr.io/acme":                         "HOST:PORT",
		"oci://registry.example.com:port/acme":        "HOST:PORT",
		"oci://registry.example.com/Acme/cache":       "lower-case",
		"oci://registry.example.com/acme//cache":      "lower-case",
		"oci://registry.example.com/acme/../cache":    "lower-case",
		"oci://registry.example.com/acme/cache?a=b":   "lower-case",
		"oci://registry.example.com/acme/cache:v1":    "without a tag",
		"oci://registry.example.com/acme@sha256:00":   "without a tag",
		"oci://me:hunter2@registry.example.com/cache": "docker login registry.example.com",
	} {
		_, err := Open(reference, Options{})
		if wrong := (*ReferenceError)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, which does not say %q", reference, err, want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v tells the password", err)
		}
	}
}

func TestTagOf(t *testing.T) {
	valid := regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
	seen := map[string]string{}
	for _, key := range []string{
		"", "/", "a", "/a", "a/", "a/b", "a//b", "a-b", "a_b", "a.b", "A", "é", "entry/" + hash, "blob/" + hash,
		strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("a", 130), "sha256_" + hash,
		tagOf("/"), tagOf(""),
	} {
		tag := tagOf(key)
		if !valid.MatchString(tag) {
			t.Errorf("%q has the tag %q", key, tag)
		}
		if other, ok := seen[tag]; ok {
			t.Errorf("%q and %q have the tag %q", key, other, tag)
		}
		seen[tag] = key
	}
	if got := tagOf("entry/" + hash); got != "entry-"+hash {
		t.Errorf("an entry has the tag %q", got)
	}
}

// dockerConfig writes docker's configuration.
func dockerConfig(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
}

func authOf(host, user, password string) string {
	return fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

func TestCredentials(t *testing.T) {
	r := ocitest.New(t, map[string]string{"ci": "hunter2"})
	fails := func(want string) {
		t.Helper()
		c := quick(t, r, Options{})
		_, err := c.Get(t.Context(), "entry/"+hash)
		for _, err := range []error{err, c.Put(t.Context(), "entry/"+hash, []byte("data"))} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "docker login "+r.Host) {
				t.Errorf("%v; want %q", err, want)
			}
		}
	}
	anonymous(t)
	fails("has none for " + r.Host)
	dockerConfig(t, authOf("registry.example.com", "ci", "hunter2"))
	fails("has none for " + r.Host)
	dockerConfig(t, authOf(r.Host, "ci", "wrong"))
	fails("missing or wrong")

	dockerConfig(t, authOf(r.Host, "ci", "hunter2"))
	c := quick(t, r, Options{})
	wantMissing(t, c, "entry/"+hash)
	put(t, c, "entry/"+hash, []byte("data"))
	wantData(t, c, "entry/"+hash, []byte("data"))

	dockerConfig(t, "{")
	if _, err := Open(r.Reference("cache"), Options{}); err == nil || !strings.Contains(err.Error(), "$DOCKER_CONFIG") {
		t.Errorf("a broken configuration: %v", err)
	}
}

func TestCredentialHelper(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the helper is a shell script")
	}
	r := ocitest.New(t, map[string]string{"ci": "hunter2"})
	bin := t.TempDir()
	script := "#!/bin/sh\necho '{\"ServerURL\": \"'$(cat)'\", \"Username\": \"ci\", \"Secret\": \"hunter2\"}'\n"
	if err := os.WriteFile(filepath.Join(bin, "docker-credential-oftest"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	dockerConfig(t, fmt.Sprintf(`{"credHelpers": {%q: "oftest"}}`, r.Host))
	c := quick(t, r, Options{})
	put(t, c, "entry/"+hash, []byte("data"))
	wantData(t, c, "entry/"+hash, []byte("data"))
}

// Registries redirect to the location of blobs. Credentials are not sent there.
func TestRedirects(t *testing.T) {
	r := ocitest.New(t, map[string]string{"ci": "hunter2"})
	dnstest.Serve(t, map[string]netip.Addr{"blobs.localhost.": netip.MustParseAddr("127.0.0.1")})
	r.Host = strings.Replace(r.Host, "127.0.0.1", "localhost", 1)
	dockerConfig(t, authOf(r.Host, "ci", "hunter2"))
	c := quick(t, r, Options{})
	put(t, c, "entry/"+hash, []byte("data"))
	var asked, told atomic.Int64
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		asked.Add(1)
		if request.Header.Get("Authorization") != "" {
			told.Add(1)
		}
		_, _ = w.Write([]byte("data"))
	}))
	defer store.Close()
	for i, host := range []string{"127.0.0.1", "localhost", "blobs.localhost"} {
		to := strings.Replace(store.URL, "127.0.0.1", host, 1)
		r.Behind(func(w http.ResponseWriter, request *http.Request, next http.Handler) {
			if readsBlob(request) {
				http.Redirect(w, request, to+"/data", http.StatusTemporaryRedirect)
				return
			}
			next.ServeHTTP(w, request)
		})
		wantData(t, c, "entry/"+hash, []byte("data"))
		if asked.Load() != int64(i+1) || told.Load() != 0 {
			t.Errorf("%s: %d requests, %d with credentials", host, asked.Load(), told.Load())
		}
	}
}
