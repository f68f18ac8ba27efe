package forgetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Commit adds a file to a branch, and returns the commit. A new branch begins at another one, or
// without a parent for "".
func (g *GitlabGitea) Commit(branch, from, file, content string) git.Hash {
	g.t.Helper()
	parent := g.tip(branch)
	if parent == "" && from != "" {
		parent = g.tip(from)
	}
	stream := fmt.Sprintf("commit refs/heads/%s\ncommitter forge <forge@example.com> %d +0000\ndata "+
		"%d\n%s\n", branch, g.Now().Unix(), len(file), file)
	if parent != "" {
		stream += "from " + parent + "\n"
	}
	g.git(stream+fmt.Sprintf("M 100644 inline %s\ndata %d\n%s\n", file, len(content), content), "fast-import", "--quiet")
	return g.Tip(branch)
}

// Tip returns the commit that a branch is at.
func (g *GitlabGitea) Tip(branch string) git.Hash { return plumbing.NewHash(g.tip(branch)) }

// Tree returns the tree of a commit.
func (g *GitlabGitea) Tree(commit git.Hash) string {
	return g.git("", "rev-parse", commit.String()+"^{tree}")
}

// Message returns the message of a commit.
func (g *GitlabGitea) Message(commit git.Hash) string {
	return g.git("", "show", "-s", "--format=%B", commit.String())
}

func (g *GitlabGitea) tip(branch string) string {
	id, err := os.ReadFile(filepath.Join(g.Dir, "refs", "heads", filepath.FromSlash(branch)))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

func (g *GitlabGitea) commit(tree, message string, parents ...string) string {
	arguments := []string{"commit-tree", tree}
	for _, p := range parents {
		if p != "" {
			arguments = append(arguments, "-p", p)
		}
	}
	return g.git(message, arguments...)
}

func (g *GitlabGitea) git(stdin string, arguments ...string) string {
	g.t.Helper()
	command := exec.Command("git", append([]string{"-C", g.Dir}, arguments...)...)
	at := fmt.Sprintf("%d +0000", g.Now().Unix())
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=forge",
		"GIT_AUTHOR_EMAIL=forge@example.com",
		"GIT_COMMITTER_NAME=forge", "GIT_COMMITTER_EMAIL=forge@example.com", "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at)
	command.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		g.t.Errorf("git %s: %v: %s", strings.Join(arguments, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// diverged returns the number of commits that the base of a change has and its head lacks.
func (g *GitlabGitea) diverged(c *gitlabGiteaChange) int {
	n, _ := strconv.Atoi(g.memo("rev-list", "--count", g.tip(c.head)+".."+g.tip(c.base)))
	return n
}

// memo returns the output of git about commits, which never changes.
func (g *GitlabGitea) memo(arguments ...string) string {
	key := strings.Join(arguments, " ")
	if _, ok := g.said[key]; !ok {
		g.said[key] = g.git("", arguments...)
	}
	return g.said[key]
}

// merge merges a change: by squash, merge or ff.
func (g *GitlabGitea) merge(c *gitlabGiteaChange, how, message string) {
	head, base := g.tip(c.head), g.tip(c.base)
	tree := g.git("", "merge-tree", "--write-tree", base, head)
	c.merged, c.headWhenMerged, c.state = head, head, "merged"
	switch how {
	case "squash":
		c.merged = g.commit(tree, message, base)
	case "merge":
		c.merged = g.commit(tree, message, base, head)
	}
	g.git("", "update-ref", "refs/heads/"+c.base, c.merged, base)
}

// known reports whether the repository has an object. Objects are never packed.
func (g *GitlabGitea) known(id string) bool {
	_, err := os.Stat(filepath.Join(g.Dir, "objects", id[:min(2, len(id))], id[min(2, len(id)):]))
	return err == nil
}
