package publish_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache/oci"
	"github.com/kalypso-io/kalypso/compiler/publish"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/internal/testing/ocitest"
)

const platform = "../../testdata/platform"

func TestMain(m *testing.M) {
	isolated.Environment()
	// Nobody's credentials, and no module from anywhere.
	dir, err := os.MkdirTemp("", "publish")
	if err != nil {
		panic(err)
	}
	os.Setenv("DOCKER_CONFIG", dir)
	os.Setenv("CUE_REGISTRY", "none")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// artifact compiles an environment of the tests' platform.
func artifact(t testing.TB, environment string, o publish.Options) *publish.Artifact {
	t.Helper()
	b, err := compiler.Compile(t.Context(), compiler.Request{Dir: platform, Environments: []string{environment}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := publish.FromBuild(t.Context(), b, b.Environments[0], o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func target(r *ocitest.Registry, tag string) publish.Target {
	return publish.Target{Repository: r.Reference("platform/fleet"), Tag: tag}
}

// pull returns the manifest of a tag, and the entries of its one layer as a
// reconciler unpacks them.
func pull(t testing.TB, to publish.Target) (ocispec.Manifest, map[string]*tar.Header, map[string]string) {
	t.Helper()
	r, err := remote.NewRepository(strings.TrimPrefix(to.Repository, "oci://"))
	if err != nil {
		t.Fatal(err)
	}
	r.PlainHTTP = true
	d, err := r.Resolve(t.Context(), to.Tag)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(d ocispec.Descriptor) []byte {
		data, err := content.FetchAll(t.Context(), r, d)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(fetch(d), &m); err != nil || len(m.Layers) != 1 {
		t.Fatalf("%v, %d layers: reconcilers want one", err, len(m.Layers))
	}
	fetch(m.Config)
	unzipped, err := gzip.NewReader(bytes.NewReader(fetch(m.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	headers, files := map[string]*tar.Header{}, map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return m, headers, files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name] = h
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = string(data)
		}
	}
}

// The registry returns the tree, in the form that Flux and Argo CD pull, and with its
// annotations.
func TestPublish(t *testing.T) {
	r := ocitest.New(t, nil)
	to := target(r, "dev")
	a := artifact(t, "dev", publish.Options{Path: "fleet/dev", Origin: "https://git.example.test/platform", Revision: "main@sha1:0b"})
	digest, pushed, err := publish.Push(t.Context(), to, a, false)
	if err != nil || !pushed || digest != a.Digest() {
		t.Fatalf("got %s, %t, %v", digest, pushed, err)
	}
	m, headers, files := pull(t, to)
	if m.MediaType != ocispec.MediaTypeImageManifest || m.Config.MediaType != "application/vnd.cncf.flux.config.v1+json" || m.Layers[0].MediaType != "application/vnd.oci.image.layer.v1.tar+gzip" {
		t.Errorf("got %s, %s and %s", m.MediaType, m.Config.MediaType, m.Layers[0].MediaType)
	}
	for key, want := range map[string]string{
		"org.opencontainers.image.source": "https://git.example.test/platform", "org.opencontainers.image.revision": "main@sha1:0b",
		"io.kalypso.environment": "dev", "io.kalypso.tree": a.Tree(),
	} {
		if m.Annotations[key] != want {
			t.Errorf("%s is %q, want %q", key, m.Annotations[key], want)
		}
	}
	for _, key := range []string{"io.kalypso.platform", "io.kalypso.source.base", "io.kalypso.source.environment", "io.kalypso.compiler"} {
		if m.Annotations[key] == "" {
			t.Errorf("there is no annotation %s", key)
		}
	}
	if _, there := m.Annotations["org.opencontainers.image.created"]; there {
		t.Error("the artifact has a time")
	}
	if files["fleet/dev/small/kustomization.yaml"] == "" {
		t.Errorf("there is no file of the tree: %v", files)
	}
	for name, h := range headers {
		if !h.ModTime.IsZero() && h.ModTime.Unix() != 0 || h.Uid != 0 || h.Uname != "" || h.Mode != 0o644 && h.Mode != 0o755 {
			t.Errorf("%s is not like all others: %+v", name, h)
		}
		if parent := strings.TrimSuffix(name, "/"); strings.Contains(parent, "/") {
			if folder := parent[:strings.LastIndex(parent, "/")+1]; headers[folder] == nil {
				t.Errorf("%s comes without its folder", name)
			}
		}
	}
}

// Equal trees are equal bytes. If a registry has them, Push writes nothing to it, whatever
// the provenance of this build.
func TestPublishAgain(t *testing.T) {
	r := ocitest.New(t, nil)
	to := target(r, "dev")
	first, again := artifact(t, "dev", publish.Options{Revision: "1"}), artifact(t, "dev", publish.Options{Revision: "1"})
	if first.Digest() != again.Digest() {
		t.Errorf("two builds of one tree are %s and %s", first.Digest(), again.Digest())
	}
	if _, _, err := publish.Push(t.Context(), to, first, false); err != nil {
		t.Fatal(err)
	}
	writes := r.Writes()
	later := artifact(t, "dev", publish.Options{Revision: "2"})
	digest, pushed, err := publish.Push(t.Context(), to, later, false)
	if err != nil || pushed || digest != first.Digest() || r.Writes() != writes {
		t.Errorf("got %s, %t, %v and %d writes, want what is there", digest, pushed, err, r.Writes()-writes)
	}
	moved := artifact(t, "dev", publish.Options{Path: "elsewhere"})
	if digest, pushed, err = publish.Push(t.Context(), to, moved, false); err != nil || !pushed || digest != moved.Digest() {
		t.Errorf("another path: got %s, %t, %v", digest, pushed, err)
	}
}

// Push does not change a tag of someone else.
func TestPublishTaken(t *testing.T) {
	r := ocitest.New(t, nil)
	a, prod := artifact(t, "dev", publish.Options{}), artifact(t, "prod", publish.Options{})
	to := target(r, "latest")
	if _, _, err := publish.Push(t.Context(), to, a, false); err != nil {
		t.Fatal(err)
	}
	_, _, err := publish.Push(t.Context(), to, prod, false)
	if taken := (*publish.TakenError)(nil); !errors.As(err, &taken) || !strings.Contains(err.Error(), `environment "dev"`) || !strings.Contains(err.Error(), "--adopt") {
		t.Errorf("got %v", err)
	}
	if _, pushed, err := publish.Push(t.Context(), to, prod, true); err != nil || !pushed {
		t.Errorf("got %t, %v", pushed, err)
	}
	cache, err := oci.Open(r.Reference("platform/fleet"), oci.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := cache.Put(t.Context(), "entry", []byte("data")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := publish.Push(t.Context(), target(r, "entry"), a, false); err == nil || !strings.Contains(err.Error(), "did not publish") {
		t.Errorf("got %v", err)
	}
}

// A registry that fails leaves the tag as it was, and the error is one line that
// names it.
func TestPublishFails(t *testing.T) {
	r := ocitest.New(t, nil)
	to := target(r, "dev")
	a := artifact(t, "dev", publish.Options{})
	for method, op := range map[string]string{http.MethodGet: "read", http.MethodPut: "write"} {
		r.Behind(func(w http.ResponseWriter, request *http.Request, next http.Handler) {
			if request.Method == method {
				http.Error(w, "no\x1b[31m", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, request)
		})
		_, pushed, err := publish.Push(t.Context(), to, a, false)
		var failed *oci.RegistryError
		if pushed || !errors.As(err, &failed) || failed.Op != op || strings.ContainsAny(err.Error(), "\n\x1b") || !strings.Contains(err.Error(), "platform/fleet:dev") {
			t.Errorf("%s: got %t, %v", method, pushed, err)
		}
	}
	r.Behind(nil)
	if _, pushed, err := publish.Push(t.Context(), to, a, false); err != nil || !pushed {
		t.Errorf("got %t, %v", pushed, err)
	}
}

// A built folder gives the same artifact as the build. A folder that differs from its build
// gives no artifact.
func TestFromFolder(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := compiler.Write(t.Context(), compiler.Request{Dir: platform, Environments: []string{"dev"}}, compiler.Output{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "dev")
	a, err := publish.FromFolder(dir, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if built := artifact(t, "dev", publish.Options{}); a.Digest() != built.Digest() || a.Tree() != built.Tree() || a.Environment() != "dev" {
		t.Errorf("the folder is %s, and the build %s", a.Digest(), built.Digest())
	}
	readme := filepath.Join(dir, "small", "README.md")
	for _, damage := range []struct {
		name string
		do   func() error
	}{
		{"changed", func() error { return os.WriteFile(readme, []byte("mine"), 0o600) }},
		{"removed", func() error { return os.Remove(readme) }},
		{"a link", func() error { return os.Symlink("/etc/passwd", readme) }},
		{"another record", func() error { return os.WriteFile(filepath.Join(dir, tree.RecordPath), []byte("{}"), 0o600) }},
		{"no record", func() error { return os.Remove(filepath.Join(dir, tree.RecordPath)) }},
	} {
		if err := damage.do(); err != nil {
			t.Fatal(err)
		}
		if _, err := publish.FromFolder(dir, publish.Options{}); err == nil {
			t.Errorf("%s: the folder is published all the same", damage.name)
		}
	}
}

func TestParseTarget(t *testing.T) {
	for reference, want := range map[string]publish.Target{
		"oci://registry.example.test/fleet":            {Repository: "oci://registry.example.test/fleet"},
		"oci://registry.example.test:5000/a/fleet:dev": {Repository: "oci://registry.example.test:5000/a/fleet", Tag: "dev"},
		"oci+http://registry.example.test/fleet:1.2.3": {Repository: "oci+http://registry.example.test/fleet", Tag: "1.2.3"},
	} {
		if got, err := publish.ParseTarget(reference); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", reference, got, err)
		}
	}
	for _, reference := range []string{
		"", "registry.example.test/fleet", "https://registry.example.test/fleet", "oci://registry.example.test", "oci://registry.example.test/Fleet",
		"oci://registry.example.test/fleet:a b", "oci://registry.example.test/fleet:", "oci://registry.example.test/fleet@sha256:" + strings.Repeat("a", 64),
		"oci://me:secret@registry.example.test/fleet",
	} {
		if got, err := publish.ParseTarget(reference); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %+v, %v", reference, got, err)
		}
	}
}

// FuzzParseTarget: a reference with a tag is written as it was read.
func FuzzParseTarget(f *testing.F) {
	f.Add("oci://registry.example.test:5000/a/fleet:dev")
	f.Fuzz(func(t *testing.T, reference string) {
		to, err := publish.ParseTarget(reference)
		if err == nil && to.Tag != "" && to.String() != reference {
			t.Errorf("%q is read as %q", reference, to)
		}
	})
}

// TestOf checks which environments of a build are published, and where.
func TestOf(t *testing.T) {
	compile := func(environments ...string) *compiler.Build {
		b, err := compiler.Compile(t.Context(), compiler.Request{Dir: platform, Environments: environments})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	named := publish.Target{Repository: "oci://registry.example.test/fleet"}
	if _, err := publish.Of(t.Context(), compile(), publish.Target{}, publish.Options{}); !errors.Is(err, publish.ErrNowhere) {
		t.Errorf("got %v", err)
	}
	var several *publish.SeveralError
	if _, err := publish.Of(t.Context(), compile(), named, publish.Options{}); !errors.As(err, &several) || !slices.Contains(several.Environments, "dev") {
		t.Errorf("got %v", err)
	}
	all, err := publish.Of(t.Context(), compile("dev"), named, publish.Options{})
	if err != nil || len(all) != 1 || all[0].Target.Tag != "dev" {
		t.Errorf("got %+v, %v", all, err)
	}
}
