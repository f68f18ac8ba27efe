package git

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// revision is a commit: its tree, and its parents.
type revision struct {
	id, tree Hash
	parents  []Hash
}

// CommitTree returns the tree of a commit.
func (r *Repository) CommitTree(id Hash) (Hash, error) {
	c, _, err := r.revision(id)
	return c.tree, err
}

// Parents returns the parents of a commit.
func (r *Repository) Parents(id Hash) ([]Hash, error) {
	c, _, err := r.revision(id)
	return c.parents, err
}

// revision reads a commit, and also returns its content.
func (r *Repository) revision(id Hash) (revision, []byte, error) {
	data, err := r.read(id, CommitKind)
	if err != nil {
		return revision{}, nil, err
	}
	c, err := parseCommit(id, data)
	if err != nil {
		return revision{}, nil, fmt.Errorf("commit %s of %s: %w", id, r.dir, err)
	}
	return c, data, nil
}

// Peel returns the commit that an object is or is a tag of.
func (r *Repository) Peel(id Hash) (Hash, error) {
	c, err := r.peel(id, id.String())
	return c.id, err
}

func parseCommit(id Hash, data []byte) (revision, error) {
	c := revision{id: id}
	var found bool
	if c.tree, data, found = idLine(data, "tree "); !found {
		return revision{}, errors.New("it names no tree")
	}
	for {
		var parent Hash
		if parent, data, found = idLine(data, "parent "); !found {
			return c, nil
		}
		c.parents = append(c.parents, parent)
	}
}

// idLine returns the id in the first line, which begins with a key, and the following
// lines.
func idLine(data []byte, key string) (id Hash, rest []byte, found bool) {
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	text, found := bytes.CutPrefix(line, []byte(key))
	if !found || !plumbing.IsHash(string(text)) {
		return Hash{}, data, false
	}
	return plumbing.NewHash(string(text)), rest, true
}

// peel returns the commit that an object is or is a tag of. The text what is the name of the
// object in errors.
func (r *Repository) peel(id Hash, what string) (revision, error) {
	for {
		o, err := r.Object(id)
		var missing *MissingError
		if errors.As(err, &missing) {
			return revision{}, errors.New(missing.Message("commit " + what))
		}
		if err != nil {
			return revision{}, err
		}
		switch o.Kind {
		case CommitKind:
			c, err := parseCommit(id, o.Data)
			if err != nil {
				return revision{}, fmt.Errorf("commit %s: %w", what, err)
			}
			return c, nil
		case TagKind:
			var found bool
			if id, _, found = idLine(o.Data, "object "); !found {
				return revision{}, fmt.Errorf("tag %s names no object", what)
			}
		default:
			return revision{},
				fmt.Errorf("%s is a %s and not a commit; name a branch, a tag or a commit", what, o.Kind)
		}
	}
}

// parent returns a commit's parent by number, from 1.
func (r *Repository) parent(c revision, n int) (revision, error) {
	if n > len(c.parents) {
		if len(c.parents) == 0 {
			return revision{}, fmt.Errorf("commit %s is the first one, and has none before it", Short(c.id))
		}
		if len(c.parents) == 1 {
			return revision{}, fmt.Errorf("commit %s has only one parent", Short(c.id))
		}
		return revision{}, fmt.Errorf("commit %s has only %d parents", Short(c.id), len(c.parents))
	}
	id := c.parents[n-1]
	return r.peel(id, Short(id)+", a parent of "+Short(c.id)+",")
}
