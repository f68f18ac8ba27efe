package tree

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Repository is a git repository for environments' trees. Several goroutines may use it at once,
// and git and other processes may change it at the same time. It locks nothing except a branch, for
// the moment in which the branch moves.
type Repository struct {
	dir string // as the user gave it
	git *git.Repository
}

// OpenRepository opens a git repository, bare or with a work tree, by its folder or by
// the .git in it. It also opens a linked work tree and a submodule. It returns an error
// if the format of the repository is not supported: SHA-256 objects, refs in a reftable,
// or an unknown extension.
func OpenRepository(dir string) (*Repository, error) {
	r, err := git.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Repository{dir, r}, nil
}

// NewRepository returns a repository that is already open; dir is its name in messages.
func NewRepository(r *git.Repository, dir string) *Repository { return &Repository{dir, r} }

// Close releases the repository. A Branch or a Record from it cannot be used afterwards.
func (r *Repository) Close() error { return r.git.Close() }

// Branch is a branch as it was when it was opened, even if the branch moves later.
type Branch struct {
	repository *Repository
	name, ref  string
	tip        git.Hash // zero if the branch does not exist
	root       git.Hash // the tree of tip

	// instead has the environments to use instead of the branch's own, by folder.
	instead map[string]replacement

	mu     sync.Mutex
	states map[string]loadedState // by environment's folder
}

// Branch returns a branch as it is now. The branch need not exist. Branch returns an error if git
// does not allow the name.
func (r *Repository) Branch(name string) (*Branch, error) {
	ref, err := git.BranchRef(name)
	if err != nil {
		return nil, err
	}
	tip, err := r.git.Ref(ref)
	if err != nil {
		return nil, err
	}
	return r.BranchAt(name, tip)
}

// BranchAt returns a branch as it was at a commit, even if it has moved; the zero Hash means a
// branch that does not exist.
func (r *Repository) BranchAt(name string, tip git.Hash) (*Branch, error) {
	ref, err := git.BranchRef(name)
	if err != nil {
		return nil, err
	}
	b := &Branch{repository: r, name: name, ref: ref, tip: tip}
	if !tip.IsZero() {
		if b.root, err = r.git.CommitTree(tip); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// replacement is an environment that replaces the branch's own.
type replacement struct {
	root   git.Hash
	beside []treeEdit // the files beside the environment's files
}

// Instead replaces the environment in a folder of the branch with its state in another
// commit. Later writes start from that state, and undo other people's changes since
// then. Files beside the environment that Drift ignores stay. Call Instead before any
// other method of the branch.
func (b *Branch) Instead(dir string, from *Branch) error {
	is, _, err := b.environment(dir)
	if err != nil {
		return err
	}
	root, _, err := from.environment(dir)
	if err != nil {
		return err
	}
	there, err := newGitSurvey(b.repository.git, is).rootFiles()
	if err != nil {
		return err
	}
	then, err := newGitSurvey(b.repository.git, root).rootFiles()
	if err != nil {
		return err
	}
	var edits []treeEdit
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if e := there[name]; e != then[name] {
			edits = append(edits, treeEdit{name, &e})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(then)) {
		if _, stays := there[name]; !stays {
			edits = append(edits, treeEdit{path: name})
		}
	}
	b.instead = map[string]replacement{dir: {root, edits}}
	return nil
}

// Folders returns the names of the folders at the branch's root.
func (b *Branch) Folders() ([]string, error) {
	if b.root.IsZero() {
		return nil, nil
	}
	entries, err := b.repository.git.Tree(b.root)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Mode == git.FolderMode {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

// Tip returns the id of the branch's commit; "" if the branch does not exist.
func (b *Branch) Tip() ID {
	if b.tip.IsZero() {
		return ""
	}
	return ID(b.tip.String())
}

// CheckWritable returns an error if the branch is checked out in a work tree, of
// this repository or a linked one. After a move of the branch, that work tree would
// seem to undo everything new.
func (b *Branch) CheckWritable() error {
	dir, err := b.repository.git.CheckedOut(b.ref)
	if err != nil {
		return fmt.Errorf("looking for work trees of %s: %w", b.repository.dir, err)
	}
	if dir != "" {
		return fmt.Errorf(
			"branch %s is checked out in %s, whose files would no longer be those of the branch: "+
				"write to another branch or to a bare repository, or check out something else there", b.name,
			dir)
	}
	return nil
}

// CommitInfo is the description of a commit. Commit finds a missing name or address as git does:
// in GIT_AUTHOR_* and GIT_COMMITTER_*, then in author.*, committer.* and user.* of the
// repository's config and the user's config. It ignores files that these include. If it finds
// nothing, it uses kalypso <kalypso@localhost>. Only Sign signs commits, even if the config
// requires signatures.
type CommitInfo struct {
	Always  bool   // lets Restate and Restore commit also without changes
	Message string // "" for a message with the names of the environments
	// RecordTrailer is the name of a trailer in the message, with the id of the record's file of
	// the first placement. It is "" if there is no trailer.
	RecordTrailer string
	Name, Email   string
	// When is the commit's time. If it is zero, the commit has the time in GIT_AUTHOR_DATE and
	// GIT_COMMITTER_DATE, or in SOURCE_DATE_EPOCH, or the current time.
	When time.Time
	// Sign returns the armored signature of a commit's content; nil for
	// commits without a signature.
	Sign func(content []byte) (string, error)
}

// hash returns the binary form of a valid id.
func hash(id ID) git.Hash {
	var h git.Hash
	if n, err := hex.Decode(h[:], []byte(id)); n != len(h) || err != nil {
		panic("tree: bad id " + string(id)) // ids are computed here, or checked by ParseRecord
	}
	return h
}
