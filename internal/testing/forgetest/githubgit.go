package forgetest

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
)

// run runs git in the bare repository, with a neutral user and the server's time.
func (r *GitHubRepository) run(stdin string, arguments ...string) (string, error) {
	command := exec.Command("git", append([]string{"-C", r.Dir}, arguments...)...)
	date := r.server.Clock.Now().Format(time.RFC3339)
	command.Env = append(command.Environ(),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=GitHub", "GIT_AUTHOR_EMAIL=noreply@github.test", "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME=GitHub", "GIT_COMMITTER_EMAIL=noreply@github.test", "GIT_COMMITTER_DATE="+date)
	command.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// git runs git if it cannot fail.
func (r *GitHubRepository) git(arguments ...string) string {
	out, err := r.run("", arguments...)
	if err != nil {
		r.server.t.Error(err)
	}
	return out
}

// resolve is the commit of a branch or id, or "".
func (r *GitHubRepository) resolve(name string) string {
	for _, name := range []string{"refs/heads/" + name, name} {
		if out, err := r.run("", "rev-parse", "--verify", "--quiet", name+"^{commit}"); err == nil {
			return out
		}
	}
	return ""
}

func (r *GitHubRepository) count(revisions string) int {
	n, _ := strconv.Atoi(r.git("rev-list", "--count", revisions))
	return n
}

// branches are the branches with their commits.
func (r *GitHubRepository) branches() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(r.git("for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads/")) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[name] = id
	}
	return out
}

// Commit writes a file to a branch, and returns the commit. If the branch does not exist, Commit
// makes it from the branch from, or without a parent if from is "".
func (r *GitHubRepository) Commit(branch, from, file, content string) git.Hash {
	r.server.state.Lock()
	defer r.server.state.Unlock()
	parent := r.resolve(branch)
	if parent == "" && from != "" {
		parent = r.resolve(from)
	}
	var stream strings.Builder
	message := "Change " + file
	fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter Test <test@example.test> %d +0000\ndata "+
		"%d\n%s\n", branch, r.server.Clock.Now().Unix(), len(message), message)
	if parent != "" {
		fmt.Fprintf(&stream, "from %s\n", parent)
	}
	fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", file, len(content), content)
	if _, err := r.run(stream.String(), "fast-import", "--quiet", "--date-format=raw"); err != nil {
		r.server.t.Error(err)
	}
	return plumbing.NewHash(r.resolve(branch))
}

// Branch is the commit of a branch, or zero.
func (r *GitHubRepository) Branch(name string) git.Hash {
	r.server.state.Lock()
	defer r.server.state.Unlock()
	return plumbing.NewHash(r.resolve(name))
}

// DeleteBranch deletes a branch, which closes its pull requests.
func (r *GitHubRepository) DeleteBranch(name string) {
	r.Change(func(r *GitHubRepository) { r.git("update-ref", "-d", "refs/heads/"+name) })
}

// combine merges a head into a base as a method does, and returns the new commit; "" if
// there are conflicts.
func (r *GitHubRepository) combine(base, head, method, message string) string {
	if method == "rebase" {
		return r.rebase(base, head)
	}
	tree, err := r.run("", "merge-tree", "--write-tree", base, head)
	if err != nil {
		return ""
	}
	arguments := []string{"commit-tree", tree, "-m", message, "-p", base}
	if method == "merge" {
		arguments = append(arguments, "-p", head)
	}
	return r.git(arguments...)
}

// rebase writes the head's commits again, which keeps their trees: it is for bases
// that have not moved.
func (r *GitHubRepository) rebase(base, head string) string {
	if r.count(head+".."+base) > 0 {
		return ""
	}
	for _, commit := range strings.Fields(r.git("rev-list", "--reverse", base+".."+head)) {
		base = r.git("commit-tree", commit+"^{tree}", "-m", r.git("log", "-1", "--format=%B", commit), "-p", base)
	}
	return base
}
