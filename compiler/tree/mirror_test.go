package tree_test

import (
	"context"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// mirror is a folder and a branch of a bare repository with the same content. An
// environment in it is written to both.
type mirror struct {
	t    testing.TB
	dir  string
	repo string
	at   string // the environment's folder in them
}

func newMirror(t testing.TB, at string) *mirror {
	t.Helper()
	isolate(t)
	m := &mirror{t: t, dir: filepath.Join(t.TempDir(), "dir"), repo: filepath.Join(t.TempDir(), "r.git"), at: at}
	must(t, os.Mkdir(m.dir, 0o755))
	m.git("init", "-q", "--bare", "-b", "main", m.repo)
	return m
}

// isolate hides the user's own git config.
func isolate(t testing.TB) {
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GIT_") || name == "SOURCE_DATE_EPOCH" {
			t.Setenv(name, "") // so that it is restored
			os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}

// git runs git in the repository.
func (m *mirror) git(args ...string) string { return m.gitWith(nil, "", args...) }

func (m *mirror) gitWith(env []string, stdin string, args ...string) string {
	m.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(append(os.Environ(), "GIT_AUTHOR_NAME=o", "GIT_AUTHOR_EMAIL=o@x", "GIT_COMMITTER_NAME=o", "GIT_COMMITTER_EMAIL=o@x"), env...)
	if args[0] != "init" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+m.repo)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// hashOf returns an id in its binary form.
func hashOf(id tree.ID) (h git.Hash) {
	if _, err := hex.Decode(h[:], []byte(id)); err != nil {
		panic(err)
	}
	return h
}

// folderTree returns git's id of the whole folder.
func (m *mirror) folderTree() string {
	m.t.Helper()
	env := []string{"GIT_WORK_TREE=" + m.dir, "GIT_INDEX_FILE=" + filepath.Join(m.t.TempDir(), "index")}
	m.gitWith(env, "", "add", "-A", m.dir)
	return m.gitWith(env, "", "write-tree")
}

// commitTree commits a tree to the branch.
func (m *mirror) commitTree(desired string) {
	m.t.Helper()
	args := []string{"commit-tree", desired, "-m", "by hand"}
	if tip := m.tip(); tip != "" {
		args = append(args, "-p", tip)
	}
	m.git("update-ref", "refs/heads/main", m.git(args...))
}

// follow makes the branch match the folder.
func (m *mirror) follow() { m.t.Helper(); m.commitTree(m.folderTree()) }

func (m *mirror) tip() string {
	out, _ := exec.Command("git", "-C", m.repo, "rev-parse", "-q", "--verify", "refs/heads/main").Output()
	return strings.TrimSpace(string(out))
}

// branch opens the branch.
func (m *mirror) branch() *tree.Branch {
	m.t.Helper()
	r, err := tree.OpenRepository(m.repo)
	must(m.t, err)
	m.t.Cleanup(func() { must(m.t, r.Close()) })
	b, err := r.Branch("main")
	must(m.t, err)
	return b
}

func (m *mirror) placement(desired *plainTree, o tree.Options) []tree.Placement {
	return []tree.Placement{{Folder: m.at, Tree: desired.tree(), Options: o}}
}

var by = tree.CommitInfo{Message: "m", Name: "A", Email: "a@x", When: time.Unix(1_000_000_000, 0).UTC()}

// commit commits a tree and checks the properties of every commit.
func (m *mirror) commit(desired *plainTree, o tree.Options) (*tree.CommitResult, []diag.Diagnostic) {
	m.t.Helper()
	b, before := m.branch(), m.tip()
	would, wouldReport, err := b.Compare(context.Background(), m.placement(desired, o))
	must(m.t, err)
	got, report, err := b.Commit(context.Background(), m.placement(desired, o), by)
	must(m.t, err)
	if !slices.EqualFunc(report, wouldReport, func(a, b diag.Diagnostic) bool { return a.Message == b.Message }) {
		m.t.Errorf("Compare reports %v, Commit %v", wouldReport, report)
	}
	if got == nil {
		if m.tip() != before {
			m.t.Error("the branch moved in spite of diagnostics")
		}
		return nil, report
	}
	if would.Tree != got.Tree || !sameChanges(would.Changes[0], got.Changes[0]) || would.Commit != "" {
		m.t.Errorf("Compare says %+v, Commit %+v", would, got)
	}
	if is := m.git("rev-parse", "main^{tree}"); is != string(got.Tree) {
		m.t.Errorf("the branch's tree is %s, the result's %s", is, got.Tree)
	}
	if tip := m.tip(); got.Commit != "" && tip != string(got.Commit) || got.Commit == "" && tip != before {
		m.t.Errorf("the branch was at %s and is at %s, the result's commit is %q", before, tip, got.Commit)
	}
	if (got.Commit == "") != got.Changes[0].Empty() {
		m.t.Errorf("commit %q for changes %+v", got.Commit, got.Changes[0])
	}
	m.healthy()
	return got, nil
}

// healthy runs git's own check.
func (m *mirror) healthy() {
	m.t.Helper()
	out := m.git("fsck", "--strict", "--full", "--no-dangling", "--no-progress")
	if out != "" && !strings.HasPrefix(out, "notice: HEAD points to an unborn branch") {
		m.t.Errorf("fsck: %s", out)
	}
}

// both writes a tree to the folder and to the branch. Afterwards both have the same
// content again.
func (m *mirror) both(desired *plainTree, o tree.Options) (*tree.Changes, []diag.Diagnostic) {
	m.t.Helper()
	t := m.t.(*testing.T)
	inDir, wantReport := tryWrite(t, filepath.Join(m.dir, m.at), desired, o)
	got, report := m.commit(desired, o)
	for i := range wantReport {
		where := wantReport[i].Sites[0].Position.File
		if want := "main:" + strings.TrimPrefix(strings.TrimPrefix(where, m.dir), "/"); i < len(report) && report[i].Sites[0].Position.File != want {
			t.Errorf("diagnostic at %s, want %s", report[i].Sites[0].Position.File, want)
		}
	}
	if !slices.EqualFunc(report, wantReport, func(a, b diag.Diagnostic) bool {
		return a.Code == b.Code && a.Message == b.Message && a.Hint == b.Hint && a.Environment == o.Environment
	}) {
		t.Errorf("the folder reports\n%v\nthe branch\n%v", wantReport, report)
	}
	if inDir == nil || got == nil {
		return nil, report
	}
	c := got.Changes[0]
	if !slices.Equal(c.Written, inDir.Written) || !slices.Equal(c.Removed, inDir.Removed) || c.Recorded != inDir.Recorded ||
		!equalAssignments(c.Assignments, inDir.Assignments) || c.Record.Tree != inDir.Record.Tree {
		t.Errorf("in the folder the changes are\n%+v\nin the branch\n%+v", inDir, c)
	}
	if want := m.folderTree(); string(got.Tree) != want {
		t.Fatalf("the trees differ:\n%s", m.git("diff-tree", "-r", want, string(got.Tree)))
	}
	record, ds, err := m.branch().Record(m.at)
	must(t, err)
	if len(ds) > 0 || !maps.Equal(filesOf(t, record), filesOf(t, c.Record)) {
		t.Errorf("the record that is read is not the one that was returned: %v", ds)
	}
	return c, nil
}
