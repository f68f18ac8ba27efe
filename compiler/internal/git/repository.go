// Package git reads and writes git repositories as files: no work tree, no index
// and no git command. It knows what kalypso needs of git: reading objects by id,
// writing many new ones as one pack, and moving a branch as git itself does.
//
// Everything new is in place and on the disk before a branch names it, so that a
// process that is killed leaves at most objects that nothing refers to, which
// `git gc` removes in time.
package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// Hash is the id of an object.
type Hash = plumbing.Hash

// Repository is an open repository. Its methods may be used by several
// goroutines at once, and while other processes work on the repository.
type Repository struct {
	// Step, where it is set, is called before each change to the file system,
	// with what is done and to which file, and may fail it. It is for tests, and
	// set before the repository is used.
	Step func(op, file string) error

	dir    string // what is common to all work trees: objects, refs, config
	config *config.Config
	bare   bool

	mu    sync.Mutex
	packs []*pack // nil until one is looked for; newest first
	dirs  []string
}

// Open opens the repository at dir, which is a bare one, the .git of another, or
// a folder with a .git in it: a folder, or the file that a linked work tree or a
// submodule has. Folders around dir are not looked at.
//
// It fails for a repository that this package cannot work on without harm:
// objects under SHA-256, refs in a reftable, an extension that is not known.
func Open(dir string) (*Repository, error) {
	r, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening git repository %s: %w", dir, err)
	}
	return r, nil
}

func open(dir string) (*Repository, error) {
	own, err := find(dir)
	if err != nil {
		return nil, err
	}
	common, err := commonDir(own)
	if err != nil {
		return nil, err
	}
	r := &Repository{dir: common}
	if r.config, err = readConfig(filepath.Join(common, "config")); err != nil {
		return nil, err
	}
	if err := checkFormat(r.config); err != nil {
		return nil, err
	}
	if isTrue(r.config, "extensions", "worktreeConfig") {
		more, err := readConfig(filepath.Join(common, "config.worktree"))
		if err != nil {
			return nil, err
		}
		r.config.Sections = append(r.config.Sections, more.Sections...)
	}
	r.bare = filepath.Base(common) != ".git"
	if _, set := option(r.config, "core", "bare"); set {
		r.bare = isTrue(r.config, "core", "bare")
	}
	return r, nil
}

// Close releases the files that are open. A closed Repository must not be used.
func (r *Repository) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, p := range r.packs {
		errs = append(errs, p.close())
	}
	r.packs = nil
	return errors.Join(errs...)
}

// Dir returns the folder that holds the objects and refs.
func (r *Repository) Dir() string { return r.dir }

// find returns the git folder of dir.
func find(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	dot := filepath.Join(dir, ".git")
	switch info, err := os.Stat(dot); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	case info.IsDir():
		dir = dot
	default:
		if dir, err = pointer(dot, "gitdir: "); err != nil {
			return "", err
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return "", errors.New("it is not a git repository: name a bare one, or the folder that has .git (git init --bare makes one)")
	}
	return dir, nil
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
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	p, found := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !found || p == "" {
		return "", fmt.Errorf("%s does not say %q and a path", file, prefix)
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(filepath.Dir(file), p)
	}
	return filepath.Clean(p), nil
}

// step announces a change.
func (r *Repository) step(op, file string) error {
	if r.Step == nil {
		return nil
	}
	return r.Step(op, file)
}
