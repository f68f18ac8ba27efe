package compiler_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// committed builds into a branch. Each change makes one commit, with the same files as in a
// folder.
func committed(shared *cache.Cache) variant {
	return func(t *testing.T, root string) follower {
		git(t, root, "init", "--quiet", "--bare", ".")
		commits := 0
		return follower{
			name: "committed",
			step: func(s *step) string {
				before := maps.Clone(s.before.files)
				got := write(t, compiler.Request{Dir: s.platformDir, Cache: shared}, compiler.Anywhere(compiler.Output{Git: root, Branch: "out"}))
				for _, what := range []string{"text", "json", "github", "error"} {
					if d := differs(map[string]string{what: got.said[what]}, map[string]string{what: s.want.said[what]}); d != "" {
						return d
					}
				}
				if changes := !maps.Equal(before, s.want.files); changes != (got.commit != "") {
					return fmt.Sprintf("the commit is %q, but that something changes is %t", got.commit, changes)
				}
				if got.commit == "" {
					return ""
				}
				commits++
				if tip := strings.TrimSpace(git(t, root, "rev-parse", "out")); tip != string(got.commit) {
					return fmt.Sprintf("the branch is at %s, and the commit is %s", tip, got.commit)
				}
				return differs(listed(git(t, root, "ls-tree", "-r", "-z", "out")), entries(s.want.files))
			},
			end: func(s *step) string {
				if commits == 0 {
					return ""
				}
				if n := strings.Count(git(t, root, "rev-list", "out"), "\n"); n != commits {
					return fmt.Sprintf("%d commits, want %d", n, commits)
				}
				if said := git(t, root, "fsck", "--full", "--strict", "--no-progress", "--no-dangling"); said != "" {
					return said
				}
				var paths bytes.Buffer
				names := slices.Sorted(maps.Keys(s.want.files))
				for _, p := range names {
					fmt.Fprintf(&paths, "out:%s\n", p)
				}
				cmd := exec.Command("git", "-C", root, "cat-file", "--batch=%(objectsize)")
				cmd.Stdin = &paths
				text, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				var want strings.Builder
				for _, p := range names {
					data := fileOf(p, s.want.files[p]).Data
					fmt.Fprintf(&want, "%d\n%s\n", len(data), data)
				}
				return differs(map[string]string{"what git reads": string(text)}, map[string]string{"what git reads": want.String()})
			},
		}
	}
}

// listed parses the output of git ls-tree -z, by path.
func listed(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\x00"), "\x00") {
		about, p, _ := strings.Cut(line, "\t")
		out[p] = about
	}
	return out
}

// entries are the rows of git ls-tree for files, by path.
func entries(files map[string]string) map[string]string {
	out := map[string]string{}
	for p, text := range files {
		mode, blob := "100644", tree.BlobOf(fileOf(p, text))
		if blob.Executable {
			mode = "100755"
		}
		out[p] = mode + " blob " + string(blob.ID)
	}
	return out
}

// git runs git in a folder, without the user's configuration.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, stderr.Bytes())
	}
	return string(out)
}
