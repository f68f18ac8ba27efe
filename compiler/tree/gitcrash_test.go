package tree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// A test that needs a process of its own runs this binary with one of these variables. The other
// variables are arguments.
const (
	commitAndDie  = "KALYPSO_TEST_COMMIT_AND_DIE"
	commitAndRace = "KALYPSO_TEST_COMMIT_AND_RACE"
	testRepo      = "KALYPSO_TEST_REPO"
)

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(commitAndDie) != "":
		err = dieAtStep(os.Getenv(commitAndDie))
	case os.Getenv(commitAndRace) != "":
		err = raceFor(os.Getenv(commitAndRace))
	default:
		isolated.Main(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process returns the command that runs this binary as a helper.
func process(variable, value, repo string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+value, testRepo+"="+repo)
	return cmd
}

// commitTo commits a tree to the branch main of a repository, at dev.
func commitTo(repo string, desired *plainTree, step func(op, file string) error) error {
	opened, err := git.Open(repo)
	if err != nil {
		return err
	}
	opened.Step = step
	r := tree.NewRepository(opened, repo)
	defer r.Close()
	b, err := r.Branch("main")
	if err != nil {
		return err
	}
	_, report, err := b.Commit(context.Background(), []tree.Placement{{Folder: "dev", Tree: desired.tree(), Options: dev}}, by)
	if len(report) > 0 {
		return fmt.Errorf("diagnostics: %v", report)
	}
	return err
}

var next = changed(files{"large/README.md": "new", "large/app/a.yaml": "+x a1", "large/app/b.sh": "b1"})

// dieAtStep commits next, but kills its process before one of the changes to the file system.
// Nothing can prevent this kill.
func dieAtStep(n string) error {
	left, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	return commitTo(os.Getenv(testRepo), treeOf(next), func(string, string) error {
		if left--; left >= 0 {
			return nil
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err == nil {
			select {} // the signal is on its way
		}
		return err
	})
}

// After a kill at any point of a commit, the branch is unchanged or has the commit,
// and git finds no errors.
func TestKilledCommit(t *testing.T) {
	for _, existing := range []bool{true, false} {
		steps := 0
		for done := false; !done; steps++ {
			m := newMirror(t, "dev")
			m.git("config", "core.logAllRefUpdates", "true")
			if existing {
				m.commit(treeOf(small), dev)
			}
			before := m.tip()
			err := process(commitAndDie, strconv.Itoa(steps), m.repo).Run()
			done = err == nil
			m.healthy()
			if !done && m.tip() != before {
				t.Errorf("step %d: killed before the end, and the branch has moved", steps)
			}
			if done && m.tip() == before {
				t.Errorf("step %d: not killed, and the branch has not moved", steps)
			}
			lock := filepath.Join(m.repo, "refs/heads/main.lock")
			if _, err := os.Stat(lock); err == nil {
				if err := commitTo(m.repo, treeOf(next), nil); err == nil || !strings.Contains(err.Error(), lock) || !strings.Contains(err.Error(), "remove") {
					t.Errorf("step %d: over a lock that is left: %v", steps, err)
				}
				must(t, os.Remove(lock))
			}
			must(t, commitTo(m.repo, treeOf(next), nil))
			if got := m.git("show", "main:dev/large/README.md"); got != "new" {
				t.Errorf("step %d: the file is %q", steps, got)
			}
			want := fmt.Sprintf("100755 blob %s\ta.yaml\n100644 blob %s\tb.sh", tree.BlobID([]byte("a1")), tree.BlobID([]byte("b1")))
			if got := m.git("ls-tree", "main:dev/large/app"); got != want {
				t.Errorf("step %d: the folder is\n%s", steps, got)
			}
			m.healthy()
			if done {
				m.git("gc", "-q", "--prune=now")
				m.healthy()
			}
		}
		if steps < 9 {
			t.Errorf("only %d steps", steps)
		}
	}
}

// A failed commit leaves the branch unchanged, and leaves no lock and no temporary file.
func TestCommitThatFails(t *testing.T) {
	full := errors.New("no space")
	for n, done := 0, false; !done; n++ {
		m := newMirror(t, "dev")
		m.commit(treeOf(small), dev)
		before, left := m.tip(), n
		err := commitTo(m.repo, treeOf(next), func(string, string) error {
			if left--; left < 0 {
				return full
			}
			return nil
		})
		done = err == nil
		if done != (m.tip() != before) || !done && !errors.Is(err, full) {
			t.Errorf("step %d: %v", n, err)
		}
		m.healthy()
		for _, pattern := range []string{"refs/heads/*.lock", "objects/pack/tmp_*"} {
			if left, _ := filepath.Glob(filepath.Join(m.repo, pattern)); len(left) > 0 {
				t.Errorf("step %d: %v is left", n, left)
			}
		}
		must(t, commitTo(m.repo, treeOf(next), nil))
	}
}

const raceRounds = 4

// raceFor commits an environment of its own several times, and tries again if
// another process was faster.
func raceFor(environment string) error {
	o := dev
	o.Environment = environment
	for i := range raceRounds {
		const maxRepacks = 3
		for missing := 0; ; {
			err := func() error {
				r, err := tree.OpenRepository(os.Getenv(testRepo))
				if err != nil {
					return err
				}
				defer r.Close()
				b, err := r.Branch("main")
				if err != nil {
					return err
				}
				desired := treeOf(changed(files{"large/README.md": fmt.Sprint(i)}))
				_, report, err := b.Commit(context.Background(), []tree.Placement{{Folder: environment, Tree: desired.tree(), Options: o}}, tree.CommitInfo{})
				if len(report) > 0 {
					return fmt.Errorf("diagnostics: %v", report)
				}
				return err
			}()
			if err == nil {
				break
			}
			// While git replaces packs, an object may be missing: a commit fails, and the next
			// attempt finds the object.
			var gone *git.MissingError
			if errors.As(err, &gone) && missing < maxRepacks {
				missing++
				continue
			}
			if !errors.Is(err, tree.ErrLostRace) {
				return err
			}
		}
	}
	return nil
}

// Processes that commit to one branch at once, while git packs it, lose nothing.
func TestProcessesThatRace(t *testing.T) {
	m := newMirror(t, "")
	const n = 6
	var all []*exec.Cmd
	for i := range n {
		cmd := process(commitAndRace, fmt.Sprintf("env%d", i), m.repo)
		cmd.Stderr = os.Stderr
		must(t, cmd.Start())
		all = append(all, cmd)
	}
	m.git("pack-refs", "--all", "--prune")
	m.git("repack", "-q", "-a", "-d")
	for _, cmd := range all {
		must(t, cmd.Wait())
	}
	m.healthy()
	if got := m.git("rev-list", "--count", "main"); got != fmt.Sprint(n*raceRounds) {
		t.Errorf("there are %s commits", got)
	}
	for i := range n {
		if got := m.git("show", fmt.Sprintf("main:env%d/large/README.md", i)); got != fmt.Sprint(raceRounds-1) {
			t.Errorf("env%d has %q", i, got)
		}
	}
}
