package dependency_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/testing/unprivileged"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// git is a source, and entry is its pin to this text.
func git(name string) dependency.Source {
	return dependency.Source{Kind: dependency.Git, URL: "https://git.example.test/" + name, Branch: "main"}
}

func entry(name, text string) dependency.Entry {
	return dependency.Entry{Source: git(name), Revision: strings.Repeat("0123456789", 4), Content: dependency.DigestOf([]byte(text)), Size: int64(len(text))}
}

// place is a platform's folder and a machine's.
type place struct{ root, machine string }

// placeWith returns a place whose lock has these entries, and no content.
func placeWith(t testing.TB, entries ...dependency.Entry) place {
	t.Helper()
	p := place{t.TempDir(), t.TempDir()}
	must(t, dependency.NewLock(entries).Write(p.root))
	return p
}

// put puts a text into a folder of content, and returns the file.
func put(t testing.TB, dir, text string) string {
	t.Helper()
	d, err := dependency.OpenStore("", dir).Put([]byte(text))
	must(t, err)
	digits := strings.TrimPrefix(string(d), "sha256:")
	return filepath.Join(dir, "sha256", digits[:2], digits)
}

func (p place) vendor() string { return filepath.Join(p.root, dependency.VendorDir) }

func (p place) open(t testing.TB) *dependency.Library {
	t.Helper()
	l, ds, err := dependency.Open(p.root, p.machine)
	must(t, err)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	return l
}

// code returns the only code of diagnostics, or "". Each diagnostic has a hint. It has no
// site, because callers add it.
func code(t testing.TB, ds []diag.Diagnostic) diag.Code {
	t.Helper()
	if len(ds) == 0 {
		return ""
	}
	if len(ds) > 1 || ds[0].Hint == "" || len(ds[0].Sites) > 0 || ds[0].Severity != diag.Error || strings.Contains(ds[0].Message, "\n") {
		t.Errorf("said %+v", ds)
	}
	return ds[0].Code
}

// An entry is fine, or its error has a reason and a remedy.
func TestContent(t *testing.T) {
	if !unprivileged.Test(t) {
		return
	}
	const text = "the content"
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, file string)
		want   diag.Code
		says   string
	}{
		{"fine", func(*testing.T, string) {}, "", ""},
		{"missing", func(t *testing.T, file string) { must(t, os.Remove(file)) }, diag.MissingContent, "is not in the store"},
		{"tampered", func(t *testing.T, file string) { must(t, os.WriteFile(file, []byte("the c0ntent"), 0o666)) }, diag.DamagedContent, "is not what kalypso.lock pins"},
		{"cut", func(t *testing.T, file string) { must(t, os.Truncate(file, 3)) }, diag.DamagedContent, "is not what kalypso.lock pins"},
		{"empty", func(t *testing.T, file string) { must(t, os.Truncate(file, 0)) }, diag.DamagedContent, "is not what kalypso.lock pins"},
		{"a folder", func(t *testing.T, file string) { must(t, os.Remove(file), os.Mkdir(file, 0o777)) }, diag.DamagedContent, "is not what kalypso.lock pins"},
		{"a link in a circle", func(t *testing.T, file string) { must(t, os.Remove(file), os.Symlink(file, file)) }, diag.MissingContent, "cannot be read"},
		{"unreadable", unreadable, diag.MissingContent, "cannot be read"},
	} {
		for _, vendored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s vendored=%t", c.name, vendored), func(t *testing.T) {
				t.Parallel()
				e := entry("app", text)
				p := placeWith(t, e)
				dir := p.machine
				if vendored {
					dir = p.vendor()
				}
				file := put(t, dir, text)
				c.damage(t, file)
				l := p.open(t)
				if got, ds := l.Entry(e.Source); got != e || len(ds) > 0 {
					t.Errorf("it is locked as %+v, %v", got, ds)
				}
				data, ds := l.Content(e)
				if got := code(t, ds); got != c.want || (string(data) == text) != (got == "") {
					t.Fatalf("got %q, %s", data, got)
				}
				if c.want == "" {
					return
				}
				if !strings.Contains(ds[0].Message, c.says) || !strings.Contains(ds[0].Message, e.URL) {
					t.Errorf("said %q", ds[0].Message)
				}
				if c.want == diag.DamagedContent && !strings.Contains(ds[0].Hint, file) {
					t.Errorf("the way out is %q, without %s", ds[0].Hint, file)
				}
				if tree, ds := l.Tree(e); tree != nil || code(t, ds) != c.want {
					t.Errorf("its tree is %v, %v", tree, ds)
				}
			})
		}
	}
}

func unreadable(t *testing.T, file string) { must(t, os.Chmod(file, 0)) }

// Sources that are not locked are not looked for, whatever the store has.
func TestNotLocked(t *testing.T) {
	t.Parallel()
	p := placeWith(t, entry("app", "text"))
	put(t, p.machine, "text")
	l := p.open(t)
	for _, ask := range []func(dependency.Source) (dependency.Entry, []diag.Diagnostic){l.Entry, l.Pinned} {
		for _, s := range []dependency.Source{git("other"), {Kind: dependency.Git, URL: git("app").URL, Branch: "dev"}, {Kind: dependency.Git, URL: git("app").URL, Tag: "main"}} {
			e, ds := ask(s)
			if code(t, ds) != diag.NotLocked || e != (dependency.Entry{}) || !strings.Contains(ds[0].Hint, "kalypso lock") {
				t.Errorf("%s is locked as %+v, %v", s, e, ds)
			}
		}
		if e, ds := ask(git("app")); e != entry("app", "text") || len(ds) > 0 {
			t.Errorf("got %+v, %v", e, ds)
		}
	}
	if l := placeWith(t).open(t); len(l.Lock.Sources) > 0 {
		t.Errorf("locked %v", l.Lock.Sources)
	}
}

// A folder without a lock has nothing locked. The error about an unusable lock names the
// wrong line.
func TestOpen(t *testing.T) {
	t.Parallel()
	l := place{t.TempDir(), t.TempDir()}.open(t)
	if _, ds := l.Pinned(git("app")); code(t, ds) != diag.NotLocked {
		t.Errorf("said %v", ds)
	}
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, dependency.FileName), []byte("{\n  ]\n"), 0o666))
	_, ds, err := dependency.Open(root, t.TempDir())
	if err != nil || len(ds) == 0 || len(ds[0].Sites) != 1 || ds[0].Sites[0].Position.File != dependency.FileName || ds[0].Sites[0].Position.Line != 2 {
		t.Errorf("said %+v, %v", ds, err)
	}
}

// Without a folder of its own a machine's store is the user's.
func TestMachine(t *testing.T) {
	e := entry("app", "text")
	p := placeWith(t, e)
	t.Setenv(dependency.EnvDir, p.machine)
	put(t, p.machine, "text")
	l := place{p.root, ""}.open(t)
	if data, ds := l.Content(e); string(data) != "text" || len(ds) > 0 {
		t.Errorf("got %q, %v", data, ds)
	}
}

// The vendor folder comes before the machine's store. If its content is damaged, the
// machine's content does not replace it.
func TestVendorComesFirst(t *testing.T) {
	t.Parallel()
	e := entry("app", "text")
	p := placeWith(t, e)
	vendored, machine := put(t, p.vendor(), "text"), put(t, p.machine, "text")

	must(t, os.WriteFile(machine, []byte("tampered"), 0o666))
	if data, ds := p.open(t).Content(e); string(data) != "text" || len(ds) > 0 {
		t.Errorf("with the machine's tampered, got %q, %v", data, ds)
	}
	put(t, p.machine, "text")
	must(t, os.WriteFile(vendored, []byte("tampered"), 0o666))
	if data, ds := p.open(t).Content(e); data != nil || code(t, ds) != diag.DamagedContent || !strings.Contains(ds[0].Hint, vendored) {
		t.Errorf("with the vendored one tampered, got %q, %v", data, ds)
	}
	must(t, os.Remove(vendored))
	if data, ds := p.open(t).Content(e); string(data) != "text" || len(ds) > 0 {
		t.Errorf("without a vendored one, got %q, %v", data, ds)
	}
	must(t, os.Remove(machine))
	if _, ds := p.open(t).Content(e); code(t, ds) != diag.MissingContent {
		t.Errorf("with neither, said %v", ds)
	}
}

// If a build has found content, or a lack of it, it keeps that result. Later changes affect
// the next build.
func TestPinnedOnce(t *testing.T) {
	t.Parallel()
	there, gone := entry("there", "a"), entry("gone", "b")
	p := placeWith(t, there, gone)
	file := put(t, p.machine, "a")
	expect := func(l *dependency.Library, e dependency.Entry, want diag.Code) {
		t.Helper()
		if got, ds := l.Pinned(e.Source); got != e || code(t, ds) != want {
			t.Errorf("%s: %+v, %v", e.URL, got, ds)
		}
	}
	first := p.open(t)
	for range 2 {
		expect(first, there, "")
		expect(first, gone, diag.MissingContent)
		_ = os.Remove(file) // the second time it is gone
		put(t, p.machine, "b")
	}
	next := p.open(t)
	expect(next, there, diag.MissingContent)
	expect(next, gone, "")
}

// Several goroutines that read at once get the same result as a single one.
func TestManyAsk(t *testing.T) {
	t.Parallel()
	var entries []dependency.Entry
	for i := range 8 {
		entries = append(entries, entry(fmt.Sprint("app", i), strings.Repeat("x", 1+i)))
	}
	p := placeWith(t, entries...)
	for i := range entries[:4] { // the others are missing
		put(t, p.machine, strings.Repeat("x", 1+i))
	}
	l := p.open(t)
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			for i := range entries {
				e := entries[(i+n)%len(entries)]
				var want diag.Code
				if e.Size > 4 {
					want = diag.MissingContent
				}
				if got, ds := l.Pinned(e.Source); got != e || code(t, ds) != want {
					t.Errorf("%s is pinned to %+v, %v", e.URL, got, ds)
				}
				data, ds := l.Content(e)
				if code(t, ds) != want || want == "" && !bytes.Equal(data, bytes.Repeat([]byte("x"), int(e.Size))) {
					t.Errorf("%s is %q, %v", e.URL, data, ds)
				}
			}
		})
	}
	group.Wait()
}

// The digest depends only on pins: not on their order, nor on the place of the folder,
// nor on the content of the store.
func TestDigest(t *testing.T) {
	t.Parallel()
	entries := []dependency.Entry{entry("a", "1"), entry("b", "2"), entry("c", "3")}
	digest := func(entries ...dependency.Entry) string { return string(placeWith(t, entries...).open(t).Digest()) }
	if got := digest(); got != "" {
		t.Errorf("of nothing it is %q", got)
	}
	want := digest(entries...)
	reversed := slices.Clone(entries)
	slices.Reverse(reversed)
	p := placeWith(t, append(reversed, entries[1])...)
	if before := string(p.open(t).Digest()); before != want || want == "" {
		t.Errorf("it is %s, want %s", before, want)
	}
	put(t, p.machine, "1")
	put(t, p.vendor(), "2")
	if got := string(p.open(t).Digest()); got != want {
		t.Errorf("with content it is %s, want %s", got, want)
	}
	seen := map[string]bool{want: true}
	for _, change := range []func(e *dependency.Entry){
		func(e *dependency.Entry) { e.Revision = strings.Repeat("9", 40) },
		func(e *dependency.Entry) { e.Content = dependency.DigestOf([]byte("other")) },
		func(e *dependency.Entry) { e.Branch = "dev" },
		func(e *dependency.Entry) { e.Branch, e.Tag = "", e.Branch },
		func(e *dependency.Entry) { e.URL += "x" },
		func(e *dependency.Entry) { e.Size++ },
	} {
		changed := slices.Clone(entries)
		change(&changed[1])
		seen[digest(changed...)] = true
	}
	if seen[digest(entries[1:]...)] = true; len(seen) != 8 {
		t.Errorf("%d digests of 8 locks", len(seen))
	}
}

// A tree is the files of an archive. If the content is not an archive, Tree returns a
// diagnostic.
func TestTree(t *testing.T) {
	t.Parallel()
	built, err := archive.Build(func(yield func(archive.Entry, error) bool) {
		yield(archive.Entry{Path: "a/it.yaml", Data: []byte("x: 1\n")}, nil)
	})
	must(t, err)
	text := string(archive.Pack(built))
	good, bad := entry("good", text), entry("bad", "no archive")
	p := placeWith(t, good, bad)
	put(t, p.machine, text)
	put(t, p.machine, "no archive")
	l := p.open(t)
	tree, ds := l.Tree(good)
	if code(t, ds) != "" || string(tree.Files["a/it.yaml"].Data) != "x: 1\n" {
		t.Errorf("got %v, %v", tree, ds)
	}
	if tree, ds := l.Tree(bad); tree != nil || code(t, ds) != diag.BadSource {
		t.Errorf("got %v, %v", tree, ds)
	}
}
