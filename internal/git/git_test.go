package git

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// repository makes a bare repository and opens it. The user's own git config is
// kept away.
func repository(t testing.TB, args ...string) (*Repository, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r.git")
	isolate(t)
	run(t, "", "git", append([]string{"init", "-q", "--bare", "-b", "main", dir}, args...)...)
	return opened(t, dir), dir
}

func isolate(t testing.TB) {
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GIT_") || name == "SOURCE_DATE_EPOCH" {
			t.Setenv(name, "") // so that it is restored
			os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}

func opened(t testing.TB, dir string) *Repository {
	t.Helper()
	r, err := Open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

// run runs a command and returns its output without the final newline.
func run(t testing.TB, stdin, name string, args ...string) string {
	t.Helper()
	out, err := try(stdin, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func try(stdin, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var somebody = Signature{Name: "A", Email: "a@example.com", When: time.Unix(1_000_000_000, 0).UTC()}

// commit adds a commit of one file to the repository.
func commit(t testing.TB, r *Repository, content string, parents ...Hash) Hash {
	t.Helper()
	w := r.NewPack()
	blob, err := w.Add(BlobKind, []byte(content))
	must(t, err)
	tree, err := w.Add(TreeKind, EncodeTree([]Entry{{"file", FileMode, blob}}))
	must(t, err)
	id, err := w.Add(CommitKind, Commit{Tree: tree, Parents: parents, Author: somebody, Committer: somebody, Message: content}.Encode())
	must(t, err)
	must(t, w.Finish())
	pack, err := filepath.Glob(filepath.Join(r.dir, "objects", "pack", "*.keep"))
	if must(t, err); len(pack) != 1 {
		t.Errorf("%d packs are kept until something refers to them", len(pack))
	}
	must(t, w.Abort())
	return id
}

// content returns n objects of random sizes. Many of them are similar.
func content(n int) [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	var all [][]byte
	for i := range n {
		size := random.IntN(4000)
		if i%100 == 0 {
			size = 200_000
		}
		data := bytes.Repeat([]byte("key: value\n"), size/11+1)
		data = fmt.Appendf(data, "n: %d\n", i)
		all = append(all, data)
	}
	return append(all, nil)
}

func TestObjectsAreGits(t *testing.T) {
	r, dir := repository(t)
	w := r.NewPack()
	blobs := map[Hash][]byte{}
	var entries []Entry
	for i, data := range content(300) {
		id, err := w.Add(BlobKind, data)
		must(t, err)
		if again, err := w.Add(BlobKind, data); err != nil || again != id {
			t.Fatalf("added again: %v %v", again, err)
		}
		blobs[id] = data
		entries = append(entries, Entry{fmt.Sprintf("f%d", i), FileMode, id})
	}
	sub, err := w.Add(TreeKind, EncodeTree(entries))
	must(t, err)
	// "a" sorts after "a.b" as a folder, and before it as a file.
	tree, err := w.Add(TreeKind, EncodeTree([]Entry{{"a", FolderMode, sub}, {"a.b", FileMode, entries[0].ID}, {"x", ExecutableMode, entries[1].ID}, {"l", LinkMode, entries[2].ID}}))
	must(t, err)
	id, err := w.Add(CommitKind, Commit{Tree: tree, Author: somebody, Committer: somebody, Message: "m\n\nbody\n"}.Encode())
	must(t, err)
	if w.Len() != len(blobs)+3 || w.Size() == 0 {
		t.Errorf("%d objects of %d bytes", w.Len(), w.Size())
	}
	must(t, w.Finish())
	must(t, w.Abort())
	must(t, r.Update("refs/heads/main", Hash{}, id, somebody, "m"))

	healthy(t, dir)
	for id, data := range blobs {
		if got := run(t, string(data), "git", "hash-object", "--stdin"); got != id.String() {
			t.Fatalf("id is %s, git's %s", id, got)
		}
		break
	}
	if got := run(t, "", "git", "-C", dir, "rev-parse", "main^{tree}"); got != tree.String() {
		t.Errorf("tree is %s, git's %s", tree, got)
	}
	run(t, "", "git", "-C", dir, "read-tree", "--index-output="+filepath.Join(t.TempDir(), "index"), "main")

	check := func(t *testing.T, r *Repository) {
		t.Helper()
		for id, data := range blobs {
			if got, err := r.Blob(id); err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%s is %d bytes, want %d: %v", id, len(got), len(data), err)
			}
		}
		if got, err := r.CommitTree(id); err != nil || got != tree {
			t.Errorf("the commit's tree is %s: %v", got, err)
		}
		if got, err := r.Tree(sub); err != nil || len(got) != len(entries) {
			t.Errorf("the tree has %d entries: %v", len(got), err)
		}
		if _, err := r.Tree(id); err == nil {
			t.Error("a commit was read as a tree")
		}
		var missing *MissingError
		if _, err := r.Object(Hash{1}); !errors.As(err, &missing) || missing.ID != (Hash{1}) {
			t.Errorf("a missing object: %v", err)
		}
	}
	check(t, r)
	t.Run("differences by offset", func(t *testing.T) {
		run(t, "", "git", "-C", dir, "repack", "-qadf", "--depth=200")
		check(t, r) // which has the old pack open
		check(t, opened(t, dir))
	})
	t.Run("differences by id", func(t *testing.T) {
		run(t, "", "git", "-C", dir, "-c", "repack.useDeltaBaseOffset=false", "repack", "-qadf")
		check(t, opened(t, dir))
	})
	t.Run("borrowed", func(t *testing.T) {
		clone := filepath.Join(t.TempDir(), "clone")
		run(t, "", "git", "clone", "-q", "--shared", "--no-checkout", dir, clone)
		check(t, opened(t, clone))
	})
	t.Run("loose", func(t *testing.T) {
		other, otherDir := repository(t)
		packs, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
		must(t, err)
		for _, p := range packs {
			data, err := os.ReadFile(p)
			must(t, err)
			run(t, string(data), "git", "-C", otherDir, "unpack-objects", "-q")
		}
		check(t, other)
	})
}

// healthy runs git's own check, which must report nothing.
func healthy(t testing.TB, dir string) {
	t.Helper()
	if out := run(t, "", "git", "-C", dir, "fsck", "--strict", "--full", "--no-dangling", "--no-progress"); strings.Trim(out, "\n") != "" &&
		!strings.HasPrefix(out, "notice: HEAD points to an unborn branch") {
		t.Errorf("fsck: %s", out)
	}
}

func TestNothingIsWrittenWithoutObjects(t *testing.T) {
	r, dir := repository(t)
	must(t, r.NewPack().Finish())
	if files, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*")); len(files) > 0 {
		t.Errorf("there is %v", files)
	}
	w := r.NewPack()
	_, err := w.Add(BlobKind, []byte("x"))
	must(t, err)
	must(t, w.Abort())
	if files, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*")); len(files) > 0 {
		t.Errorf("there is %v", files)
	}
	a, b := commit(t, r, "same"), commit(t, r, "same")
	if files, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*")); a != b || len(files) != 2 {
		t.Errorf("the same objects twice are %v", files)
	}
}

func TestIndexOfLargePacks(t *testing.T) {
	var entries []packEntry
	want := map[string]string{}
	for i := range 600 {
		offset := int64(i) * 9_000_000 // up to 5.4 GB
		id := ID(BlobKind, fmt.Appendf(nil, "%d", i))
		entries = append(entries, packEntry{offset, uint32(i), id})
		want[id.String()] = fmt.Sprintf("%d %s (%08x)", offset, id, i)
	}
	p := &pack{path: filepath.Join(t.TempDir(), "pack")}
	var b bytes.Buffer
	must(t, writeIndex(&b, entries, Hash{}))
	b.Write(make([]byte, 20))
	must(t, os.WriteFile(p.path+".idx", b.Bytes(), 0o600))
	lines := strings.Split(run(t, b.String(), "git", "show-index"), "\n")
	if len(lines) != len(entries) {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if id := strings.Fields(line)[1]; line != want[id] {
			t.Errorf("git reads %q, want %q", line, want[id])
		}
	}
	for _, e := range entries {
		if offset, found, err := p.find(e.id); err != nil || !found || offset != e.offset {
			t.Fatalf("%s is at %d, want %d: %v", e.id, offset, e.offset, err)
		}
	}
	if _, found, err := p.find(Hash{}); found || err != nil {
		t.Errorf("found nothing: %v %v", found, err)
	}
	must(t, p.close())
}

// If any byte of a pack changes, a read returns the right content or an error.
func TestDamagedPacks(t *testing.T) {
	r, dir := repository(t)
	w := r.NewPack()
	blobs := map[Hash][]byte{}
	for i := range 30 {
		data := bytes.Repeat(fmt.Appendf(nil, "%d\n", i/2), 20+i)
		id, err := w.Add(BlobKind, data)
		must(t, err)
		blobs[id] = data
	}
	must(t, w.Finish())
	packs, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
	must(t, err)
	for _, file := range []string{packs[0], strings.TrimSuffix(packs[0], "pack") + "idx"} {
		data, err := os.ReadFile(file)
		must(t, err)
		must(t, os.Chmod(file, 0o600))
		for i := 0; i < len(data); i += 7 {
			broken := bytes.Clone(data)
			broken[i] ^= 0xff
			must(t, os.WriteFile(file, broken, 0o600))
			r, err := Open(dir)
			must(t, err)
			for id, want := range blobs {
				if got, err := r.Blob(id); err == nil && !bytes.Equal(got, want) {
					t.Fatalf("byte %d of %s: %s was read wrong", i, filepath.Base(file), id)
				}
			}
			must(t, r.Close())
		}
		must(t, os.WriteFile(file, data, 0o600))
	}
}

func TestParseTree(t *testing.T) {
	for content, want := range map[string]string{
		"100644 a b\x00%s":                 "[{a b 100644 %x}]",
		"040000 a\x00%s0100755 b\x00%[1]s": "[{a 40000 %x} {b 100755 %[1]x}]",
		"":                                 "[]",
		"100644 a\x00":                     "malformed",
		"100644\x00%s":                     "malformed",
		"100644 a":                         "malformed",
		"100644 \x00%s":                    `"" is not a name`,
		"100644 ../a\x00%s":                `"../a" is not a name`,
	} {
		id := Hash{1, 2}
		if strings.Contains(content, "%") {
			content = fmt.Sprintf(content, id[:])
		}
		if strings.Contains(want, "%") {
			want = fmt.Sprintf(want, id[:])
		}
		entries, err := ParseTree([]byte(content))
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && fmt.Sprint(entries) != want {
			t.Errorf("%q is %v, want %s: %v", content, entries, want, err)
		}
	}
}

// FuzzParseTree checks that names of a tree are one element of a path, and that encoding a tree
// changes nothing.
func FuzzParseTree(f *testing.F) {
	f.Add(EncodeTree([]Entry{{"a", FolderMode, Hash{1}}, {"a.b", FileMode, Hash{2}}}))
	f.Add([]byte("100644 a\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := ParseTree(data)
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.Name == "" || strings.Contains(e.Name, "/") {
				t.Errorf("a name is %q", e.Name)
			}
		}
		if again, err := ParseTree(EncodeTree(entries)); err != nil || len(again) != len(entries) {
			t.Errorf("read again: %v", err)
		}
	})
}

// BenchmarkPack writes 500,000 objects of 1 KB.
func BenchmarkPack(b *testing.B) {
	r, _ := repository(b)
	data := bytes.Repeat([]byte("configuration: value of something\n"), 30)
	for b.Loop() {
		w := r.NewPack()
		for i := range 500_000 {
			copy(data, fmt.Sprintf("%p %012d", w, i))
			copy(data[500:], fmt.Sprintf("%012d", i*7))
			if _, err := w.Add(BlobKind, data); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(w.Size())/1e6, "MB")
	}
}

// FuzzCommit: a commit is read as git reads it, or not at all.
func FuzzCommit(f *testing.F) {
	id := strings.Repeat("0a", 20)
	f.Add([]byte("tree " + id + "\nparent " + id + "\nauthor A <a@b> 1700000000 +0100\ncommitter A <a@b> 1700000000 -0100\n\na message\n"))
	f.Add([]byte("tree " + id + "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n =x\n -----END\nauthor A\n\n"))
	f.Add([]byte("tree " + id + "\nauthor <> 99999999999999999999 +9999\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := parseCommit(Hash{}, data)
		if err != nil {
			return
		}
		if c := commitOf(parsed, data); c.Tree.IsZero() != bytes.HasPrefix(data, []byte("tree "+Hash{}.String())) || len(c.Message) > len(data) {
			t.Errorf("%+v", c)
		}
	})
}
