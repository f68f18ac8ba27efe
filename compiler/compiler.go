// Package compiler compiles a platform: CUE in, GitOps trees out. Compile is
// the pipeline from top to bottom; each step is a package of its own.
package compiler

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Request says what to compile.
type Request struct {
	// Dir is the platform's folder, or one below it.
	Dir string
	// Environments are the names of those to compile; none means all.
	Environments []string
	// Previous returns the record of the output that exists of an environment, or
	// nil. What fails keeps its last good output, as the record describes it. It
	// may be nil, and may be called by several goroutines.
	Previous func(environment string) (*tree.Record, error)
}

// Build is a compiled platform.
type Build struct {
	Platform *source.Platform
	// Stages are the environments that the base declares, sorted; nil where the
	// base cannot be read.
	Stages []evaluate.Stage
	// Environments are those that were asked for, in the order of their names.
	Environments []*Environment
	// Diagnostics of all of it have positions and are sorted by them.
	Diagnostics []diag.Diagnostic
}

// Failed says whether the platform has errors.
func (b *Build) Failed() bool { return diag.Errors(b.Diagnostics) }

// Environment is one compiled environment.
type Environment struct {
	Name   string
	Source tree.Source
	// Model is nil where nothing of the environment can be read. Then Schedule and
	// Tree are nil, and its output stays as it is.
	Model    *model.Environment
	Schedule *schedule.Schedule
	// Compositions are in the order of the schedule's assignments.
	Compositions []compose.Composition
	// Tuples is the number of distinct configuration graphs.
	Tuples int
	// Matches counts the assignments that each config of the model matches.
	Matches []int
	// Tree is the output; nil where it must stay as it is.
	Tree *tree.Tree

	shared      map[string]model.Value // cluster type -> the reconciler's options that its assignments share
	failed      []bool                 // by assignment
	diagnostics []diag.Diagnostic
}

// Failed says whether an error concerns the assignment with this number, so that
// it is not built.
func (e *Environment) Failed(assignment int) bool { return e.failed[assignment] }

// UnknownEnvironmentError says that the platform has no such environment.
type UnknownEnvironmentError struct {
	Name  string
	Known []string
}

func (e *UnknownEnvironmentError) Error() string {
	s := fmt.Sprintf("there is no environment %s", e.Name)
	if hint := diag.DidYouMean(e.Name, e.Known); hint != "" {
		s += "; " + hint
	}
	return s
}

// Compile compiles environments of a platform. Errors of the platform are among
// the diagnostics; the error is about what cannot be read, or a request for
// what is not there.
func Compile(ctx context.Context, r Request) (*Build, error) {
	platform, ds, err := source.Open(r.Dir)
	if err != nil {
		return nil, err
	}
	stages, more, err := evaluate.Stages(ctx, platform)
	if err != nil {
		return nil, err
	}
	b := &Build{Platform: platform, Stages: stages, Diagnostics: append(slices.Clone(ds), more...)}
	names, err := b.environments(r.Environments)
	if err != nil {
		return nil, err
	}
	b.Environments = make([]*Environment, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		group.Go(func() (err error) {
			b.Environments[i], err = compileEnvironment(ctx, platform, name, stages, losesSome(more), r.Previous)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, e := range b.Environments {
		b.Diagnostics = append(b.Diagnostics, e.diagnostics...)
	}
	b.Diagnostics = diag.Sort(b.Diagnostics)
	return b, nil
}

// environments returns those that were asked for, or all, sorted. Where the base
// cannot be read the folders say which there are.
func (b *Build) environments(asked []string) ([]string, error) {
	var known []string
	for _, s := range b.Stages {
		known = append(known, s.Name)
	}
	if b.Stages == nil {
		known = b.Platform.Folders
	}
	if len(asked) == 0 {
		return known, nil
	}
	for _, name := range asked {
		if !slices.Contains(known, name) {
			return nil, &UnknownEnvironmentError{name, known}
		}
	}
	names := slices.Sorted(slices.Values(asked))
	return slices.Compact(names), nil
}

// losesSome says whether something of any environment may be missing: a folder
// that is no environment may hold it.
func losesSome(ds []diag.Diagnostic) bool {
	return slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Code == diag.UndeclaredEnvironment })
}

// compileEnvironment takes one environment through the pipeline.
func compileEnvironment(ctx context.Context, p *source.Platform, name string, stages []evaluate.Stage, lost bool, previous func(string) (*tree.Record, error)) (*Environment, error) {
	pkg, ds, err := evaluate.Environment(ctx, p, name, stages)
	if err != nil {
		return nil, err
	}
	e := &Environment{Name: name, Source: tree.Source{Base: pkg.Base, Environment: pkg.Own}, Model: pkg.Model, diagnostics: ds}
	if e.Model == nil {
		return e, nil
	}
	e.Model.Uncertain = e.Model.Uncertain || lost
	satisfies := newSatisfier()
	e.Schedule, ds = schedule.Assign(e.Model, satisfies)
	e.report(ds)
	composed, ds, err := compose.Compose(ctx, e.Model, e.Schedule, pkg, satisfies)
	if err != nil {
		return nil, err
	}
	e.Compositions, e.Tuples, e.Matches, e.shared = composed.Compositions, composed.Tuples, composed.Matches, composed.Shared
	e.report(ds)
	e.failed = make([]bool, len(e.Compositions))
	for i, c := range e.Compositions {
		e.failed[i] = e.Schedule.Assignments[i].Failed || c.Failed
	}
	e.warnOfNoContent()
	var record *tree.Record
	if previous != nil {
		if record, err = previous(name); err != nil {
			return nil, err
		}
		if record != nil && (record.Platform != p.Module || record.Environment != name) {
			record = nil // of something else: writing over it is refused
		}
	}
	e.emit(ctx, record)
	diag.Resolve(e.diagnostics, e.Model.Positions)
	return e, ctx.Err()
}

func (e *Environment) report(ds []diag.Diagnostic) {
	for i := range ds {
		ds[i].Environment = e.Name
	}
	e.diagnostics = append(e.diagnostics, ds...)
}

func (e *Environment) warnOfNoContent() {
	if len(e.Model.ClusterTypes) == 0 && !e.Model.Uncertain {
		ref := model.Ref{Collection: "environments", Name: e.Name}
		e.report([]diag.Diagnostic{diag.New(diag.NoContent, "environment "+e.Name+" has no cluster types").At(ref, "").On(ref.String()).
			Hinting("declare clusterTypes in environments/" + e.Name)})
	}
}
