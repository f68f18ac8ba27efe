package tree_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// indexed returns a folder with the files of small, whose index trusts every file.
func indexed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	settleIndex(t, dir)
	return dir
}

// settleIndex writes small until the index trusts every file, which needs a
// later time of the clock.
func settleIndex(t *testing.T, dir string) { settle(t, dir, small) }

func settle(t *testing.T, dir string, content files) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		write(t, dir, treeOf(content), dev)
		if len(unchanged(t, dir)) == len(content) {
			return
		}
	}
	t.Fatal("the index trusts no file")
}

// unchanged returns the files that are unchanged according to the index; empty without an index.
func unchanged(t *testing.T, dir string) map[string]tree.Blob {
	t.Helper()
	u, err := tree.OpenUnchangedFiles(dir)
	must(t, err)
	defer func() { must(t, u.Close()) }()
	all := map[string]tree.Blob{}
	for _, e := range record(t, dir).ClusterTypes {
		must(t, u.Files(e.Name, func(p string, b tree.Blob) { all[e.Name+"/"+p] = b }))
	}
	return all
}

// counting makes a tree count the requests for each content.
func counting(desired *tree.Tree, calls map[string]int) *tree.Tree {
	var mu sync.Mutex
	for i := range desired.ClusterTypes {
		ct := &desired.ClusterTypes[i]
		content := ct.Content
		ct.Content = func(context.Context) (*tree.Content, error) {
			mu.Lock()
			defer mu.Unlock()
			calls[ct.Name]++
			return content(context.Background())
		}
	}
	return desired
}

// compareCounting compares the folder with small, and returns the cluster types
// whose content was requested.
func compareCounting(t *testing.T, dir string, o tree.Options) (*tree.Changes, []string) {
	t.Helper()
	d, err := tree.Open(dir)
	must(t, err)
	defer func() { must(t, d.Close()) }()
	calls := map[string]int{}
	c, report, err := d.Compare(context.Background(), counting(treeOf(small).tree(), calls), o)
	must(t, err)
	if len(report) > 0 {
		t.Fatalf("diagnostics: %v", report)
	}
	return c, slices.Sorted(maps.Keys(calls))
}

// If nothing changed, no content is requested, with and without an index. Nothing is
// written, not even the index.
func TestUnchangedIsNotMade(t *testing.T) {
	dir := indexed(t)
	before := times(t, dir)
	if c := write(t, dir, treeOf(small), dev); !c.Empty() || c.Unchanged != len(small) || c.Assignments.Unchanged != 3 {
		t.Errorf("changes are %+v", c)
	}
	if !maps.Equal(before, times(t, dir)) {
		t.Error("something was written")
	}
	verify := dev
	verify.Verify = true
	for name, o := range map[string]tree.Options{"index": dev, "verify": verify} {
		if c, calls := compareCounting(t, dir, o); len(calls) > 0 || !c.Empty() || c.Unchanged != len(small) {
			t.Errorf("%s: content of %v was asked for, %+v", name, calls, c)
		}
	}
	must(t, os.Remove(filepath.Join(dir, indexPath)))
	if c, calls := compareCounting(t, dir, dev); len(calls) > 0 || !c.Empty() || c.Unchanged != len(small) {
		t.Errorf("no index: content of %v was asked for, %+v", calls, c)
	}
	write(t, dir, treeOf(small), dev)
	if _, err := os.Stat(filepath.Join(dir, indexPath)); err != nil {
		t.Errorf("the index was not written again: %v", err)
	}
}

// A change by hand is found and restored, even if only the time of the change shows it. Only the
// content of its cluster type is requested.
func TestDriftIsFound(t *testing.T) {
	const noLongerExecutable = "no longer executable"
	for name, change := range map[string]func(t *testing.T, dir, file string){
		"other size": func(t *testing.T, _, file string) { must(t, os.WriteFile(file, []byte("longer"), 0o644)) },
		"same size, old time": func(t *testing.T, _, file string) {
			info, err := os.Stat(file)
			must(t, err)
			must(t, os.WriteFile(file, []byte("zz"), 0o644))
			must(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
		},
		"removed":          func(t *testing.T, _, file string) { must(t, os.Remove(file)) },
		"executable":       func(t *testing.T, _, file string) { must(t, os.Chmod(file, 0o755)) },
		noLongerExecutable: func(t *testing.T, _, file string) { must(t, os.Chmod(file, 0o644)) },
		"a link to an equal file": func(t *testing.T, dir, file string) {
			must(t, os.Rename(file, filepath.Join(dir, "elsewhere")))
			must(t, os.Symlink(filepath.Join(dir, "elsewhere"), file))
		},
		"an empty folder": func(t *testing.T, _, file string) {
			must(t, os.Remove(file))
			must(t, os.Mkdir(file, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "same size, old time" && runtime.GOOS == "windows" {
				t.Skip("the system does not tell")
			}
			p := "large/app/a.yaml"
			if name == noLongerExecutable {
				p = "large/app/b.sh"
			}
			dir := indexed(t)
			change(t, dir, filepath.Join(dir, p))
			c, calls := compareCounting(t, dir, dev)
			if !slices.Equal(calls, []string{"large"}) || !slices.Equal(c.Written, []string{p}) || c.Unchanged != len(small)-1 {
				t.Errorf("content of %v was asked for, %+v", calls, c)
			}
			write(t, dir, treeOf(small), dev)
			got := read(t, dir)
			delete(got, "elsewhere")
			equal(t, "restored", got, small)
			settleIndex(t, dir)
		})
	}
}

// A touched file is read once, and is then trusted again.
func TestTouchedFileIsReadOnce(t *testing.T) {
	dir := indexed(t)
	age(t, dir)
	if len(unchanged(t, dir)) > 0 {
		t.Error("the index is for a record that looks otherwise")
	}
	settleIndex(t, dir)
}

// If the files of a folder are linked from elsewhere, it is not the same folder.
func TestLinkedFolderIsNotTrusted(t *testing.T) {
	dir := indexed(t)
	app := filepath.Join(dir, "large/app")
	must(t, os.Rename(app, filepath.Join(dir, "elsewhere")))
	must(t, os.Symlink("../elsewhere", app))
	_, report := tryWrite(t, dir, treeOf(small), dev)
	if len(report) != 1 {
		t.Errorf("diagnostics: %v", report)
	}
}

// The index of a folder is not valid for a copy, even an exact one.
func TestCopiedFolderIsRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the system does not tell")
	}
	dir := indexed(t)
	twin := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", dir, twin).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if len(unchanged(t, twin)) > 0 {
		t.Error("the copied index is used")
	}
	if c := write(t, twin, treeOf(small), dev); !c.Empty() {
		t.Errorf("changes are %+v", c)
	}
	settleIndex(t, twin)
}

// A change right after a write, within a tick of the clock, is found.
func TestRacyChangesAreFound(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	file := filepath.Join(dir, "large/app/a.yaml")
	for i := range 100 {
		must(t, os.WriteFile(file, []byte("zz"), 0o644))
		if c := write(t, dir, treeOf(small), dev); !slices.Equal(c.Written, []string{"large/app/a.yaml"}) {
			t.Fatalf("round %d: changes are %+v", i, c)
		}
	}
}

// With any content of the index, the result is the same as without one: a
// damaged index is not used.
func TestDamagedIndex(t *testing.T) {
	dir := indexed(t)
	put(t, dir, files{"large/app/a.yaml": "zz", "large/db/a.yaml": "zz"})
	must(t, os.Remove(filepath.Join(dir, "small/README.md")))
	file := filepath.Join(dir, indexPath)
	whole, err := os.ReadFile(file)
	must(t, err)
	must(t, os.Remove(file))
	want, _ := compareCounting(t, dir, dev)

	random := rand.New(rand.NewPCG(1, 1))
	damage := func(data []byte) []byte {
		data = slices.Clone(data)
		switch random.IntN(4) {
		case 0:
			return data[:random.IntN(len(data))]
		case 1:
			i := random.IntN(len(data))
			return append(data[:i:i], data[min(len(data), i+1+random.IntN(60)):]...)
		}
		data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		return data
	}
	check := func(what string, data []byte) {
		t.Helper()
		must(t, os.WriteFile(file, data, 0o644))
		got, _ := compareCounting(t, dir, dev)
		if !sameChanges(got, want) || !equalAssignments(got.Assignments, want.Assignments) {
			t.Fatalf("%s: changes are %+v, want %+v", what, got, want)
		}
	}
	check("whole", whole)
	for range 400 {
		check("damaged", damage(whole))
	}
	// An index with a correct checksum may be wrong, but does no harm if the files are read.
	verify := dev
	verify.Verify = true
	for range 200 {
		data := append(slices.Clone(whole[:indexHeader]), damage(whole[indexHeader:len(whole)-crc32.Size])...)
		must(t, os.WriteFile(file, summed(data), 0o644))
		compareCounting(t, dir, dev)
		if got, _ := compareCounting(t, dir, verify); !sameChanges(got, want) {
			t.Fatalf("verified: changes are %+v, want %+v", got, want)
		}
	}
}

// If files must be verified, a wrong index is ignored.
func TestVerify(t *testing.T) {
	dir := indexed(t)
	lieIn(t, dir, "small/app/deep/x.yaml", "zz")
	if c, _ := compareCounting(t, dir, dev); !c.Empty() {
		t.Fatalf("the index does not lie: %+v", c)
	}
	verify := dev
	verify.Verify = true
	if c := write(t, dir, treeOf(small), verify); !slices.Equal(c.Written, []string{"small/app/deep/x.yaml"}) {
		t.Errorf("changes are %+v", c)
	}
	equal(t, "restored", read(t, dir), small)
}

// indexHeader is the number of bytes in an index before its sections: its format, the properties of
// the record's file, and the record's id. A checksum is at the end.
const indexHeader = len("kalypso index 2\n") + statSize + 2*20

// statSize is the number of bytes for the properties of a file in an index,
// after the id of its content.
const statSize = 4 * 8

// summed returns an index with its checksum.
func summed(index []byte) []byte {
	return binary.LittleEndian.AppendUint32(index, crc32.Checksum(index, crc32.MakeTable(crc32.Castagnoli)))
}

// lieIn changes a file with unique content. It then makes the index wrong: the file's new
// properties belong to the old content. It takes the properties from the index of a second folder,
// to which the file is linked.
func lieIn(t *testing.T, dir, p, content string) {
	t.Helper()
	twin, file := t.TempDir(), filepath.Join(dir, p)
	was, err := os.ReadFile(file)
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(filepath.Join(twin, p)), 0o755))
	must(t, os.Link(file, filepath.Join(twin, p)))
	must(t, os.WriteFile(file, []byte(content), 0o644))
	write(t, twin, treeOf(files{p: content}), dev)
	// look returns the index of a folder, and the part of it with the properties of the file.
	look := func(dir string, content []byte) (index, stat []byte) {
		index, err := os.ReadFile(filepath.Join(dir, indexPath))
		must(t, err)
		id := hashOf(tree.BlobID(content))
		at := bytes.Index(index, id[:])
		if at < 0 {
			t.Fatalf("the index does not have %s", p)
		}
		return index, index[at+len(id):][:statSize]
	}
	_, is := look(twin, []byte(content))
	index, looked := look(dir, was)
	copy(looked, is)
	must(t, os.WriteFile(filepath.Join(dir, indexPath), summed(index[:len(index)-crc32.Size]), 0o644))
}

// The index returns files unchanged: at the root and in folders, executable or not, and with any
// time of the last change.
func TestIndexHasAllFiles(t *testing.T) {
	content := files{"README.md": "1", "app/a": "+x 2", "app/deep/b": "3", "app/c": "+x 4", "app/deep/er/d": ""}
	all := files{}
	for p, data := range content {
		all["large/"+p] = data
	}
	dir := t.TempDir()
	put(t, dir, all)
	for i, when := range []time.Time{time.Unix(-6, 7), time.Unix(0, 0), time.Unix(1<<33, 1)} {
		p := filepath.Join(dir, []string{"large/README.md", "large/app/a", "large/app/deep/b"}[i])
		must(t, os.Chtimes(p, when, when))
	}
	const future = "large/app/deep/b" // it may change and keep the same properties
	write(t, dir, treeOf(all), dev)
	for deadline := time.Now().Add(time.Minute); len(unchanged(t, dir)) < len(all)-1; {
		if write(t, dir, treeOf(all), dev); time.Now().After(deadline) {
			t.Fatalf("unchanged are %v", unchanged(t, dir))
		}
	}
	want := all.blobs()
	delete(want, future)
	if got := unchanged(t, dir); !maps.Equal(got, want) {
		t.Errorf("unchanged are %v, want %v", got, want)
	}
	must(t, os.Chtimes(filepath.Join(dir, "large/README.md"), time.Unix(-6, 8), time.Unix(-6, 8)))
	delete(want, "large/README.md")
	if got := unchanged(t, dir); !maps.Equal(got, want) {
		t.Errorf("unchanged after another change are %v, want %v", got, want)
	}
}

// FuzzParseIndex: any index with a correct checksum has valid ids, or is rejected.
//
// Slow: each input is the index of a folder, which is compared.
func FuzzParseIndex(f *testing.F) {
	dir := f.TempDir()
	d, err := tree.Open(dir)
	must(f, err)
	_, _, err = d.Write(f.Context(), treeOf(small).tree(), dev)
	must(f, err)
	must(f, d.Close())
	file := filepath.Join(dir, indexPath)
	whole, err := os.ReadFile(file)
	must(f, err)
	f.Add(whole[indexHeader : len(whole)-crc32.Size])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		must(t, os.WriteFile(file, summed(append(slices.Clone(whole[:indexHeader]), body...)), 0o644))
		u, err := tree.OpenUnchangedFiles(dir)
		must(t, err)
		defer u.Close()
		for _, name := range []string{"large", "small", ownFolder} {
			must(t, u.Files(name, func(p string, b tree.Blob) {
				if _, err := hex.DecodeString(string(b.ID)); err != nil || len(b.ID) != 40 {
					t.Errorf("%s has the id %s", p, b.ID)
				}
			}))
		}
		compareCounting(t, dir, dev)
	})
}

// An empty folder is planned once.
func TestNewFolderIsMadeOnce(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "dev")} {
		d, err := tree.Open(dir)
		must(t, err)
		calls := map[string]int{}
		_, _, err = d.Write(context.Background(), counting(treeOf(small).tree(), calls), dev)
		must(t, err)
		must(t, d.Close())
		if calls["large"] != 1 || calls["small"] != 1 {
			t.Errorf("content was asked for: %v", calls)
		}
	}
}

// A changed digest makes the content of the cluster type again. An equal digest does not, even if
// the content would differ.
func TestDigestsDecide(t *testing.T) {
	dir := indexed(t)
	d, err := tree.Open(dir)
	must(t, err)
	defer func() { must(t, d.Close()) }()
	next := treeOf(changed(files{"large/app/a.yaml": "a2", "small/README.md": "new"})).tree()
	next.ClusterTypes[0].Digest = treeOf(small).tree().ClusterTypes[0].Digest
	calls := map[string]int{}
	c, _, err := d.Compare(context.Background(), counting(next, calls), dev)
	must(t, err)
	if !slices.Equal(c.Written, []string{"small/README.md"}) || calls["large"] != 0 || calls["small"] == 0 {
		t.Errorf("calls are %v, changes %+v", calls, c)
	}
	next.ClusterTypes[0].Digest = model.DigestBytes([]byte("other"))
	if c, _, err = d.Compare(context.Background(), next, dev); err != nil || len(c.Written) != 2 {
		t.Errorf("changes are %+v, %v", c, err)
	}
}
