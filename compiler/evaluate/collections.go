package evaluate

import (
	"fmt"
	"github.com/kalypso-io/kalypso/compiler/model"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// collectionChecker checks what is around entities: which there are, and what else
// stands in the package.
type collectionChecker struct {
	*reader
	// undeclared are the collections that do not have the schema's type.
	undeclared map[string]bool
}

// checkCollections reports top-level fields that are no collection, and
// collections of which CUE does not know all entities. env is the environment.
func (x *collectionChecker) checkCollections(env string) {
	known := x.definite()
	if x.checkDefinite(ofNoEntity) {
		x.hideAll(env)
	}
	names := model.CollectionNames
	for _, name := range names {
		if x.checkComprehensions(name) {
			x.hideAll(env)
		}
	}
	it, err := x.value.Fields()
	if err != nil {
		x.reportIncomplete(err, known, env)
		return
	}
	for it.Next() {
		name := it.Selector().Unquoted()
		if slices.Contains(names, name) {
			x.checkDeclared(name, env)
			continue
		}
		hint := diag.DidYouMean(name, names)
		if diag.Nearest(name, names) == "" {
			hint = "make it a hidden field, _" + name + ", or a definition, #" + name + "; the collections are " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
		}
		x.report(x.at(diag.New(diag.UnknownCollection, "unknown top-level field "+name), it.Value()).On(name).Hinting(hint))
		x.hideAll(env)
	}
	for _, c := range names {
		coll := x.value.LookupPath(cue.MakePath(cue.Str(c)))
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
	if err := x.value.Validate(cue.Concrete(true)); err != nil {
		x.reportIncomplete(err, known, env)
	}
}

// checkDefinite reports what CUE says against the package as it stands, of paths
// that concern says yes to, and returns whether there was something.
func (x *collectionChecker) checkDefinite(concerns func(path []string) bool) bool {
	before := len(x.ds)
	for _, o := range problemsIn(x.places, x.value.Validate()) {
		hasPath := len(o.path) > 0
		for _, o := range locate(x.places, o) {
			// What stands in a collection without a path, checkComprehensions reports.
			if concerns(o.path) && (hasPath || len(o.path) == 0 || !slices.Contains(model.CollectionNames, o.path[0])) {
				x.report(o.diagnostic(nil, nil).On(joinPath(o.path)))
			}
		}
	}
	return len(x.ds) > before
}

// checkComprehensions reports errors in what makes a collection's entities, and
// returns whether there are some: an error in a list that a comprehension goes
// through, or in its guard, leaves the whole collection empty, and its path is
// that in the list. What entities report themselves is left to them.
func (x *collectionChecker) checkComprehensions(collection string) bool {
	coll := field(x.value, collection)
	if !coll.Exists() {
		return false
	}
	all := problemsIn(x.places, coll.Validate())
	all = slices.DeleteFunc(all, func(o problem) bool { return len(o.path) > 1 && o.path[0] == collection })
	if slices.ContainsFunc(x.ds, func(d diag.Diagnostic) bool { return d.Path == collection }) {
		all = slices.DeleteFunc(all, func(o problem) bool { return slices.Equal(o.path, []string{collection}) })
	}
	if len(all) == 0 {
		return false
	}
	key := func(o problem) string { return joinPath(o.path) + o.messages[0] + fmt.Sprint(o.at) }
	told := map[string]bool{}
	for _, entity := range fields(coll) {
		for _, o := range problemsIn(x.places, entity.Validate()) {
			told[key(o)] = true
		}
	}
	before := len(x.ds)
	for _, o := range all {
		if told[key(o)] {
			continue
		}
		told[key(o)] = true
		d := diag.New(diag.Incomplete, fmt.Sprintf("which %s there are is not known: %s", collection, plain(o.telling()))).On(collection).
			Hinting("correct what the comprehension goes through, or what it depends on")
		for _, at := range o.at {
			d = d.In(at, "")
		}
		if len(o.at) == 0 {
			d = x.at(d, coll)
		}
		x.report(d)
	}
	return len(x.ds) > before
}

// ofNoEntity says whether a path is that of the whole package, of a whole
// collection, or of something else that CUE checks: hidden fields and definitions
// hold a platform's own assertions.
func ofNoEntity(path []string) bool {
	if len(path) == 0 {
		return true
	}
	isHidden := func(name string) bool { return strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#") }
	if !slices.Contains(model.CollectionNames, path[0]) {
		return isHidden(path[0])
	}
	return len(path) == 1 || isHidden(path[1])
}

// checkDeclared reports a collection that is used without being declared as the
// schema's: without the schema nothing of it is checked or has its defaults.
func (x *collectionChecker) checkDeclared(name, env string) {
	coll := field(x.value, name)
	undeclared := false
	for key, entity := range fields(coll) {
		if model.IsName(key) && field(entity, "name").Exists() {
			return // the schema gives every entity its name
		}
		undeclared = undeclared || model.IsName(key) && entity.IncompleteKind() == cue.StructKind
	}
	if !undeclared {
		return
	}
	x.undeclared[name] = true
	declaration := name + ": schema." + definitionOf(name)
	x.report(x.at(diag.New(diag.UnknownCollection, name+" is not declared as a collection of the schema"), coll).On(name).
		Hinting("write " + declaration + " in a file at the platform's root"))
	x.hideAll(env)
}

// definite returns what CUE says against the package as it stands: what is no
// matter of values that are not given yet. It is asked for once, when needed.
func (x *collectionChecker) definite() func(message string) bool {
	messages := sync.OnceValue(func() map[string]bool {
		out := map[string]bool{}
		for _, o := range problemsIn(x.places, x.value.Validate()) {
			for _, m := range o.messages {
				out[m] = true
			}
		}
		return out
	})
	return func(message string) bool { return messages()[message] }
}

// incomplete reports the errors that say that CUE left entities out: those of a
// whole collection, or of the package itself.
func (x *collectionChecker) reportIncomplete(err error, known func(string) bool, env string) {
	for _, o := range problemsIn(x.places, err) {
		if len(o.path) > 1 || known(o.messages[0]) {
			continue
		}
		what, in := "which entities there are is not known", x.declarations()
		if len(o.path) == 1 {
			what = fmt.Sprintf("which %s there are is not known", o.path[0])
			in = append(sourceNodes(field(x.value, o.path[0])), in...)
		}
		d := x.because(diag.New(diag.Incomplete, what).On(joinPath(o.path)), o, in)
		if !slices.ContainsFunc(x.ds, func(e diag.Diagnostic) bool { return e.Message == d.Message && slices.Equal(e.Sites, d.Sites) }) {
			x.report(d)
		}
		// What a lost assignment needs is kept with it. What all may need is not.
		if len(o.path) == 1 && slices.Contains([]string{"clusterTypes", "clusters", "workloads", "schedulingPolicies"}, o.path[0]) {
			x.incomplete = true
		} else {
			x.hideAll(env)
		}
	}
}

// declarations are those of the package's files.
func (x *collectionChecker) declarations() []ast.Node {
	var out []ast.Node
	for _, f := range x.files {
		for _, d := range f.Decls {
			if _, isField := d.(*ast.Field); !isField {
				out = append(out, d)
			}
		}
	}
	return out
}
