package randplatform

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// breakage is a mistake in a platform, outside of its description. Removing it repairs the
// platform, whatever was edited since.
type breakage struct {
	what    string
	patches []patch
	// text is added at the end of a file, which is created if it does not exist.
	file, text string
	// harm is the damage to one of the pinned sources.
	harm   harm
	pinned int
}

// patch sets a field of an entity that is there.
type patch struct {
	collection, key, scope string
	path                   []string
	value                  *value // nil removes the field
}

// withBreakages returns the platform with the patches of its breakages.
func (p *Platform) withBreakages() *Platform {
	if len(p.broken) == 0 {
		return p
	}
	c := p.Clone()
	for _, b := range p.broken {
		for _, x := range b.patches {
			for _, e := range c.entities {
				if e.collection == x.collection && e.key == x.key && e.scope == x.scope && e.body.kind == structure {
					e.body.setAt(x.path, x.value.clone())
					break
				}
			}
		}
	}
	return c
}

// mistake makes a breakage. ok is false if the platform has nothing that can be broken in this
// way.
type mistake struct {
	weight int
	make   func(p *Platform, r *rand.Rand) (b breakage, ok bool)
}

var mistakes = []mistake{
	{4, conflict},
	{5, wrongType},
	{5, unknownField},
	{3, syntaxError},
	{3, missingReference},
	{3, unmetContract},
	{3, badSelector},
	{2, dependencyCycle},
	{3, compileError},
	{3, badComprehension},
	{2, missingField},
	{2, badOption},
	{1, sharedNamespace},
	{1, badData},
	{1, badHelper},
	{1, environmentCycle},
	{6, harmSource},
}

func one(what string, on *entity, path []string, v *value) (breakage, bool) {
	return breakage{what: what + " in " + on.title() + " at " + strings.Join(path, "."),
		patches: []patch{{on.collection, on.key, on.scope, path, v}}}, true
}

// oneOf returns a random entity of a collection that can be patched.
func (p *Platform) oneOf(r *rand.Rand, collection string) (*entity, bool) {
	all := slices.DeleteFunc(p.namedOf(collection), func(e *entity) bool { return e.body.kind != structure })
	if len(all) == 0 {
		return nil, false
	}
	return pick(r, all...), true
}

// anywhere is a file of its own for text that is added, in a random scope.
func (p *Platform) anywhere(r *rand.Rand) string {
	if scope := p.somewhere(r); scope != "" {
		return "environments/" + scope + "/broken.cue"
	}
	return "broken.cue"
}

func added(what, file, text string) (breakage, bool) {
	return breakage{what: what + " in " + file, file: file, text: "\n" + text + "\n"}, true
}

// conflict gives a value of a config another value, in another config or, as CUE
// finds it, in the same.
func conflict(p *Platform, r *rand.Rand) (breakage, bool) {
	e, ok := p.oneOf(r, "configs")
	values := e.body.get("values")
	if !ok || values == nil || len(values.fields) == 0 {
		return breakage{}, false
	}
	f := pick(r, values.fields...)
	file := "environments/" + pick(r, p.environments...) + "/broken.cue"
	if chance(r, 30) {
		return added("conflict on "+f.label+" of "+e.title(), file, "configs: "+e.key+": values: "+f.label+`: "conflicting"`)
	}
	return added("conflict with "+f.label+" of "+e.title(), file,
		`configs: conflicting: {match: `+valueText(e.body.get("match"))+`, values: `+f.label+`: "conflicting"}`)
}

func wrongType(p *Platform, r *rand.Rand) (breakage, bool) {
	c := pick(r, []struct {
		collection string
		path       []string
	}{
		{"clusterTypes", []string{"labels", "region"}}, {"clusterTypes", []string{"reconciler"}},
		{"workloads", []string{"workspace"}},
		{"workloads", []string{"deploymentTargets"}}, {"configs", []string{"layer"}},
		{"schedulingPolicies", []string{"clusterTypes"}},
		{"configs", []string{"values"}}, {"schedulingPolicies", []string{"deny"}}, {"configSchemas", []string{"enforce"}},
		{"namespaceServices", []string{"deletion"}}, {"environments", []string{"after"}},
	}...)
	e, ok := p.oneOf(r, c.collection)
	if !ok {
		return breakage{}, false
	}
	return one("wrong type", e, c.path, raw("7.5"))
}

func unknownField(p *Platform, r *rand.Rand) (breakage, bool) {
	e, ok := p.oneOf(r, pick(r, "clusterTypes", "clusterTypes", "workloads", "workloads",
		"schedulingPolicies", "schedulingPolicies",
		"configs", "configSchemas", "namespaceServices", "reconcilers"))
	if !ok {
		return breakage{}, false
	}
	return one("unknown field", e, []string{"lables"}, obj())
}

func syntaxError(p *Platform, r *rand.Rand) (breakage, bool) {
	return added("syntax error", p.anywhere(r), pick(r, "configs: {", `configs: a: "`, "configs: a b c", ")"))
}

func missingReference(p *Platform, r *rand.Rand) (breakage, bool) {
	c := pick(r, [][2]string{{"clusterTypes", "reconciler"}, {"clusterTypes", "namespaceService"},
		{"clusters", "clusterType"}}...)
	e, ok := p.oneOf(r, c[0])
	if !ok {
		return breakage{}, false
	}
	return one("missing reference", e, []string{c[1]}, str("nowhere"))
}

func unmetContract(p *Platform, r *rand.Rand) (breakage, bool) {
	if e, ok := p.oneOf(r, "workloads"); ok && chance(r, 50) {
		return one("unmet contract", e, []string{"requires"}, obj("MISSING", raw("string"), "LOG_LEVEL", raw("int")))
	}
	return added("unmet contract", p.anywhere(r),
		"configSchemas: unmet: {match: "+valueText(p.match(r))+", schema: MISSING: string}")
}

func badSelector(p *Platform, r *rand.Rand) (breakage, bool) {
	collection := pick(r, "configs", "schedulingPolicies", "configSchemas")
	e, ok := p.oneOf(r, collection)
	if !ok {
		return breakage{}, false
	}
	bad := pick(r, raw(`{[string]: "x"}`), raw(`{region: *"east" | string}`), raw(`{region: 5}`))
	if collection == "schedulingPolicies" {
		return one("bad selector", e, []string{"clusterTypes"}, obj("labels", bad))
	}
	return one("bad selector", e, []string{"match"}, bad)
}

// dependencyCycle makes two targets of a workload depend on each other, or one
// on itself.
func dependencyCycle(p *Platform, r *rand.Rand) (breakage, bool) {
	e, ok := p.oneOf(r, "workloads")
	if !ok {
		return breakage{}, false
	}
	var targets []string
	for _, f := range e.body.get("deploymentTargets").targets() {
		targets = append(targets, f.label)
	}
	if len(targets) == 0 {
		return breakage{}, false
	}
	b := breakage{what: "cyclic dependsOn in " + e.title()}
	for i, t := range targets {
		next, _ := strconv.Unquote(targets[(i+1)%len(targets)])
		b.patches = append(b.patches, patch{e.collection, e.key, e.scope,
			[]string{"deploymentTargets", t, "dependsOn"}, arr(e.name() + "-" + next)})
	}
	return b, true
}

// targets are the fields that are deployment targets, and no patterns.
func (v *value) targets() []field {
	if v == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.fields),
		func(f field) bool { return f.label[0] != '"' || f.value.kind != structure })
}

func compileError(p *Platform, r *rand.Rand) (breakage, bool) {
	return added("compile error", p.anywhere(r),
		pick(r, "_a: nowhere.b", "let unused = 5", `configs: lost: {match: {}, values: A: nowhere}`))
}

func badComprehension(p *Platform, r *rand.Rand) (breakage, bool) {
	return added("error in a comprehension", p.anywhere(r), pick(r,
		"_flag: bool\nconfigs: {if _flag {flagged: {match: {}, values: FLAGGED: true}}}",
		"_list: [...string]\nconfigs: {for x in _list.none {\"x-\\(x)\": {match: {}, values: X: x}}}",
		"configs: {for x in [1, 2] {\"x-\\(x/0)\": {match: {}, values: X: 1}}}",
		"_key: string\nworkloads: \"\\(_key)\": workspace: \"red\"",
		"clusterTypes: {for x in 5 {\"x-\\(x)\": reconciler: \"flux\"}}"))
}

func missingField(p *Platform, r *rand.Rand) (breakage, bool) {
	c := pick(r, [][2]string{{"clusterTypes", "reconciler"}, {"workloads", "workspace"},
		{"configs", "match"}, {"schedulingPolicies", "clusterTypes"}}...)
	e, ok := p.oneOf(r, c[0])
	if !ok {
		return breakage{}, false
	}
	return one("missing field", e, []string{c[1]}, nil)
}

// badOption breaks a setting that only backends check.
func badOption(p *Platform, r *rand.Rand) (breakage, bool) {
	switch r.IntN(5) {
	case 4:
		if e, f, ok := p.target(r); ok { // Argo CD verifies no signatures
			return one("manifests for Flux alone", e, []string{"deploymentTargets", f.label, "manifests"},
				obj("git", obj("repo", "https://git.example.com/apps", "tag", "v1", "verify", obj("secretRef", "keys"))))
		}
	case 0:
		if e, ok := p.oneOf(r, "namespaceServices"); ok {
			return one("no namespace", e, []string{"pattern"}, str("No Namespace"))
		}
	case 1:
		if e, ok := p.oneOf(r, "namespaceServices"); ok {
			return one("no object", e, []string{"manifests"}, raw(`[{kind: "None"}]`))
		}
	case 2:
		if e, ok := p.oneOf(r, "reconcilers"); ok && e.body.get("flux") != nil {
			return one("no duration", e, []string{"flux", "interval"}, str("soon"))
		}
	default:
		if e, ok := p.oneOf(r, "reconcilers"); ok {
			return one("two backends", e, []string{pick(r, "flux", "argocd")}, obj())
		}
	}
	return breakage{}, false
}

func sharedNamespace(p *Platform, r *rand.Rand) (breakage, bool) {
	e, ok := p.oneOf(r, "namespaceServices")
	if !ok {
		return breakage{}, false
	}
	return one("one namespace for all", e, []string{"pattern"}, str("shared"))
}

func badData(p *Platform, r *rand.Rand) (breakage, bool) {
	return added("bad JSON", pick(r, "contracts/values.schema.json", "data/limits.json"), "}")
}

func badHelper(p *Platform, r *rand.Rand) (breakage, bool) {
	return added("broken helper package", helperPackage+"/broken.cue",
		pick(r, "Port: 1", "Port: nowhere", "Port: {", `Domain: "other"`))
}

func environmentCycle(p *Platform, r *rand.Rand) (breakage, bool) {
	e, ok := p.oneOf(r, "environments")
	if !ok {
		return breakage{}, false
	}
	return one("environment after itself", e, []string{"after"}, arr(pick(r, e.name(), "nowhere")))
}
