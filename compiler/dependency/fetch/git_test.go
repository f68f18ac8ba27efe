package fetch

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// workTree is a git repository that tests commit to.
type workTree struct {
	testing.TB
	dir string
}

func newWorkTree(t testing.TB, dir string) *workTree {
	t.Helper()
	w := &workTree{t, dir}
	must(t, os.MkdirAll(dir, 0o777))
	w.git("init", "-q", "-b", "main")
	return w
}

// git runs git in the repository and returns its output.
func (w *workTree) git(args ...string) string {
	w.Helper()
	cmd := exec.Command("git", append([]string{"-C", w.dir}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits files, which are alternating paths and texts, and returns the commit.
func (w *workTree) commit(files ...string) string {
	w.Helper()
	for i := 0; i < len(files); i += 2 {
		write(w, filepath.Join(w.dir, files[i]), files[i+1])
	}
	w.git("add", "-A")
	w.git("commit", "-q", "--allow-empty", "-m", "a commit")
	return w.git("rev-parse", "HEAD")
}

// gitHost serves a repository at /app.git over HTTP, as git's own server does.
func gitHost(t testing.TB) (*host, *workTree) {
	t.Helper()
	isolate(t)
	root := t.TempDir()
	w := newWorkTree(t, filepath.Join(root, "app.git"))
	git, err := exec.LookPath("git")
	must(t, err)
	return serve(t, &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Dir: root,
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root},
		Stderr: testWriter{t},
	}), w
}

type testWriter struct{ testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.Logf("%s", p)
	return len(p), nil
}

func TestGitRevisions(t *testing.T) {
	h, w := gitHost(t)
	old := w.commit("a", "1")
	w.git("tag", "v1.2.0")
	annotated := w.commit("a", "2")
	w.git("tag", "-m", "a release", "v1.10.0")
	pre := w.commit("a", "3")
	w.git("tag", "2.0.0-rc.1")
	w.git("tag", "v1")
	w.git("checkout", "-q", "-b", "feature/x")
	branch := w.commit("a", "4")
	w.git("checkout", "-q", "main")
	head := w.commit("a", "5")
	w.git("tag", "-m", "a tag of a tag", "twice", "v1.10.0")
	gone := w.commit("a", "6")
	w.git("reset", "-q", "--hard", head)

	u := h.URL + "/app.git"
	for name, c := range map[string]struct {
		source dependency.Source
		commit string
		text   string
	}{
		"branch":              {dependency.Source{Branch: "main"}, head, "5"},
		"branch with a slash": {dependency.Source{Branch: "feature/x"}, branch, "4"},
		"tag":                 {dependency.Source{Tag: "v1.2.0"}, old, "1"},
		"annotated tag":       {dependency.Source{Tag: "v1.10.0"}, annotated, "2"},
		"tag of a tag":        {dependency.Source{Tag: "twice"}, annotated, "2"},
		"range":               {dependency.Source{Semver: ">=1.2 <2"}, annotated, "2"},
		"range with pre":      {dependency.Source{Semver: ">=1.2-0"}, pre, "3"},
		"commit of a tag":     {dependency.Source{Commit: old}, old, "1"},
		"commit of a branch":  {dependency.Source{Commit: head}, head, "5"},
		"commit on the way":   {dependency.Source{Commit: pre}, pre, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			c.source.Kind, c.source.URL = dependency.Git, u
			e, data := resolving(t, c.source)
			if e.Revision != c.commit {
				t.Errorf("%s, want %s", e.Revision, c.commit)
			}
			wantFiles(t, data, "a: "+c.text)
		})
	}
	for name, c := range map[string]struct {
		source dependency.Source
		want   string
	}{
		"no branch":           {dependency.Source{Branch: "mian"}, "there is no branch mian; there are: feature/x, main"},
		"no tag":              {dependency.Source{Tag: "v3"}, "there is no tag v3; there are: 2.0.0-rc.1, v1.10.0, v1.2.0, twice, v1"},
		"no version":          {dependency.Source{Semver: ">=2"}, "no version is in the range >=2 (pre-releases are only in ranges that name one, such as >=1.2.0-0); there are: 2.0.0-rc.1, v1.10.0, v1.2.0"},
		"no commit":           {dependency.Source{Commit: strings.Repeat("0", 39) + "1"}, "there is no commit 0000"},
		"commit that is gone": {dependency.Source{Commit: gone}, "there is no commit " + gone + " on any branch or tag"},
	} {
		t.Run(name, func(t *testing.T) {
			c.source.Kind, c.source.URL = dependency.Git, u
			_, _, err := quick(t).Resolve(t.Context(), c.source)
			wantError[*NotFoundError](t, err, c.want)
		})
	}
	_, _, err := quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.Git, URL: u, Semver: "newest"})
	wantError[*Error](t, err, `"newest" is no range of versions`)
	_, _, err = quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.Git, URL: h.URL + "/other.git", Branch: "main"})
	wantError[*NotFoundError](t, err, "there is no such repository")

	// Of servers that serve any commit, only the commit is requested.
	w.git("config", "uploadpack.allowReachableSHA1InWant", "true")
	e, data := resolving(t, dependency.Source{Kind: dependency.Git, URL: u, Commit: pre})
	if wantFiles(t, data, "a: 3"); e.Revision != pre {
		t.Errorf("%s, want %s", e.Revision, pre)
	}
}

// The fetcher requests only the commit that a server names, and not its history.
func TestGitShallow(t *testing.T) {
	h, w := gitHost(t)
	old := w.commit("a", "1")
	w.git("tag", "-m", "a release", "v1")
	for i := range 20 {
		w.commit("a", fmt.Sprint("more ", i))
	}
	w.commit("a", "2")
	for _, c := range []struct {
		source  dependency.Source
		shallow bool
	}{
		{dependency.Source{Branch: "main"}, true}, {dependency.Source{Tag: "v1"}, true}, {dependency.Source{Commit: old}, true},
		{dependency.Source{Commit: w.git("rev-parse", "HEAD~3")}, false},
	} {
		c.source.Kind, c.source.URL = dependency.Git, h.URL+"/app.git"
		var bodies []string
		h.behind(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				bodies = append(bodies, string(body))
				r.Body = io.NopCloser(strings.NewReader(string(body)))
			}
			return false
		})
		_, _, err := quick(t).Resolve(t.Context(), c.source)
		must(t, err)
		if len(bodies) != 1 || strings.Contains(bodies[0], "deepen 1") != c.shallow {
			t.Errorf("%v: asked %q", c.source, bodies)
		}
	}
}

func TestGitContent(t *testing.T) {
	h, w := gitHost(t)
	write(t, filepath.Join(w.dir, "bin/run"), "#!/bin/sh")
	must(t, os.Chmod(filepath.Join(w.dir, "bin/run"), 0o700),
		os.Symlink("bin", filepath.Join(w.dir, "link")),
		os.Symlink("/etc/passwd", filepath.Join(w.dir, "passwd")))
	write(t, filepath.Join(w.dir, `unit\x2da`), "1")
	write(t, filepath.Join(w.dir, "large.bin"), "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
	w.commit("empty", "")
	w.git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module")
	w.git("commit", "-q", "-m", "a submodule")
	commit := w.git("rev-parse", "HEAD")
	e, data := resolving(t, dependency.Source{Kind: dependency.Git, URL: h.URL + "/app.git", Branch: "main"})
	if e.Revision != commit {
		t.Errorf("%s, want %s", e.Revision, commit)
	}
	wantFiles(t, data,
		"bin/run: #!/bin/sh",
		"empty: ",
		"large.bin! is kept by Git LFS, from which kalypso does not fetch",
		"link/run: #!/bin/sh",
		"module! is a submodule of git, whose content kalypso does not fetch",
		`passwd! is a link to "/etc/passwd", which is an absolute path`,
		"unit?x2da! has a backslash or an invisible character in it")
}

// A branch that moves on is as it was, for one Fetcher and for an entry. A rewritten
// branch is an error.
func TestGitMoves(t *testing.T) {
	h, w := gitHost(t)
	first := w.commit("a", "1")
	source := dependency.Source{Kind: dependency.Git, URL: h.URL + "/app.git", Branch: "main"}
	f := quick(t)
	pinned, _, err := f.Resolve(t.Context(), source)
	must(t, err)
	w.commit("a", "2")
	if e, _, err := f.Resolve(t.Context(), source); err != nil || e.Revision != first {
		t.Errorf("%+v, %v", e, err)
	}
	data, err := quick(t).Fetch(t.Context(), pinned)
	must(t, err)
	wantFiles(t, data, "a: 1")

	tampered := pinned
	tampered.Content = another(pinned.Content)
	_, err = quick(t).Fetch(t.Context(), tampered)
	wantError[*ChangedError](t, err, "somebody has replaced it")

	w.git("checkout", "-q", "--orphan", "new")
	w.commit("a", "3")
	w.git("branch", "-D", "-q", "main")
	_, err = quick(t).Fetch(t.Context(), pinned)
	wantError[*NotFoundError](t, err, "there is no commit "+first)
}

func TestGitEmpty(t *testing.T) {
	h, _ := gitHost(t)
	_, _, err := quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.Git, URL: h.URL + "/app.git", Branch: "main"})
	wantError[*NotFoundError](t, err, "the repository is empty")
}

// Credentials come from the same places as in git, in this order.
func TestGitCredentials(t *testing.T) {
	for name, login := range map[string]func(home, hostname string) (url string){
		"netrc": func(home, hostname string) string {
			write(t, filepath.Join(home, ".netrc"), fmt.Sprintf("machine example.com login a password b\nmachine %s\n  login %s\n  password %s\n", "127.0.0.1", username, password))
			return ""
		},
		"store": func(home, hostname string) string {
			write(t, filepath.Join(home, ".git-credentials"), fmt.Sprintf("http://%s:%s@%s\n", username, password, hostname))
			write(t, filepath.Join(home, ".gitconfig"), "[credential]\n\thelper = store\n")
			return ""
		},
		"a helper that goes on after a wrong netrc": func(home, hostname string) string {
			write(t, filepath.Join(home, ".netrc"), "machine 127.0.0.1 login "+username+" password wrong-wrong")
			write(t, filepath.Join(home, ".gitconfig"), "[credential]\n\thelper = \"!f() { echo username="+username+"; echo password="+password+"; }; f\"\n")
			return ""
		},
		"a header, as CI systems write it": func(home, hostname string) string {
			token := base64.StdEncoding.EncodeToString([]byte(username + ":" + password))
			write(t, filepath.Join(home, ".gitconfig"), fmt.Sprintf("[http \"http://%s/\"]\n\textraHeader = AUTHORIZATION: basic %s\n", hostname, token))
			return ""
		},
		"insteadOf": func(home, hostname string) string {
			write(t, filepath.Join(home, ".gitconfig"), fmt.Sprintf("[url \"http://%s:%s@%s/\"]\n\tinsteadOf = https://git.example.com/\n", username, password, hostname))
			return "https://git.example.com/app.git"
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, w := gitHost(t)
			w.commit("a", "1")
			h.behind(guarded)
			source := dependency.Source{Kind: dependency.Git, URL: h.URL + "/app.git", Branch: "main"}
			_, _, err := quick(t).Resolve(t.Context(), source)
			wantError[*AuthError](t, err, "wants credentials, and git has none for it")

			if u := login(os.Getenv("HOME"), h.Listener.Addr().String()); u != "" {
				source.URL = u
			}
			_, data := resolving(t, source)
			wantFiles(t, data, "a: 1")
		})
	}
}

// Without git on the machine, everything works that does not need git.
func TestGitWithoutGit(t *testing.T) {
	h, w := gitHost(t)
	w.commit("a", "1")
	h.behind(guarded)
	write(t, filepath.Join(os.Getenv("HOME"), ".netrc"), "machine 127.0.0.1 login "+username+" password "+password)
	t.Setenv("PATH", "") // the server then has the usual one
	_, data := resolving(t, dependency.Source{Kind: dependency.Git, URL: h.URL + "/app.git", Branch: "main"})
	wantFiles(t, data, "a: 1")
	_, _, err := quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.Git, URL: "file://" + w.dir, Branch: "main"})
	wantError[*Error](t, err, "git, which is not installed")
}

func TestGitTLS(t *testing.T) {
	h, w := gitHost(t)
	w.commit("a", "1")
	secure := httptest.NewUnstartedServer(h.handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	source := dependency.Source{Kind: dependency.Git, URL: secure.URL + "/app.git", Branch: "main"}
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "certificate")
	home := os.Getenv("HOME")
	write(t, filepath.Join(home, "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	write(t, filepath.Join(home, ".gitconfig"), "[http]\n\tsslCAInfo = ~/ca.pem\n")
	_, data := resolving(t, source)
	wantFiles(t, data, "a: 1")
	write(t, filepath.Join(home, "ca.pem"), "nothing")
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "has no certificate")
}

func TestGitWrongCredentials(t *testing.T) {
	h, w := gitHost(t)
	w.commit("a", "1")
	h.behind(func(rw http.ResponseWriter, r *http.Request) bool {
		// It repeats the password.
		_, pass, _ := r.BasicAuth()
		http.Error(rw, "no: "+pass, map[bool]int{true: http.StatusUnauthorized, false: http.StatusForbidden}[pass != password])
		return true
	})
	source := dependency.Source{Kind: dependency.Git, URL: h.URL + "/app.git", Branch: "main"}
	write(t, filepath.Join(os.Getenv("HOME"), ".netrc"), "machine 127.0.0.1 login a password wrong-wrong")
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*AuthError](t, err, "does not accept the credentials")
	write(t, filepath.Join(os.Getenv("HOME"), ".netrc"), "machine 127.0.0.1 login a password "+password)
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*AuthError](t, err, "answers 403 Forbidden")
	if hint := err.(*AuthError).Hint; hint == "" {
		t.Error("no hint")
	}
}

// A source that names a host gets only credentials for it: neither another host's, nor
// the credentials for every host.
func TestGitOtherHost(t *testing.T) {
	h, w := gitHost(t)
	w.commit("a", "1")
	h.behind(func(rw http.ResponseWriter, r *http.Request) bool {
		rw.Header().Set("WWW-Authenticate", `Basic realm="theirs"`)
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	})
	_, port, err := net.SplitHostPort(h.Listener.Addr().String())
	must(t, err)
	home, token := os.Getenv("HOME"), base64.StdEncoding.EncodeToString([]byte(username+":"+password))
	mine := "machine 127.0.0.1 login " + username + " password " + password + "\n"
	for name, c := range map[string]struct{ netrc, config string }{
		"of another host": {mine, fmt.Sprintf("[http \"http://127.0.0.1:%s/\"]\n\textraHeader = AUTHORIZATION: basic %s\n[credential]\n\thelper = store\n", port, token)},
		"of every host":   {mine + "default login " + username + " password " + password + "\n", "[http]\n\textraHeader = AUTHORIZATION: basic " + token + "\n"},
		"a header alone":  {"", "[http]\n\textraHeader = AUTHORIZATION: basic " + token + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(home, ".netrc"), c.netrc)
			write(t, filepath.Join(home, ".gitconfig"), c.config)
			write(t, filepath.Join(home, ".git-credentials"), fmt.Sprintf("http://%s:%s@127.0.0.1:%s\n", username, password, port))
			h.asked()
			_, _, err := quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.Git, URL: "http://localhost:" + port + "/app.git", Branch: "main"})
			wantError[*AuthError](t, err, "wants credentials")
			asked := h.asked()
			if len(asked) == 0 {
				t.Error("the server was not asked")
			}
			for _, r := range asked {
				if got := r.Header.Get("Authorization"); got != "" {
					t.Errorf("%s has credentials: %s", r.URL, got)
				}
			}
		})
	}
}

// Credentials do not go to the target of a redirect.
func TestGitRedirect(t *testing.T) {
	h, w := gitHost(t)
	w.commit("a", "1")
	moved := serve(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, h.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	source := dependency.Source{Kind: dependency.Git, URL: moved.URL + "/app.git", Branch: "main"}
	_, data := resolving(t, source)
	wantFiles(t, data, "a: 1")

	write(t, filepath.Join(os.Getenv("HOME"), ".netrc"), "machine 127.0.0.1 login "+username+" password "+password)
	moved.behind(guarded)
	h.asked()
	resolving(t, source)
	for _, r := range h.asked() {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("%s has credentials of another server", r.URL)
		}
	}
}

// The fetcher tries again after a temporary error. After any other error, it does not
// repeat the request.
func TestGitRepeats(t *testing.T) {
	h, w := gitHost(t)
	w.commit("a", "1")
	source := dependency.Source{Kind: dependency.Git, URL: h.URL + "/app.git", Branch: "main"}
	for _, status := range []int{0, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable} {
		h.behind(failing(2, status))
		_, data := resolving(t, source)
		wantFiles(t, data, "a: 1")
	}
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusTeapot} {
		h.behind(failing(1<<30, status))
		h.asked()
		if _, _, err := quick(t).Resolve(t.Context(), source); err == nil {
			t.Errorf("%d is no error", status)
		}
		if n := len(h.asked()); n != 1 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
	h.behind(failing(1<<30, http.StatusServiceUnavailable))
	h.asked()
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "503")
	if n := len(h.asked()); n != 1+httpclient.Retries {
		t.Errorf("%d requests", n)
	}
}

func TestGitFile(t *testing.T) {
	isolate(t)
	w := newWorkTree(t, filepath.Join(t.TempDir(), "app"))
	commit := w.commit("a", "1")
	w.commit("a", "2")
	for _, source := range []dependency.Source{{Branch: "main"}, {Commit: commit}} {
		source.Kind, source.URL = dependency.Git, "file://"+w.dir
		_, data := resolving(t, source)
		wantFiles(t, data, map[bool]string{true: "a: 2", false: "a: 1"}[source.Branch != ""])
	}
	_, _, err := quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.Git, URL: "file://" + w.dir + "-not", Branch: "main"})
	wantError[*NotFoundError](t, err, "there is no such repository")
}

// TestGitProtocol fetches over git:// from git's own daemon.
func TestGitProtocol(t *testing.T) {
	isolate(t)
	root := t.TempDir()
	w := newWorkTree(t, filepath.Join(root, "app"))
	w.commit("a", "1")
	address := gitDaemon(t, root)
	_, data := resolving(t, dependency.Source{Kind: dependency.Git, URL: "git://" + address + "/app", Branch: "main"})
	wantFiles(t, data, "a: 1")
}

func TestGitURLs(t *testing.T) {
	isolate(t)
	for _, u := range []string{
		"ext::sh -c touch /tmp/x", "--upload-pack=x", "/etc", "../x", "ftp://example.com/a", "https://", "ssh://-oProxyCommand=x/a",
		"-oProxyCommand=x@example.com:a", "https://example.com/a%0ahost=evil.example.com", "fd::7", "",
	} {
		_, _, err := quick(t).Resolve(t.Context(), dependency.Source{Kind: dependency.Git, URL: u, Branch: "main"})
		wantError[*Error](t, err, "")
	}
}

// A proxy of the environment is used.
func TestGitProxy(t *testing.T) {
	h, w := gitHost(t)
	w.commit("a", "1")
	target, err := url.Parse(h.URL)
	must(t, err)
	proxy := serve(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "git.example.test" {
			http.Error(rw, "unknown host", http.StatusBadGateway)
			return
		}
		r.URL.Host, r.Host = target.Host, target.Host
		h.handler.ServeHTTP(rw, r)
	}))
	t.Setenv("HTTP_PROXY", proxy.URL)
	_, data := resolving(t, dependency.Source{Kind: dependency.Git, URL: "http://git.example.test/app.git", Branch: "main"})
	wantFiles(t, data, "a: 1")
	if len(proxy.asked()) == 0 {
		t.Error("the proxy was not asked")
	}
}
