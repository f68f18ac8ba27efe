package compiler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Output says where the trees go, and how.
type Output struct {
	// Dir is the folder that gets a folder for each environment; "" writes nothing.
	Dir string
	// Flat writes the one environment straight into Dir.
	Flat bool
	// Strict writes nothing at all if there is any error.
	Strict bool
	// Adopt takes over files that kalypso did not write.
	Adopt bool
}

func (o Output) path(environment string) string {
	if o.Flat {
		return o.Dir
	}
	return filepath.Join(o.Dir, environment)
}

// Write compiles environments and writes their trees. It returns what changed
// by environment; one that is absent was not written. The folders stay locked
// from when their records are read until they are written.
func Write(ctx context.Context, r Request, o Output) (b *Build, changed map[string]*tree.Changes, err error) {
	if o.Dir == "" {
		b, err = Compile(ctx, r)
		return b, nil, err
	}
	if info, err := os.Stat(o.Dir); err == nil && !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a folder, so no tree can be written to it", o.Dir)
	}
	out := &output{Output: o, dirs: map[string]*tree.Dir{}, problems: map[string][]diag.Diagnostic{}}
	defer func() { err = errors.Join(err, out.close()) }()
	r.Previous = out.previous
	if b, err = Compile(ctx, r); err != nil {
		return nil, nil, err
	}
	for _, e := range b.Environments {
		b.Diagnostics = append(b.Diagnostics, out.problems[e.Name]...)
	}
	changed = map[string]*tree.Changes{}
	if o.Strict && b.Failed() {
		b.Diagnostics = diag.Sort(b.Diagnostics)
		return b, changed, nil
	}
	for _, e := range b.Environments {
		if e.Tree == nil || diag.Errors(out.problems[e.Name]) {
			continue
		}
		c, ds, err := out.dirs[e.Name].Write(e.Tree, tree.Options{
			Platform: b.Platform.Module, Environment: e.Name, Compiler: Version(), Source: e.Source, Adopt: o.Adopt,
		})
		if err != nil {
			return nil, nil, err
		}
		for i := range ds {
			ds[i].Environment = e.Name
		}
		b.Diagnostics = append(b.Diagnostics, ds...)
		if c != nil {
			changed[e.Name] = c
		}
	}
	b.Diagnostics = diag.Sort(b.Diagnostics)
	return b, changed, nil
}

// output is the folders that are written to.
type output struct {
	Output
	mu       sync.Mutex
	dirs     map[string]*tree.Dir
	problems map[string][]diag.Diagnostic
}

func (o *output) previous(environment string) (*tree.Record, error) {
	dir, err := tree.Open(o.path(environment))
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.dirs[environment] = dir
	o.mu.Unlock()
	record, ds, err := dir.Record()
	if err != nil {
		return nil, err
	}
	if !o.Adopt {
		o.mu.Lock()
		o.problems[environment] = ds
		o.mu.Unlock()
	}
	return record, nil
}

func (o *output) close() error {
	var errs []error
	for _, d := range o.dirs {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}
