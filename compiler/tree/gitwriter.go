package tree

import (
	"context"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/git"
)

// gitWriter makes the trees of environments. Its output has no effect before the pack is finished,
// so it writes while it compares. It makes the content of a cluster type once, and keeps it only
// until it is written.
type gitWriter struct {
	branch *Branch
	pack   *git.PackWriter // nil if nothing is written
}

// add stores an object, or returns the id that it would have.
func (w *gitWriter) add(kind git.Kind, data []byte) (git.Hash, error) {
	return w.addAs(git.ID(kind, data), kind, data)
}

// addAs is add for an object whose id is known.
func (w *gitWriter) addAs(id git.Hash, kind git.Kind, data []byte) (git.Hash, error) {
	if w.pack == nil {
		return id, nil
	}
	return w.pack.AddAs(id, kind, data)
}

func (w *gitWriter) treeEditor() *treeEditor { return &treeEditor{w.branch.repository.git, w.add} }

// writtenState is the new state of an environment.
type writtenState struct {
	changes *Changes
	root    git.Hash
}

// environment makes the tree of an environment. With diagnostics it returns nil.
func (w *gitWriter) environment(ctx context.Context, p Placement) (*writtenState, []diag.Diagnostic,
	error) {
	before, problems, err := w.branch.load(p.Folder)
	if err != nil {
		return nil, nil, err
	}
	at := w.branch.location(p.Folder)
	problems = append(problems, at.belongs(&before.state, p.Options)...)
	if report := unsolved(problems, p.Options.Adopt); len(report) > 0 {
		return nil, report, nil
	}
	parts, err := partsOf(p.Tree, &before.state)
	if err != nil {
		return nil, nil, err
	}
	e := &gitEnvironment{gitWriter: w, at: at, o: p.Options, before: before}
	edits, err := e.clusterTypes(ctx, parts)
	if err != nil {
		return nil, nil, err
	}
	if report := reports(parts); len(report) > 0 {
		return nil, report, nil
	}
	plan := e.planner(nil).finish(ctx, parts)
	if w.pack != nil {
		plan.next.load = func(name string) (*ClusterTypeRecord, error) {
			e := plan.next.entry(name)
			data, err := w.branch.repository.git.BlobWithin(hash(e.Record), MaxRecord)
			if err != nil {
				return nil, err
			}
			c, err := e.parse(data)
			return c, at.addLocation(err)
		}
	}
	done := &writtenState{changes: plan.changes(), root: before.root}
	beside := w.branch.instead[p.Folder].beside
	if !plan.done() {
		done.root, err = e.finish(plan, append(edits, beside...))
	} else if len(beside) > 0 {
		done.root, err = w.treeEditor().apply(before.root, beside)
	}
	return done, nil, err
}

// gitEnvironment is an environment while its tree is made.
type gitEnvironment struct {
	*gitWriter
	at     location
	o      Options
	before *gitState
}

// survey returns a survey for a single cluster type: the trees around it are read once for all.
func (e *gitEnvironment) survey() *gitSurvey {
	s := newGitSurvey(e.branch.repository.git, e.before.root)
	maps.Copy(s.known, e.before.around.known)
	maps.Copy(s.folders, e.before.around.folders)
	return s
}

// planner returns a planner for a single cluster type, which stays in memory until it is written.
func (e *gitEnvironment) planner(s *gitSurvey) *planner {
	return &planner{at: e.at, survey: func() surveyor { return s }, maxHeld: math.MaxInt64, o: e.o,
		before: &e.before.state}
}

// clusterTypes compares and makes the cluster types, several at once, and returns
// the changes to the environment's tree. It returns the error of the first
// cluster type with an error.
func (e *gitEnvironment) clusterTypes(ctx context.Context, parts []*typePlan) ([]treeEdit, error) {
	edits := make([][]treeEdit, len(parts))
	reused, err := e.reuse(parts)
	if err != nil {
		return nil, err
	}
	err = eachPart(parts, func(i int, p *typePlan) (err error) {
		if !reused[p] {
			edits[i], err = e.clusterType(ctx, p)
		}
		return err
	})
	return slices.Concat(edits...), err
}

// reuse returns the cluster types that do not change: their desired digests are the recorded ones,
// and their folders and records have the recorded ids.
func (e *gitEnvironment) reuse(parts []*typePlan) (map[*typePlan]bool, error) {
	reused := map[*typePlan]bool{}
	s := e.survey()
	pl := e.planner(s)
	for _, p := range parts {
		if !pl.reusable(p) {
			continue
		}
		tree, err := s.id(p.name)
		if err != nil {
			return nil, err
		}
		record, err := s.id(ClusterTypeRecordPath(p.name))
		if err != nil {
			return nil, err
		}
		if tree == p.before.Tree && record == p.before.Record {
			reused[p] = true
			p.next = p.before
			p.assignments.Unchanged = p.before.Assignments
		}
	}
	return reused, nil
}

// clusterType compares a cluster type, and makes its tree and its record. With diagnostics, the
// result must not be used.
func (e *gitEnvironment) clusterType(ctx context.Context, p *typePlan) ([]treeEdit, error) {
	s := e.survey()
	err := e.planner(s).compare(ctx, p)
	p.section = nil // a branch has no index
	if err != nil || len(p.report) > 0 || !p.differs() {
		return nil, err
	}
	if p.next == nil || !p.record && len(p.missing) == 0 {
		return e.edit(ctx, s, p, nil)
	}
	out, err := p.remake(ctx, e.before.record)
	if err != nil {
		return nil, err
	}
	p.outcome = nil
	defer out.release()
	return e.edit(ctx, s, p, out)
}

// edit makes the tree of a cluster type, and returns the changes to the environment's tree. The
// outcome is nil if nothing is written.
func (e *gitEnvironment) edit(ctx context.Context, s *gitSurvey, p *typePlan,
	out *outcome) ([]treeEdit, error) {
	var changes []treeEdit
	for _, name := range p.removed {
		changes = append(changes, treeEdit{path: strings.TrimPrefix(name, p.name+"/")})
	}
	for _, m := range p.missing {
		for _, f := range out.files(m) {
			name := strings.TrimPrefix(m.dir+"/"+f.Path, p.name+"/")
			changes = append(changes, treeEdit{name, &git.Entry{Mode: f.Blob().mode(), ID: hash(f.ID)}})
		}
	}
	if e.pack != nil {
		err := out.read(ctx, p.missing, func(_ missingFile, made []backends.File) error {
			for _, f := range made {
				if _, err := e.add(git.BlobKind, f.Data); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var all []treeEdit
	if len(changes) > 0 {
		there, _, err := s.entry(p.name)
		if err != nil {
			return nil, err
		}
		var base git.Hash
		if there != nil && there.Mode == git.FolderMode {
			base = there.ID
		}
		id, err := (&treeEditor{s, e.add}).apply(base, changes)
		if err != nil {
			return nil, err
		}
		all = append(all, treeEdit{p.name, &git.Entry{Mode: git.FolderMode, ID: id}})
	}
	record := ClusterTypeRecordPath(p.name)
	switch file := e.before.records[path.Base(record)]; {
	case p.next == nil && p.before != nil:
		all = append(all, treeEdit{path: record})
	case p.record && file.Mode == git.FolderMode:
		p.report = append(p.report,
			e.at.foreign(record, "is a folder, and kalypso has to write a file there").Hinting(moveHint))
	case p.record:
		id, err := e.addAs(hash(out.entry.Record), git.BlobKind, out.encoded)
		if err != nil {
			return nil, err
		}
		all = append(all, treeEdit{record, &git.Entry{Mode: git.FileMode, ID: id}})
	}
	return all, nil
}

// finish makes the environment's tree from the changes of its cluster types.
func (e *gitEnvironment) finish(p *writePlan, edits []treeEdit) (git.Hash, error) {
	own := map[string][]byte{}
	maps.Copy(own, e.o.Files)
	if p.header {
		own[recordPath] = p.nextBytes
	}
	if !e.before.ignored {
		own[gitignorePath] = []byte(gitignore)
	}
	for name, data := range own {
		id, err := e.add(git.BlobKind, data)
		if err != nil {
			return git.Hash{}, err
		}
		edits = append(edits, treeEdit{name, &git.Entry{Mode: git.FileMode, ID: id}})
	}
	return e.treeEditor().apply(e.before.root, edits)
}

// treeEdit is a change to a git tree at one path. It does not use the name in its entry. A nil
// entry removes an existing file, but not a folder. A folder is replaced as a whole, by its id; the
// zero Hash removes it.
type treeEdit struct {
	path  string
	entry *git.Entry
}

// treeEditor applies changes to trees. It reads and writes only the trees around the changed paths.
type treeEditor struct {
	repository interface {
		Tree(git.Hash) ([]git.Entry, error)
	}
	// add stores an object, and returns its id.
	add func(git.Kind, []byte) (git.Hash, error)
}

// apply returns a tree with the changes, which may be in any order, each path once. The zero Hash
// is a tree without entries. Git does not store such a tree in others, so an empty folder
// disappears. If a change adds a folder in the place of a file, or a file in the place of a folder,
// it replaces the old one.
func (g *treeEditor) apply(base git.Hash, changes []treeEdit) (git.Hash, error) {
	if len(changes) == 0 {
		return base, nil
	}
	var entries []git.Entry
	if !base.IsZero() {
		var err error
		if entries, err = g.repository.Tree(base); err != nil {
			return git.Hash{}, err
		}
	}
	changed := byName(changes)
	next := make([]git.Entry, 0, len(entries)+len(changed))
	before := map[string]*git.Entry{}
	for i, e := range entries {
		if changed[e.Name] == nil {
			next = append(next, e)
		} else {
			before[e.Name] = &entries[i]
		}
	}
	for name, c := range changed {
		e, err := g.entryAfter(before[name], c)
		if err != nil {
			return git.Hash{}, err
		}
		if e != nil {
			next = append(next, git.Entry{Name: name, Mode: e.Mode, ID: e.ID})
		}
	}
	if len(next) == 0 {
		return git.Hash{}, nil
	}
	content := git.EncodeTree(next)
	if id := git.ID(git.TreeKind, content); id == base {
		return base, nil
	}
	return g.add(git.TreeKind, content)
}

// entryAfter returns the entry of a name after the changes; nil if the name has no
// entry. before may be nil.
func (g *treeEditor) entryAfter(before *git.Entry, c *nameChanges) (*git.Entry, error) {
	if c.own != nil && c.own.entry != nil {
		if c.own.entry.ID.IsZero() {
			return nil, nil
		}
		return c.own.entry, nil
	}
	isFolder := before != nil && before.Mode == git.FolderMode
	var folder git.Hash
	if isFolder {
		folder = before.ID
	}
	folder, err := g.apply(folder, c.below)
	if err != nil {
		return nil, err
	}
	switch {
	case !folder.IsZero():
		return &git.Entry{Mode: git.FolderMode, ID: folder}, nil
	case isFolder || c.own != nil:
		return nil, nil
	}
	return before, nil
}

// nameChanges are the changes to one entry of a tree.
type nameChanges struct {
	own   *treeEdit
	below []treeEdit // with paths below it
}

// byName groups changes by the first elements of their paths.
func byName(changes []treeEdit) map[string]*nameChanges {
	all := map[string]*nameChanges{}
	for i := range changes {
		name, rest, deeper := strings.Cut(changes[i].path, "/")
		c := all[name]
		if c == nil {
			c = &nameChanges{}
			all[name] = c
		}
		if deeper {
			c.below = append(c.below, treeEdit{rest, changes[i].entry})
		} else {
			c.own = &changes[i]
		}
	}
	return all
}
