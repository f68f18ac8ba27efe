package dependency_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/address"
)

// places is a Fetcher. The content of each source is a number that increases, by URL.
type places struct {
	mu       sync.Mutex
	now      map[string]int
	resolved []string
	fetched  []string
	reaches  []address.Reach
}

func contentOf(url string, n int) []byte { return fmt.Appendf(nil, "%s %d", url, n) }

func entryOf(s dependency.Source, n int) dependency.Entry {
	content := contentOf(s.URL, n)
	return dependency.Entry{Source: s, Revision: fmt.Sprintf("%040x", n), Content: dependency.DigestOf(content), Size: int64(len(content))}
}

func (p *places) Within(reach address.Reach) dependency.Fetcher {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaches = append(p.reaches, reach)
	return p
}

func (p *places) Resolve(_ context.Context, s dependency.Source) (dependency.Entry, []byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resolved = append(p.resolved, s.URL)
	n, ok := p.now[s.URL]
	if !ok {
		return dependency.Entry{}, nil, errors.New("nothing is there")
	}
	return entryOf(s, n), contentOf(s.URL, n), nil
}

func (p *places) Fetch(_ context.Context, e dependency.Entry) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetched = append(p.fetched, e.URL)
	var n int
	fmt.Sscanf(e.Revision, "%x", &n)
	return contentOf(e.URL, n), nil
}

// TestUpdate follows a lock through several updates.
func TestUpdate(t *testing.T) {
	root, machine := t.TempDir(), t.TempDir()
	p := &places{now: map[string]int{git("a").URL: 1, git("b").URL: 2}}
	update := func(prune bool, renew string, uses ...dependency.Use) []string {
		t.Helper()
		p.resolved, p.fetched = nil, nil
		locked, ds, err := dependency.ReadLock(root)
		if err != nil || len(ds) > 0 {
			t.Fatal(err, ds)
		}
		_, sources, err := dependency.Update(t.Context(), dependency.UpdateRequest{
			Root: root, Lock: locked, Store: dependency.OpenStore("", machine), Uses: uses, Fetcher: p, Prune: prune,
			Renew: func(u dependency.Use) bool { return renew != "" && slices.Contains(u.By, renew) },
		})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range sources {
			line := fmt.Sprintf("%s %s %s", strings.TrimPrefix(s.URL, "https://git.example.test/"), s.Status, strings.Join(s.By, "+"))
			if s.Err != nil {
				line += ": " + s.Err.Error()
			}
			out = append(out, line)
		}
		return out
	}
	a := dependency.Use{Source: git("a"), By: []string{"shop-live"}}
	again := dependency.Use{Source: git("a"), By: []string{"shop-dev"}}
	b := dependency.Use{Source: git("b"), By: []string{"registration team"}}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}

	expect("the first time", update(true, "", a, again, b), "a added shop-dev+shop-live", "b added registration team")
	text, err := os.ReadFile(filepath.Join(root, dependency.FileName))
	if err != nil {
		t.Fatal(err)
	}
	expect("again", update(true, "", a, b), "a unchanged shop-live", "b unchanged registration team")
	if len(p.resolved)+len(p.fetched) > 0 {
		t.Errorf("nothing is new, and %v were resolved, %v fetched", p.resolved, p.fetched)
	}
	p.now[git("a").URL], p.now[git("b").URL] = 11, 12
	expect("what moves stays pinned", update(true, "", a, b), "a unchanged shop-live", "b unchanged registration team")
	if now, _ := os.ReadFile(filepath.Join(root, dependency.FileName)); string(now) != string(text) {
		t.Error("the lock changed")
	}
	expect("one is renewed", update(true, "shop-live", a, b), "a updated shop-live", "b unchanged registration team")

	if err := os.RemoveAll(machine); err != nil {
		t.Fatal(err)
	}
	expect("the store is gone", update(true, "", a, b), "a fetched shop-live", "b fetched registration team")
	if len(p.resolved) > 0 {
		t.Errorf("%v were resolved", p.resolved)
	}
	delete(p.now, git("b").URL)
	expect("a failure keeps the pin", update(true, "registration team", a, b), "a unchanged shop-live", "b failed registration team: nothing is there")
	c := dependency.Use{Source: git("c"), By: []string{"x"}}
	expect("a new one fails", update(true, "", a, c), "a unchanged shop-live", "b removed ", "c failed x: nothing is there")
	expect("errors hide who uses what", update(false, ""))
	if locked, _, _ := dependency.ReadLock(root); len(locked.Sources) != 1 || locked.Sources[0].Revision != fmt.Sprintf("%040x", 11) {
		t.Errorf("got %+v", locked)
	}
}

// A fetcher that returns content other than its entry names is detected.
func TestLyingFetcher(t *testing.T) {
	root := t.TempDir()
	_, sources, err := dependency.Update(t.Context(), dependency.UpdateRequest{
		Root: root, Lock: dependency.NewLock(nil), Store: dependency.OpenStore("", t.TempDir()),
		Uses: []dependency.Use{{Source: git("a"), By: []string{"x"}}}, Fetcher: &liar{},
	})
	if err != nil || len(sources) != 1 || sources[0].Status != dependency.Failed {
		t.Errorf("got %+v, %v", sources, err)
	}
	if locked, _, _ := dependency.ReadLock(root); len(locked.Sources) > 0 {
		t.Errorf("locked %+v", locked.Sources)
	}
}

type liar struct{ places }

func (l *liar) Within(address.Reach) dependency.Fetcher { return l }

func (*liar) Resolve(_ context.Context, s dependency.Source) (dependency.Entry, []byte, error) {
	return entryOf(s, 1), []byte("something else"), nil
}

// A source of several users may be at any place that one of them may have it at.
func TestReaches(t *testing.T) {
	remote, but := address.Reach{Remote: true}, address.Reach{Remote: true, But: "a.example:443"}
	for _, test := range []struct {
		uses []address.Reach
		want address.Reach
	}{
		{[]address.Reach{remote, remote}, remote},
		{[]address.Reach{remote, but, remote}, but},
		{[]address.Reach{but, {}, remote}, address.Reach{}},
		{[]address.Reach{{}, but}, address.Reach{}},
	} {
		p := &places{now: map[string]int{git("a").URL: 1}}
		var uses []dependency.Use
		for i, reach := range test.uses {
			uses = append(uses, dependency.Use{Source: git("a"), By: []string{fmt.Sprint(i)}, Reach: reach})
		}
		root := t.TempDir()
		if _, _, err := dependency.Update(t.Context(), dependency.UpdateRequest{
			Root: root, Lock: dependency.NewLock(nil), Store: dependency.OpenStore("", t.TempDir()), Uses: uses, Fetcher: p,
		}); err != nil || !slices.Equal(p.reaches, []address.Reach{test.want}) {
			t.Errorf("%+v: %+v, %v", test.uses, p.reaches, err)
		}
	}
}
