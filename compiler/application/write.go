package application

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Output describes where and how to write the trees.
type Output struct {
	// Dir is the folder that gets a folder for each environment, with one for each
	// of its targets.
	Dir string
	// Strict writes nothing at all if there is any error.
	Strict bool
	// Adopt makes Write replace files that kalypso did not write.
	Adopt bool
}

// Write projects an application and writes its tree. It removes the targets that no longer
// exist, if the folder's record shows that kalypso wrote them. It does the same for
// environments that no longer exist, unless the request names environments. The changes are
// by environment; an absent environment was not written.
func Write(ctx context.Context, r Request, o Output) (*Application, map[string]*tree.Changes,
	error) {
	if info, err := os.Stat(o.Dir); err == nil && !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a folder, so no tree can be written to it", o.Dir)
	}
	if dir, err := filepath.Abs(r.Dir); err == nil {
		if to, err := filepath.Abs(o.Dir); err == nil {
			if within, err := filepath.Rel(dir, to); err == nil && filepath.IsLocal(within) &&
				within != "." {
				r.without = filepath.ToSlash(within)
			}
		}
	}
	a, err := Project(ctx, r)
	if err != nil || a.Model == nil || o.Strict && a.Failed() {
		return a, nil, err
	}
	defer func() { a.Diagnostics = diag.Sort(a.Diagnostics) }()
	changes := map[string]*tree.Changes{}
	environments := a.environments()
	if len(r.Environments) == 0 {
		environments = append(environments, gone(o.Dir, a.Model.Name, environments)...)
	}
	for _, environment := range environments {
		c, ds, err := a.write(ctx, environment, o)
		if err != nil {
			return nil, nil, err
		}
		for i := range ds {
			ds[i].Environment = environment
		}
		if a.Diagnostics = append(a.Diagnostics, ds...); c != nil {
			changes[environment] = c
		}
	}
	return a, changes, nil
}

func (a *Application) environments() []string {
	var out []string
	for _, t := range a.Targets {
		out = append(out, t.Environment)
	}
	return slices.Compact(out) // targets are sorted by environment
}

// gone are the environments that were written for the application before, and that
// it does not have any more.
func gone(dir, application string, known []string) []string {
	entries, _ := os.ReadDir(dir) // an unreadable folder counts as missing
	var out []string
	for _, e := range entries {
		if !e.IsDir() || slices.Contains(known, e.Name()) {
			continue
		}
		if record := tree.ReadRecord(filepath.Join(dir, e.Name())); record != nil &&
			record.Platform == application && record.Environment == e.Name() &&
			len(record.ClusterTypes) > 0 {
			out = append(out, e.Name())
		}
	}
	return out
}

// write writes the targets of an environment.
func (a *Application) write(ctx context.Context, environment string, o Output) (c *tree.Changes,
	ds []diag.Diagnostic, err error) {
	dir, err := tree.Open(filepath.Join(o.Dir, environment))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	options := a.Options(environment)
	options.Adopt = o.Adopt
	return dir.Write(ctx, a.Tree(environment, nil), options)
}

// Tree returns the tree of a projected environment, each target in the place of a cluster
// type. A failed target keeps its last good folder. If only one ring is projected, the
// targets of other rings stay unchanged, according to the previous record, which may be
// nil.
func (a *Application) Tree(environment string, previous *tree.Record) *tree.Tree {
	t := &tree.Tree{}
	for i := range a.Targets {
		target := &a.Targets[i]
		if target.Environment != environment {
			continue
		}
		content := tree.ContentOf(target.Files)
		if target.Failed {
			content.Kept = "the target has errors"
		}
		t.ClusterTypes = append(t.ClusterTypes, tree.ClusterType{
			Name: target.Name, Outside: !a.builds(target.Name),
			Content: func(context.Context) (*tree.Content, error) { return content, nil },
		})
	}
	if previous == nil || a.request.Ring == "" {
		return t
	}
	// a target that no longer exists belongs to the ring that built it
	for _, e := range previous.ClusterTypes {
		known := slices.ContainsFunc(t.ClusterTypes,
			func(ct tree.ClusterType) bool { return ct.Name == e.Name })
		if !known && e.Ring != "" && e.Ring != a.request.Ring {
			t.ClusterTypes = append(t.ClusterTypes, tree.ClusterType{Name: e.Name, Outside: true})
		}
	}
	slices.SortFunc(t.ClusterTypes,
		func(a, b tree.ClusterType) int { return strings.Compare(a.Name, b.Name) })
	return t
}

// Options returns the options of the tree of an environment, such as its source and its
// ring.
func (a *Application) Options(environment string) tree.Options {
	of := a.request.Source
	if of == nil {
		of = &tree.Source{Base: tree.Revision(a.source.digest("")),
			Environment: tree.Revision(a.source.digest(environment))}
	}
	return tree.Options{Platform: a.Model.Name, Environment: environment, Compiler: compiler.Version(),
		Source: *of, Ring: a.request.Ring}
}
