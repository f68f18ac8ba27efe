package compiler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Output says where the trees go, and how.
type Output struct {
	// Dir is the folder that gets a folder for each environment; "" for none.
	Dir string
	// Git is a repository whose branches get commits with the environments' trees,
	// each where its gitops says; "" for none. It excludes Dir. Branch is the one
	// branch that gets a folder for each environment instead; "" for none. Where
	// gitops says otherwise the environment is not written.
	Git, Branch string
	// TreeOnly writes what the branch's tree would be, and leaves the branch as it
	// is.
	TreeOnly bool
	// Flat writes the one environment straight into Dir, or the branch's root.
	Flat bool
	// Strict writes nothing at all if there is any error.
	Strict bool
	// Adopt takes over files that kalypso did not write.
	Adopt bool
	// Verify reads every file of Dir again, whatever its size and time say.
	Verify bool

	anywhere bool // wherever trees point, for tests of many platforms in one branch
}

func (o Output) folder(environment string) string {
	if o.Flat {
		return ""
	}
	return environment
}

// Written is what a build wrote.
type Written struct {
	// Changes are by environment; one that is absent was not written.
	Changes map[string]*tree.Changes
	// Commits are those that were made, by branch.
	Commits []Commit
	// Tree is the id of the branch's whole tree; "" where it is not known, since
	// nothing was written to git.
	Tree tree.ID
}

// Commit is a commit that was made.
type Commit struct {
	Branch string  `json:"branch"`
	Commit tree.ID `json:"commit"`
}

// Write compiles environments and writes their trees. Without a folder or a
// repository to write to it only compiles.
func Write(ctx context.Context, r Request, o Output) (*Build, *Written, error) {
	switch {
	case o.Git != "":
		return writeGit(ctx, r, o)
	case o.Dir != "":
		return writeDir(ctx, r, o)
	}
	b, err := Compile(ctx, r)
	return b, &Written{}, err
}

// Options are those with which an environment's tree is written.
func (b *Build) Options(e *Environment) tree.Options {
	return tree.Options{Platform: b.Platform.Module, Environment: e.Name, Compiler: Version(), Source: e.Source, OCI: e.OCI()}
}

// options are those of an environment's tree.
func (o Output) options(b *Build, e *Environment) tree.Options {
	options := b.Options(e)
	options.Adopt, options.Verify = o.Adopt, o.Verify
	return options
}

// tell adds diagnostics about an environment's output to those of a build.
func (b *Build) tell(environment string, ds []diag.Diagnostic) {
	for i := range ds {
		ds[i].Environment = environment
	}
	b.Diagnostics = append(b.Diagnostics, ds...)
}

// writeDir writes the trees to folders. Each stays locked from when its record is read
// until it is written, and no longer: another build may have it, and wait for the next.
func writeDir(ctx context.Context, r Request, o Output) (b *Build, w *Written, err error) {
	if info, err := os.Stat(o.Dir); err == nil && !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a folder, so no tree can be written to it", o.Dir)
	}
	out := &folders{Output: o, dirs: map[string]*tree.Dir{}, problems: map[string][]diag.Diagnostic{}}
	defer func() { err = errors.Join(err, out.close()) }()
	r.Previous = out.previous
	if b, err = Compile(ctx, r); err != nil {
		return nil, nil, err
	}
	for _, e := range b.Environments {
		b.Diagnostics = append(b.Diagnostics, out.problems[e.Name]...)
	}
	w = &Written{Changes: map[string]*tree.Changes{}}
	defer func() {
		if b != nil {
			b.Diagnostics = diag.Sort(b.Diagnostics)
		}
	}()
	b.warnOfGone(r, o, foldersIn(o.Dir), func(folder string) (*tree.Record, string) {
		dir := filepath.Join(o.Dir, folder)
		return recordIn(dir), filepath.ToSlash(dir) + "/" + tree.RecordPath
	})
	if o.Strict && b.Failed() {
		return b, w, nil
	}
	for _, e := range b.Environments {
		if e.Tree == nil || diag.Errors(out.problems[e.Name]) {
			continue
		}
		dir := out.dirs[e.Name]
		c, ds, err := dir.Write(e.Tree, o.options(b, e))
		if err = errors.Join(err, dir.Close()); err != nil {
			return nil, nil, err
		}
		b.tell(e.Name, ds)
		if c != nil {
			w.Changes[e.Name] = c
		}
	}
	return b, w, nil
}

// folders are those that are written to.
type folders struct {
	Output
	mu       sync.Mutex
	dirs     map[string]*tree.Dir
	problems map[string][]diag.Diagnostic
}

func (f *folders) previous(environment string) (*tree.Record, error) {
	dir, err := tree.Open(filepath.Join(f.Dir, f.folder(environment)))
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.dirs[environment] = dir
	f.mu.Unlock()
	record, ds, err := dir.Record()
	if err != nil {
		return nil, err
	}
	if f.Adopt {
		return whole(record), nil
	}
	f.mu.Lock()
	f.problems[environment] = ds
	f.mu.Unlock()
	return record, nil
}

// whole returns a record of which everything can be read, or nil.
func whole(record *tree.Record) *tree.Record {
	if record == nil {
		return nil
	}
	for _, ct := range record.ClusterTypes {
		if _, err := record.ClusterType(ct.Name); err != nil {
			return nil
		}
	}
	return record
}

func (f *folders) close() error {
	var errs []error
	for _, d := range f.dirs {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// writeGit writes the trees as one commit. Where another process moves the branch
// meanwhile, it begins anew with what the branch is then.
func writeGit(ctx context.Context, r Request, o Output) (b *Build, w *Written, err error) {
	repository, err := tree.OpenRepository(o.Git)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, repository.Close()) }()
	for range mostAttempts {
		if b, w, err = writeBranches(ctx, r, o, repository); !errors.Is(err, tree.ErrLostRace) {
			break
		}
	}
	return b, w, err
}

func writeBranches(ctx context.Context, r Request, o Output, repository *tree.Repository) (b *Build, w *Written, err error) {
	o.Branch = strings.TrimPrefix(o.Branch, "refs/heads/")
	out := &branches{Output: o, repository: repository, open: map[string]*tree.Branch{}, places: map[string]destination{}, problems: map[string][]diag.Diagnostic{}}
	if o.Branch != "" {
		if err := out.look(o.Branch); err != nil {
			return nil, nil, err
		}
	}
	r.destine, r.Previous = out.destine, out.previous
	if b, err = Compile(ctx, r); err != nil {
		return nil, nil, err
	}
	defer func() {
		if b != nil {
			b.Diagnostics = diag.Sort(b.Diagnostics)
		}
	}()
	for _, e := range b.Environments {
		b.Diagnostics = append(b.Diagnostics, out.problems[e.Name]...)
	}
	w = &Written{Changes: map[string]*tree.Changes{}}
	if branch := out.open[o.Branch]; branch != nil {
		folders, err := branch.Folders()
		if err != nil {
			return nil, nil, err
		}
		b.warnOfGone(r, o, folders, func(folder string) (*tree.Record, string) {
			record, _, err := branch.Record(folder)
			if err != nil {
				return nil, ""
			}
			return record, o.Branch + ":" + folder + "/" + tree.RecordPath
		})
	}
	if o.Strict && b.Failed() {
		return b, w, nil
	}
	for _, name := range slices.Sorted(maps.Keys(out.open)) {
		if err := b.commit(w, out, name); err != nil {
			return b, w, err
		}
	}
	return b, w, nil
}

// branches are those that are written to.
type branches struct {
	Output
	repository *tree.Repository
	open       map[string]*tree.Branch
	places     map[string]destination // by environment
	mu         sync.Mutex
	problems   map[string][]diag.Diagnostic
}

// look opens a branch that may be written to.
func (o *branches) look(name string) error {
	if o.open[name] != nil {
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
	o.open[name] = branch
	return nil
}

func (o *branches) destine(environment string, g *model.GitOps) (*diag.Diagnostic, error) {
	if o.anywhere {
		g = nil
	}
	to, d := o.destination(environment, g)
	if d != nil {
		return d, nil
	}
	o.places[environment] = to
	return nil, o.look(to.branch)
}

func (o *branches) previous(environment string) (*tree.Record, error) {
	to, known := o.places[environment]
	if !known {
		return nil, nil // its tree stays as it is
	}
	record, ds, err := o.open[to.branch].Record(to.folder)
	if err != nil {
		return nil, err
	}
	if o.Adopt {
		return whole(record), nil
	}
	o.mu.Lock()
	o.problems[environment] = ds
	o.mu.Unlock()
	return record, nil
}

// commit writes the environments of a branch that may be written, and notes what it
// wrote.
func (b *Build) commit(w *Written, o *branches, name string) error {
	var placements []tree.Placement
	var names []string
	for _, e := range b.Environments {
		to, known := o.places[e.Name]
		if known && to.branch == name && e.Tree != nil && !diag.Errors(o.problems[e.Name]) {
			placements = append(placements, tree.Placement{Folder: to.folder, Tree: e.Tree, Options: o.options(b, e)})
			names = append(names, e.Name)
		}
	}
	if len(placements) == 0 {
		return nil
	}
	write := o.open[name].WriteTree
	if !o.TreeOnly {
		write = func(placements []tree.Placement) (*tree.CommitResult, []diag.Diagnostic, error) {
			return o.open[name].Commit(placements, tree.CommitInfo{Message: message(b, names)})
		}
	}
	result, ds, err := write(placements)
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

// message is that of the commit with the trees of environments.
func message(b *Build, environments []string) string {
	return fmt.Sprintf("Build %s\n\nPlatform: %s\nCompiler: %s\n", strings.Join(environments, ", "), b.Platform.Module, Version().Version)
}
