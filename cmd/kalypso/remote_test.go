package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/internal/testing/ocitest"
)

// A runner is a machine of CI: it has a checkout of the platform and a cache
// folder of its own. All runners are this process, because a development build
// reuses only what the same binary computed.
type runner struct {
	*testing.T
	platform, cache string
	out             string // "" to write only the cache
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	dir := t.TempDir()
	r := &runner{t, filepath.Join(dir, "platform"), filepath.Join(dir, "cache"), filepath.Join(dir, "out")}
	if err := os.CopyFS(r.platform, os.DirFS(filepath.Join(repository, "testdata", "platform"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	t.Setenv("DOCKER_CONFIG", filepath.Join(dir, "docker"))
	t.Setenv("CUE_CACHE_DIR", filepath.Join(dir, "cue"))
	t.Setenv("CUE_REGISTRY", "none")
	return r
}

// An outcome is the result of a build.
type outcome struct {
	levels map[cache.Level]engine.LevelStats
	stderr string
	files  map[string]string
}

// build builds into the runner's folder. It fails the test if the build fails.
func (r *runner) build(args ...string) outcome {
	r.Helper()
	r.Setenv("KALYPSO_CACHE_DIR", r.cache)
	var stdout, stderr bytes.Buffer
	args = append([]string{"build", "-C", r.platform, "--stats", "-o", "json"}, args...)
	if r.out != "" {
		args = append(args, "--to", r.out)
	}
	if code := execute(r.Context(), args, streams{strings.NewReader(""), &stdout, &stderr}); code != 0 {
		r.Fatalf("kalypso %s: exit code %d\n%s", strings.Join(args, " "), code, &stderr)
	}
	var document struct {
		Item struct {
			Stats engine.Stats `json:"stats"`
		} `json:"item"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &document); err != nil {
		r.Fatal(err)
	}
	b := outcome{levels: map[cache.Level]engine.LevelStats{}, stderr: stderr.String(), files: map[string]string{}}
	for _, l := range document.Item.Stats.Levels {
		b.levels[l.Level] = l
	}
	if r.out == "" {
		return b
	}
	out := os.DirFS(r.out)
	err := fs.WalkDir(out, ".", func(name string, d fs.DirEntry, err error) error {
		// The index has the times of this folder's files, and does not count as output.
		if err != nil || d.IsDir() || strings.HasSuffix(name, "/.kalypso/index") {
			return err
		}
		data, err := fs.ReadFile(out, name)
		b.files[name] = string(data)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// edit replaces text in a file of the platform.
func (r *runner) edit(file, old, new string) {
	r.Helper()
	name := filepath.Join(r.platform, filepath.FromSlash(file))
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), old) {
		r.Fatalf("%s has no %q: %v", file, old, err)
	}
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(text), old, new)), 0o666); err != nil {
		r.Fatal(err)
	}
}

// computes checks the numbers of computed and reused objects on a level.
func (b outcome) computes(t *testing.T, level cache.Level, computed, reused int) {
	t.Helper()
	if l := b.levels[level]; l.Computed != computed || l.Reused != reused {
		t.Errorf("%s: %d computed and %d reused, want %d and %d", level, l.Computed, l.Reused, computed, reused)
	}
}

// warns checks that the only output is one warning about the remote cache, or that there is no
// output.
func (b outcome) warns(t *testing.T, warns bool) {
	t.Helper()
	one := strings.Count(b.stderr, "\n") == 1 && strings.HasPrefix(b.stderr, "kalypso: warning: ") && strings.Contains(b.stderr, "remote cache")
	if warns && !one || !warns && b.stderr != "" {
		t.Errorf("warning wanted: %t; stderr is\n%s", warns, b.stderr)
	}
}

func (b outcome) equals(t *testing.T, other outcome) {
	t.Helper()
	if len(other.files) == 0 {
		t.Error("nothing was built")
	}
	for _, name := range slices.Sorted(maps.Keys(other.files)) {
		if b.files[name] != other.files[name] {
			t.Errorf("%s is\n%s\nand not\n%s", name, b.files[name], other.files[name])
		}
	}
	if len(b.files) != len(other.files) {
		t.Errorf("%d files, and not %d", len(b.files), len(other.files))
	}
}

// assignments is the number of assignments of the tests' platform, each with a tuple.
const assignments = 3

func TestRemoteCache(t *testing.T) {
	r := ocitest.New(t, nil)
	flag := "--remote-cache=" + r.Reference("acme/cache")

	a := newRunner(t).build(flag)
	a.warns(t, false)
	if a.levels[cache.Model].Computed == 0 {
		t.Error("no part of a package is computed")
	}
	a.computes(t, cache.Tuple, assignments, 0)
	a.computes(t, cache.Assignment, assignments, 0)

	// Another machine computes nothing, so it stores nothing either.
	uploads := r.Requests(http.MethodPost)
	machine := newRunner(t)
	b := machine.build(flag)
	b.warns(t, false)
	b.equals(t, a)
	b.computes(t, cache.Model, 0, a.levels[cache.Model].Computed)
	b.computes(t, cache.Tuple, 0, assignments)
	b.computes(t, cache.Assignment, 0, assignments)
	if n := r.Requests(http.MethodPost) - uploads; n != 0 {
		t.Errorf("it uploads %d blobs", n)
	}
	for level, l := range b.levels {
		if level == cache.Projection || level == cache.Tuple { // nothing is rendered, and tuples only support assignments
			continue
		}
		if l.WrittenBytes == 0 || l.ReadBytes == 0 {
			t.Errorf("%s: %d bytes written and %d read of what came from the remote cache", level, l.WrittenBytes, l.ReadBytes)
		}
	}

	// After a change, only the changed parts are computed, and shared in turn.
	const file, old, new = "environments/dev/dev.cue", `REGION: "East"`, `REGION: "Orient"`
	machine.edit(file, old, new)
	changed := machine.build(flag)
	changed.warns(t, false)
	changed.computes(t, cache.Tuple, 1, assignments-1)
	changed.computes(t, cache.Assignment, 1, assignments-1)
	third := newRunner(t)
	third.edit(file, old, new)
	c := third.build(flag)
	c.warns(t, false)
	c.computes(t, cache.Tuple, 0, assignments)
	c.computes(t, cache.Assignment, 0, assignments)
	without := newRunner(t)
	without.edit(file, old, new)
	cold := without.build()
	cold.computes(t, cache.Tuple, assignments, 0)
	c.equals(t, cold)
	changed.equals(t, cold)
}

// The evaluated packages come from the remote cache as well. Each is an entry, and the machine
// that evaluates one stores it.
func TestRemoteCacheOfModels(t *testing.T) {
	r := ocitest.New(t, nil)
	var stored atomic.Int64
	r.Behind(func(w http.ResponseWriter, request *http.Request, next http.Handler) {
		if request.Method == http.MethodPut && strings.Contains(request.URL.Path, "/manifests/entry-") {
			stored.Add(1)
		}
		next.ServeHTTP(w, request)
	})
	flag := "--remote-cache=" + r.Reference("acme/cache")
	newRunner(t).build(flag)
	if stored.Swap(0) == 0 {
		t.Error("the first machine stores none")
	}
	newRunner(t).build(flag)
	if n := stored.Load(); n != 0 {
		t.Errorf("the second machine stores %d", n)
	}
}

// tampered changes the bodies of one kind that a registry gives.
func tampered(kind string, change func([]byte) []byte) ocitest.Proxy {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, kind) {
			next.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		body := answer.Body.Bytes()
		if answer.Code == http.StatusOK && len(body) > 0 {
			body = change(bytes.Clone(body))
		}
		maps.Copy(w.Header(), answer.Header())
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body)
	}
}

// The output equals the output of a build without a remote cache, whatever a registry returns.
func TestRemoteCacheLies(t *testing.T) {
	r := ocitest.New(t, nil)
	flag := "--remote-cache=" + r.Reference("acme/cache")
	want := newRunner(t).build(flag)
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for name, proxy := range map[string]ocitest.Proxy{
		"bits of manifests": tampered("/manifests/", flip),
		"bits of data":      tampered("/blobs/", flip),
		"half of the data":  tampered("/blobs/", func(b []byte) []byte { return b[:len(b)/2] }),
		"a page for everything": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			_, _ = w.Write([]byte("<p>Welcome to the hotel</p>"))
		},
		"nothing for anybody": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusForbidden)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.Behind(proxy)
			defer r.Behind(nil)
			b := newRunner(t).build(flag)
			b.equals(t, want)
			b.warns(t, true)
			b.computes(t, cache.Assignment, assignments, 0)
		})
	}
	// The objects that the liars received do not harm the next build.
	b := newRunner(t).build(flag)
	b.equals(t, want)
	b.warns(t, false)
}

func TestRemoteCacheIsDown(t *testing.T) {
	want := newRunner(t).build()
	r := ocitest.New(t, nil)
	r.Stop()
	b := newRunner(t).build("--remote-cache=" + r.Reference("acme/cache"))
	b.warns(t, true)
	b.equals(t, want)
}

func TestRemoteCacheWithoutCredentials(t *testing.T) {
	r := ocitest.New(t, map[string]string{"ci": "hunter2"})
	b := newRunner(t).build("--remote-cache=" + r.Reference("acme/cache"))
	b.warns(t, true)
	if !strings.Contains(b.stderr, "docker login "+r.Host) {
		t.Errorf("stderr is %s", b.stderr)
	}
	broken := newRunner(t)
	if err := os.MkdirAll(os.Getenv("DOCKER_CONFIG"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken.build("--remote-cache="+r.Reference("acme/cache")).warns(t, true)
}

func TestRemoteCacheReadOnly(t *testing.T) {
	r := ocitest.New(t, nil)
	flag := "--remote-cache=" + r.Reference("acme/cache")
	newRunner(t).build(flag, "--remote-cache-read-only")
	t.Setenv(remoteReadOnlyEnv, "1")
	newRunner(t).build(flag)
	if r.Requests() == 0 || r.Writes() != 0 {
		t.Fatalf("%d requests, %d that write", r.Requests(), r.Writes())
	}
	newRunner(t).build(flag, "--remote-cache-read-only=false")
	writes := r.Writes()
	if writes == 0 {
		t.Fatal("no request writes")
	}
	machine := newRunner(t)
	machine.edit("environments/dev/dev.cue", `REGION: "East"`, `REGION: "Orient"`)
	b := machine.build(flag)
	b.warns(t, false)
	b.computes(t, cache.Tuple, 1, assignments-1)
	if n := r.Writes() - writes; n != 0 {
		t.Errorf("%d requests write", n)
	}
}

// The flag overrides the variable, and a value that is not a remote cache is an error.
func TestRemoteCacheOptions(t *testing.T) {
	r := ocitest.New(t, nil)
	asks := func(want bool, args ...string) {
		t.Helper()
		before := r.Requests()
		newRunner(t).build(args...)
		if got := r.Requests() > before; got != want {
			t.Errorf("%q asks: %t", args, got)
		}
	}
	asks(false)
	t.Setenv(remoteEnv, r.Reference("acme/cache"))
	asks(true)
	asks(false, "--remote-cache=")
	asks(false, "--cache=off")
	asks(true, "--cache=verify") // it stores its results
	t.Setenv(remoteEnv, "nonsense")
	asks(false, "--cache=off")
	t.Setenv(remoteEnv, "")
	asks(false)

	fails := func(want string, args ...string) {
		t.Helper()
		var stderr bytes.Buffer
		code := execute(t.Context(), append([]string{"vet", "-C", newRunner(t).platform}, args...), streams{strings.NewReader(""), &stderr, &stderr})
		if code != int(exitFailure) || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit code %d, %s", args, code, &stderr)
		}
	}
	fails("write oci://HOST/REPOSITORY", "--remote-cache=ghcr.io/acme/cache")
	t.Setenv(remoteReadOnlyEnv, "perhaps")
	fails("it is 1 or 0", "--remote-cache="+r.Reference("acme/cache"))
}

// Runners that each build a part fill one cache for all.
func TestRemoteCacheOfShards(t *testing.T) {
	r := ocitest.New(t, nil)
	flag := "--remote-cache=" + r.Reference("acme/cache")
	for _, shard := range []string{"1/2", "2/2"} {
		newRunner(t).build(flag, "--shard="+shard).warns(t, false)
	}
	b := newRunner(t).build(flag)
	b.warns(t, false)
	b.computes(t, cache.Tuple, 0, assignments)
	b.computes(t, cache.Assignment, 0, assignments)
	b.equals(t, newRunner(t).build())
}
