// Package evaluate turns a platform's CUE into the model.
//
// One environment is one CUE package. It is evaluated in parts where that cannot
// be told from evaluating it at once: each part is some of its files, evaluated
// in a context of its own that is dropped when its model is made; only what is a
// function of the assignment keeps it. What a part gave is remembered by a digest
// of all that can change it, so that after an edit little is evaluated.
//
// An error stays with its entity, which is then sick and absent from the model,
// unless it hides which entities there are: then the environment is evaluated in
// one piece, and is uncertain, or nothing of it is readable at all.
package evaluate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// Package is an evaluated environment.
type Package struct {
	// Model is nil where nothing of the environment is readable.
	Model *model.Environment
	// Base and Own identify the files that the model was made of: those of the
	// environment's own folder, and all others.
	Base, Own model.Digest

	// Stats say how much was evaluated.
	Stats Stats

	// For functions of the assignment:
	evaluation *evaluation
	mu         sync.Mutex
	loaded     map[int]*loaded // the parts that are
	registered map[model.Ref]*guest
}

// Options are what the evaluation of an environment may use.
type Options struct {
	// Cache remembers what was evaluated, which is not evaluated again. The result
	// is the same without it.
	Cache Cache
	// Registry has what registrations refer to; without it they are all unknown.
	Registry Registry
	// Workers evaluate what registrations bring; nil for in this process, which a
	// comprehension without an end would take with it. They know Handler under
	// HandlerName.
	Workers *worker.Pool
}

// Environment evaluates an environment of the platform. Diagnostics have
// positions or references into Model.Positions. The error is about files that
// cannot be read.
//
// stages are the environments that the base declares; nil where it cannot be
// read.
func Environment(ctx context.Context, p *source.Platform, name string, stages []Stage, o Options) (*Package, []diag.Diagnostic, error) {
	if !p.HasBase() || !p.Loadable(name) {
		return &Package{}, nil, nil // Stages or source.Open has reported it
	}
	return newEnvironment(ctx, p, name, o.Cache).environment(stages, guests{o.Registry, o.Workers})
}

func newEnvironment(ctx context.Context, p *source.Platform, name string, c Cache) *evaluation {
	return &evaluation{ctx: ctx, platform: p, name: name, dir: p.Dir(name), cache: c, least: batchEntities,
		export: func(x *exporter) *part { return x.environment(name) }}
}

func (e *evaluation) environment(stages []Stage, g guests) (*Package, []diag.Diagnostic, error) {
	r, ds, err := e.evaluate()
	if r == nil || err != nil {
		return &Package{}, ds, err
	}
	// Who asks for positions must not keep CUE's values alive.
	pkg := &Package{Stats: e.stats, evaluation: e, loaded: e.loaded}
	e.loaded = nil
	pkg.Base, pkg.Own = digests(e.sources, e.dir)
	x := newExporter(nil)
	x.resume(r, e.positions(r))
	if e.platform.Hides(e.name) {
		x.hideAll(e.name)
	}
	if pkg.registered, err = e.register(x, &r.Model, g); err != nil {
		return nil, nil, err
	}
	x.checkMany()
	x.checkOwnStages(stages, e.name)
	pkg.Model = x.finish(&r.Model)
	return pkg, x.ds, nil
}

// resume takes up what was exported where it ended.
func (x *exporter) resume(r *result, positions *model.Positions) {
	x.positions, x.sick, x.uncertain = positions, r.Sick, r.Uncertain
	for _, t := range r.Told {
		x.ds, x.about = append(x.ds, t.Diagnostic), append(x.about, t.Of)
	}
	x.entities, x.uses = r.Entities, r.Uses
}

// finish checks what needs all entities at once.
func (x *exporter) finish(env *model.Environment) *model.Environment {
	x.checkReferences(env)
	for ref := range x.sick {
		switch ref.Collection {
		case "clusterTypes", "workloads", "schedulingPolicies", "registrations":
			x.uncertain = true
		}
	}
	env.Positions, env.Sick, env.Uncertain = x.positions, x.sick, x.uncertain
	return env
}

// hideAll marks the whole environment as not known: what it has may be in part
// in what cannot be read, configs included, so that its output stays as it is.
func (x *exporter) hideAll(environment string) {
	x.sick[model.Ref{Collection: "environments", Name: environment}] = true
	x.uncertain = true
}

func hasFunctions(m *model.Environment) bool {
	return slices.ContainsFunc(m.Configs, func(c model.Config) bool { return c.Facts != nil }) ||
		slices.ContainsFunc(m.NamespaceServices, func(s model.NamespaceService) bool { return s.Facts != nil }) ||
		slices.ContainsFunc(m.Reconcilers, func(r model.Reconciler) bool { return r.Facts != nil })
}

// environment exports the model.
func (x *exporter) environment(name string) *part {
	x.checkEmbeds(name)
	x.checkCollections(name)
	env := model.Environment{Name: name}
	x.gitOps(&env)
	env.ClusterTypes = x.clusterTypes()
	env.Clusters = x.clusters()
	env.Workloads = x.workloads(name)
	env.SchedulingPolicies = x.schedulingPolicies()
	env.Configs = x.configs()
	env.ConfigSchemas = x.configSchemas()
	env.NamespaceServices = x.namespaceServices()
	env.Reconcilers = x.reconcilers()
	env.Registrations = x.registrations()
	return x.part(env, nil)
}

// part is what was exported.
func (x *exporter) part(env model.Environment, stages []Stage) *part {
	slices.SortFunc(x.entities, compareEntities)
	p := &part{Model: env, Entities: x.entities, Uses: x.uses, Stages: stages, Sick: x.sick}
	p.Clean = !x.uncertain
	for i, d := range x.ds {
		p.Clean = p.Clean && x.about[i] != model.Ref{}
		p.Told = append(p.Told, told{x.about[i], d})
	}
	return p
}

// checkCollections reports top-level fields that are no collection, and
// collections of which CUE does not know all entities. env is the environment.
func (x *exporter) checkCollections(env string) {
	known := x.definite()
	if x.checkDefinite(ofNoEntity) {
		x.hideAll(env)
	}
	names := collectionNames()
	for _, name := range names {
		if x.checkComprehensions(name) {
			x.hideAll(env)
		}
	}
	it, err := x.value.Fields()
	if err != nil {
		x.incomplete(err, known, env)
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
					x.incomplete(err, known, env)
				}
			}
		}
	}
	if err := x.value.Validate(cue.Concrete(true)); err != nil {
		x.incomplete(err, known, env)
	}
}

// checkDefinite reports what CUE says against the package as it stands, of paths
// that concern says yes to, and returns whether there was something.
func (x *exporter) checkDefinite(concerns func(path []string) bool) bool {
	before := len(x.ds)
	for _, o := range x.problems(x.value.Validate()) {
		hasPath := len(o.path) > 0
		for _, o := range x.located(o) {
			// What stands in a collection without a path, checkComprehensions reports.
			if concerns(o.path) && (hasPath || len(o.path) == 0 || !slices.Contains(collectionNames(), o.path[0])) {
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
func (x *exporter) checkComprehensions(collection string) bool {
	coll := field(x.value, collection)
	if !coll.Exists() {
		return false
	}
	all := x.problems(coll.Validate())
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
		for _, o := range x.problems(entity.Validate()) {
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
	if !slices.Contains(collectionNames(), path[0]) {
		return isHidden(path[0])
	}
	return len(path) == 1 || isHidden(path[1])
}

// checkDeclared reports a collection that is used without being declared as the
// schema's: without the schema nothing of it is checked or has its defaults.
func (x *exporter) checkDeclared(name, env string) {
	coll := field(x.value, name)
	undeclared := false
	for key, entity := range fields(coll) {
		if isName(key) && field(entity, "name").Exists() {
			return // the schema gives every entity its name
		}
		undeclared = undeclared || isName(key) && entity.IncompleteKind() == cue.StructKind
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
func (x *exporter) definite() func(message string) bool {
	messages := sync.OnceValue(func() map[string]bool {
		out := map[string]bool{}
		for _, o := range x.problems(x.value.Validate()) {
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
func (x *exporter) incomplete(err error, known func(string) bool, env string) {
	for _, o := range x.problems(err) {
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
			x.uncertain = true
		} else {
			x.hideAll(env)
		}
	}
}

// declarations are those of the package's files.
func (x *exporter) declarations() []ast.Node {
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

// tooMany is the number of fields from which on CUE's time for one struct grows
// with its square.
const tooMany = 10_000

// each calls f for every healthy entity of a collection, sorted by name.
func (x *exporter) each(collection string, f func(v cue.Value, ref model.Ref)) {
	type entity struct {
		name  string
		value cue.Value
	}
	var all []entity
	for name, v := range fields(field(x.value, collection)) {
		ref := model.Ref{Collection: collection, Name: name}
		if x.wants == nil || x.wants(ref) {
			all = append(all, entity{name, v})
			x.entities = append(x.entities, ref)
		}
	}
	slices.SortFunc(all, func(a, b entity) int { return compareNames(a.name, b.name) })
	if x.undeclared[collection] {
		return
	}
	s := entityShape(collection)
	defer func() { x.exported = model.Ref{} }()
	for _, e := range all {
		ref := model.Ref{Collection: collection, Name: e.name}
		x.exported = ref
		for _, p := range x.written(e.value) {
			x.positions.Add(ref, p)
		}
		if !isName(e.name) {
			x.fail(ref, badName(e.name))
			continue
		}
		if isUnknown(e.value) && !e.value.LookupPath(assignmentPath).Exists() {
			x.unknown(e.value, ref)
			continue
		}
		if x.check(e.value, s, ref) || collection == "configs" || collection == "configSchemas" || collection == "workloads" {
			f(e.value, ref)
		}
	}
}
