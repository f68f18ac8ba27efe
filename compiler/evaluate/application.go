package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/yamlfile"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// ApplicationFiles are the possible names of the file that marks the folder of an application.
var ApplicationFiles = source.ApplicationMarker.Files

// NotAnApplicationError is the error for a folder without a file of an application.
type NotAnApplicationError struct{ Dir string }

func (e *NotAnApplicationError) Error() string {
	return fmt.Sprintf("%s is no application: it has neither %s; run kalypso where one is, name "+
		"that folder with -C, or let kalypso init --app write one", e.Dir,
		strings.Join(ApplicationFiles, " nor "))
}

// Application evaluates the folder of an application. It returns the manifests to render, and
// the values of each target. It returns a nil application if an error hides them. Diagnostics
// are sorted. The error reports files that cannot be read. The supervisor may be nil.
func Application(ctx context.Context, dir string, s *supervisor.Supervisor) (*model.Application,
	[]diag.Diagnostic, error) {
	a, err := openApplication(dir)
	if err != nil {
		return nil, nil, err
	}
	defer a.remove() //nolint:errcheck // the next process removes what is left
	end, ds, err := a.supervise(ctx, s)
	if end == nil || err != nil {
		return nil, ds, err
	}
	defer end()
	app, declarations, ds, err := a.read(ctx)
	if app == nil || err != nil {
		return nil, ds, err
	}
	ds = append(ds, a.withoutFolder(declarations)...)
	for i := range app.Targets {
		more, err := a.target(ctx, &app.Targets[i], app.Positions)
		if err != nil {
			return nil, nil, err
		}
		ds = append(ds, more...)
	}
	diag.Resolve(ds, app.Positions)
	return app, diag.Sort(ds), nil
}

// ApplicationDeclarations returns the environments of an application. An environment has either
// a declaration in the application's own file, as Declarations returns for a platform, or only
// a folder: then only its Name is set. It returns nil if the file cannot be read. Diagnostics
// concern only that file, and not the values. The supervisor may be nil.
func ApplicationDeclarations(ctx context.Context, dir string,
	s *supervisor.Supervisor) ([]model.Declaration, []diag.Diagnostic, error) {
	a, err := openApplication(dir)
	if err != nil {
		return nil, nil, err
	}
	defer a.remove() //nolint:errcheck // the next process removes what is left
	end, ds, err := a.supervise(ctx, s)
	if end == nil || err != nil {
		return nil, ds, err
	}
	defer end()
	_, declarations, ds, err := a.declared(ctx)
	if declarations == nil || err != nil {
		return nil, diag.Sort(ds), err
	}
	targets, _ := a.targets() // their problems do not affect the policies
	for _, t := range targets {
		if model.IsName(t.Environment) && !slices.ContainsFunc(declarations,
			func(s model.Declaration) bool { return s.Name == t.Environment }) {
			declarations = append(declarations, model.Declaration{Name: t.Environment})
		}
	}
	if len(declarations) == 0 && !diag.Errors(ds) {
		ds = append(ds, a.noTargets())
	}
	slices.SortFunc(declarations,
		func(a, b model.Declaration) int { return strings.Compare(a.Name, b.Name) })
	return declarations, diag.Sort(ds), nil
}

// read evaluates the application's own file, and finds the targets.
func (a *application) read(ctx context.Context) (*model.Application, []model.Declaration,
	[]diag.Diagnostic, error) {
	app, declarations, ds, err := a.declared(ctx)
	if app == nil || err != nil {
		return nil, nil, ds, err
	}
	strayed, unknown := a.strayed()
	if ds = append(ds, strayed...); unknown {
		return nil, nil, ds, nil
	}
	var more []diag.Diagnostic
	app.Targets, more = a.targets()
	return app, declarations, append(ds, more...), nil
}

// declared evaluates the application's own file. The application is nil if an error hides its
// manifests; errors in its environments do not affect it. The declarations are nil if an error
// hides which environments exist.
func (a *application) declared(ctx context.Context) (*model.Application, []model.Declaration,
	[]diag.Diagnostic, error) {
	l, ds, err := a.load(ctx, "kalypso_application", []string{a.file}, "schema.#Application")
	if l == nil || err != nil {
		return nil, nil, ds, err
	}
	app, declarations, ds, ok := export.Application(l)
	for i := range ds {
		if len(ds[i].Sites) == 0 {
			ds[i] = ds[i].In(model.Position{File: a.file, Line: 1, Column: 1}, "")
		}
	}
	if !ok {
		return nil, declarations, ds, nil
	}
	return app, declarations, ds, nil
}

// noTargets warns that the application has no environment.
func (a *application) noTargets() diag.Diagnostic {
	return noEnvironments(model.Position{File: a.file, Line: 1, Column: 1},
		"make the folder of a target, as "+source.Environments+"/dev/default, with a values.yaml that "+
			"may be empty; docs/applications.md says more")
}

// withoutFolder warns about declared environments without a target.
func (a *application) withoutFolder(declarations []model.Declaration) []diag.Diagnostic {
	var ds []diag.Diagnostic
	targets, _ := a.targets()
	for _, s := range declarations {
		if s.Promotion.Source != nil || slices.ContainsFunc(targets,
			func(t model.ApplicationTarget) bool { return t.Environment == s.Name }) {
			continue
		}
		ds = append(ds, diag.New(diag.NoContent,
			fmt.Sprintf("environment %s has no target: there is no %s/%s", s.Name, source.Environments,
				s.Name)).
			At(model.Ref{Collection: "environments", Name: s.Name}, "").
			Hinting("make the folder, with a values.yaml that may be empty, or remove the entry"))
	}
	return ds
}

// targets returns the folders environments/<environment>/<target> with values or an overlay. An
// environment without such folders is one target, default.
func (a *application) targets() ([]model.ApplicationTarget, []diag.Diagnostic) {
	found := map[string]string{} // <environment>/<target> -> folder
	environments := map[string]bool{}
	names := slices.AppendSeq(slices.Collect(maps.Keys(a.files)), maps.Keys(a.refused))
	slices.Sort(names)
	for _, name := range names {
		parts := strings.Split(name, "/")
		if len(parts) < 3 || parts[0] != source.Environments {
			continue
		}
		environments[parts[1]] = true
		if len(parts) > 3 {
			found[parts[1]+"/"+parts[2]] = path.Join(parts[:3]...)
		}
	}
	for _, name := range a.astray {
		parts := strings.Split(name, "/")
		environments[parts[1]], found[parts[1]+"/"+parts[2]] = true, name
	}
	for environment := range environments {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(found)),
			func(id string) bool { return strings.HasPrefix(id, environment+"/") }) {
			found[environment+"/default"] = path.Join(source.Environments, environment)
		}
	}
	var out []model.ApplicationTarget
	var ds []diag.Diagnostic
	for _, id := range slices.Sorted(maps.Keys(found)) {
		environment, name, _ := strings.Cut(id, "/")
		t := model.ApplicationTarget{Environment: environment, Name: name, Dir: found[id],
			Invalid: slices.Contains(a.astray, found[id])}
		for _, n := range []string{environment, name} {
			if !model.IsName(n) {
				t.Invalid = true
				ds = append(ds, diag.New(diag.BadName, fmt.Sprintf("folder %s: %q is no name", t.Dir, n)).
					In(model.Position{File: t.Dir, Line: 1, Column: 1}, "").Hinting("a name has at most 63 "+
					"lower case letters, digits and dashes"))
			}
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(t, u model.ApplicationTarget) int {
		return cmp.Or(cmp.Compare(t.Environment, u.Environment), cmp.Compare(t.Name, u.Name))
	})
	if len(out) == 0 {
		ds = append(ds, diag.New(diag.NoContent, "the application has no environments").
			In(model.Position{File: a.file, Line: 1, Column: 1}, "").
			Hinting("make a folder environments/<environment>/<target> with a values.yaml, which may be "+
				"empty"))
	}
	return out, ds
}

// target reads the values of a target.
func (a *application) target(ctx context.Context, t *model.ApplicationTarget,
	positions *model.Positions) ([]diag.Diagnostic, error) {
	if t.Invalid {
		return nil, nil
	}
	var ds []diag.Diagnostic
	var constraints []string
	for _, dir := range foldersTo(t.Dir) {
		ds = append(ds, a.refusals(dir)...)
		for _, name := range []string{"values.yaml", "values.yml"} {
			file := path.Join(dir, name)
			if a.files[file] == nil {
				continue
			}
			of, err := a.valuesOf(ctx, file, positions)
			if err != nil {
				return nil, err
			}
			ds = append(ds, of.ds...)
			t.Layers = append(t.Layers, model.ApplicationLayer{File: file, Values: of.tree})
		}
		if file := path.Join(dir, "values.cue"); a.files[file] != nil {
			constraints = append(constraints, file)
		}
	}
	if len(constraints) > 0 {
		l, more, err := a.load(ctx, "kalypso_values", constraints, "")
		if err != nil {
			return nil, err
		}
		ds = append(ds, more...)
		if l != nil {
			t.Contract, more = export.Contract(l, t.Ref(), positions)
			if len(positions.Of(t.Ref())) == 0 { // for values from a comprehension
				for _, file := range constraints {
					positions.Add(t.Ref(), model.Position{File: file, Line: 1, Column: 1})
				}
			}
			ds = append(ds, more...)
		}
	}
	t.Invalid = diag.Errors(ds)
	for i := range ds {
		ds[i] = ds[i].For(t.Environment + "/" + t.Name)
	}
	return ds, nil
}

// refusals reports the files of values in a folder that kalypso does not read. A target is not
// rendered without them.
func (a *application) refusals(dir string) (ds []diag.Diagnostic) {
	for _, name := range valuesFiles {
		file := path.Join(dir, name)
		if why := a.refused[file]; why != "" {
			ds = append(ds, diag.New(diag.BadSource, file+" "+why).
				In(model.Position{File: file, Line: 1, Column: 1}, "").Hinting("keep values in small files "+
				"of the application's own folder"))
		}
	}
	return ds
}

// foldersTo returns the folders from the root to dir.
func foldersTo(dir string) []string {
	out := []string{"."}
	for i, c := range dir {
		if c == '/' {
			out = append(out, dir[:i])
		}
	}
	return append(out, dir)
}

// valuesOf reads a file of values. It reads each file only once.
func (a *application) valuesOf(ctx context.Context, file string,
	positions *model.Positions) (*applicationValues, error) {
	if of := a.values[file]; of != nil {
		return of, nil
	}
	l, ds, err := a.load(ctx, "kalypso_values", []string{file}, "")
	if err != nil {
		return nil, err
	}
	a.values[file] = &applicationValues{ds: ds}
	if l == nil {
		return a.values[file], nil
	}
	tree, ds := export.Values(l, model.Ref{Collection: "values", Name: file}, positions)
	a.values[file] = &applicationValues{tree, ds}
	return a.values[file], nil
}

// load builds a package from files of the application and a declaration of its type. The
// package's positions are positions in the files.
func (a *application) load(ctx context.Context, name string, files []string,
	is string) (*loader.Package, []diag.Diagnostic, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	place := supervisor.Place{Files: len(files)}
	for _, file := range files {
		place.At = append(place.At, model.Position{File: file, Line: 1, Column: 1})
	}
	a.costs.SetPlace(place)
	overlay, err := cuemodule.Overlay(a.tmp, nil)
	if err != nil {
		return nil, nil, err
	}
	for i, file := range files {
		at := filepath.Join(a.tmp, filepath.FromSlash(file))
		f, problem := parseValues(file, at, a.files[file])
		if problem != nil {
			return nil, []diag.Diagnostic{*problem}, nil
		}
		f.Decls = slices.DeleteFunc(f.Decls,
			func(d ast.Decl) bool { _, isClause := d.(*ast.Package); return isClause })
		f.Decls = append([]ast.Decl{&ast.Package{Name: ast.NewIdent(name)}}, f.Decls...)
		overlay[filepath.Join(a.tmp, name, fmt.Sprintf("f%d.cue", i))] = load.FromFile(f)
	}
	if is != "" {
		overlay[filepath.Join(a.tmp, name, loader.DeclarationsFile)] = load.FromString("package " + name +
			"\n\nimport \"kalypso.io/schema\"\n\n" + is + "\n")
	}
	return loader.Folder(source.NewFiles(a.tmp, nil), name, name, "", overlay)
}

// parseValues reads a file of CUE or YAML.
func parseValues(name, at string, data []byte) (*ast.File, *diag.Diagnostic) {
	if path.Ext(name) == ".cue" {
		f, err := parser.ParseFile(at, data)
		if err != nil {
			places := loader.NewPlaces(source.NewFiles(filepath.Dir(at), nil), "", nil)
			ds := places.Errors(err, diag.Syntax)
			for i := range ds[0].Sites {
				ds[0].Sites[i].Position.File = name
			}
			return nil, &ds[0]
		}
		return f, nil
	}
	docs, f, problem := yamlfile.Parse(name, at, data)
	if problem != nil {
		return nil, problem
	}
	if len(docs) > 1 {
		d := diag.New(diag.WrongValue, fmt.Sprintf("%s has %d documents", name, len(docs))).
			In(model.Position{File: name, Line: max(docs[1].Line, 1), Column: 1},
				"").Hinting("keep one document: Helm reads the first alone")
		return nil, &d
	}
	if d, twice := yamlfile.GivenTwice(name, docs); twice {
		return nil, &d
	}
	if d, other := yamlfile.Ambiguous(name, docs); other {
		return nil, &d
	}
	return f, nil
}
