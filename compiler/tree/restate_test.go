package tree_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// bare is an empty repository, and a branch in it that make moves.
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

func (b *bare) branch() *tree.Branch { return b.at(b.tip) }

func (b *bare) at(tip git.Hash) *tree.Branch {
	b.t.Helper()
	branch, err := tree.NewRepository(b.git, b.dir).BranchAt("main", tip)
	must(b.t, err)
	return branch
}

// make adds a commit with the objects that f adds to a pack.
func (b *bare) make(f func(*git.PackWriter, tree.CommitInfo) (*tree.CommitResult, error)) *tree.CommitResult {
	b.t.Helper()
	pack := b.git.NewPack()
	result, err := f(pack, tree.CommitInfo{Message: "x", Name: "a", Email: "a@example.com", When: time.Unix(1e9, 0).UTC()})
	must(b.t, err)
	must(b.t, pack.Finish())
	must(b.t, pack.Abort())
	if result.Commit != "" {
		b.tip = hashOf(result.Commit)
	}
	return result
}

func (b *bare) write(t *plainTree, o tree.Options) *tree.CommitResult {
	b.t.Helper()
	return b.make(func(pack *git.PackWriter, c tree.CommitInfo) (*tree.CommitResult, error) {
		result, ds, err := b.branch().Make(context.Background(), []tree.Placement{{Folder: "dev", Tree: t.tree(), Options: o}}, pack, c)
		if len(ds) > 0 {
			b.t.Fatal(ds)
		}
		return result, err
	})
}

func (b *bare) record() *tree.Record {
	b.t.Helper()
	r, ds, err := b.branch().Record("dev")
	if err != nil || len(ds) > 0 {
		b.t.Fatal(err, ds)
	}
	return r
}

// A record has the source and the hold of each ring, even of a ring that was not built last.
func TestRingsInRecords(t *testing.T) {
	b := newBare(t)
	o := dev
	o.Ring, o.Rings = "a", []tree.Ring{{Name: "a", Source: tree.Source{"s1", "e1"}}, {Name: "b", Source: tree.Source{"s0", "e0"}, Hold: &tree.Hold{Reason: "x", By: "y", Until: "2026-01-01T00:00:00Z", Base: "s1"}}}
	o.Hold = &tree.Hold{Reason: `a "reason"`, By: "z"}
	b.write(treeOf(small), o)
	r := b.record()
	if len(r.Rings) != 2 || r.Ring("a").Source != o.Rings[0].Source || *r.Ring("b").Hold != *o.Rings[1].Hold || *r.Hold != *o.Hold {
		t.Errorf("got %+v, %+v", r.Rings, r.Hold)
	}
	if r.RingOf("small") != "a" || r.RingOf("none") != "" || r.Ring("c") != nil {
		t.Errorf("rings of cluster types: %q, %q", r.RingOf("small"), r.RingOf("none"))
	}
	// A build of another ring does not change the cluster types of the first.
	next := treeOf(small)
	plain := next.tree()
	for i := range plain.ClusterTypes {
		plain.ClusterTypes[i].Outside = plain.ClusterTypes[i].Name == "small"
	}
	o.Ring = "b"
	b.make(func(pack *git.PackWriter, c tree.CommitInfo) (*tree.CommitResult, error) {
		result, _, err := b.branch().Make(context.Background(), []tree.Placement{{Folder: "dev", Tree: plain, Options: o}}, pack, c)
		return result, err
	})
	if r = b.record(); r.RingOf("small") != "a" || r.RingOf("large") != "b" {
		t.Errorf("small is of %q, large of %q", r.RingOf("small"), r.RingOf("large"))
	}
}

func TestRecordsWithUnsortedRingsAreRefused(t *testing.T) {
	r := tree.Record{APIVersion: apiVersion, Kind: recordKind, Tree: tree.TreeID(nil), Rings: []tree.Ring{{Name: "b"}, {Name: "a"}}}
	if _, err := tree.ParseRecord(r.Encode(), nil); err == nil {
		t.Error("it was read")
	}
}

// A hold changes only the record. Two commits of the same content have the same id.
func TestRestate(t *testing.T) {
	b := newBare(t)
	b.write(treeOf(small), dev)
	before, tip := b.record(), b.tip
	hold := func(pack *git.PackWriter, c tree.CommitInfo) (*tree.CommitResult, error) {
		return b.branch().Restate("dev", func(r *tree.Record) error { r.Hold = &tree.Hold{Reason: "x"}; return nil }, pack, c)
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

// Restore restores the exact files of an earlier commit.
func TestRestore(t *testing.T) {
	b := newBare(t)
	first := b.write(treeOf(small), dev)
	b.write(treeOf(changed(files{"large/app/a.yaml": "a2", "small/README.md": ""})), later("b2"))
	old := b.at(hashOf(first.Commit))
	b.make(func(pack *git.PackWriter, c tree.CommitInfo) (*tree.CommitResult, error) {
		return b.branch().Restore("dev", old, func(r *tree.Record) error { r.Hold = &tree.Hold{Reason: "bad"}; return nil }, pack, c)
	})
	if r := b.record(); r.Hold == nil || r.Source != dev.Source {
		t.Errorf("got %+v", r)
	}
	desired := func(id git.Hash) string {
		out, err := exec.Command("git", "-C", b.dir, "ls-tree", "-r", id.String(), "dev").Output()
		must(t, err)
		return strings.Join(slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return strings.HasSuffix(line, "provenance.json") }), "\n")
	}
	if desired(b.tip) != desired(hashOf(first.Commit)) {
		t.Errorf("got\n%s\nwant\n%s", desired(b.tip), desired(hashOf(first.Commit)))
	}
	pack := b.git.NewPack()
	defer pack.Abort()
	if _, err := b.branch().Restate("nowhere", func(*tree.Record) error { return nil }, pack, tree.CommitInfo{}); err == nil || !strings.Contains(err.Error(), "nowhere/.kalypso") {
		t.Errorf("got %v", err)
	}
}

// Drift is other people's changes to recorded files; texts of their own beside them do not count.
func TestDrift(t *testing.T) {
	b := newBare(t)
	b.write(treeOf(small), dev)
	drift := func() []tree.Drift {
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
	other := b.blob("by hand")
	good := b.tip
	b.edit(map[string]string{"dev/notes.md": other, "dev/README.md": other})
	older := b.tip
	b.edit(map[string]string{"dev/README.md": ""})
	if d := drift(); len(d) > 0 {
		t.Errorf("a text beside is no drift: %v", d)
	}
	foreign := "dev/" + strings.Split(paths[0], "/")[0] + "/foreign.txt"
	record := b.run("", "cat-file", "blob", good.String()+":dev/"+recordPath)
	b.edit(map[string]string{"dev/LICENSE": other, foreign: other, "dev/evil.yaml": other, "dev/" + recordPath: b.blob(" " + record + "\n"),
		"dev/" + tree.ClusterTypeRecordPath("small"): other, "dev/" + paths[0]: other, "dev/" + paths[1]: ""})
	want := []tree.Drift{{paths[0], tree.Changed}, {paths[1], tree.Gone}, {strings.TrimPrefix(foreign, "dev/"), tree.Added}, {tree.ClusterTypeRecordPath("small"), tree.Changed}, {"evil.yaml", tree.Added}, {recordPath, tree.Spaced}}
	if d := drift(); !slices.Equal(d, want) {
		t.Errorf("got %v, want %v", d, want)
	}
	over := b.branch()
	must(t, over.Instead("dev", b.at(older)))
	b.make(func(pack *git.PackWriter, c tree.CommitInfo) (*tree.CommitResult, error) {
		result, ds, err := over.Make(context.Background(), []tree.Placement{{"dev", treeOf(small).tree(), dev}}, pack, c)
		if len(ds) > 0 {
			t.Errorf("got %v", ds)
		}
		return result, err
	})
	if problems, err := b.branch().Check("dev"); err != nil || len(problems) > 0 {
		t.Errorf("what was restored is not as it should be: %v, %v", problems, err)
	}
	// Files that someone added beside the environment since then stay, and
	// removed files stay removed.
	if got := b.run("", "ls-tree", "--name-only", b.tip.String()+":dev"); got != ".kalypso\nLICENSE\nlarge\nnotes.md\nsmall" {
		t.Errorf("what is beside did not stay as it was: %s", got)
	}
}

// run runs git in the repository.
func (b *bare) run(stdin string, args ...string) string {
	b.t.Helper()
	return b.runWith(nil, stdin, args...)
}

func (b *bare) runWith(env []string, stdin string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", b.dir, "-c", "user.name=o", "-c", "user.email=o@x"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	must(b.t, err)
	return strings.TrimSuffix(string(out), "\n")
}

// blob stores a file's content, and returns its id.
func (b *bare) blob(content string) string {
	b.t.Helper()
	return b.run(content, "hash-object", "-w", "--stdin")
}

// edit commits blobs at paths by hand; "" removes the file.
func (b *bare) edit(changes map[string]string) {
	b.t.Helper()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(b.t.TempDir(), "index")}
	b.runWith(env, "", "read-tree", b.tip.String())
	for p, id := range changes {
		if id == "" {
			b.runWith(env, "", "rm", "-q", "--cached", p)
		} else {
			b.runWith(env, "", "update-index", "--add", "--cacheinfo", "100644,"+id+","+p)
		}
	}
	root := b.runWith(env, "", "write-tree")
	b.tip = hashOf(tree.ID(b.run("", "commit-tree", root, "-p", b.tip.String(), "-m", "by hand")))
}
