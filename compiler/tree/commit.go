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

// ErrLostRace is the error of Commit if another process moved the branch since it was opened.
// Nothing was changed. Open the branch again, and commit to its current state.
var ErrLostRace = git.ErrLostRace

// Placement is an environment's tree, and its folder in a branch.
type Placement struct {
	Folder  string // "" for the branch's root
	Tree    *Tree
	Options Options
}

// CommitResult describes the work of a commit, actual or possible.
type CommitResult struct {
	// Tree is the id of the branch's whole tree with the placements.
	Tree ID
	// Commit is the branch's new commit, and Message its message; "" if there is no commit.
	Commit  ID
	Message string
	// Changes are the changes of the placements, in their order. They do not count the files of a
	// cluster type that is reused as a whole, since its record is not read. Their Record is read
	// from the repository, which must then be open.
	Changes []*Changes
	// The commit wrote Objects, into a pack of Bytes.
	Objects int
	Bytes   int64

	record ID // of the first placement's record
}

// Commit adds all the placements to the branch in one commit, or changes
// nothing. The commit is the first one if the branch does not exist. If nothing
// differs, Commit makes no commit.
//
// With diagnostics nothing was changed. Commit reports the same diagnostics as
// Dir.Write, for the same reasons, and Options.Adopt has the same meaning. Paths in
// them have git's form <branch>:<path>. Commit reuses unchanged parts of an
// environment by their ids, and neither reads nor makes them. It ignores a
// .kalypso/journal.json in the branch.
//
// The error is an ErrLostRace if the branch has moved since it was opened; see also
// CheckWritable. A process that is killed leaves the branch unchanged or with the
// commit, and at most objects that `git gc` removes.
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

// WriteTree writes the tree that Commit would commit, but no commit. The branch does not
// change, even if it has moved in the meantime. Nothing refers to the tree: `git gc`
// removes it after two weeks.
func (b *Branch) WriteTree(ctx context.Context, placements []Placement) (*CommitResult,
	[]diag.Diagnostic, error) {
	pack := b.repository.git.NewPack()
	result, report, err := b.place(ctx, placements, pack)
	if err == nil && result != nil {
		result.Objects, result.Bytes = pack.Len(), pack.Size()
		err = pack.Finish()
	}
	if err = errors.Join(err, pack.Abort()); err != nil {
		return nil, nil,
			fmt.Errorf("writing a tree for branch %s to %s: %w", b.name, b.repository.dir, err)
	}
	return result, report, nil
}

// Compare returns the result that Commit would have, and writes nothing. It reports the same
// diagnostics as Commit.
func (b *Branch) Compare(ctx context.Context, placements []Placement) (*CommitResult,
	[]diag.Diagnostic, error) {
	result, report, err := b.place(ctx, placements, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("comparing with branch %s of %s: %w", b.name, b.repository.dir, err)
	}
	return result, report, nil
}

// seal adds a commit with the result's tree to the pack.
func (b *Branch) seal(result *CommitResult, pack *git.PackWriter,
	c CommitInfo) (committer git.Signature, err error) {
	author, committer, err := b.repository.git.Signatures(git.Signature{Name: c.Name, Email: c.Email,
		When: c.When}, git.Signature{Name: "kalypso", Email: "kalypso@localhost", When: time.Now()})
	if err != nil {
		return committer, err
	}
	if result.Message = c.Message; c.RecordTrailer != "" && result.record != "" {
		result.Message += c.RecordTrailer + ": " + string(result.record) + "\n"
	}
	commit := git.Commit{Tree: hash(result.Tree), Author: author, Committer: committer,
		Message: result.Message}
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

// Make adds to a pack the trees, the files and a commit with all the placements. The commit's
// parent is the branch as it was when it was opened. Make does not move the branch, and does not
// finish the pack: the caller does. If nothing differs, there is no commit. Make reports the same
// diagnostics as Commit.
func (b *Branch) Make(ctx context.Context, placements []Placement, pack *git.PackWriter,
	c CommitInfo) (*CommitResult, []diag.Diagnostic, error) {
	result, report, err := b.place(ctx, placements, pack)
	if err == nil && result != nil && string(result.Tree) != b.root.String() {
		_, err = b.seal(result, pack, c)
	}
	if err != nil {
		return nil, nil,
			fmt.Errorf("making a commit for branch %s of %s: %w", b.name, b.repository.dir, err)
	}
	return result, report, nil
}

// place computes the branch's tree with the placements. With a pack, it writes the new objects into
// the pack. With diagnostics there is no result.
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
	if root.IsZero() { // a commit has a tree, even an empty one
		if root, err = w.add(git.TreeKind, nil); err != nil {
			return nil, nil, err
		}
	}
	result.Tree = ID(root.String())
	return result, nil, nil
}

// Restate adds a commit to a pack that changes only the record of the environment in a folder,
// usually to set a hold. If change changes nothing, there is no commit, unless CommitInfo has
// Always. The rest of Make's description applies as well.
func (b *Branch) Restate(dir string, change func(*Record) error, pack *git.PackWriter,
	c CommitInfo) (*CommitResult, error) {
	return b.Restore(dir, b, change, pack, c)
}

// Restore adds a commit to a pack that restores the environment in a folder, byte for byte, from
// another commit of the branch. The only difference is the changes that change makes to the record.
// Restore compiles nothing. The rest of Make's description applies as well.
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

// restore is Restore without the commit.
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
		return nil, from.location(dir).addLocation(&RecordError{Path: recordPath, Err: err})
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
	if root, err = g.apply(root,
		[]treeEdit{{recordPath, &git.Entry{Mode: git.FileMode, ID: id}}}); err != nil {
		return nil, err
	}
	if dir != "" {
		if root, err = g.apply(b.root,
			[]treeEdit{{dir, &git.Entry{Mode: git.FolderMode, ID: root}}}); err != nil {
			return nil, err
		}
	}
	return &CommitResult{Tree: ID(root.String()), record: BlobID(encoded)}, nil
}
