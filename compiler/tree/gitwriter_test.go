package tree_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

func TestCommitIsWhatWriteIs(t *testing.T) {
	for _, at := range []string{"", "dev", "a/b"} {
		t.Run("at "+at, func(t *testing.T) {
			m := newMirror(t, at)
			put(t, m.dir, files{"notes.txt": "mine", path.Join(at, "large/notes.txt"): "mine", path.Join(at, "other/x"): "mine"})
			m.follow()
			for _, next := range []files{
				small, small,
				changed(files{"large/app/a.yaml": "a2", "small/README.md": "new"}),
				changed(files{"large/app/c.yaml": "c1", "large/app/b.sh": ""}),
				changed(files{"large/db/a.yaml": "", "small/app/deep/x.yaml": "", "small/README.md": "", "edge/app/x": "x"}),
				changed(files{"large/app/a.yaml": "", "large/app/a.yaml/x": "x", "large/app/a.yaml.b/x": "x"}),
				small,
				changed(files{"small/app/deep/x.yaml": "", "small/app/deep": "x"}),
				small,
				{},
				small,
			} {
				m.both(treeOf(next), dev)
			}
			m.both(failed(), later("b2"))
			m.both(failed(), later("b3"))
			m.both(treeOf(small), later("b4"))
		})
	}
}

func TestRandomCommits(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newMirror(t, []string{"", "dev"}[seed%2])
			random := rand.New(rand.NewPCG(seed, 7))
			dir := filepath.Join(m.dir, m.at)
			must(t, os.MkdirAll(dir, 0o755))
			for range 12 {
				if random.IntN(2) == 0 {
					edit(t, random, dir)
					m.follow()
				}
				if _, report := m.both(treeOf(randomFiles(random, 12)), dev); len(report) > 0 {
					_, report = m.both(treeOf(randomFiles(random, 12)), adopting(dev))
					if len(report) > 0 { // with a file that --adopt does not take over
						must(t, os.RemoveAll(dir))
						m.follow()
					}
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// edit changes a folder as a person would.
func edit(t *testing.T, random *rand.Rand, dir string) {
	t.Helper()
	content := read(t, dir)
	there := slices.Sorted(maps.Keys(content))
	there = slices.DeleteFunc(there, func(p string) bool { return strings.HasSuffix(p, "/") })
	if len(there) == 0 || random.IntN(3) == 0 {
		for p, data := range randomFiles(random, 1) {
			if tree.CheckPaths(append(there, p)) == nil {
				put(t, dir, files{p: data})
			}
		}
		return
	}
	p := there[random.IntN(len(there))]
	must(t, os.Remove(filepath.Join(dir, p)))
	switch random.IntN(5) {
	case 0:
		put(t, dir, files{p: "by hand"})
	case 1:
		put(t, dir, files{p: "-> elsewhere"})
	case 2:
		put(t, dir, files{p + "/x": "by hand"})
	case 3: // another mode
		data, executable := strings.CutPrefix(content[p], "+x ")
		if !executable {
			data = "+x " + data
		}
		put(t, dir, files{p: data})
	}
	// git does not store empty folders.
	for d := path.Dir(p); d != "."; d = path.Dir(d) {
		if os.Remove(filepath.Join(dir, d)) != nil {
			break
		}
	}
}

// A commit writes only new trees around a change: the tree of the branch must match its files, for
// any combination of changes.
func TestCommitsMakeTheTreeOfTheFiles(t *testing.T) {
	m := newMirror(t, "dev")
	for _, c := range []struct{ from, to files }{
		{files{"large/app/b/c": "2"}, files{"large/app/x": "2"}}, // an empty folder disappears
		{files{"large/app/b/c": "2", "large/app/d/e/f": "3"}, files{"large/app/b/c": "2"}},
		{files{"large/app/a": "1"}, files{"large/app/a/x": "4"}}, // a file becomes a folder
		{files{"large/app/b/c": "2"}, files{"large/app/b": "4"}}, // and the other way
		{files{"large/app/a": "1", "large/app/a.b": "1", "large/app/a-b/x": "1"}, files{"large/app/a/x": "1", "large/app/a.b/x": "+x 1"}},
		{files{"large/app/a": "1"}, files{"small/app/a": "1"}},
	} {
		m.commit(treeOf(c.from), dev)
		m.commit(treeOf(c.to), dev)
		if got, want := m.filesTree(), tree.TreeID(c.to.blobs()); got != want {
			t.Errorf("%v became %v: the tree is %s, want %s", c.from, c.to, got, want)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		next := randomFiles(random, random.IntN(8))
		m.commit(treeOf(next), dev)
		if got, want := m.filesTree(), tree.TreeID(next.blobs()); got != want {
			t.Fatalf("of %v the tree is %s, want %s", next, got, want)
		}
	}
}

// filesTree returns git's id of the environment in the branch without kalypso's own files.
func (m *mirror) filesTree() tree.ID {
	m.t.Helper()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(m.t.TempDir(), "index")}
	m.gitWith(env, "", "read-tree", "main:"+m.at)
	m.gitWith(env, "", "rm", "-r", "-q", "--cached", ownFolder)
	return tree.ID(m.gitWith(env, "", "write-tree"))
}

func TestWhatIsInTheWayOfACommit(t *testing.T) {
	for _, c := range []struct {
		name, there, data string
		adopt             bool // --adopt helps
	}{
		{"other content", "large/README.md", "mine", true},
		{"link", "large/README.md", "-> elsewhere", true},
		{"link to outside", "large", "-> /tmp", false},
		{"file for a folder", "large/app", "mine", false},
		{"file for a cluster type", "large", "mine", false},
		{"folder for a file", "large/README.md/x", "mine", false},
		{"file for the record's folder", ".kalypso", "mine", false},
		{"link for the record", recordPath, "-> elsewhere", false},
		{"folder for the record", recordPath + "/x", "mine", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMirror(t, "dev")
			dir := filepath.Join(m.dir, "dev")
			put(t, dir, files{c.there: c.data})
			m.follow()
			before := m.tip()
			_, report := m.commit(treeOf(small), dev)
			if len(report) == 0 || report[0].Code != diag.ForeignFile || report[0].Hint == "" || m.tip() != before {
				t.Errorf("the diagnostics are %v", report)
			}
			got, report := m.commit(treeOf(small), adopting(dev))
			if c.adopt != (got != nil) {
				t.Errorf("with --adopt: %v", report)
			}
		})
	}
	t.Run("file for the environment", func(t *testing.T) {
		m := newMirror(t, "a/dev")
		put(t, m.dir, files{"a": "mine"})
		m.follow()
		if _, report := m.commit(treeOf(small), adopting(dev)); len(report) != 1 || report[0].Code != diag.ForeignFile || report[0].Sites[0].Position.File != "main:a" {
			t.Errorf("the diagnostics are %v", report)
		}
	})
}

// hostile makes a tree of entries that git itself does not allow.
func (m *mirror) hostile(entries ...git.Entry) string {
	m.t.Helper()
	r, err := git.Open(m.repo)
	must(m.t, err)
	defer r.Close()
	w := r.NewPack()
	id, err := w.Add(git.TreeKind, git.EncodeTree(entries))
	must(m.t, err)
	must(m.t, w.Finish())
	return id.String()
}

func TestHostileTrees(t *testing.T) {
	commit := func(m *mirror, o tree.Options) (*tree.CommitResult, []diag.Diagnostic) {
		got, report, err := m.branch().Commit(context.Background(), m.placement(treeOf(small), o), by)
		must(t, err)
		return got, report
	}
	t.Run("executable", func(t *testing.T) {
		m := newMirror(t, "")
		m.both(treeOf(small), dev)
		must(t, os.Chmod(filepath.Join(m.dir, "large/README.md"), 0o755))
		m.follow()
		if c, _ := m.both(treeOf(small), dev); !slices.Equal(c.Written, []string{"large/README.md"}) {
			t.Errorf("written %v", c.Written)
		}
	})
	t.Run("submodule", func(t *testing.T) {
		m := newMirror(t, "")
		put(t, m.dir, files{"x": "x"})
		m.follow()
		sub := git.Entry{Name: "app", Mode: git.SubmoduleMode, ID: git.Hash{1}}
		large := m.hostile(sub)
		m.commitTree(m.hostile(git.Entry{Name: "large", Mode: git.FolderMode, ID: hashOf(tree.ID(large))}))
		for _, o := range []tree.Options{dev, adopting(dev)} {
			if _, report := commit(m, o); len(report) != 1 || report[0].Code != diag.ForeignFile || report[0].Sites[0].Position.File != "main:large/app" {
				t.Errorf("the diagnostics are %v", report)
			}
		}
	})
	t.Run("names", func(t *testing.T) {
		m := newMirror(t, "")
		blob := hashOf(tree.ID(m.gitWith(nil, "x", "hash-object", "-w", "--stdin")))
		evil := []git.Entry{{Name: "..", Mode: git.FileMode, ID: blob}, {Name: ".git", Mode: git.FileMode, ID: blob}, {Name: "large", Mode: git.FileMode, ID: blob}}
		m.commitTree(m.hostile(evil...))
		if _, report := commit(m, dev); len(report) != 1 || report[0].Code != diag.ForeignFile {
			t.Errorf("the diagnostics are %v", report)
		}
		m.commitTree(m.hostile(evil[:2]...))
		commit(m, dev)
		if got := m.git("ls-tree", "--name-only", "main"); got != "..\n.git\n.kalypso\nlarge\nsmall" {
			t.Errorf("the tree is\n%s", got)
		}
	})
	t.Run("missing objects", func(t *testing.T) {
		m := newMirror(t, "")
		m.commitTree(m.hostile(git.Entry{Name: "large", Mode: git.FolderMode, ID: git.Hash{1}}))
		_, _, err := m.branch().Commit(context.Background(), m.placement(treeOf(small), dev), by)
		var missing *git.MissingError
		if !errors.As(err, &missing) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("record that is not its own", func(t *testing.T) {
		m := newMirror(t, "")
		m.both(treeOf(small), dev)
		put(t, m.dir, files{tree.ClusterTypeRecordPath("large"): "{}"})
		m.follow()
		next := treeOf(changed(files{"large/README.md": "2"}))
		for _, desired := range []*plainTree{treeOf(small), next} {
			if _, report := m.both(desired, dev); len(report) != 1 || report[0].Code != diag.BadRecord {
				t.Errorf("the diagnostics are %v", report)
			}
		}
		m.both(next, adopting(dev))
	})
}

func TestRecordsInABranchThatCannotBeUsed(t *testing.T) {
	m := newMirror(t, "dev")
	m.both(treeOf(small), dev)
	other := dev
	other.Platform = "example.com/other@v0"
	for _, o := range []tree.Options{other, adopting(other)} {
		if _, report := m.both(treeOf(small), o); len(report) != 1 || report[0].Code != diag.ForeignRecord {
			t.Errorf("another platform: %v", report)
		}
	}
	put(t, filepath.Join(m.dir, "dev"), files{recordPath: "<<<<"})
	m.follow()
	if _, report, err := m.branch().Record("dev"); err != nil || len(report) != 1 || report[0].Code != diag.BadRecord {
		t.Errorf("reading a broken record: %v %v", report, err)
	}
	if _, report := m.both(treeOf(small), dev); len(report) != 1 || report[0].Code != diag.BadRecord {
		t.Errorf("broken: %v", report)
	}
	m.both(treeOf(small), adopting(dev))
}

func TestKeptFoldersInABranch(t *testing.T) {
	for _, gone := range []string{"large/app", "large/app/b.sh", "small/README.md"} {
		m := newMirror(t, "dev")
		m.both(treeOf(small), dev)
		put(t, filepath.Join(m.dir, "dev"), files{"large/app/a.yaml": "by hand"})
		m.follow()
		m.both(failed(), later("b2"))
		must(t, os.RemoveAll(filepath.Join(m.dir, "dev", gone)))
		m.follow()
		if _, report := m.both(failed(), later("b3")); len(report) == 0 || report[0].Code != diag.KeptMissing {
			t.Errorf("without %s: %v", gone, report)
		}
		m.both(treeOf(small), later("b4"))
	}
}

// If the record shows that a cluster type is unchanged, a commit neither makes nor reads it.
func TestClusterTypesAreReused(t *testing.T) {
	m := newMirror(t, "dev")
	m.both(treeOf(small), dev)
	made := map[string]int{}
	counted := func(content files) []tree.Placement {
		clear(made)
		return []tree.Placement{{Folder: "dev", Tree: counting(treeOf(content).tree(), made), Options: dev}}
	}
	commit := func(content files, objects int, want map[string]int) {
		t.Helper()
		got, report, err := m.branch().Commit(context.Background(), counted(content), by)
		must(t, err)
		if len(report) > 0 || !maps.Equal(made, want) || got.Objects != objects {
			t.Errorf("made %v, %d objects, want %v and %d: %v", made, got.Objects, want, objects, report)
		}
		m.healthy()
	}
	commit(small, 0, map[string]int{})
	// The file, its folder, large, its record, their folder, the header, .kalypso, dev, the root and the commit.
	commit(changed(files{"large/app/a.yaml": "a2"}), 10, map[string]int{"large": 1})

	// With someone else's file in the folder, the folder is compared, and made only if it differs.
	// Existing files are not written again.
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index")}
	m.gitWith(env, "", "read-tree", "main")
	blob := m.gitWith(env, "mine", "hash-object", "-w", "--stdin")
	m.gitWith(env, "", "update-index", "--add", "--cacheinfo", "100644,"+blob+",dev/large/notes.txt")
	m.commitTree(m.gitWith(env, "", "write-tree"))
	commit(changed(files{"large/app/a.yaml": "a2"}), 0, map[string]int{})

	// Drift is repaired.
	m.gitWith(env, "", "update-index", "--add", "--cacheinfo", "100644,"+blob+",dev/large/app/a.yaml")
	m.commitTree(m.gitWith(env, "", "write-tree"))
	commit(changed(files{"large/app/a.yaml": "a2"}), 6, map[string]int{"large": 1})
	if got := m.git("show", "main:dev/large/notes.txt", "main:dev/large/app/a.yaml"); got != "minea2" {
		t.Errorf("the files are %q", got)
	}
}

func TestClusterTypesOutsideOfACommit(t *testing.T) {
	m := newMirror(t, "dev")
	m.both(treeOf(small), dev)
	next := treeOf(changed(files{"large/app/a.yaml": "a2"}))
	*clusterTypeOf(next, "small") = plainType{Name: "small", Outside: true}
	m.both(next, dev)
	if got := m.git("show", "main:dev/small/README.md"); got != "readme" {
		t.Errorf("the file outside is %q", got)
	}
}

func TestEnvironmentsAreCommittedTogether(t *testing.T) {
	m := newMirror(t, "")
	prod := dev
	prod.Environment = "prod"
	both := func(devTree, prodTree files) []tree.Placement {
		return []tree.Placement{{"dev", treeOf(devTree).tree(), dev}, {"prod", treeOf(prodTree).tree(), prod}}
	}
	got, report, err := m.branch().Commit(context.Background(), both(small, small), tree.CommitInfo{})
	must(t, err)
	if len(report) > 0 || len(got.Changes) != 2 || m.git("rev-list", "--count", "main") != "1" {
		t.Errorf("%+v %v", got, report)
	}
	if log := m.git("log", "--format=%B"); log != "Build dev, prod" {
		t.Errorf("the message is %q", log)
	}
	tip := m.tip()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index")}
	m.gitWith(env, "", "read-tree", "main")
	m.gitWith(env, "", "update-index", "--add", "--cacheinfo", "100644,"+m.gitWith(env, "mine", "hash-object", "-w", "--stdin")+",prod/large/x")
	m.commitTree(m.gitWith(env, "", "write-tree"))
	byHand := m.tip()
	got, report, err = m.branch().Commit(context.Background(), both(changed(files{"large/app/a.yaml": "2"}), changed(files{"large/x": "2"})), by)
	if got != nil || err != nil || len(report) != 1 || report[0].Environment != "prod" || report[0].Sites[0].Position.File != "main:prod/large/x" || m.tip() != byHand {
		t.Errorf("one of two: %+v %v %v", got, report, err)
	}
	if m.git("rev-parse", "main~1") != tip {
		t.Error("the history is not one of two commits")
	}
	for _, folders := range [][2]string{{"", "a"}, {"a", "a"}, {"a", "a/b"}, {"../a", "b"}, {"a/", "b"}, {".git", "b"}} {
		ps := both(small, small)
		ps[0].Folder, ps[1].Folder = folders[0], folders[1]
		if _, _, err := m.branch().Commit(context.Background(), ps, by); err == nil {
			t.Errorf("folders %q are accepted", folders)
		}
	}
}

func TestCommitSaysWhoAndWhen(t *testing.T) {
	m := newMirror(t, "")
	t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	_, _, err := m.branch().Commit(context.Background(), m.placement(treeOf(small), dev), tree.CommitInfo{Message: "Subject\n\nBody\n\n"})
	must(t, err)
	const format = "--format=%an <%ae> %ad, %cn <%ce> %cd, %P: %B"
	if got := m.git("log", "-1", "--date=raw", format); got != "kalypso <kalypso@localhost> 1000000000 +0000, kalypso <kalypso@localhost> 1000000000 +0000, : Subject\n\nBody" {
		t.Errorf("the commit is %s", got)
	}
	first := m.tip()
	m.git("config", "user.name", "Configured")
	info := by
	info.Name = ""
	_, _, err = m.branch().Commit(context.Background(), m.placement(treeOf(changed(files{"large/README.md": "2"})), dev), info)
	must(t, err)
	if got := m.git("log", "-1", "--date=raw", format); got != "Configured <a@x> 1000000000 +0000, Configured <a@x> 1000000000 +0000, "+first+": m" {
		t.Errorf("the commit is %s", got)
	}
}

// The same placements on the same branch, by the same person at the same
// time, make the same commit.
func TestCommitsAreReproducible(t *testing.T) {
	var tips []string
	for range 2 {
		m := newMirror(t, "dev")
		m.commit(treeOf(small), dev)
		tips = append(tips, m.tip())
	}
	if tips[0] != tips[1] {
		t.Errorf("the commits are %v", tips)
	}
}

func TestTreesWithoutACommit(t *testing.T) {
	m := newMirror(t, "dev")
	b := m.branch()
	packs := func() int {
		all, err := filepath.Glob(filepath.Join(m.repo, "objects/pack/*"))
		must(t, err)
		return len(all)
	}
	would, _, err := b.Compare(context.Background(), m.placement(treeOf(small), dev))
	must(t, err)
	if packs() != 0 || b.Tip() != "" {
		t.Error("Compare wrote something")
	}
	if got := filesOf(t, would.Changes[0].Record); len(got) != len(small) {
		t.Errorf("the record that would be lists %v", got)
	}
	got, _, err := b.WriteTree(context.Background(), m.placement(treeOf(small), dev))
	must(t, err)
	if got.Tree != would.Tree || got.Commit != "" || got.Objects == 0 || m.tip() != "" {
		t.Errorf("WriteTree: %+v, Compare %+v", got, would)
	}
	if listed := strings.Split(m.git("ls-tree", "-r", "--name-only", string(got.Tree)+":dev"), "\n"); len(listed) != len(small)+4 {
		t.Errorf("the tree has %v", listed)
	}
	if got := filesOf(t, got.Changes[0].Record); len(got) != len(small) {
		t.Errorf("the record lists %v", got)
	}
	m.healthy()
}

func TestBranchesThatAreCheckedOut(t *testing.T) {
	isolate(t)
	dir := filepath.Join(t.TempDir(), "w")
	runGit(t, t.TempDir(), "", "init", "-q", "-b", "main", dir)
	r, err := tree.OpenRepository(dir)
	must(t, err)
	defer r.Close()
	for _, c := range []struct {
		branch  string
		refused bool
	}{{"main", true}, {"out", false}} {
		b, err := r.Branch(c.branch)
		must(t, err)
		_, _, err = b.Commit(context.Background(), []tree.Placement{{Tree: treeOf(small).tree(), Options: dev}}, by)
		if (err != nil) != c.refused || err != nil && (!strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "checked out")) {
			t.Errorf("%s: %v", c.branch, err)
		}
	}
	if got := runGit(t, dir, "", "status", "--porcelain"); got != "" {
		t.Errorf("git status: %s", got)
	}
	if _, err := r.Branch("a..b"); err == nil {
		t.Error("a bad name was accepted")
	}
}

func TestLostRace(t *testing.T) {
	for _, first := range []bool{true, false} {
		m := newMirror(t, "dev")
		if !first {
			m.commit(treeOf(changed(files{"large/README.md": "1"})), dev)
		}
		b := m.branch()
		m.commit(treeOf(changed(files{"large/README.md": "2"})), dev)
		tip := m.tip()
		if _, _, err := b.Commit(context.Background(), m.placement(treeOf(small), dev), by); !errors.Is(err, tree.ErrLostRace) {
			t.Errorf("the error is %v", err)
		}
		if m.tip() != tip {
			t.Error("the branch moved")
		}
		m.healthy()
		m.commit(treeOf(small), dev)
	}
}
