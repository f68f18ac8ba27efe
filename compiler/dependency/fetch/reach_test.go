package fetch

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/address"
	"github.com/kalypso-io/kalypso/internal/testing/dnstest"
	"github.com/kalypso-io/kalypso/internal/testing/remotetest"
)

// but is the reach of a registration whose repository is on a host.
func but(server string) address.Reach {
	return address.Reach{Remote: true, But: strings.TrimPrefix(server, "http://")}
}

// A server that a registration names leads to no other one of this machine.
func TestReach(t *testing.T) {
	isolate(t)
	charts, _ := chartHost(t, "1.2.0") // a server of this machine that is out of reach
	elsewhere := func(path string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, path) {
				http.Redirect(w, r, charts.URL+r.URL.RequestURI(), http.StatusFound)
			}
		}
	}
	manifest := `{"schemaVersion": 2, "layers": [{"mediaType": "a.tgz", "digest": "sha256:` + strings.Repeat("0", 64) + `", "size": 1}]}`
	artifact := dependency.Source{Kind: dependency.OCI, URL: "oci://%s/a", Tag: "1"}
	app := dependency.Source{Kind: dependency.Git, URL: "http://%s/a.git", Branch: "main"}
	for name, c := range map[string]struct {
		source dependency.Source
		answer func(http.ResponseWriter, *http.Request)
	}{
		"index that moved": {podinfo("http://%s/charts", "1.2.0"), elsewhere("")},
		"chart in the index": {podinfo("http://%s/charts", "1.2.0"), func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "apiVersion: v1\nentries: {podinfo: [{version: 1.2.0, urls: [%q]}]}\n", charts.URL+"/charts/podinfo-1.2.0.tgz")
		}},
		"chart in a registry": {podinfo("http://%s/charts", "1.2.0"), func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "apiVersion: v1\nentries: {podinfo: [{version: 1.2.0, urls: [%q]}]}\n", strings.Replace(charts.URL, "http:", "oci:", 1)+"/podinfo:1.2.0")
		}},
		"chart that moved": {podinfo("http://%s/charts", "1.2.0"), func(w http.ResponseWriter, r *http.Request) {
			if elsewhere(".tgz")(w, r); !strings.HasSuffix(r.URL.Path, ".tgz") {
				fmt.Fprint(w, "apiVersion: v1\nentries: {podinfo: [{version: 1.2.0, urls: [a.tgz]}]}\n")
			}
		}},
		"token of a registry": {artifact, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+charts.URL+`/token",service="a"`)
			w.WriteHeader(http.StatusUnauthorized)
		}},
		"manifest that moved": {artifact, elsewhere("")},
		"blob that moved": {artifact, func(w http.ResponseWriter, r *http.Request) {
			if elsewhere(strings.Repeat("0", 64))(w, r); strings.HasSuffix(r.URL.Path, "/1") {
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				fmt.Fprint(w, manifest)
			}
		}},
		"repository that moved": {app, elsewhere("/info/refs")},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, http.HandlerFunc(c.answer))
			server := strings.TrimPrefix(h.URL, "http://")
			source := c.source
			source.URL = fmt.Sprintf(source.URL, server)
			charts.asked()
			_, _, err := quick(t).Within(but(server)).Resolve(t.Context(), source)
			wantError[*Error](t, err, "it is")
			wantError[*Error](t, err, "on this machine or its own link")
			if failed, ok := err.(*Error); !ok || !strings.Contains(failed.Hint, "let the platform name it") {
				t.Errorf("%+v", err)
			}
			if n := len(charts.asked()); n > 0 {
				t.Errorf("%d requests", n)
			}
			// The platform's own may.
			_, _, _ = quick(t).Resolve(t.Context(), source)
			if n := len(charts.asked()); n == 0 {
				t.Error("it leads nowhere")
			}
		})
	}
}

// The certificates that helm has for a repository open no other way.
func TestReachWithCertificates(t *testing.T) {
	h, _ := chartHost(t, "1.2.0")
	config := filepath.Join(t.TempDir(), "repositories.yaml")
	t.Setenv("HELM_REPOSITORY_CONFIG", config)
	write(t, config, fmt.Sprintf("repositories: [{url: %q, insecure_skip_tls_verify: true}]\n", h.URL+"/charts"))
	f := quick(t)
	_, _, err := f.Within(address.Reach{Remote: true}).Resolve(t.Context(), podinfo(h.URL+"/charts", "1.2.0"))
	wantError[*Error](t, err, "on this machine or its own link")
	if _, _, err := f.Within(but(h.URL)).Resolve(t.Context(), podinfo(h.URL+"/charts", "1.2.0")); err != nil {
		t.Error(err)
	}
}

// A connection that was opened for the platform's own source is not used for a source of a
// registration, and neither is anything that was read through it.
func TestReachesShareNothing(t *testing.T) {
	h, w := gitHost(t)
	w.commit("a", "1")
	_, port, _ := strings.Cut(strings.TrimPrefix(h.URL, "http://"), ":")
	dnstest.Serve(t, map[string]netip.Addr{"git.example.": netip.MustParseAddr("127.0.0.1")})
	source := dependency.Source{Kind: dependency.Git, URL: "http://git.example:" + port + "/app.git", Branch: "main"}
	f := quick(t)
	entry, _, err := f.Resolve(t.Context(), source)
	must(t, err)
	within := f.Within(address.Reach{Remote: true})
	_, _, err = within.Resolve(t.Context(), source)
	wantError[*Error](t, err, "it is at 127.0.0.1, on this machine or its own link")
	_, err = within.Fetch(t.Context(), entry)
	wantError[*Error](t, err, "it is at 127.0.0.1, on this machine or its own link")
	if _, _, err := f.Within(but("git.example:"+port)).Resolve(t.Context(), source); err != nil {
		t.Error(err)
	}
}

// For ssh and git://, the check applies to the address of the connection. A name is
// resolved once for each connection, as without a check.
func TestReachOfOtherProtocols(t *testing.T) {
	h, home, source := sshSource(t)
	withSSH(t, "")
	_, port, _ := strings.Cut(h.Address, ":")
	known := filepath.Join(home, ".ssh", "known_hosts")
	write(t, known, h.KnownHost(h.Key)+strings.Replace(h.KnownHost(h.Key), "127.0.0.1", "git.example", 1))
	write(t, filepath.Join(home, ".ssh", "id_ed25519"), remotetest.PEM(t, h.Client, ""))
	root := t.TempDir()
	newWorkTree(t, filepath.Join(root, "app")).commit("a", "1")
	daemon := gitDaemon(t, root)
	_, daemonPort, _ := strings.Cut(daemon, ":")
	resolved := dnstest.Serve(t, map[string]netip.Addr{"git.example.": netip.MustParseAddr("127.0.0.1")})
	path := strings.TrimPrefix(source.URL, "ssh://git@"+h.Address)
	for url, reach := range map[string]address.Reach{
		source.URL: but(h.Address), "ssh://git@git.example:" + port + path: but("git.example:" + port),
		"git://" + daemon + "/app": but(daemon), "git://git.example:" + daemonPort + "/app": but("git.example:" + daemonPort),
	} {
		source.URL = url
		_, _, err := quick(t).Within(address.Reach{Remote: true}).Resolve(t.Context(), source)
		wantError[*Error](t, err, "on this machine or its own link")
		var times []int64
		for _, reach := range []address.Reach{{}, reach} {
			before := resolved.Load()
			if _, _, err := quick(t).Within(reach).Resolve(t.Context(), source); err != nil {
				t.Errorf("%s: %v", url, err)
			}
			times = append(times, resolved.Load()-before)
		}
		if times[0] != times[1] || (times[0] > 0) != strings.Contains(url, "git.example") {
			t.Errorf("%s is resolved %d times, and %d within a reach", url, times[0], times[1])
		}
	}
	// A name that ssh's configuration has for this machine is one of this machine.
	withSSH(t, "hostname 127.0.0.1\nport "+port+"\nuserknownhostsfile "+known+"\n")
	source.URL = "git@git.example:" + path
	_, _, err := quick(t).Within(address.Reach{Remote: true}).Resolve(t.Context(), source)
	wantError[*Error](t, err, "on this machine or its own link")
}

// A URL that git's own configuration replaces may lead to the place in that configuration,
// but not to places beside it.
func TestReachOfReplacedURLs(t *testing.T) {
	h, w := gitHost(t)
	w.commit("a", "1")
	root := filepath.Dir(w.dir)
	for _, base := range []string{h.URL + "/", "file://" + root + "/"} {
		write(t, filepath.Join(os.Getenv("HOME"), ".gitconfig"), fmt.Sprintf("[url %q]\ninsteadOf = https://git.example/\n", base))
		source := dependency.Source{Kind: dependency.Git, URL: "https://git.example/app.git", Branch: "main"}
		f := quick(t).Within(address.Reach{Remote: true})
		if _, _, err := f.Resolve(t.Context(), source); err != nil {
			t.Errorf("%s: %v", base, err)
		}
		if strings.HasPrefix(base, "http") {
			continue
		}
		for _, way := range []string{"../", "%2e%2e/", "x/../../"} {
			source.URL = "https://git.example/" + way + filepath.Base(root) + "/app.git"
			_, _, err := f.Resolve(t.Context(), source)
			wantError[*Error](t, err, "")
		}
	}
}
