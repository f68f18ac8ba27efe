package git

import (
	"bytes"
	"iter"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/object"
)

// Commit reads a commit. Headers that have no field in Commit, such as a signature, are
// left out; the message may be any text.
func (r *Repository) Commit(id Hash) (*Commit, error) {
	parsed, data, err := r.revision(id)
	if err != nil {
		return nil, err
	}
	return commitOf(parsed, data), nil
}

func commitOf(parsed revision, data []byte) *Commit {
	c := &Commit{Tree: parsed.tree, Parents: parsed.parents}
	headers, message, _ := bytes.Cut(data, []byte("\n\n"))
	for line := range bytes.Lines(headers) {
		line = bytes.TrimRight(line, "\n")
		if by, ok := bytes.CutPrefix(line, []byte("author ")); ok {
			c.Author = parseSignature(by)
		}
		if by, ok := bytes.CutPrefix(line, []byte("committer ")); ok {
			c.Committer = parseSignature(by)
		}
	}
	c.Message = string(message)
	return c
}

// parseSignature parses a [Signature], as far as it is one.
func parseSignature(data []byte) Signature {
	var s object.Signature
	s.Decode(data)
	return Signature{s.Name, s.Email, s.When}
}

// Link is a commit of a history.
type Link struct {
	ID Hash
	*Commit
}

// Mainline yields a commit, its first parent, the first parent of that, and so on. An
// error ends it; its Link has the ID of the commit that cannot be read.
func (r *Repository) Mainline(from Hash) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		for id := from; !id.IsZero(); {
			c, err := r.Commit(id)
			if !yield(Link{id, c}, err) || err != nil || len(c.Parents) == 0 {
				return
			}
			id = c.Parents[0]
		}
	}
}

// Find returns the entry of a tree at a path, with slashes, or false. "." is the tree
// itself.
func (r *Repository) Find(tree Hash, path string) (Entry, bool, error) {
	at := Entry{Mode: FolderMode, ID: tree}
	if path == "." || path == "" {
		return at, true, nil
	}
	for name := range bytes.SplitSeq([]byte(path), []byte("/")) {
		if at.Mode != FolderMode {
			return Entry{}, false, nil
		}
		entries, err := r.Tree(at.ID)
		if err != nil {
			return Entry{}, false, err
		}
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == string(name) })
		if i < 0 {
			return Entry{}, false, nil
		}
		at = entries[i]
	}
	return at, true, nil
}
