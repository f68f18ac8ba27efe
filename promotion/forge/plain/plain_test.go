package plain_test

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
)

var start = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// bare is a bare repository on the disk.
type bare struct {
	t    *testing.T
	dir  string
	repo *git.Repository
	// before is called before each push, if it is not nil.
	before func()
}

func newBare(t *testing.T) *bare {
	t.Helper()
	b := &bare{t: t, dir: t.TempDir()}
	b.git("init", "-q", "--bare", "-b", "main", ".")
	b.git("config", "core.fsync", "none")
	b.git("hash-object", "-t", "tree", "-w", "/dev/null")
	var err error
	if b.repo, err = git.Open(b.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.repo.Close() })
	return b
}

// git runs the git command, with a time that is not now.
func (b *bare) git(arguments ...string) string {
	b.t.Helper()
	out, err := b.run(arguments...)
	if err != nil {
		b.t.Fatalf("git %s: %v: %s", strings.Join(arguments, " "), err, out)
	}
	return out
}

func (b *bare) run(arguments ...string) (string, error) {
	command := exec.Command("git", arguments...)
	command.Dir = b.dir
	at := start.Format(time.RFC3339)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+b.dir,
		"GIT_AUTHOR_NAME=Dora", "GIT_AUTHOR_EMAIL=dora@example.com", "GIT_COMMITTER_NAME=Dora", "GIT_COMMITTER_EMAIL=dora@example.com",
		"GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at)
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// commit makes a commit that has no refs until a test makes them.
func (b *bare) commit(message string) git.Hash {
	b.t.Helper()
	return plumbing.NewHash(b.git("commit-tree", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "-m", message))
}

func (b *bare) Refs(context.Context) (map[string]git.Hash, error) {
	out, err := b.run("for-each-ref", "--format=%(refname) %(objectname)")
	refs := map[string]git.Hash{}
	for line := range strings.Lines(out) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[name] = plumbing.NewHash(id)
	}
	return refs, err
}

func (b *bare) Object(id git.Hash) (git.Object, error) { return b.repo.Object(id) }

func (b *bare) Push(_ context.Context, ref string, old, to git.Hash, objects func(*git.PackWriter) error) error {
	if b.before != nil {
		b.before()
	}
	pack := b.repo.NewPack()
	defer func() { _ = pack.Abort() }()
	if err := objects(pack); err != nil {
		return err
	}
	if err := pack.Finish(); err != nil {
		return err
	}
	return b.repo.Update(ref, old, to, git.Signature{Name: "t", Email: "t@example.com", When: start}, "push")
}

// clock is a clock that each look at moves by a minute.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Minute)
	return c.now
}

func (c *clock) forge(t *testing.T, r plain.Repository, name string, o plain.Options) *plain.Forge {
	t.Helper()
	o.By = git.Signature{Name: name, Email: strings.ToLower(name) + "@example.com"}
	o.Now, o.Wait = c.Now, func(context.Context, time.Duration) error { return nil }
	f, err := plain.New(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func set(t *testing.T, f *plain.Forge, commit git.Hash, name string, state forge.State, description string) {
	t.Helper()
	if err := f.SetStatus(t.Context(), commit, forge.Status{Name: name, State: state, Description: description}); err != nil {
		t.Fatal(err)
	}
}

// said returns the statuses of a commit, as BY NAME STATE DESCRIPTION.
func said(t *testing.T, f *plain.Forge, commit git.Hash) []string {
	t.Helper()
	all, err := f.Statuses(t.Context(), []git.Hash{commit, commit})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, s := range all[commit] {
		texts = append(texts, fmt.Sprintf("%s %s %s %s", s.By, s.Name, s.State, s.Description))
	}
	return texts
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func TestStatuses(t *testing.T) {
	b, c := newBare(t), &clock{now: start}
	one, two := b.commit("one"), b.commit("two")
	kalypso, ann := c.forge(t, b, "Kalypso", plain.Options{}), c.forge(t, b, "Ann", plain.Options{})
	expect(t, "nothing", said(t, kalypso, one), []string(nil))
	set(t, kalypso, one, "kalypso/prod", forge.Pending, "0/2 <&>\nnow")
	set(t, ann, one, "kalypso/prod", forge.Pending, "")
	set(t, kalypso, two, "kalypso/prod", forge.Failure, "")
	set(t, kalypso, one, "kalypso/prod", forge.Success, "2/2")
	tip := b.git("rev-parse", "refs/notes/kalypso")
	set(t, kalypso, one, "kalypso/prod", forge.Success, "2/2")
	expect(t, "the tip after the same again", b.git("rev-parse", "refs/notes/kalypso"), tip)
	set(t, kalypso, one, "kalypso/prod", forge.Failure, "1/2")
	set(t, kalypso, one, "kalypso/prod", forge.Success, "2/2")
	want := []string{
		"Kalypso <kalypso@example.com> kalypso/prod pending 0/2 <&>\nnow",
		"Ann <ann@example.com> kalypso/prod pending ",
		"Kalypso <kalypso@example.com> kalypso/prod success 2/2",
		"Kalypso <kalypso@example.com> kalypso/prod failure 1/2",
		"Kalypso <kalypso@example.com> kalypso/prod success 2/2",
	}
	expect(t, "statuses", said(t, ann, one), want)
	lines := strings.Split(b.git("notes", "--ref=kalypso", "show", one.String()), "\n")
	expect(t, "lines that git shows", len(lines), 5)
	expect(t, "a line", lines[0], `{"name":"kalypso/prod","state":"pending","description":"0/2 <&>\nnow","at":"2026-11-02T09:01:00Z"}`)
	if out, err := b.run("fsck", "--strict"); err != nil {
		t.Error(out)
	}
	// Lines of people or other programs do not count as statuses.
	b.git("notes", "--ref=kalypso", "append", "-m", `{"name":"x","state":"great"}`, "-m", "looks good", "-m", `{"name":"kalypso/prod","state":"failure"}`, one.String())
	expect(t, "what git added", said(t, ann, one), append([]string{"Dora <dora@example.com> kalypso/prod failure "}, want...))
}

// If a process's clock is behind, its status still gets a later time than the status before it.
func TestClockBehind(t *testing.T) {
	b := newBare(t)
	one := b.commit("one")
	set(t, (&clock{now: start}).forge(t, b, "Kalypso", plain.Options{}), one, "a", forge.Pending, "")
	late := (&clock{now: start.Add(-time.Hour)}).forge(t, b, "Ann", plain.Options{})
	set(t, late, one, "a", forge.Success, "")
	all, err := late.Statuses(t.Context(), []git.Hash{one})
	if err != nil || len(all[one]) != 2 || all[one][1].State != forge.Success || !all[one][1].At.Equal(start.Add(time.Minute)) {
		t.Error(all, err)
	}
}

// Two processes that do not know of each other lose no statuses, and git merges the statuses of
// two repositories.
func TestRaces(t *testing.T) {
	b, c := newBare(t), &clock{now: start}
	one := b.commit("one")
	kalypso, ann := c.forge(t, b, "Kalypso", plain.Options{}), c.forge(t, b, "Ann", plain.Options{})
	races := 0
	b.before = func() {
		if races++; races <= 4 {
			before := b.before
			b.before = nil
			set(t, ann, one, fmt.Sprint("race-", races), forge.Success, "")
			b.before = before
		}
	}
	set(t, kalypso, one, "kalypso/prod", forge.Success, "")
	got := said(t, kalypso, one)
	expect(t, "how many", len(got), 5)
	expect(t, "the last", got[4], "Kalypso <kalypso@example.com> kalypso/prod success ")
	b.before = func() {
		before := b.before
		b.before = nil
		set(t, ann, one, fmt.Sprint("race-", c.Now()), forge.Success, "")
		b.before = before
	}
	if err := kalypso.SetStatus(t.Context(), one, forge.Status{Name: "never", State: forge.Success}); !errors.Is(err, git.ErrLostRace) {
		t.Error(err)
	}
}

func TestParallel(t *testing.T) {
	b, c := newBare(t), &clock{now: start}
	one := b.commit("one")
	var group sync.WaitGroup
	failed := make(chan error, 3)
	for i := range 3 {
		f := c.forge(t, b, fmt.Sprint("P", i), plain.Options{})
		group.Go(func() {
			failed <- f.SetStatus(t.Context(), one, forge.Status{Name: "a", State: forge.Success})
		})
	}
	group.Wait()
	for range 3 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	expect(t, "how many", len(said(t, c.forge(t, b, "X", plain.Options{}), one)), 3)
}

func TestUnion(t *testing.T) {
	b, c := newBare(t), &clock{now: start}
	one := b.commit("one")
	kalypso, ann := c.forge(t, b, "Kalypso", plain.Options{}), c.forge(t, b, "Ann", plain.Options{})
	set(t, kalypso, one, "a", forge.Pending, "")
	b.git("update-ref", "refs/notes/other", "refs/notes/kalypso")
	set(t, kalypso, one, "a", forge.Success, "")
	ours := b.git("rev-parse", "refs/notes/kalypso")
	b.git("update-ref", "refs/notes/kalypso", "refs/notes/other")
	set(t, ann, one, "b", forge.Success, "")
	b.git("update-ref", "refs/notes/other", ours)
	b.git("notes", "--ref=kalypso", "merge", "-q", "-s", "union", "other")
	got := said(t, ann, one)
	expect(t, "statuses", got, []string{
		"Kalypso <kalypso@example.com> a pending ", "Kalypso <kalypso@example.com> a success ", "Ann <ann@example.com> b success ",
	})
}

// Many notes are fanned out, as git does it, and each status keeps its author.
func TestFanOut(t *testing.T) {
	b, c := newBare(t), &clock{now: start}
	const many = 1000
	var stream strings.Builder
	fmt.Fprint(&stream, "commit refs/notes/kalypso\ncommitter Dora <dora@example.com> 1793000000 +0000\ndata 0\n\n")
	for i := range many {
		id := git.ID(git.BlobKind, fmt.Append(nil, i))
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata <<E\n{\"name\":\"n\",\"state\":\"success\",\"at\":\"%d\"}\nE\n\n", id, i)
	}
	// A note that is there in two forms.
	some := git.ID(git.BlobKind, []byte("7"))
	fmt.Fprintf(&stream, "M 100644 inline %s/%s\ndata <<E\n{\"name\":\"m\",\"state\":\"failure\"}\nE\n\n", some.String()[:2], some.String()[2:])
	importing := exec.Command("git", "-C", b.dir, "fast-import", "--quiet")
	importing.Stdin = strings.NewReader(stream.String())
	if out, err := importing.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	one, two := b.commit("one"), b.commit("two")
	f := c.forge(t, b, "Kalypso", plain.Options{})
	set(t, f, one, "a", forge.Success, "")
	set(t, f, one, "a", forge.Failure, "")
	set(t, f, two, "a", forge.Success, "")
	expect(t, "some, moved by others", len(said(t, f, some)), 2)
	set(t, f, some, "a", forge.Success, "")
	names := strings.Split(b.git("ls-tree", "-r", "--name-only", "refs/notes/kalypso"), "\n")
	expect(t, "notes", len(names), many+2)
	for _, name := range names {
		if len(name) != 41 || name[2] != '/' {
			t.Fatal(name)
		}
	}
	expect(t, "one", said(t, f, one), []string{"Kalypso <kalypso@example.com> a success ", "Kalypso <kalypso@example.com> a failure "})
	expect(t, "some", said(t, f, some), []string{"Dora <dora@example.com> m failure ", "Dora <dora@example.com> n success ", "Kalypso <kalypso@example.com> a success "})
	if text := b.git("notes", "--ref=kalypso", "show", one.String()); strings.Count(text, "\n") != 1 {
		t.Error(text)
	}
	if out, err := b.run("fsck", "--strict"); err != nil {
		t.Error(out)
	}
}

// A note in two forms, which git reads as one, is one.
func TestTwoForms(t *testing.T) {
	b, c := newBare(t), &clock{now: start}
	one := b.commit("one").String()
	stream := "commit refs/notes/kalypso\ncommitter Dora <dora@example.com> 1793000000 +0000\ndata 0\n\n"
	for i, path := range []string{one, one[:2] + "/" + one[2:], one[:2] + "/" + one[2:4] + "/" + one[4:]} {
		stream += fmt.Sprintf("M 100644 inline %s\ndata <<E\n{\"name\":\"n%d\",\"state\":\"success\"}\nE\n\n", path, i)
	}
	importing := exec.Command("git", "-C", b.dir, "fast-import", "--quiet")
	importing.Stdin = strings.NewReader(stream)
	if out, err := importing.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	f := c.forge(t, b, "Kalypso", plain.Options{})
	set(t, f, plumbing.NewHash(one), "a", forge.Success, "")
	got := said(t, f, plumbing.NewHash(one))
	slices.Sort(got)
	expect(t, "statuses", got, []string{
		"Dora <dora@example.com> n0 success ", "Dora <dora@example.com> n1 success ", "Dora <dora@example.com> n2 success ",
		"Kalypso <kalypso@example.com> a success ",
	})
}

// key is a key of a test, in a file for git too.
type key struct {
	signer ssh.Signer
	file   string
	line   string // as in authorized_keys
}

func newKey(t *testing.T, name string) key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, name)
	if err != nil {
		t.Fatal(err)
	}
	k := key{file: filepath.Join(t.TempDir(), name)}
	if k.signer, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	k.line = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.signer.PublicKey())))
	for file, content := range map[string][]byte{k.file: pem.EncodeToMemory(block), k.file + ".pub": []byte(k.line + "\n")} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func isUnsupported(err error) bool { return errors.Is(err, forge.ErrUnsupported) }
