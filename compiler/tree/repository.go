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

// Repository is a git repository that environments' trees are committed to. It
// may be used by several goroutines at once, and while git and other processes
// work on it. Nothing of it is locked, but a branch for the moment in which it
// moves.
type Repository struct {
	dir string // as the user gave it
	git *git.Repository
}

// OpenRepository opens a git repository: a bare one, or one with a work tree, by
// its folder or the .git in it. A linked work tree and a submodule will do. It
// fails for repositories in a format that is not supported: objects under
// SHA-256, refs in a reftable, an extension that is not known.
func OpenRepository(dir string) (*Repository, error) {
	r, err := git.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Repository{dir, r}, nil
}

// NewRepository returns a repository that is open already; dir is what messages call
// it.
func NewRepository(r *git.Repository, dir string) *Repository { return &Repository{dir, r} }

// Close releases the repository, and everything that was read from it and reads
// on: a Branch, a Record.
func (r *Repository) Close() error { return r.git.Close() }

// Branch is a branch as it was when it was opened, whatever becomes of it.
type Branch struct {
	repository *Repository
	name, ref  string
	tip        git.Hash // zero where the branch does not exist
	root       git.Hash // the tree of tip

	// instead are the environments that are taken for something else, by folder.
	instead map[string]instead

	mu     sync.Mutex
	states map[string]loadedState // by environment's folder
}

// Branch returns a branch as it is now. It need not exist. It fails for a name
// that git does not allow.
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

// BranchAt returns a branch as it is at a commit, wherever it is now; the zero Hash
// is for a branch that does not exist.
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

// instead is what an environment is taken for.
type instead struct {
	root   git.Hash
	beside []treeEdit // what is beside the environment's files
}

// Instead takes the environment in a folder of the branch for what it is in another
// commit of it: what is written from now on begins there, over whatever somebody did to
// it since, but for files beside that nobody minds (see Drift). It is for a branch that
// nothing was asked of yet.
func (b *Branch) Instead(dir string, from *Branch) error {
	is, _, err := b.environment(dir)
	if err != nil {
		return err
	}
	root, _, err := from.environment(dir)
	if err != nil {
		return err
	}
	there, err := newGitSurvey(b.repository.git, is).beside()
	if err != nil {
		return err
	}
	then, err := newGitSurvey(b.repository.git, root).beside()
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
	b.instead = map[string]instead{dir: {root, edits}}
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

// Tip returns the id of the branch's commit; "" where the branch does not exist.
func (b *Branch) Tip() ID {
	if b.tip.IsZero() {
		return ""
	}
	return ID(b.tip.String())
}

// CheckWritable returns an error if the branch is checked out in a work tree, this
// repository's or a linked one. Moving it would make everything that is new look
// like a change that the work tree undoes.
func (b *Branch) CheckWritable() error {
	dir, err := b.repository.git.CheckedOut(b.ref)
	if err != nil {
		return fmt.Errorf("looking for work trees of %s: %w", b.repository.dir, err)
	}
	if dir != "" {
		return fmt.Errorf("branch %s is checked out in %s, whose files would no longer be those of the branch: "+
			"write to another branch or to a bare repository, or check out something else there", b.name, dir)
	}
	return nil
}

// CommitInfo is the description of a commit. Whoever is not named is found as git
// does: in GIT_AUTHOR_* and GIT_COMMITTER_*, then in author.*, committer.* and
// user.* of the repository's config and the user's, without files that these
// include. Where nobody is named, it is kalypso <kalypso@localhost>. Commits are
// signed by Sign alone, whatever the config says.
type CommitInfo struct {
	Always  bool   // makes a commit of Restate and Restore also where nothing differs
	Message string // "" for one that names the environments
	// RecordTrailer is the name of a trailer that the message gets, with the id of the
	// record's file: that of the first placement; "" for none.
	RecordTrailer string
	Name, Email   string
	// When is the commit's time; zero for GIT_AUTHOR_DATE and GIT_COMMITTER_DATE, or
	// SOURCE_DATE_EPOCH, or now.
	When time.Time
	// Sign returns the armored signature of a commit's content; nil for none.
	Sign func(content []byte) (string, error)
}

// hash returns an id, which is valid, in its binary form.
func hash(id ID) git.Hash {
	var h git.Hash
	if n, err := hex.Decode(h[:], []byte(id)); n != len(h) || err != nil {
		panic("tree: bad id " + string(id)) // ids are computed here, or checked by ParseRecord
	}
	return h
}
