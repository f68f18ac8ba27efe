package export

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// Declarations exports only the environments that the package declares.
func (x *Exporter) Declarations() *Result {
	broken := x.collections.checkDefinite(
		func(path []string) bool { return len(path) == 1 && path[0] == "environments" })
	if x.collections.checkComprehensions("environments") || broken {
		return x.result(model.Environment{}, nil)
	}
	declarations := []model.Declaration{}
	x.each("environments", func(v cue.Value, ref model.Ref) {
		s := model.Declaration{Name: ref.Name}
		if value, ok := x.read.entity(v, ref, "gates", "rings"); ok {
			decode(value, &s)
			s.Promotion = x.policies.promotion(v, value, ref)
			s.Formerly = formerly(value)
		}
		declarations = append(declarations, s)
	})
	for _, ref := range x.Found.All { // includes environments with errors
		if model.IsName(ref.Name) && !slices.ContainsFunc(declarations,
			func(s model.Declaration) bool { return s.Name == ref.Name }) {
			declarations = append(declarations, model.Declaration{Name: ref.Name})
		}
	}
	slices.SortFunc(declarations,
		func(a, b model.Declaration) int { return strings.Compare(a.Name, b.Name) })
	return x.result(model.Environment{}, declarations)
}

// formerly returns the earlier names of an environment.
func formerly(value model.Value) []string {
	var fields struct {
		Formerly json.RawMessage `json:"formerly"`
	}
	decode(value, &fields)
	var one string
	var all []string
	if json.Unmarshal(fields.Formerly, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(fields.Formerly, &all) // the schema allows no other values
	return all
}

// gitOps exports the environment's own fields, and checks the fields of the other environments.
func (x *Exporter) gitOps(env *model.Environment) {
	x.each("environments", func(v cue.Value, ref model.Ref) {
		var e struct {
			Description string        `json:"description"`
			After       []string      `json:"after"`
			GitOps      *model.GitOps `json:"gitops"`
			Plaintext   string        `json:"plaintextSecrets"`
			Removals    struct {
				Max      json.RawMessage `json:"max"`     // an int, or a text
				Emptied  json.RawMessage `json:"emptied"` // an int, a text, or a list of names
				Clusters []string        `json:"clusters"`
			} `json:"removals"`
		}
		if !x.read.decode(&e, v, ref, policyFields...) {
			return
		}
		// the base declares it
		if ref.Name != env.Name && len(x.writtenIn(v, ownFolder(env.Name))) < len(x.Written(v)) {
			x.withoutEffect(v, ref, env.Name, append([]string{"after", "gitops", "plaintextSecrets",
				"removals"}, policyFields...), "on environment "+ref.Name)
		}
		if e.GitOps != nil && !x.checkGitOps(e.GitOps, ref.Name, ref.At("gitops")) ||
			ref.Name != env.Name {
			return
		}
		x.ownPolicy(v, ref)
		env.Settings = model.Settings{
			Description: e.Description, After: e.After, GitOps: e.GitOps,
			PlaintextFails: e.Plaintext == "error",
			MaxRemovals:    strings.Trim(string(e.Removals.Max), `"`), RemovedClusters: e.Removals.Clusters,
		}
		if json.Unmarshal(e.Removals.Emptied, &env.EmptiedClusters) != nil { // it is not a list
			env.MaxEmptied = strings.Trim(string(e.Removals.Emptied), `"`)
		}
		if x.writtenIn(cuevalue.Field(v, "rings"), ownFolder(ref.Name)) != nil {
			env.Rings = x.policies.rings(v, ref)
		}
	})
}

// checkGitOps reports fields that are missing for one way to store the tree, or that belong to
// the other way. It completes the remaining fields.
func (x *Exporter) checkGitOps(g *model.GitOps, environment string, ref model.Ref) bool {
	switch {
	case g.OCI == "" && g.Branch == "":
		x.Fail(ref, diag.New(diag.Missing,
			"required field branch is missing").Hinting(
			`name the branch that holds the tree: branch: "..."`))
	case g.OCI == "" && g.Tag != "":
		x.Fail(ref.At("tag"), diag.New(diag.NotAllowed, "tag is for a tree in an OCI registry, and "+
			"this one is in a git repository").
			Hinting("name the branch that holds the tree with branch, and remove tag"))
	case g.OCI != "" && g.Branch != "":
		x.Fail(ref.At("branch"), diag.New(diag.NotAllowed, "branch is for a tree in a git repository, "+
			"and this one is in an OCI registry").
			Hinting("name the artifact's tag with tag, and remove branch"))
	default:
		if g.OCI != "" && g.Tag == "" {
			g.Tag = environment
		}
		return true
	}
	return false
}

// Environment exports all entities of the package, for an environment.
func (x *Exporter) Environment(name string) *Result {
	env := model.Environment{Name: name}
	if !x.CheckCollections(name) {
		return x.result(env, nil)
	}
	x.gitOps(&env)
	env.ClusterTypes = entities(x, "clusterTypes", x.clusterType)
	env.Clusters = entities(x, "clusters", x.cluster)
	env.Inventories = entities(x, "inventories", x.inventory)
	env.Workspaces = entities(x, "workspaces", x.workspace)
	env.Workloads = x.Workloads(name)
	env.SchedulingPolicies = entities(x, "schedulingPolicies", x.schedulingPolicy)
	env.Configs = x.Configs()
	env.ConfigSchemas = entities(x, "configSchemas",
		func(v cue.Value, ref model.Ref) (model.ConfigSchema, bool) {
			s := model.ConfigSchema{Name: ref.Name, MatchUnknown: true}
			s.Invalid = x.matching(v, ref, &s.Match, &s.MatchUnknown, &s.Clusters,
				func() { x.configSchema(v, ref, &s) })
			return s, true
		})
	env.NamespaceServices = x.namespaceServices()
	env.Reconcilers = entities(x, "reconcilers", x.reconciler)
	env.Registrations = entities(x, "registrations", x.registration)
	env.Tests = entities(x, "tests", func(v cue.Value, ref model.Ref) (model.Test, bool) {
		t := model.Test{Name: ref.Name}
		t.Invalid = x.matching(v, ref, &t.Match, &t.MatchUnknown, &t.Clusters,
			func() { x.test(v, ref, &t) })
		t.MatchUnknown = t.MatchUnknown && cuevalue.Field(v, "match").Exists()
		return t, true
	})
	return x.result(env, nil)
}

// CheckCollections checks the package around its entities, for the entities of an environment.
// It returns false if indentation misplaces collections, because the errors of entities would
// only repeat that.
func (x *Exporter) CheckCollections(environment string) bool {
	if x.collections.checkIndentation() {
		x.HideAll(environment)
		return false
	}
	x.collections.checkEmbeds(environment)
	x.collections.checkCollections(environment)
	return true
}

// ownPolicy records the position of an environment's rings. It warns about a policy of
// promotion in the environment's own files, which the base does not see.
func (x *Exporter) ownPolicy(v cue.Value, ref model.Ref) {
	if rings := cuevalue.Field(v, "rings"); rings.Exists() {
		x.note(rings, ref.At("rings"))
		it, err := rings.List()
		for i := 0; err == nil && it.Next(); i++ {
			x.note(cuevalue.Field(it.Value(), "select"), ref.At(fmt.Sprintf("rings[%d].select", i)))
		}
	}
	x.withoutEffect(v, ref, ref.Name,
		slices.DeleteFunc(append([]string{"after"}, policyFields...), func(name string) bool {
			return name == "rings" // they may depend on the environment's own cluster types
		}), "on promotion")
}

// withoutEffect warns about fields of an environment that have no effect in the files of one
// environment.
func (x *Exporter) withoutEffect(v cue.Value, ref model.Ref, in string, fields []string,
	on string) {
	for _, name := range fields {
		d := diag.New(diag.OwnPolicy,
			fmt.Sprintf("%s in the files of environment %s has no effect %s", name, in, on)).
			On(ref.At(name).String()).Hinting(
			"move it to the base, which says for all commits how they come to an environment")
		d = d.InEach(x.writtenIn(cuevalue.Field(v, name), ownFolder(in))...)
		if len(d.Sites) > 0 {
			x.Report(d)
		}
	}
}

// ownFolder returns the folder of an environment's own files.
func ownFolder(environment string) string { return source.Environments + "/" + environment + "/" }

// policyFields are the fields of an environment that describe how commits reach it. The fields
// of the base apply, because the base is the same for all commits under way. For after, which
// the base also has, see gitOps.
var policyFields = []string{"require", "advance", "gates", "rings", "ownChanges", "promotion",
	"source", "evaluation", "formerly"}

// Application exports an application's own file, with the environments that it declares. The
// diagnostics may have no sites. ok is false if an error hides the manifests to render; errors
// in the environments do not affect ok.
func Application(l *loader.Package) (app *model.Application, declarations []model.Declaration,
	ds []diag.Diagnostic, ok bool) {
	x := New(l)
	ref := model.Ref{Collection: "application"}
	app = &model.Application{Positions: x.Positions, Rings: map[string][]model.Ring{}}
	x.note(l.Value, ref)
	valid := x.shapes.check(l.Value, shape.Definitions()["#Application"], ref, "environments")
	if value, whole := x.read.entity(l.Value, ref, "environments"); valid && whole {
		decode(value, app)
	}
	ok = !diag.Errors(x.Diagnostics)
	declarations = x.Declarations().Declarations
	s := &check.Declarations{Entities: x.Found}
	s.Declared(declarations)
	for i := range declarations {
		s := &declarations[i]
		at := model.Ref{Collection: "environments", Name: s.Name}
		if s.GitOps != nil && !x.checkGitOps(s.GitOps, s.Name, at.At("gitops")) {
			s.Invalid = true
		}
		if !s.Invalid && len(s.Promotion.Rings) > 0 {
			app.Rings[s.Name] = s.Promotion.Rings
		}
	}
	diag.Resolve(x.Diagnostics, x.Positions)
	return app, declarations, x.Diagnostics, ok
}

// Contract exports a package that is a contract as a whole. It returns nil and diagnostics if
// the contract is malformed.
func Contract(l *loader.Package, ref model.Ref, positions *model.Positions) (*model.Contract,
	[]diag.Diagnostic) {
	x := New(l)
	x.Positions = positions
	x.checkUnsound(ref)
	return x.contracts.contract(l.Value, ref, "block"), x.Diagnostics
}

// Values exports a package that is a file of values as a whole; ref names the file. If the file
// has errors, the tree is empty, because values with errors would be missing from it.
func Values(l *loader.Package, ref model.Ref, positions *model.Positions) (model.Tree,
	[]diag.Diagnostic) {
	x := New(l)
	x.Positions = positions
	if x.checkUnsound(ref); len(x.Diagnostics) > 0 {
		return model.Tree{}, x.Diagnostics
	}
	tree := x.trees.tree(l.Value, ref)
	if tree.Kind == model.FinalLeaf && tree.Final.Kind() != model.Struct {
		x.Fail(ref, diag.New(diag.WrongValue, ref.Name+" is no mapping").In(model.Position{File: ref.Name,
			Line: 1, Column: 1}, "").Hinting("write keys and values"))
	}
	return tree, x.Diagnostics
}
