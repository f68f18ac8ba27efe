package subject

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Application returns the Subject that is an application of its own. The request gives the
// store and the workers.
func Application(r application.Request) Subject { return applicationSubject{r} }

type applicationSubject struct{ request application.Request }

// Form implements Subject.
func (a applicationSubject) Form() Form {
	return Form{Marker: source.ApplicationMarker, Targets: true}
}

// Declarations implements Subject.
func (a applicationSubject) Declarations(ctx context.Context, dir string) ([]model.Declaration,
	[]diag.Diagnostic, error) {
	return evaluate.ApplicationDeclarations(ctx, dir, a.request.Supervisor)
}

// Members implements Subject: rings select targets by name.
func (applicationSubject) Members(context.Context, CompileRequest) (map[string]string, error) {
	return map[string]string{}, nil
}

// Compile projects the targets of an environment. If there are no targets, Compile returns no
// tree, so that a missing folder does not remove the deployed files.
func (a applicationSubject) Compile(ctx context.Context, c CompileRequest) (*Compilation, error) {
	r := a.request
	r.Dir, r.Environments, r.Source = c.Dir, []string{c.Environment}, &c.Source
	r.Ring, r.Rings = c.Ring, c.Rings
	app, err := application.Project(ctx, r)
	if unknown := (*application.UnknownEnvironmentError)(nil); errors.As(err, &unknown) {
		return &Compilation{Missing: true, Errors: 1,
			Diagnostics: []diag.Diagnostic{noTarget(c.Environment)}}, nil
	}
	if err != nil {
		return nil, err
	}
	out := &Compilation{Diagnostics: app.Diagnostics, Errors: countErrors(app.Diagnostics)}
	if app.Model == nil {
		return out, nil
	}
	out.Tree, out.Options = app.Tree(c.Environment, c.Previous), app.Options(c.Environment)
	for _, t := range app.Targets {
		if t.Failed && isIn(c.Previous, t.Name) {
			out.Kept++
		}
	}
	return out, nil
}

func noTarget(environment string) diag.Diagnostic {
	return diag.New(diag.BadSource, "environment "+environment+" has no target in its commit").
		In(model.Position{File: source.Environments + "/" + environment, Line: 1, Column: 1}, "").
		Hinting("make the folder, with a values.yaml that may be empty")
}

// isIn reports whether a record, which may be nil, lists a cluster type.
func isIn(record *tree.Record, clusterType string) bool {
	if record == nil {
		return false
	}
	for i := range record.ClusterTypes {
		if record.ClusterTypes[i].Name == clusterType {
			return true
		}
	}
	return false
}

// Satisfies implements Subject.
func (a applicationSubject) Satisfies(_ context.Context, constraint model.Expr,
	document json.RawMessage) ([]string, error) {
	return satisfies(a.request.Workers, constraint, document)
}
