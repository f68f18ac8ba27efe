package fetch

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/testing/ocitest"
)

// fluxLayer is the media type of layers that `flux push artifact` sends.
const fluxLayer = "application/vnd.cncf.flux.content.v1.tar+gzip"

// pushArtifact pushes layers under a tag and returns the manifest's digest.
func pushArtifact(t testing.TB, r *ocitest.Registry, repository, tag string, layers ...ocispec.Descriptor) string {
	t.Helper()
	to, err := remote.NewRepository(r.Host + "/" + repository)
	must(t, err)
	to.PlainHTTP = true
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: ocispec.DescriptorEmptyJSON, Layers: []ocispec.Descriptor{}}
	must(t, to.Blobs().Push(t.Context(), m.Config, bytes.NewReader(m.Config.Data)))
	for _, l := range layers {
		d := content.NewDescriptorFromBytes(l.MediaType, l.Data)
		must(t, to.Blobs().Push(t.Context(), d, bytes.NewReader(l.Data)))
		m.Layers = append(m.Layers, d)
	}
	text, err := json.Marshal(m)
	must(t, err)
	d := content.NewDescriptorFromBytes(m.MediaType, text)
	must(t, to.Manifests().PushReference(t.Context(), d, bytes.NewReader(text), tag))
	return d.Digest.String()
}

// layer is a layer with one file.
func layer(mediaType, text string) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Data: archive.Pack(&archive.Tree{Files: map[string]archive.File{"a.yaml": {Data: []byte(text)}}})}
}

func TestArtifacts(t *testing.T) {
	isolate(t)
	r := ocitest.New(t, nil)
	signature := ocispec.Descriptor{MediaType: "application/vnd.example.signature", Data: []byte("signed")}
	first := pushArtifact(t, r, "acme/app", "1.2.0", signature, layer(fluxLayer, "1"), layer(fluxLayer, "other"))
	second := pushArtifact(t, r, "acme/app", "v1.10.0", layer(ocispec.MediaTypeImageLayer, "2"))
	pushArtifact(t, r, "acme/app", "2.0.0-rc.1", layer(ocispec.MediaTypeImageLayerGzip, "3"))
	u := r.Reference("acme/app")
	for _, c := range []struct {
		source   dependency.Source
		revision string
		text     string
	}{
		{dependency.Source{Tag: "1.2.0"}, first, "1"},
		{dependency.Source{Semver: "1.x"}, second, "2"},
		{dependency.Source{Digest: first}, first, "1"},
	} {
		c.source.Kind, c.source.URL = dependency.OCI, u
		e, data := resolving(t, c.source)
		if e.Revision != c.revision {
			t.Errorf("%v: %s, want %s", c.source, e.Revision, c.revision)
		}
		wantFiles(t, data, "a.yaml: "+c.text)
	}
	gone := "sha256:" + strings.Repeat("0", 64)
	for want, source := range map[string]dependency.Source{
		"there is no tag 1.3.0; there are: 2.0.0-rc.1, v1.10.0, 1.2.0": {URL: u, Tag: "1.3.0"},
		"no version is in the range 3.x":                               {URL: u, Semver: "3.x"},
		"there is no digest " + gone:                                   {URL: u, Digest: gone},
		"there is no tag 1, or no such repository":                     {URL: u + "/other", Tag: "1"},
		"there is no such repository":                                  {URL: u + "/other", Semver: "1.x"},
	} {
		source.Kind = dependency.OCI
		_, _, err := quick(t).Resolve(t.Context(), source)
		wantError[*NotFoundError](t, err, want)
	}

	// A tag that moves does not change a pin.
	pinned, _ := resolving(t, dependency.Source{Kind: dependency.OCI, URL: u, Tag: "1.2.0"})
	pushArtifact(t, r, "acme/app", "1.2.0", layer(fluxLayer, "moved"))
	data, err := quick(t).Fetch(t.Context(), pinned)
	must(t, err)
	wantFiles(t, data, "a.yaml: 1")
}

func TestArtifactsThatAreNone(t *testing.T) {
	isolate(t)
	r := ocitest.New(t, nil)
	pushArtifact(t, r, "a", "empty")
	pushArtifact(t, r, "a", "zstd", layer(ocispec.MediaTypeImageLayerZstd, "1"))
	pushArtifact(t, r, "a", "text", ocispec.Descriptor{MediaType: fluxLayer, Data: []byte("text")})
	for tag, want := range map[string]string{
		"empty": "the artifact has no layers",
		"zstd":  "no layer of the kind that is wanted here, but application/vnd.oci.image.layer.v1.tar+zstd",
		"text":  "the content is not to be trusted",
	} {
		_, _, err := quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.OCI, URL: r.Reference("a"), Tag: tag})
		wantError[*Error](t, err, want)
	}
	index, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}})
	must(t, err)
	to, err := remote.NewRepository(r.Host + "/a")
	must(t, err)
	to.PlainHTTP = true
	must(t, to.Manifests().PushReference(t.Context(), content.NewDescriptorFromBytes(ocispec.MediaTypeImageIndex, index), bytes.NewReader(index), "index"))
	_, _, err = quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.OCI, URL: r.Reference("a"), Tag: "index"})
	wantError[*Error](t, err, "an index of several images")
	for _, u := range []string{"oci://", "oci://a", "https://a/b", "oci://A/B", "oci://user:hunter2-hunter2@a/b", "oci://a/b:1"} {
		_, _, err := quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.OCI, URL: u, Tag: "1"})
		wantError[*Error](t, err, "this is no repository of an OCI registry")
	}
}

// pushChart pushes a chart as `helm push` does.
func pushChart(t testing.TB, r *ocitest.Registry, version string) {
	t.Helper()
	data, err := os.ReadFile(saveChart(t, t.TempDir(), "podinfo", version))
	must(t, err)
	client, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "config.json")), registry.ClientOptWriter(&bytes.Buffer{}))
	must(t, err)
	_, err = client.Push(data, r.Host+"/charts/podinfo:"+version)
	must(t, err)
}

func TestOCICharts(t *testing.T) {
	isolate(t)
	r := ocitest.New(t, nil)
	for _, v := range []string{"1.2.0", "1.10.0", "2.0.0+build.1"} {
		pushChart(t, r, v)
	}
	source := dependency.Source{Kind: dependency.Chart, URL: r.Reference("charts/podinfo")}
	for wanted, version := range map[string]string{"1.2.0": "1.2.0", "1.x": "1.10.0", "2.0.0+build.1": "2.0.0+build.1", ">=2": "2.0.0+build.1"} {
		source.Version = wanted
		e, data := resolving(t, source)
		if e.Revision != version {
			t.Errorf("%s: %s, want %s", wanted, e.Revision, version)
		}
		wantChart(t, data, version)
	}
	source.Version = "1.3.0"
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*NotFoundError](t, err, "there is no tag 1.3.0; there are: 1.10.0, 1.2.0")

	// A tag that moves leaves the archive; an archive that is lost leaves the tag.
	source.Version = "1.2.0"
	pinned, _ := resolving(t, source)
	pushArtifact(t, r, "charts/podinfo", "1.2.0", layer(chartLayer, "moved"))
	data, err := quick(t).Fetch(t.Context(), pinned)
	must(t, err)
	wantChart(t, data, "1.2.0")
	pinned.Content = another(pinned.Content)
	_, err = quick(t).Fetch(t.Context(), pinned)
	wantError[*ChangedError](t, err, "somebody has replaced it")

	// An index.yaml may place a chart in a registry.
	h, dir := chartHost(t, "1.10.0")
	reindex(t, dir, "", func(i *repo.IndexFile) {
		i.Entries["podinfo"][0].URLs = []string{r.Reference("charts/podinfo") + ":1.10.0"}
	})
	_, data = resolving(t, podinfo(h.URL+"/charts", "1.x"))
	wantChart(t, data, "1.10.0")
}

// another returns a digest other than the given one.
func another(d dependency.Digest) dependency.Digest {
	digit := dependency.Digest("0")
	if d[7:8] == digit {
		digit = "1"
	}
	return "sha256:" + digit + d[8:]
}

// Credentials come from docker, or else from helm.
func TestRegistryCredentials(t *testing.T) {
	for name, file := range map[string]string{"docker": ".docker/config.json", "helm": ".config/helm/registry/config.json"} {
		t.Run(name, func(t *testing.T) {
			home := isolate(t)
			r := ocitest.New(t, map[string]string{username: password})
			source := dependency.Source{Kind: dependency.OCI, URL: r.Reference("a"), Tag: "1"}
			_, _, err := quick(t).Resolve(t.Context(), source)
			wantError[*AuthError](t, err, "neither docker nor helm has any for it")

			login := func(pass string) {
				token := base64.StdEncoding.EncodeToString([]byte(username + ":" + pass))
				write(t, filepath.Join(home, file), fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, r.Host, token))
			}
			login("wrong-wrong")
			_, _, err = quick(t).Resolve(t.Context(), source)
			wantError[*AuthError](t, err, "401")
			if hint := err.(*AuthError).Hint; !strings.Contains(hint, "docker login "+r.Host) {
				t.Error(hint)
			}
			login(password)
			_, _, err = quick(t).Resolve(t.Context(), source)
			wantError[*NotFoundError](t, err, "there is no tag 1")
		})
	}
	home := isolate(t)
	write(t, filepath.Join(home, ".docker/config.json"), "{")
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "$DOCKER_CONFIG") {
		t.Error(err)
	}
}

func TestRegistryRepeats(t *testing.T) {
	isolate(t)
	r := ocitest.New(t, nil)
	pushArtifact(t, r, "a", "1", layer(fluxLayer, "1"))
	source := dependency.Source{Kind: dependency.OCI, URL: r.Reference("a"), Tag: "1"}
	for _, status := range []int{0, http.StatusTooManyRequests, http.StatusBadGateway} {
		fail := failing(2, status)
		r.Behind(func(w http.ResponseWriter, request *http.Request, next http.Handler) {
			if !fail(w, request) {
				next.ServeHTTP(w, request)
			}
		})
		_, data := resolving(t, source)
		wantFiles(t, data, "a.yaml: 1")
	}
}

// A registry's changes on the way are found.
func TestRegistryLies(t *testing.T) {
	isolate(t)
	r := ocitest.New(t, nil)
	pushArtifact(t, r, "a", "1", layer(fluxLayer, "1"))
	source := dependency.Source{Kind: dependency.OCI, URL: r.Reference("a"), Tag: "1"}
	for name, answer := range map[string]func(w http.ResponseWriter, request *http.Request, next http.Handler){
		"other data": func(w http.ResponseWriter, request *http.Request, next http.Handler) {
			if strings.Contains(request.URL.Path, "/blobs/") {
				_, _ = w.Write(layer(fluxLayer, "2").Data)
				return
			}
			next.ServeHTTP(w, request)
		},
		"endless data": func(w http.ResponseWriter, request *http.Request, next http.Handler) {
			if strings.Contains(request.URL.Path, "/blobs/") {
				endless(w, request)
				return
			}
			next.ServeHTTP(w, request)
		},
		"endless manifest": func(w http.ResponseWriter, request *http.Request, next http.Handler) {
			if request.Method == http.MethodHead {
				next.ServeHTTP(w, request)
				return
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			endless(w, request)
		},
		"another digest": func(w http.ResponseWriter, request *http.Request, next http.Handler) {
			if strings.Contains(request.URL.Path, "/manifests/") {
				w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
				w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0a", 32))
				_, _ = w.Write([]byte(`{"schemaVersion": 2, "layers": []}`))
				return
			}
			next.ServeHTTP(w, request)
		},
		"another size": func(w http.ResponseWriter, request *http.Request, next http.Handler) {
			if strings.Contains(request.URL.Path, "/blobs/") {
				w.Header().Set("Content-Length", "1")
				_, _ = w.Write([]byte("x"))
				return
			}
			next.ServeHTTP(w, request)
		},
		"many layers": func(w http.ResponseWriter, request *http.Request, next http.Handler) {
			if strings.Contains(request.URL.Path, "/manifests/") {
				w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
				_, _ = w.Write([]byte(`{"layers": [` + strings.Repeat(`{},`, maxManifest/3) + `{}]}`))
				return
			}
			next.ServeHTTP(w, request)
		},
		"a byte at a time": func(w http.ResponseWriter, request *http.Request, _ http.Handler) {
			for request.Context().Err() == nil {
				if _, err := w.Write([]byte(" ")); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		},
		"endless tags": func(w http.ResponseWriter, request *http.Request, next http.Handler) {
			if !strings.HasSuffix(request.URL.Path, "/tags/list") {
				http.NotFound(w, request)
				return
			}
			w.Header().Set("Link", fmt.Sprintf("<%s?n=1000>; rel=\"next\"", request.URL.Path))
			tags, _ := json.Marshal(map[string]any{"name": "a", "tags": strings.Split(strings.Repeat("1,", 5000), ",")})
			_, _ = w.Write(tags)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.Behind(answer)
			f := quick(t)
			if name == "a byte at a time" {
				f.timeout = 50 * time.Millisecond
			}
			if _, _, err := f.Resolve(t.Context(), source); err == nil {
				t.Error("it is taken")
			}
		})
	}
}

// FuzzLayer checks that any manifest gives a layer that may be requested, or an error.
func FuzzLayer(f *testing.F) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, seed := range []string{
		`{"schemaVersion": 2, "layers": [{"mediaType": "` + fluxLayer + `", "digest": "` + digest + `", "size": 7}]}`,
		`{"layers": [{"mediaType": "x"}, {"mediaType": ".tar", "digest": "` + digest + `", "size": -1}]}`,
		`{"layers": [{"mediaType": "/tar", "digest": "sha512:../../x", "size": 1}]}`, `{"layers": null}`, "[]",
	} {
		f.Add(ocispec.MediaTypeImageManifest, []byte(seed))
	}
	f.Add(dockerIndex, []byte(`{"manifests": []}`))
	f.Fuzz(func(t *testing.T, mediaType string, manifest []byte) {
		l, err := layerOf(mediaType, manifest, isArchive)
		if err == nil && (!dependency.Digest(l.Digest).Valid() || l.Size < 0 || l.Size > dependency.MaxSize || !isArchive(l.MediaType)) {
			t.Errorf("%+v", l)
		}
	})
}
