package export

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/problem"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// collectionChecker checks the package around its entities: the complete list of entities, and
// everything else in the package.
type collectionChecker struct {
	*reader
	// undeclared are the collections without the schema's type.
	undeclared map[string]bool
}

// checkCollections reports top-level fields that are not collections, and collections whose
// list of entities CUE cannot determine. env is the environment.
func (x *collectionChecker) checkCollections(env string) {
	known := x.definite()
	if x.checkDefinite(ofNoEntity) {
		x.HideAll(env)
	}
	names := model.CollectionNames
	for _, name := range names {
		if x.checkComprehensions(name) && name != "tests" { // nothing depends on a test
			x.HideAll(env)
		}
	}
	it, err := x.Value.Fields()
	if err != nil {
		x.reportIncomplete(err, known, env)
		return
	}
	object := isObject(x.Value)
	if object {
		d := shape.KubernetesObject("no part of a platform")
		d.Code = diag.UnknownCollection
		x.Report(x.At(d, cuevalue.Field(x.Value, "apiVersion")).On("apiVersion"))
		x.HideAll(env)
	}
	for it.Next() {
		name := it.Selector().Unquoted()
		switch {
		case slices.Contains(names, name):
			x.checkDeclared(name, env)
		case !object || !slices.Contains(objectFields, name):
			x.unknownCollection(name, it.Value())
			x.HideAll(env)
		}
	}
	for _, c := range names {
		coll := x.Value.LookupPath(cue.MakePath(cue.Str(c)))
		if !coll.Exists() {
			continue
		}
		if _, conjuncts := coll.Expr(); len(conjuncts) > 1 {
			for _, conjunct := range conjuncts {
				if err := conjunct.Err(); err != nil {
					x.reportIncomplete(err, known, env)
				}
			}
		}
	}
	if err := x.Value.Validate(cue.Concrete(true)); err != nil {
		x.reportIncomplete(err, known, env)
	}
}

// objectFields are the fields of Kubernetes objects that people paste most often.
var objectFields = []string{"apiVersion", "kind", "metadata", "spec", "data", "stringData", "type",
	"rules", "roleRef", "subjects", "status"}

// checkIndentation reports collections that are inside a field only by their indentation, and
// returns whether it found any. Other such fields are unknown fields.
func (x *collectionChecker) checkIndentation() (found bool) {
	for _, f := range x.Places.Indented() {
		if name, _, err := ast.LabelName(f.Label); err == nil &&
			slices.Contains(model.CollectionNames, name) {
			x.Report(diag.New(diag.UnknownCollection, "the collection "+name+" is in no struct, since "+
				"indentation has no meaning in CUE").On(name).
				In(x.Places.Position(f.Pos()), "").Hinting(inBraces))
			found = true
		}
	}
	return found
}

// inBraces is the hint on the syntax of structs.
const inBraces = "put what belongs together between braces: " +
	"configs: extra: {match: …, values: …}"

// unknownCollection reports a top-level field that is not a collection. If its line does not
// begin with it, the field was probably meant to be in a struct.
func (x *collectionChecker) unknownCollection(name string, v cue.Value) {
	hint := "make it a hidden field, _" + name + ", or a definition, #" + name +
		"; the collections are " + strings.Join(slices.Sorted(slices.Values(model.CollectionNames)), ", ")
	d := x.At(diag.New(diag.UnknownCollection, "unknown top-level field "+name), v).On(name)
	if spelling.Nearest(name, model.CollectionNames) != "" {
		x.Report(d.Suggesting(name, model.CollectionNames))
		return
	}
	if len(d.Sites) > 0 && d.Sites[0].Position.Column > 1 {
		d.Message += ": it is in no struct, since indentation has no meaning in CUE"
		hint = inBraces
	}
	x.Report(d.Hinting(hint))
}

// checkDefinite reports the definite errors of the package at paths for which concerns returns
// true. It returns whether it found any.
func (x *collectionChecker) checkDefinite(concerns func(path []string) bool) bool {
	before := len(x.Diagnostics)
	for _, o := range problem.In(x.Places, x.Value.Validate()) {
		hasPath := len(o.Path) > 0
		for _, o := range problem.Locate(x.Places, o) {
			// checkComprehensions reports errors without a path in a collection.
			if concerns(o.Path) &&
				(hasPath || len(o.Path) == 0 || !slices.Contains(model.CollectionNames, o.Path[0])) {
				x.Report(o.Diagnostic(nil, nil).On(problem.JoinPath(o.Path)))
			}
		}
	}
	return len(x.Diagnostics) > before
}

// checkComprehensions reports errors in the expressions that generate a collection's entities,
// and returns whether it found any. An error in the list or the guard of a comprehension leaves
// the whole collection empty, and its path is the path in the list. Entities report their own
// errors.
func (x *collectionChecker) checkComprehensions(collection string) bool {
	coll := cuevalue.Field(x.Value, collection)
	if !coll.Exists() {
		return false
	}
	all := problem.In(x.Places, coll.Validate())
	all = slices.DeleteFunc(all,
		func(o problem.Problem) bool { return len(o.Path) > 1 && o.Path[0] == collection })
	if slices.ContainsFunc(x.Diagnostics,
		func(d diag.Diagnostic) bool { return d.Path == collection }) {
		all = slices.DeleteFunc(all,
			func(o problem.Problem) bool { return slices.Equal(o.Path, []string{collection}) })
	}
	if len(all) == 0 {
		return false
	}
	key := func(o problem.Problem) string {
		return problem.JoinPath(o.Path) + o.Messages[0] +
			fmt.Sprint(o.At)
	}
	seen := map[string]bool{}
	for _, entity := range cuevalue.Fields(coll) {
		for _, o := range problem.In(x.Places, entity.Validate()) {
			seen[key(o)] = true
		}
	}
	before := len(x.Diagnostics)
	for _, o := range all {
		if seen[key(o)] {
			continue
		}
		seen[key(o)] = true
		d := diag.New(diag.Incomplete, fmt.Sprintf("which %s there are is not known: %s", collection,
			shape.Plain(o.Telling()))).On(collection).
			Hinting("correct what the comprehension goes through, or what it depends on")
		d = d.InEach(o.At...)
		if len(o.At) == 0 {
			d = x.At(d, coll)
		}
		x.Report(d)
	}
	return len(x.Diagnostics) > before
}

// ofNoEntity reports whether a path belongs to the whole package or a whole collection, and not
// to an entity. It also holds for other values that CUE checks: hidden fields and definitions
// contain a platform's own assertions.
func ofNoEntity(path []string) bool {
	if len(path) == 0 {
		return true
	}
	isHidden := func(name string) bool {
		return strings.HasPrefix(name, "_") ||
			strings.HasPrefix(name, "#")
	}
	if !slices.Contains(model.CollectionNames, path[0]) {
		return isHidden(path[0])
	}
	return len(path) == 1 || isHidden(path[1])
}

// checkDeclared reports a collection that is used without the schema's type. Without the type,
// its values are not checked, and have no defaults.
func (x *collectionChecker) checkDeclared(name, env string) {
	coll := cuevalue.Field(x.Value, name)
	undeclared, names := false, shape.NamesOf(name)
	for key, entity := range cuevalue.Fields(coll) {
		if names.Allows(key) && cuevalue.Field(entity, "name").Exists() {
			return // the schema sets every entity's name
		}
		undeclared = undeclared || names.Allows(key) && entity.IncompleteKind() == cue.StructKind
	}
	if !undeclared {
		return
	}
	x.undeclared[name] = true
	declaration := name + ": schema." + shape.Definition(name)
	x.Report(x.At(diag.New(diag.UnknownCollection,
		name+" is not declared as a collection of the schema"), coll).On(name).
		Hinting("write " + declaration + " in a file at the platform's root"))
	x.HideAll(env)
}

// definite returns a function that reports whether a message is a definite error of the
// package, as opposed to a value that is missing so far. It evaluates the package once, at the
// first call.
func (x *collectionChecker) definite() func(message string) bool {
	messages := sync.OnceValue(func() map[string]bool {
		out := map[string]bool{}
		for _, o := range problem.In(x.Places, x.Value.Validate()) {
			for _, m := range o.Messages {
				out[m] = true
			}
		}
		return out
	})
	return func(message string) bool { return messages()[message] }
}

// reportIncomplete reports the errors that made CUE leave out entities: errors of a whole
// collection, or of the package itself.
func (x *collectionChecker) reportIncomplete(err error, known func(string) bool, env string) {
	for _, o := range problem.In(x.Places, err) {
		if len(o.Path) > 1 || known(o.Messages[0]) {
			continue
		}
		what, in := "which entities there are is not known", x.declarations()
		if len(o.Path) == 1 {
			what = fmt.Sprintf("which %s there are is not known", o.Path[0])
			in = append(cuevalue.SourceNodes(cuevalue.Field(x.Value, o.Path[0])), in...)
		}
		d := x.because(diag.New(diag.Incomplete, what).On(problem.JoinPath(o.Path)), o, in)
		if !slices.ContainsFunc(x.Diagnostics,
			func(e diag.Diagnostic) bool {
				return e.Message == d.Message &&
					slices.Equal(e.Sites, d.Sites)
			}) {
			x.Report(d)
		}
		// An error in these collections only hides assignments, and their earlier output is
		// kept. Any assignment may need the entities of the other collections.
		switch {
		case len(o.Path) == 1 && slices.Contains([]string{"clusterTypes", "clusters", "inventories",
			"workloads", "schedulingPolicies"}, o.Path[0]):
			x.Incomplete = true
		case len(o.Path) != 1 || o.Path[0] != "tests": // which nothing depends on
			x.HideAll(env)
		}
	}
}

// declarations returns the top-level declarations of the package's files that are not fields.
func (x *collectionChecker) declarations() []ast.Node {
	var out []ast.Node
	for _, f := range x.Files {
		for _, d := range f.Decls {
			if _, isField := d.(*ast.Field); !isField {
				out = append(out, d)
			}
		}
	}
	return out
}

// checkEmbeds reports @embed attributes that CUE ignores because their file does not enable
// them. Their values would be missing without an error.
func (x *collectionChecker) checkEmbeds(environment string) {
	for _, f := range x.Files {
		enabled := slices.ContainsFunc(f.Decls, func(d ast.Decl) bool {
			a, ok := d.(*ast.Attribute)
			return ok && strings.HasPrefix(a.Text, "@extern(")
		})
		if enabled {
			continue
		}
		ast.Walk(f, func(n ast.Node) bool {
			if a, ok := n.(*ast.Attribute); ok && strings.HasPrefix(a.Text, "@embed(") {
				x.Report(diag.New(diag.Compile, "@embed has no effect in this file").In(x.Position(a.Pos()),
					"").
					Hinting("write @extern(embed) above the file's package clause"))
				x.HideAll(environment)
			}
			return true
		}, nil)
	}
}
