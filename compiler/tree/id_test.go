package tree_test

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/tree"
)

// runGit runs git in a repository of its own, without the user's configuration.
func runGit(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/local/bin", "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// writeTree returns git's own id of a folder without .kalypso.
func writeTree(t *testing.T, dir string) tree.ID {
	t.Helper()
	repo := t.TempDir()
	runGit(t, repo, "", "init", "--quiet")
	runGit(t, repo, "", "--work-tree", dir, "add", "--all", "--", ".", ":!"+ownFolder)
	return tree.ID(runGit(t, repo, "", "write-tree"))
}

func TestBlobIDIsGits(t *testing.T) {
	for _, data := range []string{"", "a", "line\n", "crlf\r\n", "\x00\xff", strings.Repeat("long", 100000)} {
		if got, want := tree.BlobID([]byte(data)), tree.ID(runGit(t, t.TempDir(), data, "hash-object", "--stdin")); got != want {
			t.Errorf("BlobID of %d bytes is %s, git says %s", len(data), got, want)
		}
	}
}

func TestTreeIDIsGits(t *testing.T) {
	cases := map[string]files{
		"empty":                       {},
		"folders sort with a slash":   {"a/x": "1", "a.b": "2", "a-b/x": "3", "a0": "4", "aa/x": "5"},
		"deep":                        {"a/b/c/d/e": "1", "a/b/c/f": "2", "a/b.c": "3"},
		"not ASCII":                   {"ä/ö": "1", "z/a": "2", "漢": "3"},
		"executable":                  {"a/run": "+x 1", "a/run.sh": "1", "b/run": "+x ", "run": "+x 1"},
		"beside a folder of its name": {"a/README.md": "", "a/app/x.yaml": "", "a/app-two/x.yaml": "", "a/app.yaml": ""},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		cases["random"] = randomFiles(random, 40)
		for name, content := range cases {
			dir := t.TempDir()
			put(t, dir, content)
			if got, want := tree.TreeID(content.blobs()), writeTree(t, dir); got != want {
				t.Errorf("%s: TreeID of %v is %s, git says %s", name, content, got, want)
			}
		}
	}
}

// randomFiles returns about n files, at least three deep. No file is a folder of another
// one. Many names sort near the slash. Two results often have equal files, or files that
// differ only in their modes.
func randomFiles(random *rand.Rand, n int) files {
	names := []string{"a", "a-b", "a.b", "a0", "b"}
	pick := func() string { return names[random.IntN(len(names))] }
	content := files{}
	for range n {
		p := pick() + "/"
		switch random.IntN(3) {
		case 0:
			p += pick() + ".md"
		case 1:
			p += pick() + "/" + pick() + ".yaml"
		case 2:
			p += pick() + "/" + pick() + "/" + pick()
		}
		content[p] = strings.Repeat("x", random.IntN(3))
		if random.IntN(3) == 0 {
			content[p] = "+x " + content[p]
		}
	}
	return content
}
