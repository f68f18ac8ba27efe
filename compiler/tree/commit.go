package tree

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/git"
)

// ErrLostRace is what Commit's error is when another process moved the branch
// since it was opened. Nothing was changed. Open the branch again, and commit to
// what it is now.
var ErrLostRace = git.ErrLostRace

// Placement is an environment's tree, and where in a branch it goes.
type Placement struct {
	Folder  string // "" for the branch's root
	Tree    *Tree
	Options Options
}

// CommitResult is what a commit did, or would do.
type CommitResult struct {
	// Tree is the id of the branch's whole tree with the placements.
	Tree ID
	// Commit is the branch's new commit, and Message its message; "" where there is none.
	Commit  ID
	Message string
	// Changes are those of the placements, in their order. Files of a cluster type
	// that is reused as a whole are not counted, since its record is not read.
	// Their Record is read from the repository, which must be open then.
	Changes []*Changes
	// Objects were written, into a pack of Bytes.
	Objects int
	Bytes   int64

	record ID // of the first placement's record
}

// Commit makes the branch have all the placements, in one commit, or changes
// nothing. A branch that does not exist begins with this commit; where nothing
// differs, none is made.
//
// With diagnostics nothing was changed: they are those of Dir.Write, for the same
// reasons, and Options.Adopt does what it does there. Paths in them are as git
// has them: <branch>:<path>. What an environment needs not to change is reused by
// its id, and neither read nor made. A .kalypso/journal.json that is in the branch
// is of no meaning.
//
// The error is an ErrLostRace where the branch is not what it was when it was
// opened; see also CheckWritable. A process that is killed leaves the branch as
// it was or with the commit, and at most objects that `git gc` removes.
func (b *Branch) Commit(ctx context.Context, placements []Placement, c CommitInfo) (*CommitResult,
	[]diag.Diagnostic, error) {
	if err := b.CheckWritable(); err != nil {
		return nil, nil, err
	}
	pack := b.repository.git.NewPack()
	result, report, err := b.place(ctx, placements, pack)
	if err == nil && result != nil && string(result.Tree) != b.root.String() {
		if strings.TrimSpace(c.Message) == "" {
			var names []string
			for _, p := range placements {
				names = append(names, p.Options.Environment)
			}
			c.Message = "Build " + strings.Join(names, ", ")
		}
		var committer git.Signature
		if committer, err = b.seal(result, pack, c); err == nil {
			err = pack.Finish()
		}
		if err == nil {
			err = b.repository.git.Update(b.ref, b.tip, hash(result.Commit), committer, c.Message)
		}
	}
	if err = errors.Join(err, pack.Abort()); err != nil {
		if errors.Is(err, ErrLostRace) {
			err = fmt.Errorf("%w; nothing was changed: build again", err)
		}
		return nil, nil, fmt.Errorf("committing to branch %s of %s: %w", b.name, b.repository.dir, err)
	}
	return result, report, nil
}

// WriteTree writes the tree that Commit would commit, and no commit. The branch
// stays as it is, whatever it is by now. Nothing refers to the tree: `git gc` removes
// it after two weeks.
func (b *Branch) WriteTree(ctx context.Context, placements []Placement) (*CommitResult, []diag.Diagnostic, error) {
	pack := b.repository.git.NewPack()
	result, report, err := b.place(ctx, placements, pack)
	if err == nil && result != nil {
		result.Objects, result.Bytes = pack.Len(), pack.Size()
		err = pack.Finish()
	}
	if err = errors.Join(err, pack.Abort()); err != nil {
		return nil, nil, fmt.Errorf("writing a tree for branch %s to %s: %w", b.name, b.repository.dir, err)
	}
	return result, report, nil
}

// Compare returns what Commit would do, and writes nothing. Where Commit would
// report diagnostics, it reports them.
func (b *Branch) Compare(ctx context.Context, placements []Placement) (*CommitResult, []diag.Diagnostic, error) {
	result, report, err := b.place(ctx, placements, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("comparing with branch %s of %s: %w", b.name, b.repository.dir, err)
	}
	return result, report, nil
}

// seal adds a commit of the result's tree to the pack.
func (b *Branch) seal(result *CommitResult, pack *git.PackWriter, c CommitInfo) (committer git.Signature, err error) {
	author, committer, err := b.repository.git.Signatures(git.Signature{Name: c.Name, Email: c.Email,
		When: c.When}, git.Signature{Name: "kalypso", Email: "kalypso@localhost", When: time.Now()})
	if err != nil {
		return committer, err
	}
	if result.Message = c.Message; c.RecordTrailer != "" && result.record != "" {
		result.Message += c.RecordTrailer + ": " + string(result.record) + "\n"
	}
	commit := git.Commit{Tree: hash(result.Tree), Author: author, Committer: committer, Message: result.Message}
	if !b.tip.IsZero() {
		commit.Parents = []git.Hash{b.tip}
	}
	content, err := commit.Signed(c.Sign)
	if err != nil {
		return committer, fmt.Errorf("signing the commit: %w", err)
	}
	id, err := pack.Add(git.CommitKind, content)
	result.Commit, result.Objects, result.Bytes = ID(id.String()), pack.Len(), pack.Size()
	return committer, err
}

// Make adds to a pack what the branch needs to have all the placements: the trees,
// the files and a commit, on top of what the branch was when it was opened. It does
// not move the branch, and does not finish the pack: who pushes it does. Where
// nothing differs there is no commit; diagnostics are those of Commit.
func (b *Branch) Make(ctx context.Context, placements []Placement, pack *git.PackWriter,
	c CommitInfo) (*CommitResult, []diag.Diagnostic, error) {
	result, report, err := b.place(ctx, placements, pack)
	if err == nil && result != nil && string(result.Tree) != b.root.String() {
		_, err = b.seal(result, pack, c)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("making a commit for branch %s of %s: %w", b.name, b.repository.dir, err)
	}
	return result, report, nil
}

// place finds the branch's tree with the placements. With a pack, it writes what
// is new into it. With diagnostics there is no result.
func (b *Branch) place(ctx context.Context, placements []Placement,
	pack *git.PackWriter) (*CommitResult, []diag.Diagnostic, error) {
	var folders []string
	for _, p := range placements {
		if p.Folder == "" && len(placements) > 1 {
			return nil, nil, errors.New("an environment at the root of a branch must be the only one")
		}
		if p.Folder != "" {
			folders = append(folders, p.Folder)
		}
	}
	if err := CheckPaths(folders); err != nil {
		return nil, nil, err
	}
	w := &gitWriter{branch: b, pack: pack}
	result := &CommitResult{}
	var report []diag.Diagnostic
	var edits []treeEdit
	root := b.root
	for _, p := range placements {
		e, ds, err := w.environment(ctx, p)
		if err != nil {
			return nil, nil, fmt.Errorf("environment %s: %w", p.Options.Environment, err)
		}
		if e == nil {
			for i := range ds {
				ds[i].Environment = p.Options.Environment
			}
			report = append(report, ds...)
			continue
		}
		if result.Changes = append(result.Changes, e.changes); result.record == "" {
			result.record = BlobID(e.changes.Record.Encode())
		}
		if p.Folder == "" {
			root = e.root
		} else {
			edits = append(edits, treeEdit{p.Folder, &git.Entry{Mode: git.FolderMode, ID: e.root}})
		}
	}
	if len(report) > 0 {
		return nil, report, nil
	}
	root, err := w.treeEditor().apply(root, edits)
	if err != nil {
		return nil, nil, err
	}
	if root.IsZero() { // a commit has a tree, also an empty one
		if root, err = w.add(git.TreeKind, nil); err != nil {
			return nil, nil, err
		}
	}
	result.Tree = ID(root.String())
	return result, nil, nil
}

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
