package tree

import (
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Restate adds to a pack a commit in which the record of the environment in a folder
// says something else, and everything else is as it is: a hold, above all. Where
// change changes nothing, there is none, unless CommitInfo says Always. Make says what holds beside that.
func (b *Branch) Restate(dir string, change func(*Record) error, pack *git.PackWriter,
	c CommitInfo) (*CommitResult, error) {
	return b.Restore(dir, b, change, pack, c)
}

// Restore adds to a pack a commit in which the environment in a folder is, byte for
// byte, what it is in another commit of the branch, but for what change changes in its
// record. Nothing is compiled for it. Make says what holds beside that.
func (b *Branch) Restore(dir string, from *Branch, change func(*Record) error, pack *git.PackWriter,
	c CommitInfo) (*CommitResult, error) {
	result, err := b.restore(dir, from, change, pack)
	if err == nil && (c.Always || string(result.Tree) != b.root.String()) {
		_, err = b.seal(result, pack, c)
	}
	if err != nil {
		return nil, fmt.Errorf("making a commit for branch %s of %s: %w", b.name, b.repository.dir, err)
	}
	return result, nil
}

func (b *Branch) restore(dir string, from *Branch, change func(*Record) error,
	pack *git.PackWriter) (*CommitResult, error) {
	root, _, err := from.environment(dir)
	if err != nil {
		return nil, err
	}
	data, err := newGitSurvey(b.repository.git, root).file(recordPath)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, errors.New("it has no " + from.location(dir)(recordPath))
	}
	record, err := ParseRecord(data, nil)
	if err != nil {
		return nil, from.location(dir).placed(&RecordError{Path: recordPath, Err: err})
	}
	if err := change(record); err != nil {
		return nil, err
	}
	encoded := record.Encode()
	id, err := pack.Add(git.BlobKind, encoded)
	if err != nil {
		return nil, err
	}
	g := &treeEditor{b.repository.git, pack.Add}
	if root, err = g.apply(root, []treeEdit{{recordPath, &git.Entry{Mode: git.FileMode, ID: id}}}); err != nil {
		return nil, err
	}
	if dir != "" {
		if root, err = g.apply(b.root, []treeEdit{{dir, &git.Entry{Mode: git.FolderMode, ID: root}}}); err != nil {
			return nil, err
		}
	}
	return &CommitResult{Tree: ID(root.String()), record: BlobID(encoded)}, nil
}
