package remote_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/testing/remotetest"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

var backends = []string{remote.Native, remote.Command}

// each runs a test with each backend.
func each(t *testing.T, test func(t *testing.T, o remote.Options)) {
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) { test(t, remote.Options{Backend: backend, Wait: time.Millisecond}) })
	}
}

func open(t testing.TB, url string, o remote.Options) *remote.Remote {
	t.Helper()
	r, err := remote.Open(t.Context(), url, o)
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

func id(text string) git.Hash { return plumbing.NewHash(text) }

// promisor lets a repository leave out the content of files, and give any object.
var promisor = []string{"uploadpack.allowFilter", "true", "uploadpack.allowAnySHA1InWant", "true"}

// read returns a file of a commit.
func read(r *git.Repository, commit, name string) (string, error) {
	tree, err := r.CommitTree(id(commit))
	if err != nil {
		return "", err
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		entries, err := r.Tree(tree)
		if err != nil {
			return "", err
		}
		at := slices.IndexFunc(entries, func(e git.Entry) bool { return e.Name == part })
		if at < 0 {
			return "", fmt.Errorf("no %s", name)
		}
		tree = entries[at].ID
		if i == len(parts)-1 {
			break
		}
	}
	data, err := r.Blob(tree)
	return string(data), err
}

func wantFile(t testing.TB, r *remote.Remote, commit, name, want string) {
	t.Helper()
	if got, err := read(r.Objects(), commit, name); err != nil || got != want {
		t.Errorf("%s of %s is %q, %v; want %q", name, commit, got, err, want)
	}
}

// healthy has git check a store.
func healthy(t testing.TB, dir string) {
	t.Helper()
	out, err := exec.Command("git", "-C", dir, "fsck", "--full", "--strict").CombinedOutput()
	if err != nil {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
}

// wantError checks the type and the text of an error, and that it is one line without a password.
func wantError[E error](t testing.TB, err error, want string) {
	t.Helper()
	var e E
	if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("got %T: %v\nwant %T with %s", err, err, e, want)
	}
	if err != nil && strings.Contains(fmt.Sprintf("%+v", err), remotetest.Password) {
		t.Errorf("a password is in %v", err)
	}
}

func TestRefs(t *testing.T) {
	s := remotetest.Serve(t)
	repo := s.Repository("app.git")
	first := repo.Commit("main", "a", "1")
	second := repo.Commit("env/prod", "a", "2")
	repo.Git("tag", "-a", "-m", "a tag", "v1", first)
	tag := repo.Git("rev-parse", "v1")
	each(t, func(t *testing.T, o remote.Options) {
		r := open(t, repo.URL, o)
		refs, err := r.Refs(t.Context())
		must(t, err)
		want := map[string]git.Hash{"refs/heads/main": id(first), "refs/heads/env/prod": id(second), "refs/tags/v1": id(tag)}
		if fmt.Sprint(refs) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", refs, want)
		}
		if _, peeled := r.Advertised(); len(peeled) != 1 || peeled["refs/tags/v1"] != id(first) {
			t.Errorf("%v", peeled)
		}
		if r.DefaultBranch() != "main" || r.URL() != repo.URL {
			t.Error(r.DefaultBranch(), r.URL())
		}
	})
}

func TestEmpty(t *testing.T) {
	s := remotetest.Serve(t)
	each(t, func(t *testing.T, o remote.Options) {
		repo := s.Repository(o.Backend)
		r := open(t, repo.URL, o)
		if refs, err := r.Refs(t.Context()); err != nil || len(refs) != 0 || r.DefaultBranch() != "" {
			t.Error(refs, err, r.DefaultBranch())
		}
		first, packs := commit(t, r, git.Hash{}, "a", "1")
		must(t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", New: first}}, packs, false))
		if got := repo.Git("show", "main:a"); got != "1" {
			t.Error(got)
		}
	})
}

// The fetched objects of a commit, with each kind of request that a server may allow.
func TestFetch(t *testing.T) {
	s := remotetest.Serve(t)
	for name, config := range map[string][]string{
		"all":       promisor,
		"no ids":    {"uploadpack.allowFilter", "true"},
		"no filter": {"uploadpack.allowAnySHA1InWant", "true"},
		"nothing":   {},
	} {
		repo := s.Repository(strings.ReplaceAll(name, " ", "-"), config...)
		old := repo.Commit("main", "dir/a", "1", "b", "same")
		middle := repo.Commit("main", "dir/a", "2")
		tip := repo.Commit("main", "dir/a", "3")
		repo.Git("tag", "-a", "-m", "a tag", "v1", old)
		each(t, func(t *testing.T, o remote.Options) {
			t.Run(name, func(t *testing.T) {
				o.Store = t.TempDir()
				r := open(t, repo.URL, o)
				must(t, r.Fetch(t.Context(), []git.Hash{id(tip)}, 1))
				healthy(t, r.Objects().Dir())
				wantFile(t, r, tip, "dir/a", "3")
				wantFile(t, r, tip, "b", "same")
				must(t, r.Fetch(t.Context(), []git.Hash{id(old), id(repo.Git("rev-parse", "v1"))}, 1))
				wantFile(t, r, old, "dir/a", "1")
				must(t, r.Fetch(t.Context(), []git.Hash{id(middle)}, 1))
				wantFile(t, r, middle, "dir/a", "2")
				must(t, r.Fetch(t.Context(), []git.Hash{id(tip)}, 0))
				if out := r.Objects(); out != nil {
					if log, err := exec.Command("git", "-C", out.Dir(), "rev-list", "--count", tip).CombinedOutput(); err != nil || strings.TrimSpace(string(log)) != "3" {
						t.Errorf("%s, %v", log, err)
					}
				}
				healthy(t, r.Objects().Dir())
				err := r.Fetch(t.Context(), []git.Hash{id(strings.Repeat("12", 20))}, 1)
				wantError[*remote.NotFoundError](t, err, "there is no commit 1212")
			})
		})
	}
}

// Only the trees of a commit are fetched at first. Files are fetched when they are
// read, many at once, and objects that exist are not requested.
func TestFetchLittle(t *testing.T) {
	s := remotetest.Serve(t)
	repo := s.Repository("app.git", promisor...)
	large := strings.Repeat("0123456789abcdef", 1<<12)
	repo.Commit("main", "first", "1")
	var files []string
	for i := range 50 {
		files = append(files, fmt.Sprintf("d%d/f", i), fmt.Sprint(large[i:], i))
	}
	tip := repo.Commit("main", files...)
	each(t, func(t *testing.T, o remote.Options) {
		o.Store = t.TempDir()
		r := open(t, repo.URL, o)
		s.Asked()
		must(t, r.Fetch(t.Context(), []git.Hash{id(tip)}, 1))
		if n := answered(s); n > 20_000 {
			t.Errorf("%d bytes for the trees", n)
		}
		var blobs []git.Hash
		root, err := r.Objects().CommitTree(id(tip))
		must(t, err)
		entries, err := r.Objects().Tree(root)
		must(t, err)
		for _, e := range entries {
			if e.Mode != git.FolderMode {
				continue
			}
			inside, err := r.Objects().Tree(e.ID)
			must(t, err)
			blobs = append(blobs, inside[0].ID)
		}
		if asked := s.Asked(); len(asked) != 0 {
			t.Errorf("%d requests for trees", len(asked))
		}
		must(t, r.Prefetch(t.Context(), blobs))
		if n := posts(s.Asked()); n != 1 {
			t.Errorf("%d requests for %d files", n, len(blobs))
		}
		for i := range 50 {
			wantFile(t, r, tip, fmt.Sprintf("d%d/f", i), fmt.Sprint(large[i:], i))
		}
		must(t, r.Prefetch(t.Context(), blobs), r.Fetch(t.Context(), []git.Hash{id(tip)}, 1))
		if asked := s.Asked(); len(asked) != 0 {
			t.Errorf("%d requests for what is there", len(asked))
		}

		// A fetch of a later commit gets only the differing objects.
		next := repo.Commit("main", "d7/f", "changed by "+o.Backend)
		must(t, r.Close())
		r, err = remote.Open(t.Context(), repo.URL, o)
		must(t, err)
		s.Asked()
		must(t, r.Fetch(t.Context(), []git.Hash{id(next)}, 1))
		if n := answered(s); n > 4_000 {
			t.Errorf("%d bytes for a small change", n)
		}
		wantFile(t, r, next, "d7/f", "changed by "+o.Backend)
		healthy(t, r.Objects().Dir())
		must(t, r.Close())
		repo.Git("update-ref", "refs/heads/main", tip)
		o.Backend = ""
	})
}

// answered is the size of all answers in bytes, without refs.
func answered(s *remotetest.Server) (n int64) {
	for _, r := range s.Asked() {
		if r.Method == "POST" {
			n += r.Answer
		}
	}
	return n
}

// posts counts requests for packs. With version 2 of the protocol, git also reads refs with such
// a request.
func posts(asked []*remotetest.Request) (n int) {
	for _, r := range asked {
		if r.Method == "POST" && !strings.Contains(string(r.Body), "command=ls-refs") {
			n++
		}
	}
	return n
}

func TestFolders(t *testing.T) {
	remotetest.Isolate(t)
	each(t, func(t *testing.T, o remote.Options) {
		repo := remotetest.NewRepository(t, filepath.Join(t.TempDir(), "app.git"), promisor...)
		tip := repo.Commit("main", "a", "1")
		for _, url := range []string{repo.Dir, repo.URL} {
			r := open(t, url, o)
			must(t, r.Fetch(t.Context(), []git.Hash{id(tip)}, 1))
			wantFile(t, r, tip, "a", "1")
			next, packs := commit(t, r, id(tip), "a", "2")
			must(t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", Old: id(tip), New: next}}, packs, true))
			tip = repo.Git("rev-parse", "main")
			if tip != next.String() {
				t.Error(tip, next)
			}
			must(t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", Old: next, New: id(repo.Git("rev-parse", "main^"))}}, nil, true))
			tip = repo.Git("rev-parse", "main")
		}
	})
	_, err := remote.Open(t.Context(), filepath.Join(t.TempDir(), "not"), remote.Options{})
	wantError[*remote.NotFoundError](t, err, "there is no such repository")
	t.Setenv("PATH", "")
	_, err = remote.Open(t.Context(), "/etc", remote.Options{})
	wantError[*remote.Error](t, err, "git, which is not installed")
	_, err = remote.Open(t.Context(), "https://example.com/a", remote.Options{Backend: remote.Command})
	wantError[*remote.Error](t, err, "git, which is not installed")
}

func TestSSH(t *testing.T) {
	home := remotetest.Isolate(t)
	s := remotetest.ServeSSH(t)
	s.Login()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			if _, err := exec.LookPath("ssh"); err != nil && backend == remote.Command {
				t.Skip("ssh is not installed, which make test-all does")
			}
			if backend == remote.Native {
				withoutSSH(t)
			} else {
				t.Setenv("GIT_SSH_COMMAND", fmt.Sprintf("ssh -F none -o BatchMode=yes -o UserKnownHostsFile='%q' -i %q", filepath.Join(home, ".ssh/known_hosts"), filepath.Join(home, ".ssh/id_ed25519")))
			}
			repo := remotetest.NewRepository(t, filepath.Join(t.TempDir(), "app.git"), promisor...)
			tip := repo.Commit("main", "a", "1")
			o := remote.Options{Backend: backend, Wait: time.Millisecond}
			r := open(t, s.URL(repo), o)
			must(t, r.Fetch(t.Context(), []git.Hash{id(tip)}, 1))
			wantFile(t, r, tip, "a", "1")
			next, packs := commit(t, r, id(tip), "a", "2")
			must(t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", Old: id(tip), New: next}}, packs, true))
			if got := repo.Git("show", "main:a"); got != "2" {
				t.Error(got)
			}
			_, err := remote.Open(t.Context(), s.URL(repo)+"-not", o)
			wantError[*remote.NotFoundError](t, err, "there is no such repository")
		})
	}
}

// withoutSSH takes the program ssh away, whose configuration would be the machine's.
func withoutSSH(t testing.TB) {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"git", "git-upload-pack", "git-receive-pack"} {
		if program, err := exec.LookPath(name); err == nil {
			must(t, os.Symlink(program, filepath.Join(bin, name)))
		}
	}
	t.Setenv("PATH", bin)
}

// If the configuration of ssh, or of git, reaches a host in a way that only these know,
// git runs ssh.
func TestSSHDetour(t *testing.T) {
	script := "#!/bin/sh\n[ \"$1\" = -G ] && { echo proxyjump $JUMP; exit; }\nfor last; do :; done\neval \"git ${last#git-}\"\n"
	for name, c := range map[string]struct {
		environment map[string]string
		reason      string
	}{
		"ProxyJump":       {map[string]string{"JUMP": "bastion.example.test"}, "through another host or a program (proxyjump)"},
		"GIT_SSH_COMMAND": {map[string]string{"JUMP": "none", "GIT_SSH_COMMAND": "ssh -o ServerAliveInterval=9"}, "GIT_SSH_COMMAND has git run"},
		"core.sshCommand": {map[string]string{"JUMP": "none", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.sshCommand", "GIT_CONFIG_VALUE_0": "ssh -i key"}, "core.sshCommand has git run"},
	} {
		t.Run(name, func(t *testing.T) {
			remotetest.Isolate(t)
			repo := remotetest.NewRepository(t, filepath.Join(t.TempDir(), "app.git"), promisor...)
			tip := repo.Commit("main", "a", "1")
			bin := t.TempDir()
			must(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte(script), 0o700))
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			for name, value := range c.environment {
				t.Setenv(name, value)
			}
			url := "ssh://git@inner.example.test" + repo.Dir
			r := open(t, url, remote.Options{Wait: time.Millisecond})
			must(t, r.Fetch(t.Context(), []git.Hash{id(tip)}, 1))
			wantFile(t, r, tip, "a", "1")
			next, packs := commit(t, r, id(tip), "a", "2")
			must(t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", Old: id(tip), New: next}}, packs, true))
			_, err := remote.Open(t.Context(), url, remote.Options{Backend: remote.Native})
			wantError[*remote.Error](t, err, c.reason)
		})
	}
}

// A commit that a ref named when the repository was opened, and that no ref names any
// more, was lost to somebody else. A commit that no ref ever named does not exist.
func TestFetchMoved(t *testing.T) {
	s := remotetest.Serve(t)
	each(t, func(t *testing.T, o remote.Options) {
		repo := s.Repository(o.Backend)
		repo.Commit("main", "a", "1")
		first := repo.Commit("aside", "a", "2")
		repo.Git("update-ref", "refs/notes/some", first)
		repo.Git("update-ref", "-d", "refs/heads/aside")
		r := open(t, repo.URL, o)
		second := repo.Commit("aside", "a", "3")
		repo.Git("update-ref", "refs/notes/some", second)
		repo.Git("reflog", "expire", "--expire=now", "--all")
		repo.Git("gc", "-q", "--prune=now")
		if err := r.Fetch(t.Context(), []git.Hash{id(first)}, 1); !errors.Is(err, git.ErrLostRace) {
			t.Error(err)
		}
		err := r.Fetch(t.Context(), []git.Hash{id(strings.Repeat("1", 40))}, 1)
		if err == nil || errors.Is(err, git.ErrLostRace) {
			t.Error(err)
		}
		must(t, r.Fetch(t.Context(), []git.Hash{id(second)}, 1))
	})
}

// TestForeign checks the hint for a user who may not read another user's repository. git has a
// variable that makes it take any repository for one.
func TestForeign(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
	config := filepath.Join(t.TempDir(), "gitconfig")
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	for _, backend := range []string{remote.Native, remote.Command} {
		if err := os.RemoveAll(config); err != nil {
			t.Fatal(err)
		}
		read := func() error {
			r, err := remote.Open(t.Context(), dir, remote.Options{Backend: backend})
			if err != nil {
				return err
			}
			_, err = r.Refs(t.Context())
			return errors.Join(err, r.Close())
		}
		err := read()
		wantError[*remote.Error](t, err, dir+": it belongs to another user, and git does not read it then: if you trust that user, `git config --global --add safe.directory '"+dir)
		if err == nil {
			continue
		}
		_, rest, _ := strings.Cut(err.Error(), "`")
		command, _, _ := strings.Cut(rest, "`")
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if err := read(); err != nil {
			t.Errorf("%s: after %s: %v", backend, command, err)
		}
	}
}
