package github_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/github"
)

// asCommand makes the test's binary print its user on a host, with only its environment as
// configuration.
const asCommand = "KALYPSO_TEST_VIEWER_ON"

// TestMain keeps the tests from the configuration of the user who runs them, which go-gh reads
// once.
func TestMain(m *testing.M) {
	if host := os.Getenv(asCommand); host != "" {
		os.Exit(printViewer(host))
	}
	isolated.Environment()
	_ = os.Setenv("GH_CONFIG_DIR", "/nonexistent")
	_ = os.Setenv("GH_PATH", "/nonexistent")
	code := m.Run()
	_ = os.RemoveAll(template)
	os.Exit(code)
}

func printViewer(host string) int {
	f, err := github.New(host, "acme", "fleet", github.Options{})
	if err == nil {
		viewer := ""
		viewer, err = f.Viewer(context.Background())
		fmt.Println(viewer)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// world is a server, with a repository that has a change to promote.
type world struct {
	*forgetest.GitHubServer
	repo  *forgetest.GitHubRepository
	forge forge.Forge
	head  git.Hash // of the branch promote, one commit ahead of prod
}

// template is a folder with a repository. Every world has a copy of it, because git would be slow
// if the tests started it a hundred times.
var template string

func start(t *testing.T, host string) *world {
	t.Helper()
	w := &world{GitHubServer: forgetest.GitHub(t, host)}
	if template == "" {
		r := w.AddRepository("acme", "template", "")
		r.Commit("prod", "", "tree", "old")
		r.Commit("promote", "prod", "tree", "new")
		dir, err := os.MkdirTemp("", "template")
		if err == nil {
			err = os.CopyFS(dir, os.DirFS(r.Dir))
		}
		if template = dir; err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(template)); err != nil {
		t.Fatal(err)
	}
	w.repo = w.AddRepository("acme", "fleet", dir)
	w.head = w.repo.Branch("promote")
	w.forge = w.open(t, w.Token)
	return w
}

// open returns the repository, as seen by the owner of a token.
func (w *world) open(t *testing.T, token string) forge.Forge {
	t.Helper()
	f, err := github.New(w.Host, "acme", "fleet", github.Options{Token: token, Socket: w.Socket, Now: w.Clock.Now, Wait: w.Clock.Wait})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// spec is a change request as promotion would have it.
func spec() forge.ChangeSpec {
	return forge.ChangeSpec{Head: "promote", Base: "prod", Title: "Promote to prod", Body: "What changes:\n\n- all\n"}
}

// save opens the pull request.
func (w *world) save(t *testing.T) *forge.Change {
	t.Helper()
	c, err := w.forge.SaveChange(t.Context(), spec())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lost is a fault that obeys the request, and closes the connection.
func lost(method, path string) forgetest.Fault {
	return forgetest.Fault{Method: method, Path: path, Done: true}
}

// refused is a fault that answers with a message.
func refused(status int, method, path, message string) forgetest.Fault {
	return forgetest.Fault{Method: method, Path: path, Status: status, Body: fmt.Sprintf(`{"message":%q}`, message)}
}

var hosts = []string{"github.com", "acme.ghe.com", "github.corp.example"}

// Each kind of host has its APIs, and its repositories, elsewhere.
func TestHosts(t *testing.T) {
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			w := start(t, host)
			if viewer, err := w.forge.Viewer(t.Context()); viewer != "kalypso[bot]" || err != nil {
				t.Errorf("viewer %q, %v", viewer, err)
			}
			if got := w.forge.Repository(); got != "https://"+host+"/acme/fleet" {
				t.Error(got)
			}
			if c := w.save(t); c.URL != "https://"+host+"/acme/fleet/pull/"+fmt.Sprint(c.Number) {
				t.Error(c.URL)
			}
			if w.forge.Kind() != "github" || w.forge.Limits() != (forge.Limits{Title: 256, Body: 65536, StatusDescription: 140}) {
				t.Errorf("%s, %+v", w.forge.Kind(), w.forge.Limits())
			}
			for _, r := range w.Log() {
				if text := r.Path + r.Query.Encode() + r.Body; strings.Contains(text, w.Token) {
					t.Errorf("%s has the token elsewhere than in its header", r)
				}
				if r.Header.Get("Authorization") != "token "+w.Token || r.Header.Get("User-Agent") != "kalypso" {
					t.Errorf("%s: %v", r, r.Header)
				}
			}
		})
	}
}

// A command finds host, token and socket in the same places as gh.
func TestEnvironment(t *testing.T) {
	for _, host := range hosts {
		s := forgetest.GitHub(t, host)
		command := exec.Command(os.Args[0])
		command.Env = append(append(os.Environ(), s.Env()...), asCommand+"="+host)
		if out, err := command.CombinedOutput(); string(out) != "kalypso[bot]\n" || err != nil {
			t.Errorf("%s: %s, %v", host, out, err)
		}
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct{ host, owner, name, want, hint string }{
		{"github.com", "acme", "fleet", "github.com: there is no token", "GH_TOKEN"},
		{"acme.ghe.com", "acme", "fleet", "acme.ghe.com: there is no token", "GH_TOKEN"},
		{"github.corp.example", "acme", "fleet", "github.corp.example: there is no token", "GH_ENTERPRISE_TOKEN"},
		{"github.com", "acme", "..", "acme/.. is no repository of GitHub", ""},
		{"github.com", "acme", "a/b", "acme/a/b is no repository of GitHub", ""},
		{"github.com", "", "fleet", "/fleet is no repository of GitHub", ""},
	} {
		_, err := github.New(c.host, c.owner, c.name, github.Options{})
		auth := (*forge.AuthError)(nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &auth) != (c.hint != "") {
			t.Errorf("%s %s/%s: %v", c.host, c.owner, c.name, err)
		} else if auth != nil && (!strings.Contains(auth.Hint, c.hint) || !strings.Contains(auth.Hint, "gh auth login")) {
			t.Errorf("%s: %s", c.host, auth.Hint)
		}
	}
	if _, err := github.New("bad host/", "acme", "fleet", github.Options{Token: "x"}); err == nil {
		t.Error("a host that is none is taken")
	}
}
