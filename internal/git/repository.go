// Package git reads and writes git repositories as files: no work tree, no index
// and no git command. It knows what kalypso needs of git: finding the repository
// of a folder, naming commits as git rev-parse does, reading objects by id, writing
// many new ones as one pack, and moving a branch as git itself does.
//
// Everything new is in place and on the disk before a branch names it, so that a
// process that is killed leaves at most objects that nothing refers to, which
// `git gc` removes in time.
package git

import (
	"errors"
	"fmt"
	"path/filepath"
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

	// Missing, where it is set, is told of an object that is not there, and may
	// bring it: after nil it is looked for once more. Its error is that of the
	// reading. Several goroutines call it at once, and it may use the Repository.
	// It is set before the repository is used.
	Missing func(id Hash) error

	dir      string // what is common to all work trees: objects, refs, config
	own      string // what the opened work tree has for itself: HEAD; else dir
	workTree string
	config   *config.Config
	bare     bool
	partial  bool // objects may be missing that git would fetch

	mu    sync.Mutex
	packs []*pack // nil until one is looked for; in the order to look into them
	dirs  []string
	bases bases
}

// Open opens the repository at dir, which is a bare one, the .git of another, or
// a folder with a .git in it: a folder, or the file that a linked work tree or a
// submodule has. Folders around dir are not looked at.
//
// It fails for a repository that this package cannot work on without harm:
// objects under SHA-256, refs in a reftable, an extension that is not known, with
// a *FormatError.
func Open(dir string) (*Repository, error) {
	r, err := openAt(dir)
	if err != nil {
		return nil, fmt.Errorf("opening git repository %s: %w", dir, err)
	}
	return r, nil
}

func openAt(dir string) (*Repository, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	own, err := find(dir)
	if err != nil {
		return nil, err
	}
	return open(own)
}

// Discover opens the repository in whose work tree a folder is: that of the
// nearest folder, of dir and those around it, with a .git in it as Open describes
// it. It fails as Open does, and with an ErrNoRepository where there is none.
func Discover(dir string) (*Repository, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	workTree, own, err := findAround(dir)
	if err != nil {
		return nil, err
	}
	r, err := open(own)
	if err != nil {
		return nil, fmt.Errorf("opening git repository %s: %w", own, err)
	}
	r.workTree = workTree
	return r, nil
}

// open opens the repository of a git folder.
func open(own string) (*Repository, error) {
	common, err := commonDir(own)
	if err != nil {
		return nil, err
	}
	r := &Repository{dir: common, own: own}
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
	r.partial = isPartial(r.config)
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
	r.packs, r.bases = nil, bases{}
	return errors.Join(errs...)
}

// Dir returns the folder that holds the objects and refs.
func (r *Repository) Dir() string { return r.dir }

// WorkTree returns the folder that has the .git by which Discover found the
// repository; "" after Open.
func (r *Repository) WorkTree() string { return r.workTree }

// step announces a change.
func (r *Repository) step(op, file string) error {
	if r.Step == nil {
		return nil
	}
	return r.Step(op, file)
}
