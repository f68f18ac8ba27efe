package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestBranchNames(t *testing.T) {
	for _, name := range []string{
		"main", "a/b", "a.b", "kalypso/dev", "é", "a@b", "0", "a-", "refs/heads/x", "HEAD/x",
		"", ".", "..", ".a", "a/.b", "a..b", "a.lock", "a.lock/b", "a b", "a~", "a^", "a:", "a?", "a*", "a[", "a\\b",
		"/a", "a/", "a//b", "a.", "@{", "a@{b", "-a", "HEAD", "a\tb", "a\x7f", "a\nb", "a/-b", "x/@", "\x01",
	} {
		_, err := try("", "git", "check-ref-format", "--branch", name)
		ref, got := BranchRef(name)
		// go-git is stricter: no element is only "@", which git has as another name for HEAD.
		if (got == nil) != (err == nil) && name != "x/@" {
			t.Errorf("%q: %v, git says %v", name, got, err)
		}
		if got == nil && ref != "refs/heads/"+name {
			t.Errorf("%q is %s", name, ref)
		}
	}
}

func TestUpdate(t *testing.T) {
	r, dir := repository(t)
	const ref = "refs/heads/a/b"
	first := commit(t, r, "1")
	second := commit(t, r, "2", first)
	is := func(want Hash) {
		t.Helper()
		got, err := r.Ref(ref)
		must(t, err)
		if out, _ := try("", "git", "-C", dir, "rev-parse", "-q", "--verify", ref); got != want || !want.IsZero() && out != want.String() {
			t.Errorf("the ref is %s, to git %s, want %s", got, out, want)
		}
		healthy(t, dir)
	}
	is(Hash{})
	must(t, r.Update(ref, Hash{}, first, somebody, "m"))
	is(first)
	if err := r.Update(ref, Hash{}, second, somebody, "m"); !errors.Is(err, ErrLostRace) {
		t.Errorf("made again: %v", err)
	}
	if err := r.Update(ref, second, second, somebody, "m"); !errors.Is(err, ErrLostRace) {
		t.Errorf("from another: %v", err)
	}
	is(first)
	run(t, "", "git", "-C", dir, "pack-refs", "--all", "--prune")
	is(first)
	if err := r.Update(ref, Hash{}, second, somebody, "m"); !errors.Is(err, ErrLostRace) {
		t.Errorf("made although packed: %v", err)
	}
	must(t, r.Update(ref, first, second, somebody, "m"))
	is(second)
	run(t, "", "git", "-C", dir, "update-ref", "-d", ref)
	if err := r.Update(ref, second, first, somebody, "m"); !errors.Is(err, ErrLostRace) {
		t.Errorf("removed: %v", err)
	}
	is(Hash{})
	if left, _ := filepath.Glob(filepath.Join(dir, "refs/heads/*/*.lock")); len(left) > 0 {
		t.Errorf("locks are left: %v", left)
	}
}

func TestRefsThatAreFolders(t *testing.T) {
	for _, packed := range []bool{false, true} {
		r, dir := repository(t)
		id := commit(t, r, "1")
		must(t, r.Update("refs/heads/a/b", Hash{}, id, somebody, "m"))
		if packed {
			run(t, "", "git", "-C", dir, "pack-refs", "--all", "--prune")
		}
		for _, ref := range []string{"refs/heads/a", "refs/heads/a/b/c"} {
			if got, err := r.Ref(ref); !got.IsZero() || err != nil {
				t.Errorf("packed %v: %s is %s: %v", packed, ref, got, err)
			}
			if err := r.Update(ref, Hash{}, id, somebody, "m"); err == nil || errors.Is(err, ErrLostRace) {
				t.Errorf("packed %v: %s: %v", packed, ref, err)
			}
		}
		run(t, "", "git", "-C", dir, "update-ref", "-d", "refs/heads/a/b")
		must(t, os.MkdirAll(filepath.Join(dir, "refs/heads/a/b/c"), 0o755))
		must(t, r.Update("refs/heads/a", Hash{}, id, somebody, "m"))
		run(t, "", "git", "-C", dir, "rev-parse", "--verify", "a")
	}
}

func TestRefsThatAreNoIDs(t *testing.T) {
	r, dir := repository(t)
	for _, value := range []string{"ref: refs/heads/other", "0123"} {
		must(t, os.WriteFile(filepath.Join(dir, "refs/heads/x"), []byte(value+"\n"), 0o644))
		if _, err := r.Ref("refs/heads/x"); err == nil || !strings.Contains(err.Error(), value) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestStaleLock(t *testing.T) {
	r, dir := repository(t)
	id := commit(t, r, "1")
	lock := filepath.Join(dir, "refs/heads/main.lock")
	must(t, os.WriteFile(lock, nil, 0o644))
	err := r.Update("refs/heads/main", Hash{}, id, somebody, "m")
	if err == nil || !strings.Contains(err.Error(), lock) || !strings.Contains(err.Error(), "remove the file") || errors.Is(err, ErrLostRace) {
		t.Errorf("the error is %v", err)
	}
	must(t, os.Remove(lock))
	must(t, r.Update("refs/heads/main", Hash{}, id, somebody, "m"))
}

func TestReflogs(t *testing.T) {
	for _, c := range []struct {
		name, config string
		exists       bool // the log, before
		bare         bool
		want, head   int // entries
	}{
		{name: "bare", bare: true},
		{name: "bare with a log", bare: true, exists: true, want: 2},
		{name: "bare, true", bare: true, config: "true", want: 2, head: 2},
		{name: "bare, always", bare: true, config: "always", want: 2, head: 2},
		{name: "work tree", want: 2},
		{name: "work tree, false", config: "false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			isolate(t)
			dir := filepath.Join(t.TempDir(), "r")
			args := []string{"init", "-q", "-b", "main", dir}
			if c.bare {
				args = append(args, "--bare")
			}
			run(t, "", "git", args...)
			if c.config != "" {
				run(t, "", "git", "-C", dir, "config", "core.logAllRefUpdates", c.config)
			}
			r := opened(t, dir)
			ref := "refs/heads/main"
			if !c.bare {
				ref = "refs/heads/out"
			}
			log := filepath.Join(r.Dir(), "logs", ref)
			if c.exists {
				must(t, os.MkdirAll(filepath.Dir(log), 0o755))
				must(t, os.WriteFile(log, nil, 0o644))
			}
			first := commit(t, r, "1")
			second := commit(t, r, "2", first)
			must(t, r.Update(ref, Hash{}, first, somebody, "one\n\nbody"))
			must(t, r.Update(ref, first, second, somebody, "two"))
			for file, want := range map[string]int{ref: c.want, "HEAD": c.head} {
				data, _ := os.ReadFile(filepath.Join(r.Dir(), "logs", file))
				if got := strings.Count(string(data), "\n"); got != want {
					t.Errorf("%s has %d entries, want %d", file, got, want)
				}
			}
			if c.want == 2 {
				got := run(t, "", "git", "-C", dir, "reflog", "show", "--date=raw", "--format=%H %gn <%ge> %gd %gs", ref)
				want := second.String() + " A <a@example.com> " + strings.TrimPrefix(ref, "refs/heads/") + "@{1000000000 +0000} commit: two\n" +
					first.String() + " A <a@example.com> " + strings.TrimPrefix(ref, "refs/heads/") + "@{1000000000 +0000} commit (initial): one"
				if strings.ReplaceAll(got, "refs/heads/", "") != want {
					t.Errorf("git reads\n%s\nwant\n%s", got, want)
				}
			}
			healthy(t, dir)
		})
	}
}

// If many processes move a ref from one commit at once, one succeeds. The file system
// has only its result.
func TestOneWins(t *testing.T) {
	r, dir := repository(t)
	first := commit(t, r, "1")
	must(t, r.Update("refs/heads/main", Hash{}, first, somebody, "m"))
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		next := commit(t, r, string(rune('a'+i)), first)
		wg.Go(func() { results[i] = r.Update("refs/heads/main", first, next, somebody, "m") })
	}
	wg.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, ErrLostRace) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d won", won)
	}
	healthy(t, dir)
}

// A change that fails leaves the ref as it was and no lock.
func TestUpdateThatFails(t *testing.T) {
	r, dir := repository(t)
	id := commit(t, r, "1")
	run(t, "", "git", "-C", dir, "config", "core.logAllRefUpdates", "true")
	r = opened(t, dir)
	full := errors.New("no space")
	for n := 0; ; n++ {
		left := n
		r.Step = func(string, string) error {
			if left--; left < 0 {
				return full
			}
			return nil
		}
		err := r.Update("refs/heads/main", Hash{}, id, somebody, "m")
		if err == nil {
			if n < 4 {
				t.Errorf("only %d steps", n)
			}
			return
		}
		if !errors.Is(err, full) {
			t.Fatal(err)
		}
		if got, err := r.Ref("refs/heads/main"); err != nil || !got.IsZero() {
			t.Errorf("step %d: the ref is %s: %v", n, got, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "refs/heads/main.lock")); err == nil {
			t.Errorf("step %d: the lock is left", n)
		}
	}
}
