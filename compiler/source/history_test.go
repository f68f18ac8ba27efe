package source

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/git"
)

// historyOf makes a history with a commit for each step, and returns the ids.
func historyOf(t *testing.T, steps ...map[string]string) (*git.Repository, string, []string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, "init", "-q")
	var ids []string
	for _, step := range steps {
		for name, text := range step {
			if text == "" {
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
				delete(step, name)
			}
		}
		commit(t, dir, step)
		ids = append(ids, run(t, dir, "rev-parse", "HEAD"))
	}
	repo, err := git.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	return repo, dir, ids
}

// Base commits change something outside of environments/. An environment's own commits
// change its folder, wherever that is in the repository.
func TestHistory(t *testing.T) {
	repo, _, ids := historyOf(t,
		map[string]string{"README": "no platform yet"},
		map[string]string{"p/cue.mod/module.cue": moduleText, "p/a.cue": "1", "p/environments/dev/a.cue": "1"},
		map[string]string{"p/environments/dev/a.cue": "2"},
		map[string]string{"p/a.cue": "2", "p/environments/dev/a.cue": "3"},
		map[string]string{"README": "beside the platform"},
		map[string]string{"p/environments/prod/a.cue": "1"},
		map[string]string{"p/environments/dev": ""},
	)
	h := History{Repository: repo, Head: hashFrom(t, repo, "HEAD"), Path: "p"}
	var got []string
	for b, err := range h.Bases() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b.Commit.String())
	}
	if want := []string{ids[3], ids[1]}; !slices.Equal(got, want) {
		t.Errorf("bases are %v, want %v", got, want)
	}
	for of, want := range map[string]string{"dev": ids[6], "prod": ids[5], "never": strings.Repeat("0", 40)} {
		if is, err := h.Newest(h.OwnPath(of)); err != nil || is.String() != want {
			t.Errorf("%s has %v, %v; want %s", of, is, err, want)
		}
	}
	for at, want := range map[int]string{2: ids[1], 6: ids[3]} {
		h.Head = hashFrom(t, repo, ids[at])
		if b, err := h.Base(); err != nil || b.Commit.String() != want {
			t.Errorf("the base of %s is %v, %v; want %s", ids[at], b.Commit, err, want)
		}
	}
	h.Head = hashFrom(t, repo, ids[0])
	if b, err := h.Base(); err != nil || !b.Commit.IsZero() {
		t.Errorf("where there is no platform, the base is %v, %v", b.Commit, err)
	}
}

func hashFrom(t *testing.T, repo *git.Repository, rev string) git.Hash {
	t.Helper()
	id, err := repo.Resolve(rev)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The assembled platform is the base of one commit with the environments of others.
func TestAssemble(t *testing.T) {
	repo, dir, ids := historyOf(t,
		map[string]string{"cue.mod/module.cue": moduleText, "a.cue": "1", "environments/dev/a.cue": "1", "environments/prod/a.cue": "1"},
		map[string]string{"a.cue": "2", "environments/dev/a.cue": "2", "environments/dev/b.cue": "2", "environments/prod/a.cue": "2"},
	)
	run(t, dir, "checkout", "-q", "--orphan", "dev")
	run(t, dir, "rm", "-rfq", ".")
	commit(t, dir, map[string]string{"c.cue": "3", "deep/d.cue": "4", "cue.mod/module.cue": moduleText})
	branch := run(t, dir, "rev-parse", "HEAD")
	id := func(text string) git.Hash { return hashFrom(t, repo, text) }
	prefetched := 0
	for name, of := range map[string]struct {
		own  map[string]Own
		want map[string]string
	}{
		"the base alone":             {nil, map[string]string{"a.cue": "1", "environments/dev/a.cue": "1", "environments/prod/a.cue": "1"}},
		"an environment of another":  {map[string]Own{"dev": {id(ids[1]), "environments/dev"}}, map[string]string{"a.cue": "1", "environments/dev/a.cue": "2", "environments/dev/b.cue": "2", "environments/prod/a.cue": "1"}},
		"one that is not there":      {map[string]Own{"dev": {id(ids[1]), "environments/none"}}, map[string]string{"a.cue": "1", "environments/prod/a.cue": "1"}},
		"one in a branch of its own": {map[string]Own{"dev": {id(branch), "."}}, map[string]string{"a.cue": "1", "environments/dev/c.cue": "3", "environments/dev/deep/d.cue": "4", "environments/prod/a.cue": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			at, remove, err := Assemble(context.Background(), Assembly{Repository: repo, Base: id(ids[0]), Path: ".", Own: of.own,
				Prefetch: func(_ context.Context, ids []git.Hash) error { prefetched += len(ids); return nil }})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for name, text := range written(t, at) {
				if name != "cue.mod/module.cue" {
					got[name] = text
				}
			}
			if len(got) != len(of.want) {
				t.Errorf("got %v", got)
			}
			for name, text := range of.want {
				if !strings.HasSuffix(got[name], text) {
					t.Errorf("%s is %q, want %q", name, got[name], text)
				}
			}
			if err := remove(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(at); !os.IsNotExist(err) {
				t.Errorf("%s is still there", at)
			}
		})
	}
	if prefetched != 4+5+3+5 {
		t.Errorf("%d files were announced", prefetched)
	}
	if _, _, err := Assemble(context.Background(), Assembly{Repository: repo, Base: id(branch), Path: "nowhere"}); err == nil || !strings.Contains(err.Error(), "no platform in nowhere") {
		t.Errorf("got %v", err)
	}
}

// A folder that people work in gets the environments that are in branches, and keeps
// uncommitted files.
func TestAssembleFolder(t *testing.T) {
	repo, dir, _ := historyOf(t, map[string]string{"cue.mod/module.cue": moduleText, "a.cue": "1", "environments/dev/a.cue": "1"})
	run(t, dir, "checkout", "-q", "--orphan", "dev")
	run(t, dir, "rm", "-rfq", ".")
	commit(t, dir, map[string]string{"b.cue": "2"})
	branch := hashFrom(t, repo, "HEAD")
	run(t, dir, "checkout", "-q", "main")
	if err := os.WriteFile(filepath.Join(dir, "new.cue"), []byte("not committed"), 0o666); err != nil {
		t.Fatal(err)
	}
	at, remove, err := Assemble(context.Background(), Assembly{Repository: repo, Folder: dir, Own: map[string]Own{"dev": {branch, "."}}})
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	got := written(t, at)
	for _, name := range []string{"a.cue", "new.cue", "environments/dev/b.cue", "cue.mod/module.cue"} {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if len(got) != 4 {
		t.Errorf("got %v", got)
	}
}
