package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// ErrNoRepository is wrapped by the errors of Open and Discover if there is no repository.
var ErrNoRepository = errors.New("it is not a git repository: name a bare one, or the folder " +
	"that has .git (git init --bare makes one)")

// find returns the git folder of dir: its .git, the folder that this names, or dir itself.
func find(dir string) (string, error) {
	own, err := dotGit(dir)
	if err != nil || own != "" {
		return own, err
	}
	if !isGitDir(dir) {
		return "", ErrNoRepository
	}
	return dir, nil
}

// findAround returns the nearest folder of dir and its parents that has a .git, and the git
// folder that this is or names.
func findAround(dir string) (workTree, own string, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		if own, err := dotGit(d); err != nil || own != "" {
			return d, own, err
		}
		if d == filepath.Dir(d) {
			return "", "", ErrNoRepository
		}
	}
}

// dotGit returns the git folder that the .git of a folder is or names, or "". As for
// git, an empty folder named .git does not count.
func dotGit(dir string) (string, error) {
	dot := filepath.Join(dir, ".git")
	info, err := os.Stat(dot)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case info.IsDir() && isGitDir(dot):
		return dot, nil
	case info.IsDir():
		return "", nil
	}
	own, err := pointer(dot, "gitdir: ")
	if err != nil {
		return "", err
	}
	if !isGitDir(own) {
		return "", fmt.Errorf("%s says that the repository is in %s, and it is not; `git worktree "+
			"repair` mends moved work trees", dot, own)
	}
	return own, nil
}

func isGitDir(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "HEAD")) // which may be a dangling link
	return err == nil
}

// commonDir returns the folder that a work tree's git folder shares with others.
func commonDir(dir string) (string, error) {
	common, err := pointer(filepath.Join(dir, "commondir"), "")
	if errors.Is(err, fs.ErrNotExist) {
		common, err = dir, nil
	}
	if err != nil {
		return "", err
	}
	for _, part := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(common, part)); err != nil || !info.IsDir() {
			return "", fmt.Errorf("it is not a git repository: %s has no folder %s", common, part)
		}
	}
	return common, nil
}

// pointer reads a file whose one line is a path after a prefix, which is relative
// to the file's folder.
func pointer(file, prefix string) (string, error) {
	data, err := regular.ReadFile(file)
	if err != nil {
		return "", err
	}
	p, found := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !found || p == "" {
		return "", fmt.Errorf("%s does not say %q and a path", file, prefix)
	}
	p = filepath.FromSlash(p)
	if !filepath.IsAbs(p) {
		p = filepath.Join(filepath.Dir(file), p)
	}
	return filepath.Clean(p), nil
}
