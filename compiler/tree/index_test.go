package tree

import (
	"bytes"
	"context"
	"encoding/binary"
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
)

// indexed returns a folder with small in it whose index trusts every file.
func indexed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	settleIndex(t, dir)
	return dir
}

// settleIndex writes small until the index trusts every file, which it does when
// the clock has gone on.
func settleIndex(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		write(t, dir, treeOf(small), dev)
		if entries := trustedEntries(t, dir); len(entries) == len(small) {
			return
		}
	}
	t.Fatal("the index trusts no file")
}

// trustedEntries returns the trusted entries for the files of the tree.
func trustedEntries(t *testing.T, dir string) map[string]entry {
	t.Helper()
	all := map[string]entry{}
	idx := parsed(t, dir)
	if idx == nil {
		return all
	}
	for name, s := range idx.sections {
		if name == ownFolder {
			continue
		}
		for p, e := range (&statResult{section: s}).known(name) {
			all[p] = e
		}
	}
	return all
}

// parsed returns the index; nil where it says nothing.
func parsed(t *testing.T, dir string) *index {
	t.Helper()
	d, err := open(dir, 0)
	must(t, err)
	defer func() { must(t, d.Close()) }()
	st, problems, err := d.load(newSurvey(d.root), false)
	must(t, err)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	idx, err := d.loadIndex(newSurvey(d.root), st)
	must(t, err)
	return idx
}

// counting makes a tree count how often each content is asked for.
func counting(tree *Tree, calls map[string]int) *Tree {
	var mu sync.Mutex
	for i := range tree.ClusterTypes {
		ct := &tree.ClusterTypes[i]
		content := ct.Content
		ct.Content = func(context.Context) (*Content, error) {
			mu.Lock()
			defer mu.Unlock()
			calls[ct.Name]++
			return content(context.Background())
		}
	}
	return tree
}

// compareCounting compares the folder with small, and returns for what content
// was asked.
func compareCounting(t *testing.T, dir string, o Options) (*Changes, []string) {
	t.Helper()
	d, err := open(dir, 0)
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

// Where nothing changed no content is asked for, with and without an index, and
// nothing is written, not even the index.
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
	for name, o := range map[string]Options{"index": dev, "verify": verify} {
		if c, calls := compareCounting(t, dir, o); len(calls) > 0 || !c.Empty() || c.Unchanged != len(small) {
			t.Errorf("%s: content of %v was asked for, %+v", name, calls, c)
		}
	}
	must(t, os.Remove(filepath.Join(dir, indexPath)))
	if c, calls := compareCounting(t, dir, dev); len(calls) > 0 || !c.Empty() || c.Unchanged != len(small) {
		t.Errorf("no index: content of %v was asked for, %+v", calls, c)
	}
	write(t, dir, treeOf(small), dev)
	if parsed(t, dir) == nil {
		t.Error("the index was not written again")
	}
}

// What was changed by hand is found and restored, even where only the time of
// the change tells, and only the content that it is in is asked for.
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

// A file that is touched is read once, and is then trusted again.
func TestTouchedFileIsReadOnce(t *testing.T) {
	dir := indexed(t)
	age(t, dir)
	if parsed(t, dir) != nil {
		t.Error("the index is for a record that looks otherwise")
	}
	settleIndex(t, dir)
}

// A folder whose files are linked from elsewhere is not that folder.
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

// The index of a folder says nothing of a copy, however exact.
func TestCopiedFolderIsRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the system does not tell")
	}
	dir := indexed(t)
	twin := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", dir, twin).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if parsed(t, twin) != nil {
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

// Whatever the index holds, the result is that of no index: a damaged one is not
// used.
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
	// One whose sum is right again may lie, and does no harm where files are read.
	verify := dev
	verify.Verify = true
	header := len(appendIndexHeader(nil, BlobID(nil), stat{}))
	for range 200 {
		data := append(slices.Clone(whole[:header]), damage(whole[header:len(whole)-crc32.Size])...)
		must(t, os.WriteFile(file, binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli)), 0o644))
		compareCounting(t, dir, dev)
		if got, _ := compareCounting(t, dir, verify); !sameChanges(got, want) {
			t.Fatalf("verified: changes are %+v, want %+v", got, want)
		}
	}
}

// An index that lies is not believed where files have to be verified.
func TestVerify(t *testing.T) {
	dir := indexed(t)
	lieIn(t, dir, "large/app/a.yaml", "zz")
	if c, _ := compareCounting(t, dir, dev); !c.Empty() {
		t.Fatalf("the index does not lie: %+v", c)
	}
	verify := dev
	verify.Verify = true
	if c := write(t, dir, treeOf(small), verify); !slices.Equal(c.Written, []string{"large/app/a.yaml"}) {
		t.Errorf("changes are %+v", c)
	}
	equal(t, "restored", read(t, dir), small)
}

// lieIn changes a file, and makes the index say that it looked like this.
func lieIn(t *testing.T, dir, p, content string) {
	t.Helper()
	file := filepath.Join(dir, p)
	must(t, os.WriteFile(file, []byte(content), 0o644))
	info, err := os.Stat(file)
	must(t, err)
	was := trustedEntries(t, dir)[p]
	data, err := os.ReadFile(filepath.Join(dir, indexPath))
	must(t, err)
	at := bytes.Index(data, was)
	entry(data[at : at+entrySize]).setStat(statOf(info))
	body := data[:len(data)-crc32.Size]
	must(t, os.WriteFile(filepath.Join(dir, indexPath), binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli)), 0o644))
}

// Sections come back as they were added, and changes of entries stay in them.
func TestSection(t *testing.T) {
	type file struct {
		p          string
		executable bool
		st         stat
	}
	blob := func(f file) Blob { return Blob{BlobID([]byte(f.p)), f.executable} }
	all := []file{{"README.md", false, stat{1, 2, 3, 4}}, {"app/a", true, stat{5, -6, 7, 8}}, {"app/deep/b", false, stat{}}, {"app/c", true, stat{1 << 62, 1, 1, 1 << 63}}}
	s := &section{}
	for _, f := range all {
		s.add(f.p, blob(f), f.st, fresh)
	}
	for range 2 {
		i := 0
		ok := s.each(func(dir, name string, e entry) {
			if got := filepath.ToSlash(filepath.Join(dir, name)); got != all[i].p || e.blob() != blob(all[i]) || e.stat() != all[i].st {
				t.Errorf("%s is %v %v", got, e.blob(), e.stat())
			}
			all[i].st.size++
			e.setStat(all[i].st)
			i++
		})
		if !ok || i != len(all) {
			t.Errorf("%d entries, %v", i, ok)
		}
	}
}

// FuzzParseIndex: any index with a right checksum has sound ids, or is none.
func FuzzParseIndex(f *testing.F) {
	id := BlobID(nil)
	s := &section{}
	s.add("README.md", Blob{ID: id}, stat{1, 2, 3, 4}, trusted)
	s.add("app/a", Blob{id, true}, stat{1, 2, 3, 4}, doubtful)
	data := appendIndexHeader(nil, id, stat{})
	header := len(data)
	data = appendBytes(data, "large")
	data = append(binary.LittleEndian.AppendUint32(data, uint32(len(s.data))), s.data...)
	f.Add(data[header:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		data := append(appendIndexHeader(nil, id, stat{}), body...)
		idx := parseIndex(binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli)), id, stat{})
		if idx == nil {
			return
		}
		for _, s := range idx.sections {
			s.each(func(_, name string, e entry) {
				if b := e.blob(); !b.ID.valid() {
					t.Errorf("%s has the id %s", name, b.ID)
				}
				e.setStat(e.stat())
			})
		}
	})
}

// A folder in which there is nothing is planned once.
func TestNewFolderIsMadeOnce(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "dev")} {
		d, err := open(dir, 0)
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

// A changed digest makes the cluster type anew, and an equal one does not, even
// where its content would be another.
func TestDigestsDecide(t *testing.T) {
	dir := indexed(t)
	d, err := open(dir, 0)
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
