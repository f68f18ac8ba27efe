package registration

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
	"cuelang.org/go/encoding/json"
	"cuelang.org/go/encoding/jsonschema"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/yamlfile"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// configSchemas makes contracts of the JSON Schemas that a Workload or a deployment target
// lists. It makes a file of the package for each, so that each keeps its own imports. path is
// the path of the Workload or the target, from workloads on.
func (s *scheduler) configSchemas(f *ast.Field, ref model.Ref, path ...string) {
	if f == nil {
		return
	}
	list, ok := f.Value.(*ast.ListLit)
	if !ok {
		if lit, isNull := f.Value.(*ast.BasicLit); !isNull || lit.Kind != token.NULL {
			s.fail(ref, f.Value.Pos(), "configSchemas is no list",
				"write a list of texts, each a JSON Schema")
		}
		return
	}
	for _, e := range list.Elts {
		file, pos, err := s.configSchema(e)
		if err != nil {
			s.fail(ref, pos, fmt.Sprintf("the config schema cannot be used: %v", err),
				"correct the JSON Schema; each is a text of its own, and refers to nothing outside of it")
			continue
		}
		contract := &ast.StructLit{}
		imports := []ast.Decl{&ast.Package{Name: ast.NewIdent(s.pkg)}}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.Package, *ast.Attribute:
			case *ast.ImportDecl:
				imports = append(imports, d)
			default:
				contract.Elts = append(contract.Elts, d)
			}
		}
		decl := fieldOf("requires", contract, e.Pos())
		for i := len(path) - 1; i >= 0; i-- {
			decl = fieldOf(path[i], &ast.StructLit{Elts: []ast.Decl{decl}}, e.Pos())
		}
		s.files = append(s.files, &ast.File{Filename: s.file, Decls: append(imports, decl)})
	}
}

// fail reports an error that makes only one entity unusable.
func (s *scheduler) fail(ref model.Ref, at token.Pos, message, hint string) {
	s.failures = append(s.failures,
		failure{ref.At("requires"),
			diag.New(diag.ConfigSchema, message).In(s.position(at), "").Hinting(hint)})
}

// configSchema returns a JSON Schema as CUE, with positions in the file. It returns an error
// and its position if the text is not a valid schema. The names of the schema's own definitions
// differ from the names in all other schemas.
func (s *scheduler) configSchema(e ast.Expr) (f *ast.File, at token.Pos, err error) {
	at = e.Pos()
	lit, isLit := e.(*ast.BasicLit)
	if !isLit || lit.Kind != token.STRING {
		return nil, at, errors.New("it is no text")
	}
	text, err := literal.Unquote(lit.Value)
	if err != nil {
		return nil, at, err
	}
	// CUE's reader of JSON Schemas panics on some schemas.
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("it has a form that CUE cannot read: %v", p)
		}
	}()
	data, err := s.parseSchema(text, at)
	if err != nil {
		return nil, firstPosition(err, at), firstError(err)
	}
	var beyond error
	refer := func(loc jsonschema.SchemaLoc) (string, cue.Path, error) {
		if !loc.IsLocal {
			beyond = fmt.Errorf("it refers to %s, which is not in it", loc.ID)
			return "", cue.Path{}, beyond
		}
		return jsonschema.DefaultMapRef(loc)
	}
	ctx := cuecontext.New()
	v := ctx.BuildFile(data)
	if err := v.Err(); err != nil {
		return nil, firstPosition(err, at), firstError(err)
	}
	// The original scheduler reads drafts 4, 6 and 7, whatever the schema declares.
	for _, version := range []jsonschema.Version{jsonschema.VersionDraft7, jsonschema.VersionDraft4} {
		extracted, failed := jsonschema.Extract(v,
			&jsonschema.Config{DefaultVersion: version, MapRef: refer})
		if failed == nil {
			failed = ctx.BuildFile(extracted).Err()
		}
		if failed == nil {
			s.schemas++
			s.adopt(extracted, at)
			return extracted, at, nil
		}
		if err == nil {
			err = failed
		}
	}
	if beyond != nil {
		err = beyond
	}
	return nil, firstPosition(err, at), firstError(err)
}

// parseSchema reads a schema in JSON or YAML.
func (s *scheduler) parseSchema(text string, at token.Pos) (*ast.File, error) {
	placed, ok := inPlace(text, s.lines, at.Line())
	if !ok {
		placed = text
	}
	var f *ast.File
	if stdjson.Valid([]byte(text)) {
		e, err := json.Extract(s.file, []byte(placed))
		if err != nil {
			return nil, err
		}
		f = &ast.File{Decls: []ast.Decl{&ast.EmbedDecl{Expr: e}}}
	} else {
		var problem *diag.Diagnostic
		if f, problem = yamlfile.Read(s.name, s.file, []byte(placed)); problem != nil {
			return nil, errors.New(problem.Message)
		}
	}
	if !ok { // every part of the schema has the position of the text
		ast.Walk(f, func(n ast.Node) bool {
			ast.SetPos(n, at)
			return true
		}, nil)
	}
	return f, nil
}

// inPlace returns a text as it is written in its file, where it begins in the line after the
// given one. It adds empty lines before the text, so that a parser finds the file's positions.
// It returns false if the file has the text in another form.
func inPlace(text string, lines []string, after int) (string, bool) {
	indent := -1
	out := make([]string, after, after+8)
	for i, want := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if after+i >= len(lines) {
			return "", false
		}
		line := strings.TrimSuffix(lines[after+i], "\r")
		before, ok := strings.CutSuffix(line, want)
		switch {
		case want == "":
			line, ok = "", strings.TrimSpace(line) == ""
		case indent < 0:
			indent = len(before)
			fallthrough
		default:
			ok = ok && before == strings.Repeat(" ", indent)
		}
		if !ok {
			return "", false
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n"), true
}

// adopt makes an extracted schema a part of another file, in which its identifiers are resolved.
// It gives the schema's definitions names of their own. Otherwise all schemas of an entity would
// share them.
func (s *scheduler) adopt(f *ast.File, at token.Pos) {
	ast.Walk(f, func(n ast.Node) bool {
		if n.Pos().Filename() != s.file {
			ast.SetPos(n, at)
		}
		if id, ok := n.(*ast.Ident); ok {
			id.Node, id.Scope = nil, nil
			if name := id.Name; s.schemas > 1 && name != "_" && !strings.HasPrefix(name, "__") &&
				(name[0] == '#' || name[0] == '_') {
				id.Name = fmt.Sprintf("%s_%d", name, s.schemas)
			}
		}
		return true
	}, nil)
}

// firstPosition returns the position of an error of CUE, or at if the error has no position.
func firstPosition(err error, at token.Pos) token.Pos {
	for _, p := range cueerrors.Positions(err) {
		if p.Filename() == at.Filename() && p.IsValid() {
			return p
		}
	}
	return at
}

// firstError returns the first of several errors of CUE, without positions.
func firstError(err error) error {
	for _, e := range cueerrors.Errors(err) {
		return errors.New(cuevalue.Text(e))
	}
	return err
}
