package compiler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Output describes the destination of the trees, and how to write them.
type Output struct {
	// Dir is the folder that gets a folder for each environment; "" to write no folders.
	Dir string
	// Git is a repository whose branches get commits with the environments' trees, as their
	// gitops says; "" to write no commits. It excludes Dir. Branch is a single branch that gets a
	// folder for each environment instead; "" to follow gitops. If an environment's gitops names
	// another place, the environment is not written.
	Git, Branch string
	// TreeOnly writes the tree that the branch would get, and leaves the branch as it is.
	TreeOnly bool
	// Flat writes the only environment directly into Dir, or into the branch's root.
	Flat bool
	// Strict writes nothing if there is any error.
	Strict bool
	// Adopt takes over files that kalypso did not write.
	Adopt bool
	// Verify reads every file of Dir again, even if its size and time are unchanged.
	Verify bool

	anywhere bool // ignore where trees point, for tests of many platforms in one branch
}

func (o Output) folder(environment string) string {
	if o.Flat {
		return ""
	}
	return environment
}

// WriteResult describes the files and commits that a build wrote.
type WriteResult struct {
	// Changes are by environment. Environments that were not written are absent.
	Changes map[string]*tree.Changes
	// Commits are the new commits, sorted by branch.
	Commits []Commit
	// Tree is the id of the branch's whole tree; "" if it is not known, because nothing was
	// written to git.
	Tree tree.ID
}

// Commit is a commit that a build made.
type Commit struct {
	Branch string  `json:"branch"`
	Commit tree.ID `json:"commit"`
}

// Write compiles environments and writes their trees. Without a folder or a repository it only
// compiles.
func Write(ctx context.Context, r Request, o Output) (*Build, *WriteResult, error) {
	switch {
	case o.Git != "":
		return writeGit(ctx, r, o)
	case o.Dir != "":
		return writeDir(ctx, r, o)
	}
	b, err := Compile(ctx, r)
	return b, &WriteResult{}, err
}

// Options returns the options for writing an environment's tree.
func (b *Build) Options(e *engine.Environment) tree.Options {
	return tree.Options{Platform: b.Platform.Module, Environment: e.Name, Compiler: Version(),
		Source: e.Source, OCI: e.OCI(), Git: e.Git(), Formerly: e.Formerly()}
}

// options returns the options for writing an environment's tree to this output.
func (o Output) options(b *Build, e *engine.Environment) tree.Options {
	options := b.Options(e)
	options.Adopt, options.Verify = o.Adopt, o.Verify
	return options
}

// report adds diagnostics about an environment's output to those of a build.
func (b *Build) report(environment string, ds []diag.Diagnostic) {
	for i := range ds {
		ds[i].Environment = environment
	}
	b.Diagnostics = append(b.Diagnostics, ds...)
}

// output is a destination for trees.
type output interface {
	// previous returns the existing records of a planned build's environments, by environment. It
	// locks the output until it is written or closed. If an environment has diagnostics with an
	// error, it must not be written.
	previous(b *Build) (map[string]*tree.Record, map[string][]diag.Diagnostic, error)
	// folders returns the names of the existing folders. record returns the record of a folder,
	// or nil if it has no record, and the record's location for messages.
	folders() ([]string, error)
	record(folder string) (*tree.Record, string)
	// write writes the trees of environments of a build.
	write(ctx context.Context, b *Build, environments []*engine.Environment, w *WriteResult) error
	close() error
}

// writeTo compiles environments and writes them to an output.
func writeTo(ctx context.Context, r Request, o Output, out output) (b *Build, w *WriteResult,
	err error) {
	defer func() { err = errors.Join(err, out.close()) }()
	if b, err = plan(ctx, r); err != nil {
		return nil, nil, err
	}
	w = &WriteResult{Changes: map[string]*tree.Changes{}}
	if err = b.writeTo(ctx, r, o, out, w); err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	b.Diagnostics = diag.Sort(b.Diagnostics)
	return b, w, nil
}

func (b *Build) writeTo(ctx context.Context, r Request, o Output, out output,
	w *WriteResult) error {
	previous, problems, err := out.previous(b)
	if err != nil {
		return err
	}
	if err := b.finish(ctx, previous); err != nil {
		return err
	}
	var writable []*engine.Environment
	for _, e := range b.Environments {
		b.Diagnostics = append(b.Diagnostics, problems[e.Name]...)
		if e.Tree != nil && !diag.Errors(problems[e.Name]) {
			writable = append(writable, e)
		}
	}
	folders, err := out.folders()
	if err != nil {
		return err
	}
	b.warnOfGone(r, o, folders, out.record)
	if o.Strict && b.Failed() {
		return nil
	}
	r.Supervisor.MayBeginAgain(false)
	return out.write(ctx, b, writable, w)
}

// sound returns the record and the diagnostics to build on. With Output.Adopt there are no
// diagnostics, and the record is nil unless all of it can be read.
func (o Output) sound(record *tree.Record, ds []diag.Diagnostic) (*tree.Record, []diag.Diagnostic) {
	if !o.Adopt {
		return record, ds
	}
	if record != nil {
		for _, ct := range record.ClusterTypes {
			if _, err := record.ClusterType(ct.Name); err != nil {
				return nil, nil
			}
		}
	}
	return record, nil
}

// writeDir writes the trees to folders. Each folder is locked only from reading its record until
// writing it. Another build may lock it then, and wait for the next folder.
func writeDir(ctx context.Context, r Request, o Output) (*Build, *WriteResult, error) {
	if info, err := os.Stat(o.Dir); err == nil && !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a folder, so no tree can be written to it", o.Dir)
	}
	return writeTo(ctx, r, o, &dirOutput{Output: o, dirs: map[string]*tree.Dir{}})
}

// dirOutput is a folder with a folder for each environment.
type dirOutput struct {
	Output
	dirs map[string]*tree.Dir // by environment
}

// previous opens the folders one after the other, in the order of their names. Two builds with
// different orders would wait for each other forever.
func (o *dirOutput) previous(b *Build) (map[string]*tree.Record, map[string][]diag.Diagnostic,
	error) {
	records, problems := map[string]*tree.Record{}, map[string][]diag.Diagnostic{}
	for _, e := range b.Environments {
		if e.Model == nil {
			continue
		}
		dir, err := tree.Open(filepath.Join(o.Dir, o.folder(e.Name)))
		if err != nil {
			return nil, nil, err
		}
		o.dirs[e.Name] = dir
		record, ds, err := dir.Record()
		if err != nil {
			return nil, nil, err
		}
		records[e.Name], problems[e.Name] = o.sound(record, ds)
	}
	return records, problems, nil
}

func (o *dirOutput) folders() ([]string, error) { return foldersIn(o.Dir), nil }

func (o *dirOutput) record(folder string) (*tree.Record, string) {
	dir := filepath.Join(o.Dir, folder)
	return tree.ReadRecord(dir), filepath.ToSlash(dir) + "/" + tree.RecordPath
}

func (o *dirOutput) write(ctx context.Context, b *Build, environments []*engine.Environment,
	w *WriteResult) error {
	for _, e := range environments {
		dir := o.dirs[e.Name]
		c, ds, err := dir.Write(ctx, e.Tree, o.options(b, e))
		if err = errors.Join(err, dir.Close()); err != nil {
			return err
		}
		b.report(e.Name, ds)
		if c != nil {
			w.Changes[e.Name] = c
		}
	}
	return nil
}

func (o *dirOutput) close() error {
	var errs []error
	for _, d := range o.dirs {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// writeGit writes the trees as one commit of each branch. If another process moves a branch in
// the meantime, it starts over with the new branch.
func writeGit(ctx context.Context, r Request, o Output) (b *Build, w *WriteResult, err error) {
	repository, err := tree.OpenRepository(o.Git)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, repository.Close()) }()
	o.Branch = strings.TrimPrefix(o.Branch, "refs/heads/")
	for range maxAttempts {
		out := &gitOutput{Output: o, repository: repository, branches: map[string]*tree.Branch{},
			places: map[string]destination{}}
		if err = out.open(o.Branch); err != nil {
			return nil, nil, err
		}
		if b, w, err = writeTo(ctx, r, o, out); !errors.Is(err, tree.ErrLostRace) {
			break
		}
	}
	return b, w, err
}

// gitOutput is a git repository.
type gitOutput struct {
	Output
	repository *tree.Repository
	branches   map[string]*tree.Branch // by name; they may be written to
	places     map[string]destination  // by environment
}

// open opens a branch for writing. It does nothing if name is "".
func (o *gitOutput) open(name string) error {
	if o.branches[name] != nil || name == "" {
		return nil
	}
	if strings.HasPrefix(name, "refs/") {
		return fmt.Errorf("%s is no branch: write its name, as git branch lists it", name)
	}
	branch, err := o.repository.Branch(name)
	if err != nil {
		return err
	}
	if !o.TreeOnly {
		if err := branch.CheckWritable(); err != nil {
			return err
		}
	}
	o.branches[name] = branch
	return nil
}

// previous finds the destination of each tree. It keeps environments without a destination as
// they are.
func (o *gitOutput) previous(b *Build) (map[string]*tree.Record, map[string][]diag.Diagnostic,
	error) {
	records, problems := map[string]*tree.Record{}, map[string][]diag.Diagnostic{}
	for _, e := range b.Environments {
		if e.Model == nil {
			continue
		}
		gitops := e.Model.GitOps
		if o.anywhere {
			gitops = nil
		}
		to, d := o.destination(e.Name, gitops)
		if d != nil {
			e.Displace(*d)
			continue
		}
		if err := o.open(to.branch); err != nil {
			return nil, nil, err
		}
		o.places[e.Name] = to
	}
	for environment, to := range o.places {
		record, ds, err := o.branches[to.branch].Record(to.folder)
		if err != nil {
			return nil, nil, err
		}
		records[environment], problems[environment] = o.sound(record, ds)
		e := b.environment(environment)
		if len(ds) > 0 || e.Model.GitOps == nil || o.anywhere {
			continue
		}
		branch, folder, was := to.branch, "", (*tree.Record)(nil)
		if record == nil {
			branch, folder, was, err = o.repository.Find(b.Platform.Module, environment, to.branch)
		} else { // an old record may be left there
			folder, was, err = o.branches[to.branch].Newer(environment, to.folder, nil, nil)
		}
		if err != nil {
			return nil, nil, err
		}
		if was != nil {
			at := model.GitOps{Repo: e.Model.GitOps.Repo, Branch: branch, Path: path.Clean(folder)}
			problems[environment] = append(problems[environment], b.moved(e, &at, was))
		}
	}
	return records, problems, nil
}

// folders returns the folders of the single branch that gets all environments.
func (o *gitOutput) folders() ([]string, error) {
	if branch := o.branches[o.Branch]; branch != nil {
		return branch.Folders()
	}
	return nil, nil
}

func (o *gitOutput) record(folder string) (*tree.Record, string) {
	record, _, err := o.branches[o.Branch].Record(folder)
	if err != nil {
		return nil, ""
	}
	return record, o.Branch + ":" + folder + "/" + tree.RecordPath
}

func (o *gitOutput) write(ctx context.Context, b *Build, environments []*engine.Environment,
	w *WriteResult) error {
	for _, name := range slices.Sorted(maps.Keys(o.branches)) {
		if err := o.commit(ctx, b, environments, w, name); err != nil {
			return err
		}
	}
	return nil
}

// commit writes the environments that are kept in a branch.
func (o *gitOutput) commit(ctx context.Context, b *Build, environments []*engine.Environment,
	w *WriteResult, name string) error {
	var placements []tree.Placement
	var names []string
	for _, e := range environments {
		if to, known := o.places[e.Name]; known && to.branch == name {
			placements = append(placements,
				tree.Placement{Folder: to.folder, Tree: e.Tree, Options: o.options(b, e)})
			names = append(names, e.Name)
		}
	}
	if len(placements) == 0 {
		return nil
	}
	write := o.branches[name].WriteTree
	if !o.TreeOnly {
		write = func(ctx context.Context, placements []tree.Placement) (*tree.CommitResult,
			[]diag.Diagnostic, error) {
			return o.branches[name].Commit(ctx, placements, tree.CommitInfo{Message: message(b, names)})
		}
	}
	result, ds, err := write(ctx, placements)
	if err != nil {
		return err
	}
	b.Diagnostics = append(b.Diagnostics, ds...)
	if result != nil {
		if w.Tree = result.Tree; result.Commit != "" {
			w.Commits = append(w.Commits, Commit{name, result.Commit})
		}
		for n, c := range result.Changes {
			w.Changes[names[n]] = c
		}
	}
	return nil
}

func (*gitOutput) close() error { return nil }

// message returns the message of the commit with the trees of environments.
func message(b *Build, environments []string) string {
	return fmt.Sprintf("Build %s\n\nPlatform: %s\nCompiler: %s\n", strings.Join(environments, ", "),
		b.Platform.Module, Version().Version)
}
