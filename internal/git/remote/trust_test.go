package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/testing/remotetest"
)

// The package finds credentials in the same places as git. It uses them to read and to write, and
// keeps them out of errors.
func TestCredentials(t *testing.T) {
	s := remotetest.Serve(t)
	s.Guard()
	each(t, func(t *testing.T, o remote.Options) {
		repo := s.Repository(o.Backend, promisor...)
		tip, text := id(repo.Commit("main", "a", "1")), "1"
		_, err := remote.Open(t.Context(), repo.URL, o)
		wantError[*remote.AuthError](t, err, "credentials")
		var auth *remote.AuthError
		if errors.As(err, &auth) && auth.Hint == "" {
			t.Error("no hint")
		}
		inURL := strings.Replace(repo.URL, "://", "://"+remotetest.Username+":"+remotetest.Password+"@", 1)
		netrc := filepath.Join(os.Getenv("HOME"), ".netrc")
		for name, url := range map[string]string{"in the URL": inURL, "netrc": repo.URL} {
			if name == "netrc" {
				remotetest.Login(t)
			}
			o.Store = t.TempDir()
			arguments := spy(t)
			r := open(t, url, o)
			must(t, r.Fetch(t.Context(), []git.Hash{tip}, 1))
			wantFile(t, r, tip.String(), "a", text)
			next, packs := commit(t, r, tip, "a", name)
			must(t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", Old: tip, New: next}}, packs, true))
			tip, text = next, name
			if strings.Contains(r.URL(), remotetest.Password) {
				t.Error(r.URL())
			}
			if found, _ := exec.Command("grep", "-r", remotetest.Password, o.Store).Output(); len(found) > 0 {
				t.Errorf("in the store: %s", found)
			}
			if latest, _ := os.ReadFile(arguments); strings.Contains(string(latest), remotetest.Password) || len(latest) == 0 {
				t.Errorf("%s: arguments of git: %s", name, latest)
			}
			// The server repeats the password.
			s.Before(func(w http.ResponseWriter, req *http.Request) bool {
				http.Error(w, "no: "+remotetest.Password, http.StatusForbidden)
				return true
			})
			wantError[*remote.AuthError](t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/x", New: tip}}, nil, false), "403 Forbidden")
			s.Before(nil)
		}
		must(t, os.Remove(netrc))
	})
}

// A server may let everybody read, and want credentials for a push alone.
func TestPublic(t *testing.T) {
	s := remotetest.Serve(t)
	cookie := filepath.Join(os.Getenv("HOME"), "cookies")
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		name, password, _ := r.BasicAuth()
		session, err := r.Cookie("session")
		if !strings.Contains(r.URL.RequestURI(), "git-receive-pack") || name == remotetest.Username && password == remotetest.Password || err == nil && session.Value == remotetest.Password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="tests"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return true
	})
	logins := map[string]func(){
		"netrc": func() { remotetest.Login(t) },
		"cookie": func() {
			must(t, os.WriteFile(cookie, []byte("127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t"+remotetest.Password+"\n"), 0o600),
				os.WriteFile(filepath.Join(os.Getenv("HOME"), ".gitconfig"), []byte("[http]\n\tcookieFile = "+cookie+"\n"), 0o600))
		},
	}
	for name, login := range logins {
		for _, backend := range []string{remote.Native, remote.Command, ""} {
			if name == "cookie" && backend == remote.Native {
				continue // this case has no credentials
			}
			repo := s.Repository(name+backend, promisor...)
			tip := id(repo.Commit("main", "a", "1"))
			r := open(t, repo.URL, remote.Options{Backend: backend, Wait: time.Millisecond})
			must(t, r.Fetch(t.Context(), []git.Hash{tip}, 1))
			next, packs := commit(t, r, tip, "a", "2")
			update := []remote.Update{{Ref: "refs/heads/main", Old: tip, New: next}}
			wantError[*remote.AuthError](t, r.Push(t.Context(), update, packs, true), "credentials")
			netrc := filepath.Join(os.Getenv("HOME"), ".netrc")
			must(t, os.WriteFile(netrc, []byte("machine 127.0.0.1 login x password wrong-one"), 0o600))
			wantError[*remote.AuthError](t, r.Push(t.Context(), update, packs, true), "does not accept the credentials")
			must(t, os.Remove(netrc))
			_, err := r.Refs(t.Context()) // still without any
			must(t, err)
			login()
			must(t, r.Push(t.Context(), update, packs, true))
			_ = os.Remove(netrc)
			_ = os.Remove(filepath.Join(os.Getenv("HOME"), ".gitconfig"))
		}
	}
}

// spy notes the arguments of every git that is run.
func spy(t testing.TB) (file string) {
	t.Helper()
	bin := t.TempDir()
	git, err := exec.LookPath("git")
	must(t, err)
	file = filepath.Join(bin, "arguments")
	must(t, os.WriteFile(filepath.Join(bin, "git"), fmt.Appendf(nil, "#!/bin/sh\necho \"$@\" >>%q\nexec %q \"$@\"\n", file, git), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return file
}

// If git has credentials other than a user and a password, the package uses the git command.
func TestAuto(t *testing.T) {
	s := remotetest.Serve(t)
	repo := s.Repository("app.git", promisor...)
	tip := repo.Commit("main", "a", "1")
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if cookie, err := r.Cookie("session"); err == nil && cookie.Value == remotetest.Password {
			return false
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return true
	})
	home := os.Getenv("HOME")
	must(t, os.WriteFile(filepath.Join(home, "cookies"), []byte("127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t"+remotetest.Password+"\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[http]\n\tcookieFile = "+filepath.Join(home, "cookies")+"\n"), 0o600))
	r := open(t, repo.URL, remote.Options{Wait: time.Millisecond})
	must(t, r.Fetch(t.Context(), []git.Hash{id(tip)}, 1))
	wantFile(t, r, tip, "a", "1")
	_, err := remote.Open(t.Context(), repo.URL, remote.Options{Wait: time.Millisecond, Backend: remote.Native})
	wantError[*remote.AuthError](t, err, "git has none for it")
}

func TestSHA256(t *testing.T) {
	s := remotetest.Serve(t)
	repo := s.Repository("app.git", promisor...)
	must(t, os.RemoveAll(repo.Dir))
	if out, err := exec.Command("git", "init", "-q", "--bare", "--object-format=sha256", "-b", "main", repo.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	refused := func(backends ...string) {
		t.Helper()
		for _, backend := range backends {
			for _, url := range []string{repo.URL, "file://" + filepath.ToSlash(repo.Dir), repo.Dir} {
				_, err := remote.Open(t.Context(), url, remote.Options{Backend: backend, Wait: time.Millisecond})
				wantError[*remote.Error](t, err, "it is a SHA-256 repository, and kalypso reads SHA-1 ones")
			}
		}
	}
	refused(remote.Native, "") // it is empty, which git's command does not report
	repo.Commit("main", "a", "1")
	refused(append(backends, "")...)
}

// A server may send any names of refs.
func TestHostileNames(t *testing.T) {
	remotetest.Isolate(t)
	const one = "1111111111111111111111111111111111111111"
	line := func(text string) string { return fmt.Sprintf("%04x%s\n", len(text)+5, text) }
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := line("# service=git-upload-pack") + "0000" + line(one+" refs/heads/good\x00symref=HEAD:refs/heads/../../x agent=x")
		for _, name := range []string{"refs/heads/../../../etc", "refs/heads/a\x1b[31m", "refs/heads/-x", "--upload-pack=x", "refs/heads/a~b", "refs/x.lock"} {
			answer += line(one + " " + name)
		}
		_, _ = io.WriteString(w, answer+"0000")
	}))
	t.Cleanup(h.Close)
	each(t, func(t *testing.T, o remote.Options) {
		r, err := remote.Open(t.Context(), h.URL+"/a", o)
		if err != nil {
			t.Log(err) // git itself may refuse all of it
			wantError[*remote.Error](t, err, "")
			return
		}
		defer r.Close()
		if refs, _ := r.Advertised(); len(refs) != 1 || refs["refs/heads/good"] != id(one) || r.DefaultBranch() != "" {
			t.Errorf("%v, %q", refs, r.DefaultBranch())
		}
	})
}

// If a server sends a wrong pack, or no answer, the result is an error.
func TestHostilePacks(t *testing.T) {
	s := remotetest.Serve(t)
	repo := s.Repository("app.git")
	tip := id(repo.Commit("main", "a", "1"))
	each(t, func(t *testing.T, o remote.Options) {
		o.Store = t.TempDir()
		r := open(t, repo.URL, o)
		for _, answer := range []string{"", "0008NAK\nPACK", "0008NAK\nPACK\x00\x00\x00\x02\xff\xff\xff\xffx", "0008NAK\n0009\x02hello", "0000", "ffff", "0012ERR go \x1b[31maway"} {
			s.Before(func(w http.ResponseWriter, req *http.Request) bool {
				if req.Method == http.MethodPost && !strings.Contains(peek(req), "command=ls-refs") {
					w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
					_, _ = io.WriteString(w, answer)
					return true
				}
				return false
			})
			wantError[error](t, r.Fetch(t.Context(), []git.Hash{tip}, 1), "")
		}
		s.Before(nil)
		must(t, r.Fetch(t.Context(), []git.Hash{tip}, 1))
		wantFile(t, r, tip.String(), "a", "1")
		healthy(t, r.Objects().Dir())
		if left, _ := filepath.Glob(filepath.Join(r.Objects().Dir(), "objects/pack/tmp_*")); len(left) > 0 {
			t.Error(left)
		}
	})
}

func peek(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return string(body)
}

func TestCancel(t *testing.T) {
	s := remotetest.Serve(t)
	each(t, func(t *testing.T, o remote.Options) {
		_, r, tip := target(t, s, "cancel-"+o.Backend, o)
		next, packs := commit(t, r, tip, "a", "2")
		for name, call := range map[string]func(context.Context) error{
			"refs":  func(ctx context.Context) error { _, err := r.Refs(ctx); return err },
			"fetch": func(ctx context.Context) error { return r.Fetch(ctx, []git.Hash{tip}, 0) },
			"push": func(ctx context.Context) error {
				return r.Push(ctx, []remote.Update{{Ref: "refs/heads/x", New: next}}, packs, true)
			},
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
					cancel()
					<-r.Context().Done()
					return true
				})
				defer s.Before(nil)
				if err := call(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
	})
}

// Several processes use one store, and one that is killed leaves it whole.
func TestProcesses(t *testing.T) {
	if url := os.Getenv("REMOTE_TEST_URL"); url != "" {
		fetchAll(t, url, os.Getenv("REMOTE_TEST_STORE"), os.Getenv("REMOTE_TEST_BACKEND"))
		return
	}
	s := remotetest.Serve(t)
	repo := s.Repository("app.git", promisor...)
	var tips []string
	for i := range 6 {
		tips = append(tips, repo.Commit("main", "a", fmt.Sprint(i), fmt.Sprintf("d%d/b", i), fmt.Sprint("b", i)))
		repo.Git("branch", fmt.Sprint("b", i), "main")
	}
	store := t.TempDir()
	run := func(ctx context.Context, backend string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestProcesses$", "-test.v")
		cmd.Env = append(os.Environ(), "REMOTE_TEST_URL="+repo.URL, "REMOTE_TEST_STORE="+store, "REMOTE_TEST_BACKEND="+backend)
		return cmd.CombinedOutput()
	}
	// Killed when the server has its request, at one moment and another.
	for n := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		count := 0
		var mu sync.Mutex
		s.Before(func(http.ResponseWriter, *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if count++; count > 2*n+1 {
				cancel()
			}
			return false
		})
		_, _ = run(ctx, backends[n%2])
		cancel()
	}
	s.Before(nil)
	var work sync.WaitGroup
	for _, backend := range append(backends, remote.Native) {
		work.Go(func() {
			if out, err := run(t.Context(), backend); err != nil {
				t.Errorf("%s: %v\n%s", backend, err, out)
			}
		})
	}
	work.Wait()
	r := open(t, repo.URL, remote.Options{Store: store})
	for i, tip := range tips {
		wantFile(t, r, tip, fmt.Sprintf("d%d/b", i), fmt.Sprint("b", i))
	}
	healthy(t, r.Objects().Dir())
}

// fetchAll fetches each branch, and reads a file of it.
func fetchAll(t *testing.T, url, store, backend string) {
	r := open(t, url, remote.Options{Store: store, Backend: backend, Wait: time.Millisecond})
	refs, err := r.Refs(t.Context())
	must(t, err)
	for i := range 6 {
		tip := refs[fmt.Sprint("refs/heads/b", i)]
		must(t, r.Fetch(t.Context(), []git.Hash{tip}, 1))
		wantFile(t, r, tip.String(), "a", fmt.Sprint(i))
	}
}
