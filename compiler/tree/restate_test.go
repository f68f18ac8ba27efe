package tree

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
)

// bare is an empty repository, and a branch of it that moves with make.
type bare struct {
	t   *testing.T
	dir string
	git *git.Repository
	tip git.Hash
}

func newBare(t *testing.T) *bare {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", "--bare", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r, err := git.Open(dir)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return &bare{t: t, dir: dir, git: r}
}

func (b *bare) branch() *Branch { return b.at(b.tip) }

func (b *bare) at(tip git.Hash) *Branch {
	b.t.Helper()
	branch, err := NewRepository(b.git, b.dir).BranchAt("main", tip)
	must(b.t, err)
	return branch
}

// make moves on by what a function adds to a pack.
func (b *bare) make(f func(*git.PackWriter, CommitInfo) (*CommitResult, error)) *CommitResult {
	b.t.Helper()
	pack := b.git.NewPack()
	result, err := f(pack, CommitInfo{Message: "x", Name: "a", Email: "a@example.com", When: time.Unix(1e9, 0).UTC()})
	must(b.t, err)
	must(b.t, pack.Finish())
	must(b.t, pack.Abort())
	if result.Commit != "" {
		b.tip = hash(result.Commit)
	}
	return result
}

func (b *bare) write(t *plainTree, o Options) *CommitResult {
	b.t.Helper()
	return b.make(func(pack *git.PackWriter, c CommitInfo) (*CommitResult, error) {
		result, ds, err := b.branch().Make(context.Background(), []Placement{{Folder: "dev", Tree: t.tree(), Options: o}}, pack, c)
		if len(ds) > 0 {
			b.t.Fatal(ds)
		}
		return result, err
	})
}

func (b *bare) record() *Record {
	b.t.Helper()
	r, ds, err := b.branch().Record("dev")
	if err != nil || len(ds) > 0 {
		b.t.Fatal(err, ds)
	}
	return r
}

// A record says of each ring what it has, whichever was built last, and what holds it.
func TestRingsInRecords(t *testing.T) {
	b := newBare(t)
	o := dev
	o.Ring, o.Rings = "a", []Ring{{Name: "a", Source: Source{"s1", "e1"}}, {Name: "b", Source: Source{"s0", "e0"}, Hold: &Hold{Reason: "x", By: "y", Until: "2026-01-01T00:00:00Z", Base: "s1"}}}
	o.Hold = &Hold{Reason: `a "reason"`, By: "z"}
	b.write(treeOf(small), o)
	r := b.record()
	if len(r.Rings) != 2 || r.Ring("a").Source != o.Rings[0].Source || *r.Ring("b").Hold != *o.Rings[1].Hold || *r.Hold != *o.Hold {
		t.Errorf("got %+v, %+v", r.Rings, r.Hold)
	}
	if r.RingOf("small") != "a" || r.RingOf("none") != "" || r.Ring("c") != nil {
		t.Errorf("rings of cluster types: %q, %q", r.RingOf("small"), r.RingOf("none"))
	}
	// Another ring leaves those of the first as they are.
	next := treeOf(small)
	plain := next.tree()
	for i := range plain.ClusterTypes {
		plain.ClusterTypes[i].Outside = plain.ClusterTypes[i].Name == "small"
	}
	o.Ring = "b"
	b.make(func(pack *git.PackWriter, c CommitInfo) (*CommitResult, error) {
		result, _, err := b.branch().Make(context.Background(), []Placement{{Folder: "dev", Tree: plain, Options: o}}, pack, c)
		return result, err
	})
	if r = b.record(); r.RingOf("small") != "a" || r.RingOf("large") != "b" {
		t.Errorf("small is of %q, large of %q", r.RingOf("small"), r.RingOf("large"))
	}
}

func TestRecordsWithUnsortedRingsAreRefused(t *testing.T) {
	r := Record{APIVersion: apiVersion, Kind: recordKind, Tree: TreeID(nil), Rings: []Ring{{Name: "b"}, {Name: "a"}}}
	if _, err := ParseRecord(r.Encode(), nil); err == nil {
		t.Error("it was read")
	}
}

// A hold changes the record and nothing else, and a commit of the same content is the
// same commit.
func TestRestate(t *testing.T) {
	b := newBare(t)
	b.write(treeOf(small), dev)
	before, tip := b.record(), b.tip
	hold := func(pack *git.PackWriter, c CommitInfo) (*CommitResult, error) {
		return b.branch().Restate("dev", func(r *Record) error { r.Hold = &Hold{Reason: "x"}; return nil }, pack, c)
	}
	held := b.make(hold)
	after := b.record()
	if after.Hold == nil || after.Tree != before.Tree || held.Commit == "" {
		t.Errorf("got %+v", after)
	}
	if again := b.make(hold); again.Commit != "" {
		t.Errorf("nothing changes, and there is commit %s", again.Commit)
	}
	b.tip = tip
	if again := b.make(hold); again.Commit != held.Commit {
		t.Errorf("the same commit is %s and %s", held.Commit, again.Commit)
	}
}

// Restore brings back the very files of an earlier commit.
func TestRestore(t *testing.T) {
	b := newBare(t)
	first := b.write(treeOf(small), dev)
	b.write(treeOf(changed(files{"large/app/a.yaml": "a2", "small/README.md": ""})), later("b2"))
	old := b.at(hash(first.Commit))
	b.make(func(pack *git.PackWriter, c CommitInfo) (*CommitResult, error) {
		return b.branch().Restore("dev", old, func(r *Record) error { r.Hold = &Hold{Reason: "bad"}; return nil }, pack, c)
	})
	if r := b.record(); r.Hold == nil || r.Source != dev.Source {
		t.Errorf("got %+v", r)
	}
	tree := func(id git.Hash) string {
		out, err := exec.Command("git", "-C", b.dir, "ls-tree", "-r", id.String(), "dev").Output()
		must(t, err)
		return strings.Join(slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return strings.HasSuffix(line, "provenance.json") }), "\n")
	}
	if tree(b.tip) != tree(hash(first.Commit)) {
		t.Errorf("got\n%s\nwant\n%s", tree(b.tip), tree(hash(first.Commit)))
	}
	pack := b.git.NewPack()
	defer pack.Abort()
	if _, err := b.branch().Restate("nowhere", func(*Record) error { return nil }, pack, CommitInfo{}); err == nil || !strings.Contains(err.Error(), "nowhere/.kalypso") {
		t.Errorf("got %v", err)
	}
}

// Drift is what others did to recorded files: their own do not count.
func TestDrift(t *testing.T) {
	b := newBare(t)
	b.write(treeOf(small), dev)
	drift := func() []Drift {
		d, err := b.branch().Drift("dev")
		must(t, err)
		return d
	}
	if d := drift(); len(d) > 0 {
		t.Errorf("nobody changed anything: %v", d)
	}
	var paths []string
	for p := range filesOf(t, b.record()) {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	edit := func(changes ...treeEdit) {
		b.make(func(pack *git.PackWriter, c CommitInfo) (*CommitResult, error) {
			root, err := (&treeEditor{b.git, pack.Add}).apply(b.branch().root, changes)
			result := &CommitResult{Tree: ID(root.String())}
			if err == nil {
				_, err = b.branch().seal(result, pack, c)
			}
			return result, err
		})
	}
	other := git.ID(git.BlobKind, []byte("by hand"))
	good := b.tip
	edit(editAt("dev/notes.md", other))
	if d := drift(); len(d) > 0 {
		t.Errorf("a text beside is no drift: %v", d)
	}
	foreign := "dev/" + strings.Split(paths[0], "/")[0] + "/foreign.txt"
	record, err := exec.Command("git", "-C", b.dir, "cat-file", "blob", good.String()+":dev/"+recordPath).Output()
	must(t, err)
	write := exec.Command("git", "-C", b.dir, "hash-object", "-w", "--stdin")
	write.Stdin = strings.NewReader(" " + string(record))
	id, err := write.Output()
	must(t, err)
	spaced := hash(ID(strings.TrimSpace(string(id))))
	edit(editAt(foreign, other), editAt("dev/evil.yaml", other), editAt("dev/"+recordPath, spaced), editAt("dev/"+ClusterTypeRecordPath("small"), other),
		editAt("dev/"+paths[0], other), editAt("dev/"+paths[1], git.Hash{}))
	want := []Drift{{paths[0], Changed}, {paths[1], Gone}, {strings.TrimPrefix(foreign, "dev/"), Added}, {ClusterTypeRecordPath("small"), Changed}, {"evil.yaml", Added}, {recordPath, Spaced}}
	if d := drift(); !slices.Equal(d, want) {
		t.Errorf("got %v, want %v", d, want)
	}
	over := b.branch()
	must(t, over.Instead("dev", b.at(good)))
	b.make(func(pack *git.PackWriter, c CommitInfo) (*CommitResult, error) {
		result, ds, err := over.Make(context.Background(), []Placement{{"dev", treeOf(small).tree(), dev}}, pack, c)
		if len(ds) > 0 {
			t.Errorf("got %v", ds)
		}
		return result, err
	})
	if problems, err := b.branch().Check("dev"); err != nil || len(problems) > 0 {
		t.Errorf("what was restored is not as it should be: %v, %v", problems, err)
	}
	if id, err := exec.Command("git", "-C", b.dir, "rev-parse", b.tip.String()+":dev/notes.md").Output(); err != nil || strings.TrimSpace(string(id)) != other.String() {
		t.Errorf("what is beside did not stay: %s, %v", id, err)
	}
}

// editAt writes a blob at a path; the zero Hash removes what is there.
func editAt(path string, id git.Hash) treeEdit {
	if id.IsZero() {
		return treeEdit{path: path}
	}
	return treeEdit{path, &git.Entry{Mode: git.FileMode, ID: id}}
}
