package fetch

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modregistry"
	"cuelang.org/go/mod/module"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/testing/ocitest"
)

// publish publishes a CUE module as `cue mod publish` does, with the registry of
// the environment.
func publish(t testing.TB, path, version string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range map[string]string{
		"cue.mod/module.cue": fmt.Sprintf("module: %q\nlanguage: version: \"v0.16.0\"\nsource: kind: \"self\"\n", path),
		"base.cue":           "package base\n",
	} {
		f, err := w.Create(name)
		must(t, err)
		_, err = f.Write([]byte(text))
		must(t, err)
	}
	must(t, w.Close())
	resolver, err := modconfig.NewResolver(nil)
	must(t, err)
	id, err := module.NewVersion(path, version)
	must(t, err)
	must(t, modregistry.NewClientWithResolver(resolver).PutModule(t.Context(), id, bytes.NewReader(out.Bytes()), int64(out.Len())))
	return out.Bytes()
}

func TestModules(t *testing.T) {
	isolate(t)
	r := ocitest.New(t, nil)
	t.Setenv("CUE_REGISTRY", r.Host+"/modules+insecure")
	source := dependency.Source{Kind: dependency.Module, URL: "example.com/base@v1", Version: "v1.2.3"}
	want := publish(t, source.URL, source.Version)
	publish(t, source.URL, "v1.10.0")
	e, data := resolving(t, source)
	if e.Revision != "v1.2.3" || !bytes.Equal(data, want) {
		t.Errorf("%+v", e)
	}
	fail := failing(2, http.StatusBadGateway)
	r.Behind(func(w http.ResponseWriter, request *http.Request, next http.Handler) {
		if !fail(w, request) {
			next.ServeHTTP(w, request)
		}
	})
	resolving(t, source)
	r.Behind(nil)

	source.Version = "v1.3.0"
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*NotFoundError](t, err, "there is no version v1.3.0 of the module; there are: v1.10.0, v1.2.3")
	source.Version = "latest"
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "this is no version of a CUE module")
	t.Setenv("CUE_REGISTRY", "::")
	source.Version = "v1.2.3"
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "$CUE_REGISTRY")
}

func TestModuleCredentials(t *testing.T) {
	home := isolate(t)
	r := ocitest.New(t, map[string]string{username: password})
	t.Setenv("CUE_REGISTRY", r.Host+"+insecure")
	source := dependency.Source{Kind: dependency.Module, URL: "example.com/base@v1", Version: "v1.2.3"}
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*AuthError](t, err, "the registry of the module wants other credentials")
	token := base64.StdEncoding.EncodeToString([]byte(username + ":" + password))
	write(t, filepath.Join(home, ".docker/config.json"), fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, r.Host, token))
	publish(t, source.URL, source.Version)
	resolving(t, source)
}
