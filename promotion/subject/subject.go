// Package subject describes the subject of promotion: a platform, or an application in its own
// repository. Each compiles the environments of a folder with the files of a commit.
package subject

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/assert"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// Subject is the subject of promotion: a platform, or an application in its own repository. It
// compiles folders with the files of commits.
type Subject interface {
	// Form returns the differences from other subjects.
	Form() Form
	// Declarations returns the environments that the base in a folder declares, sorted by name. It
	// returns nil if the base cannot be read.
	Declarations(ctx context.Context, dir string) ([]model.Declaration, []diag.Diagnostic, error)
	// Members returns the ring of each cluster type that labels decide, by the request's rings; nil if
	// errors hide the cluster types.
	Members(ctx context.Context, r CompileRequest) (map[string]string, error)
	// Compile compiles one environment, or a ring of it.
	Compile(ctx context.Context, r CompileRequest) (*Compilation, error)
	// Satisfies evaluates a constraint of a policy gate on a JSON document. It returns the
	// violations, a line each.
	Satisfies(ctx context.Context, constraint model.Expr, document json.RawMessage) ([]string, error)
}

// Form is how subjects differ.
type Form struct {
	// Marker is the condition for a commit to belong to this subject.
	source.Marker
	// Targets is true if the folder of each cluster type in the tree is one unit of deployment, a
	// target with files and no assignments.
	Targets bool
}

// Unit returns the name of the unit of deployment, for messages.
func (f Form) Unit() string {
	if f.Targets {
		return "target"
	}
	return "assignment"
}

// CompileRequest is the environment to compile, or the ring of it, with the source and the
// options.
type CompileRequest struct {
	Dir         string
	Environment string
	Source      tree.Source
	// Ring is the part to compile, and Rings are all parts. "" and no rings mean everything.
	Ring  string
	Rings []model.Ring
	// Formerly are names that the environment had before.
	Formerly []string
	// Members are the rings of cluster types that count, whatever labels the files have, or nil.
	Members map[string]string
	// Previous is the record of the present tree, or nil.
	Previous *tree.Record
	// Back is true if people roll back to an earlier state. Then selectors may select nothing,
	// because the selected objects may have changed since.
	Back bool
}

// Compilation is a compiled environment, or a ring of it.
type Compilation struct {
	// Tree is nil if errors hide the environment, or it is Missing: the commit does not
	// have it.
	Tree        *tree.Tree
	Missing     bool
	Options     tree.Options
	Diagnostics []diag.Diagnostic
	Errors      int // assignments, or targets, with an error
	Kept        int // folders that stay as they were
	Removals    effect.Removals
	// Test runs the platform's tests, whose failures do not change the tree; nil for an
	// application.
	Test func(context.Context) ([]diag.Diagnostic, error)
	// Close removes the temporary files with the tree's content; nil if the tree has no such files.
	Close func() error
}

// Platform returns the Subject that is a platform. The request gives the cache, the store
// and the workers.
func Platform(r compiler.Request) Subject { return platformSubject{r} }

type platformSubject struct{ request compiler.Request }

// Form implements Subject.
func (p platformSubject) Form() Form { return Form{Marker: source.PlatformMarker} }

// Declarations implements Subject.
func (p platformSubject) Declarations(ctx context.Context, dir string) ([]model.Declaration,
	[]diag.Diagnostic, error) {
	r := p.request
	r.Dir = dir
	return compiler.Declarations(ctx, r)
}

// Members implements Subject.
func (p platformSubject) Members(ctx context.Context, c CompileRequest) (map[string]string, error) {
	r := p.request
	r.Dir, r.Environments, r.Rings = c.Dir, []string{c.Environment}, c.Rings
	of, err := compiler.Members(ctx, r)
	if unknown := (*compiler.UnknownEnvironmentError)(nil); errors.As(err, &unknown) {
		return nil, nil
	}
	return of, err
}

// Compile implements Subject.
func (p platformSubject) Compile(ctx context.Context, c CompileRequest) (*Compilation, error) {
	r := p.request
	r.Dir, r.Environments, r.Source = c.Dir, []string{c.Environment}, &c.Source
	r.Ring, r.Rings, r.Members, r.Formerly = c.Ring, c.Rings, c.Members, c.Formerly
	r.AllowRemovals = true // the gate decides about removals
	if c.Back {
		r.AllowEmpty = []string{compiler.AllEmpty}
	}
	r.Previous = map[string]*tree.Record{c.Environment: c.Previous}
	b, err := compiler.Compile(ctx, r)
	if unknown := (*compiler.UnknownEnvironmentError)(nil); errors.As(err, &unknown) {
		return &Compilation{Missing: true, Errors: 1}, nil
	}
	if err != nil {
		return nil, err
	}
	e := b.Environments[0]
	out := &Compilation{Tree: e.Tree, Options: b.Options(e), Diagnostics: b.Diagnostics,
		Errors: countErrors(b.Diagnostics), Kept: e.Counts.Kept, Close: b.Close}
	out.Removals = e.Removals
	out.Options.Ring = c.Ring
	out.Test = func(ctx context.Context) ([]diag.Diagnostic, error) {
		report, err := assert.Run(ctx, b, func(string) bool { return true })
		if err != nil {
			return nil, err
		}
		return report.Diagnostics, nil
	}
	return out, nil
}

// countErrors counts the assignments with errors. An error that names no assignment counts as
// well. Errors of tests do not count, because nothing depends on a test.
func countErrors(ds []diag.Diagnostic) int {
	failed := map[string]bool{}
	for _, d := range ds {
		if d.Severity != diag.Error || strings.HasPrefix(d.Path, "tests.") {
			continue
		}
		for _, id := range d.Assignments {
			failed[id] = true
		}
		if len(d.Assignments) == 0 {
			failed[d.Path] = true
		}
	}
	return len(failed)
}

// Satisfies implements Subject.
func (p platformSubject) Satisfies(_ context.Context, constraint model.Expr,
	document json.RawMessage) ([]string, error) {
	return satisfies(p.request.Workers, constraint, document)
}

// satisfies evaluates the constraint of a policy gate, in workers that can be killed;
// nil for in this process.
func satisfies(workers *worker.Pool, constraint model.Expr, document json.RawMessage) ([]string,
	error) {
	var value model.Value
	if err := json.Unmarshal(document, &value); err != nil {
		return nil, err
	}
	result := expr.New(expr.In(workers)).Eval([]expr.Call{{Contract: constraint, Value: &value}})[0]
	var out []string
	for _, p := range result.Problems {
		if p.Unbounded {
			return nil, errors.New("the constraint takes too long, or too much memory")
		}
		out = append(out, p.Path+": "+p.Message)
	}
	return out, nil
}
