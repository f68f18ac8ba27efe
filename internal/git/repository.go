// Package git reads and writes git repositories as files: no work tree, no index and no git
// command. It finds the repository of a folder, and resolves revisions as git rev-parse does. It
// reads objects by id, writes many new objects as one pack, and moves branches as git itself
// does.
//
// New objects are complete and on the disk before a branch refers to them, so that a killed
// process leaves at most unreferenced objects, which `git gc` removes in time.
package git

import (
	"fmt"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// Hash is the id of an object.
type Hash = plumbing.Hash

// Repository is an open repository. Its methods may be used by several
// goroutines at once, and while other processes work on the repository.
type Repository struct {
	// Step, unless nil, is called before each change to the file system with the operation
	// and the file, and may fail it. It is for tests, and set before the repository is
	// used.
	Step func(op, file string) error

	// Missing, unless nil, is called for a missing object, and may add it: after nil the
	// object is looked up once more. Its error becomes the error of the read. Several
	// goroutines call it at once, and it may use the Repository. It is set before the
	// repository is used.
	Missing func(id Hash) error

	dir      string // shared by all work trees: objects, refs, config
	workTree string
	config   *config.Config
	bare     bool
	partial  bool // a partial clone

	objects objectStore
	refs    refStore
}

// Open opens the repository at dir. dir is a bare repository, the .git of another, or a folder
// with a .git in it. That .git is a folder, or the file of a linked work tree or a submodule.
// Open does not search parent folders.
//
// It fails with a *FormatError for a repository that this package does not support: with SHA-256
// ids, refs in a reftable, or an unknown extension.
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

// Discover opens the repository whose work tree contains a folder: the nearest of dir and its
// parents with a .git as Open describes it. It fails as Open does. If no folder has a .git, it
// returns an ErrNoRepository.
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
	r := &Repository{
		dir: common, objects: objectStore{folder: filepath.Join(common, "objects")},
		refs: refStore{dir: common, own: own},
	}
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

// Close closes all files. A closed Repository must not be used.
func (r *Repository) Close() error { return r.objects.close() }

// Dir returns the folder that holds the objects and refs.
func (r *Repository) Dir() string { return r.dir }

// WorkTree returns the folder in which Discover found .git; "" after Open.
func (r *Repository) WorkTree() string { return r.workTree }

// step calls Step.
func (r *Repository) step(op, file string) error {
	if r.Step == nil {
		return nil
	}
	return r.Step(op, file)
}
