package remote_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/testing/remotetest"
)

// commit makes a commit with one file in Staging.
func commit(t testing.TB, r *remote.Remote, parent git.Hash, name, text string) (git.Hash, []string) {
	t.Helper()
	staging, err := r.Staging()
	must(t, err)
	w := staging.NewPack()
	blob, err := w.Add(git.BlobKind, []byte(text))
	must(t, err)
	tree, err := w.Add(git.TreeKind, git.EncodeTree([]git.Entry{{Name: name, Mode: git.FileMode, ID: blob}}))
	must(t, err)
	by := git.Signature{Name: "someone", Email: "someone@example.com", When: time.Unix(981173106, 0).UTC()}
	c := git.Commit{Tree: tree, Author: by, Committer: by, Message: "a commit with " + text}
	if !parent.IsZero() {
		c.Parents = []git.Hash{parent}
	}
	made, err := w.Add(git.CommitKind, c.Encode())
	must(t, err, w.Finish())
	return made, []string{w.Path()}
}

// target is a repository that is pushed to, with two branches that are fetched.
func target(t testing.TB, s *remotetest.Server, name string, o remote.Options, config ...string) (*remotetest.Repository, *remote.Remote, git.Hash) {
	t.Helper()
	repo := s.Repository(name, append(config, promisor...)...)
	repo.Commit("main", "a", "0")
	tip := id(repo.Commit("main", "a", "1"))
	repo.Git("branch", "other", "main")
	r := open(t, repo.URL, o)
	must(t, r.Fetch(t.Context(), []git.Hash{tip}, 1))
	return repo, r, tip
}

func TestPush(t *testing.T) {
	s := remotetest.Serve(t)
	each(t, func(t *testing.T, o remote.Options) {
		repo, r, tip := target(t, s, "push-"+o.Backend, o)
		next, packs := commit(t, r, tip, "a", "2")
		must(t, r.Push(t.Context(), []remote.Update{
			{Ref: "refs/heads/main", Old: tip, New: next},
			{Ref: "refs/heads/new/one", New: next},
			{Ref: "refs/heads/other", Old: tip},
		}, packs, true))
		refs, err := r.Refs(t.Context())
		must(t, err)
		if fmt.Sprint(refs) != fmt.Sprint(map[string]git.Hash{"refs/heads/main": next, "refs/heads/new/one": next}) {
			t.Error(refs)
		}
		healthy(t, repo.Dir)
		s.Asked()
		must(t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/new/one", Old: next}}, packs, false))
		for _, asked := range s.Asked() {
			if asked.Method == http.MethodPost && strings.Contains(string(asked.Body), "PACK") {
				t.Error("a pack was sent to delete a branch")
			}
		}
		latest, _ := r.Advertised()
		if len(latest) != 1 || latest["refs/heads/main"] != next {
			t.Error(latest)
		}
		// Pushed objects are not fetched.
		s.Asked()
		must(t, r.Fetch(t.Context(), []git.Hash{next}, 1))
		if asked := s.Asked(); len(asked) > 0 || !r.Objects().Has(next) {
			t.Error(asked)
		}
		// Two packs next to each other.
		third, more := commit(t, r, next, "b", "3")
		fourth, most := commit(t, r, third, "c", "4")
		must(t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", Old: next, New: fourth}}, append(more, most...), false))
		healthy(t, repo.Dir)

		// A ref that is already at its new commit is a success, and nothing is sent.
		s.Asked()
		must(t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", Old: next, New: fourth}}, more, true))
		for _, asked := range s.Asked() {
			if asked.Method == http.MethodPost && strings.Contains(asked.Path, "receive-pack") {
				t.Error(asked.Path)
			}
		}
	})
}

func TestLostRace(t *testing.T) {
	s := remotetest.Serve(t)
	each(t, func(t *testing.T, o remote.Options) {
		repo, r, tip := target(t, s, "race-"+o.Backend, o)
		next, packs := commit(t, r, tip, "a", "2")
		for name, u := range map[string]remote.Update{
			"moved":    {Ref: "refs/heads/main", Old: next, New: git.Hash{1}},
			"is there": {Ref: "refs/heads/main", New: next},
			"is gone":  {Ref: "refs/heads/gone", Old: tip, New: next},
		} {
			t.Run(name, func(t *testing.T) {
				err := r.Push(t.Context(), []remote.Update{u, {Ref: "refs/heads/also", New: next}}, packs, true)
				wantError[error](t, err, u.Ref)
				if !errors.Is(err, git.ErrLostRace) {
					t.Error(err)
				}
			})
		}
		// Somebody is faster once the refs have been seen.
		moved := false
		other := id(repo.Commit("other", "b", "faster"))
		s.Before(func(w http.ResponseWriter, req *http.Request) bool {
			if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/git-receive-pack") && !moved {
				moved = true
				repo.Git("update-ref", "refs/heads/main", other.String())
			}
			return false
		})
		err := r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/also", New: next}, {Ref: "refs/heads/main", Old: tip, New: next}}, packs, true)
		s.Before(nil)
		if !errors.Is(err, git.ErrLostRace) || !moved {
			t.Errorf("%v; moved: %v", err, moved)
		}
		if got := repo.Git("for-each-ref", "refs/heads/also"); got != "" {
			t.Errorf("half of the push was done: %s", got)
		}
	})
}

// If many processes push to one branch, each commit follows the one before, and no commit is
// lost.
func TestManyPush(t *testing.T) {
	s := remotetest.Serve(t)
	repo := s.Repository("app.git", promisor...)
	first := repo.Commit("main", "a", "1")
	store := t.TempDir()
	var work sync.WaitGroup
	const pushers, each = 4, 2
	for n := range pushers {
		work.Go(func() {
			r, err := remote.Open(t.Context(), repo.URL, remote.Options{Backend: backends[n%2], Store: store, Wait: time.Millisecond})
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			for i := range each {
				if err := pushOnce(t, r, fmt.Sprintf("%d-%d", n, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if got := repo.Git("rev-list", "--count", first+"..main"); got != fmt.Sprint(pushers*each) {
		t.Errorf("%s commits", got)
	}
	healthy(t, repo.Dir)
}

// pushOnce adds a commit to main, however often somebody is faster.
func pushOnce(t *testing.T, r *remote.Remote, text string) error {
	var lost error
	for range 40 {
		refs, err := r.Refs(t.Context())
		if err != nil {
			return err
		}
		main := refs["refs/heads/main"]
		if err := r.Fetch(t.Context(), []git.Hash{main}, 1); err != nil {
			return err
		}
		next, packs := commit(t, r, main, "a", text)
		err = r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", Old: main, New: next}}, packs, true)
		if !errors.Is(err, git.ErrLostRace) {
			return err
		}
		lost = err
	}
	return lost
}

func TestRejected(t *testing.T) {
	s := remotetest.Serve(t)
	each(t, func(t *testing.T, o remote.Options) {
		repo, r, tip := target(t, s, "rejected-"+o.Backend, o)
		next, packs := commit(t, r, tip, "a", "2")
		updates := []remote.Update{{Ref: "refs/heads/main", Old: tip, New: next}, {Ref: "refs/heads/other", Old: tip, New: next}}
		repo.Hook("update", `[ "$1" = refs/heads/main ] || { printf '\033[31mchange %s by a review' "$1" >&2; exit 1; }`)
		err := r.Push(t.Context(), updates, packs, true)
		wantError[*remote.RejectedError](t, err, "change refs/heads/other by a review")
		var rejected *remote.RejectedError
		if errors.As(err, &rejected) && rejected.Ref != "refs/heads/other" {
			t.Error(rejected.Ref)
		}
		if got := repo.Git("rev-parse", "main"); got != tip.String() {
			t.Error("one of two refs changed")
		}
		err = r.Push(t.Context(), updates, packs, false)
		wantError[*remote.RejectedError](t, err, "by a review")
		if got := repo.Git("rev-parse", "main"); got != next.String() {
			t.Error("without atomic, the other ref did not change")
		}
		err = r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main/x", New: next}}, packs, false)
		wantError[*remote.RejectedError](t, err, "refs/heads/main is there")
	})
}

func TestNoAtomic(t *testing.T) {
	s := remotetest.Serve(t)
	each(t, func(t *testing.T, o remote.Options) {
		repo, r, tip := target(t, s, "noatomic-"+o.Backend, o, "receive.advertiseAtomic", "false")
		next, packs := commit(t, r, tip, "a", "2")
		s.Asked()
		err := r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", Old: tip, New: next}}, packs, true)
		if !errors.Is(err, remote.ErrNoAtomic) || posts(s.Asked()) > 0 && o.Backend == remote.Native {
			t.Error(err)
		}
		if got := repo.Git("rev-parse", "main"); got != tip.String() {
			t.Error(got)
		}
	})
}

// An answer that is lost is looked for in the refs.
func TestLostAnswer(t *testing.T) {
	s := remotetest.Serve(t)
	each(t, func(t *testing.T, o remote.Options) {
		repo, r, tip := target(t, s, "lost-"+o.Backend, o)
		push := func(from git.Hash, text string) (git.Hash, error) {
			next, packs := commit(t, r, from, "a", text)
			return next, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/main", Old: from, New: next}}, packs, true)
		}
		s.Lose(1, nil)
		second, err := push(tip, "2")
		must(t, err)

		// It was not done: once more.
		s.Lose(1, func() { repo.Git("update-ref", "refs/heads/main", second.String()) })
		third, err := push(second, "3")
		must(t, err)
		if got := repo.Git("rev-parse", "main"); got != third.String() {
			t.Error(got)
		}
		s.Lose(1<<20, func() { repo.Git("update-ref", "refs/heads/main", third.String()) })
		if _, err = push(third, "4"); !errors.Is(err, git.ErrLostRace) {
			t.Error(err)
		}
		// Somebody else was there in between.
		s.Lose(1, func() { repo.Git("update-ref", "refs/heads/main", tip.String()) })
		if _, err = push(third, "5"); !errors.Is(err, git.ErrLostRace) {
			t.Error(err)
		}
		s.Lose(0, nil)
	})
}

func TestNonsense(t *testing.T) {
	s := remotetest.Serve(t)
	each(t, func(t *testing.T, o remote.Options) {
		_, r, tip := target(t, s, "nonsense-"+o.Backend, o)
		for _, ref := range []string{"main", "HEAD", "refs/heads/", "refs/heads/a..b", "refs/heads/-x", "refs/heads/a b", "refs/heads/a\nb", "refs/heads/a\x00b", "refs/heads/a:b", "--force", "refs/heads/x.lock"} {
			err := r.Push(t.Context(), []remote.Update{{Ref: ref, New: tip}}, nil, false)
			wantError[*remote.Error](t, err, "is not a name that git allows")
		}
		main := remote.Update{Ref: "refs/heads/main", Old: tip}
		wantError[*remote.Error](t, r.Push(t.Context(), []remote.Update{main, main}, nil, false), "twice")
		wantError[*remote.Error](t, r.Push(t.Context(), []remote.Update{{Ref: "refs/heads/x"}}, nil, false), "stay where it is")
	})
}
