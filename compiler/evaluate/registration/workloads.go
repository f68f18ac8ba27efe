package registration

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/yamlfile"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// schedulerGroup is the API group of the Kalypso scheduler, whose Workloads
// application teams keep as YAML
// (https://github.com/microsoft/kalypso-scheduler, api/v1alpha1).
const schedulerGroup = "scheduler.kalypso.io"

// workloads turns the Workloads in a YAML file into files of the package. Their values keep
// their positions in the YAML.
func (c *checkout) workloads(name string, data []byte) *scheduler {
	file := c.path(name)
	s := &scheduler{name: c.Prefix + name, file: file, pkg: c.Package,
		lines: strings.Split(string(data), "\n")}
	parsed, problem := yamlfile.Read(s.name, file, data)
	if problem != nil {
		s.ds = append(s.ds, *problem)
		return s
	}
	var out []ast.Decl
	for _, doc := range documents(parsed) {
		if !strings.HasPrefix(stringOf(cuevalue.MemberOf(doc, "apiVersion")), schedulerGroup+"/") {
			continue
		}
		if name, w := s.workload(doc); w != nil {
			out = append(out, w)
			s.workloads = append(s.workloads, name)
		}
	}
	if len(out) > 0 {
		s.files = append(s.files,
			&ast.File{Filename: file,
				Decls: append([]ast.Decl{&ast.Package{Name: ast.NewIdent(c.Package)}}, out...)})
	}
	return s
}

// scheduler reads objects of the Kalypso scheduler in one file.
type scheduler struct {
	name, file string   // of the file, for messages and for CUE
	pkg        string   // the package's name
	lines      []string // of the file
	schemas    int      // the number of schemas so far

	workloads []string    // by name
	files     []*ast.File // of the package
	failures  []failure
	ds        []diag.Diagnostic // errors that make the whole registration unreadable
}

// failure is an error in one entity.
type failure struct {
	ref model.Ref
	d   diag.Diagnostic
}

func (s *scheduler) position(p token.Pos) model.Position {
	return model.Position{File: s.name, Line: p.Line(), Column: p.Column()}
}

func (s *scheduler) report(message string, at token.Pos, hint string) {
	s.ds = append(s.ds, diag.New(diag.Registration, message).In(s.position(at), "").Hinting(hint))
}

// workload converts a Workload. It returns the workload's name and its declaration under
// workloads.
func (s *scheduler) workload(doc *ast.StructLit) (name string, decl ast.Decl) {
	kind, metadata, spec := cuevalue.MemberOf(doc, "kind"),
		structOf(cuevalue.MemberOf(doc, "metadata")), structOf(cuevalue.MemberOf(doc, "spec"))
	if stringOf(kind) != "Workload" {
		s.report(fmt.Sprintf("a registration brings Workloads of %s, not %s", schedulerGroup,
			stringOf(kind)), doc.Pos(), "remove the object, or declare in the platform what it means")
		return "", nil
	}
	name = stringOf(cuevalue.MemberOf(metadata, "name"))
	if name == "" {
		s.report("the Workload has no metadata.name", doc.Pos(), "give it one")
		return "", nil
	}
	fields := []ast.Decl{}
	if labels := cuevalue.MemberOf(metadata, "labels"); labels != nil {
		fields = append(fields, labels)
	}
	s.configSchemas(cuevalue.MemberOf(spec, "configSchemas"),
		model.Ref{Collection: "workloads", Name: name}, "workloads", name)
	s.checkFields(spec, "spec", "deploymentTargets", "configSchemas")
	targets := &ast.StructLit{}
	for _, t := range elementsOf(cuevalue.MemberOf(spec, "deploymentTargets")) {
		if f := s.target(t, name); f != nil {
			targets.Elts = append(targets.Elts, f)
		}
	}
	fields = append(fields, fieldOf("deploymentTargets", targets, doc.Pos()))
	of := &ast.StructLit{Elts: fields}
	return name, fieldOf("workloads", &ast.StructLit{Elts: []ast.Decl{fieldOf(name, of, doc.Pos())}},
		doc.Pos())
}

// target returns a deployment target of a workload as a field of deploymentTargets.
func (s *scheduler) target(t *ast.StructLit, workload string) ast.Decl {
	name := stringOf(cuevalue.MemberOf(t, "name"))
	if name == "" {
		s.report("the deployment target has no name", t.Pos(), "give it one")
		return nil
	}
	s.checkFields(t, "the deployment target", "name", "labels", "environment", "manifests",
		"configSchemas")
	s.configSchemas(cuevalue.MemberOf(t, "configSchemas"),
		(&model.Workload{Name: workload}).TargetRef(name), "workloads", workload, "deploymentTargets",
		name)
	of := &ast.StructLit{}
	for _, field := range []string{"labels", "environment"} {
		if f := cuevalue.MemberOf(t, field); f != nil {
			of.Elts = append(of.Elts, f)
		}
	}
	manifests := structOf(cuevalue.MemberOf(t, "manifests"))
	if manifests == nil {
		s.report("deployment target "+name+" has no manifests", t.Pos(), "say where they are: "+
			"manifests: {repo, branch, path}")
		return nil
	}
	of.Elts = append(of.Elts, s.manifests(manifests, name))
	return fieldOf(name, of, t.Pos())
}

// manifests returns the manifests of a deployment target: a folder of a git repository, and all
// other fields of the map, which only the platform's own templates use.
func (s *scheduler) manifests(m *ast.StructLit, target string) ast.Decl {
	if f := cuevalue.MemberOf(m, "storage"); f != nil && !strings.EqualFold(stringOf(f), "git") {
		s.report(fmt.Sprintf("the manifests of deployment target %s are not in git", target),
			f.Value.Pos(),
			"declare the workload in CUE, which has other sources, such as manifests: oci")
	}
	git, others := &ast.StructLit{}, &ast.StructLit{}
	for _, d := range m.Elts {
		f, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		name, _, err := ast.LabelName(f.Label)
		switch {
		case err == nil && slices.Contains([]string{"repo", "branch", "tag", "commit", "path"}, name):
			git.Elts = append(git.Elts, f)
		default:
			others.Elts = append(others.Elts, f)
		}
	}
	out := &ast.StructLit{Elts: []ast.Decl{fieldOf("git", git, m.Pos())}}
	if len(others.Elts) > 0 {
		out.Elts = append(out.Elts, fieldOf("attributes", others, m.Pos()))
	}
	return fieldOf("manifests", out, m.Pos())
}

// checkFields reports the fields of a struct that kalypso does not support.
func (s *scheduler) checkFields(of *ast.StructLit, what string, names ...string) {
	if of == nil {
		return
	}
	for _, d := range of.Elts {
		f, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		if name, _, err := ast.LabelName(f.Label); err == nil && !slices.Contains(names, name) {
			hint := spelling.DidYouMean(name, names)
			if hint == "" {
				hint = "what can be given: " + strings.Join(names, ", ")
			}
			s.report(fmt.Sprintf("%s has no field %s", what, name), f.Pos(), hint)
		}
	}
}

// documents returns the mappings of a YAML stream. CUE turns several documents into a list.
func documents(f *ast.File) []*ast.StructLit {
	var out []*ast.StructLit
	rest := &ast.StructLit{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.Field:
			rest.Elts = append(rest.Elts, d)
		case *ast.EmbedDecl:
			list, _ := d.Expr.(*ast.ListLit)
			if list == nil {
				continue
			}
			for _, e := range list.Elts {
				if doc, ok := e.(*ast.StructLit); ok {
					out = append(out, doc)
				}
			}
		}
	}
	if len(rest.Elts) > 0 {
		out = append(out, rest)
	}
	return out
}

// fieldOf returns a field at a position.
func fieldOf(name string, value ast.Expr, at token.Pos) *ast.Field {
	label := ast.NewString(name)
	ast.SetPos(label, at)
	return &ast.Field{Label: label, Value: value, TokenPos: at}
}

// stringOf returns the string that is a field's value. It returns "" if the value is not a
// string.
func stringOf(f *ast.Field) string {
	if f == nil {
		return ""
	}
	lit, ok := f.Value.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, _ := literal.Unquote(lit.Value)
	return text
}

// structOf returns the struct that is a field's value. It returns nil if the value is not a
// struct.
func structOf(f *ast.Field) *ast.StructLit {
	if f == nil {
		return nil
	}
	s, _ := f.Value.(*ast.StructLit)
	return s
}

// elementsOf returns the structs of the list in a field.
func elementsOf(f *ast.Field) []*ast.StructLit {
	if f == nil {
		return nil
	}
	list, _ := f.Value.(*ast.ListLit)
	if list == nil {
		return nil
	}
	var out []*ast.StructLit
	for _, e := range list.Elts {
		if s, ok := e.(*ast.StructLit); ok {
			out = append(out, s)
		}
	}
	return out
}
