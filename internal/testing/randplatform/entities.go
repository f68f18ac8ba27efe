package randplatform

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// collections are the schema's, as the base declares them.
var collections = []struct{ name, definition string }{
	{"environments", "Environments"}, {"clusterTypes", "ClusterTypes"}, {"clusters", "Clusters"},
	{"workloads", "Workloads"},
	{"registrations", "Registrations"}, {"schedulingPolicies", "SchedulingPolicies"}, {"configs", "Configs"},
	{"configSchemas", "ConfigSchemas"}, {"namespaceServices", "NamespaceServices"}, {"reconcilers", "Reconcilers"},
}

var (
	regions  = []string{"east", "west", "north"}
	sizes    = []string{"small", "large"}
	tiers    = []string{"web", "data", "core"}
	purposes = []string{"test", "perf", "canary", "stable"}
	teams    = []string{"red", "green", "blue"}
)

// newName returns a name that no entity has or had.
func (p *Platform) newName(stem string) string {
	p.names++
	return fmt.Sprintf("%s-%d", stem, p.names)
}

// file returns a file of a scope: one that has something, or a new one.
func (p *Platform) file(r *rand.Rand, scope string) string {
	dir := scope + "/"
	switch scope {
	case "":
		dir = ""
	case helperPackage:
	default:
		dir = "environments/" + dir
	}
	name := dir + pick(r, "platform", "fleet", "configs", "more") + ".cue"
	if _, styled := p.styles[name]; !styled {
		p.styles[name] = style(r.IntN(int(styles)))
	}
	return name
}

// entity adds an entity in a random file of a scope.
func (p *Platform) entity(r *rand.Rand, scope, collection, name string, body *value) *entity {
	return p.add(&entity{collection: collection, key: strconv.Quote(name), scope: scope,
		file: p.file(r, scope), body: body})
}

// top adds a top-level field that is not a collection's.
func (p *Platform) top(r *rand.Rand, scope, key string, body *value) *entity {
	return p.add(&entity{key: key, scope: scope, file: p.file(r, scope), body: body})
}

// spread writes some fields of an entity to another file, if no field needs another one next to
// it.
func (p *Platform) spread(r *rand.Rand, e *entity) {
	if e.collection == "" || e.name() == "" || e.pinned || e.body.kind != structure ||
		len(e.body.fields) < 3 || !chance(r, 15) {
		return
	}
	for _, f := range e.body.fields {
		if strings.HasPrefix(f.label, "#") || strings.HasPrefix(f.label, "let ") {
			return
		}
	}
	e.away, e.awayFile = []string{pick(r, e.body.fields...).label}, p.file(r, e.scope)
}

// somewhere is a random scope for something that environments can share.
func (p *Platform) somewhere(r *rand.Rand) string {
	if chance(r, 35) {
		return ""
	}
	return pick(r, p.environments...)
}

func (p *Platform) addBase(r *rand.Rand) {
	for _, c := range collections {
		p.top(r, "", c.name, raw("schema.#%s", c.definition))
	}
	for i, name := range p.environments {
		body := obj()
		if i > 0 {
			body.set("after", arr(p.environments[r.IntN(i)]))
		}
		if chance(r, 75) {
			body.set("gitops", obj("repo", "https://git.example.com/gitops", "branch", name))
			if chance(r, 40) {
				body.get("gitops").set("path", str("compiled"))
			}
		}
		p.entity(r, "", "environments", name, body)
	}
	p.data["contracts/values.schema.json"] = obj("type", "object", "properties",
		obj("LOG_LEVEL", obj("type", "string"), "TIMEOUT",
			obj("type", "integer", "minimum", 1, "maximum", 10000)), "required", arr("LOG_LEVEL"))
	p.data["data/limits.json"] = obj("max", 100, "names", arr("a", "b"), "rate", 0.5)
}

func (p *Platform) addClusterType(r *rand.Rand, scope string) *entity {
	labels := obj("region", pick(r, regions...), "size", pick(r, sizes...))
	if chance(r, 30) {
		labels.set("edge", str("true"))
	}
	if chance(r, 20) {
		labels.set("restricted", str("true"))
	}
	body := obj("labels", labels, "reconciler", p.nameOf(r, "reconcilers"))
	if chance(r, 50) {
		body.set("namespaceService", str(p.nameOf(r, "namespaceServices")))
	}
	if chance(r, 40) {
		body.set("configFormat", str(pick(r, "env", "sh", "json", "yaml")))
	}
	name := p.newName("type")
	e := p.entity(r, scope, "clusterTypes", name, body)
	if chance(r, 20) {
		p.entity(r, scope, "clusters", p.newName("cluster"), obj("clusterType", name, "labels", obj("rack", "r1")))
	}
	return e
}

// nameOf returns the name of a random entity of a collection that the base holds.
func (p *Platform) nameOf(r *rand.Rand, collection string) string {
	all := slices.DeleteFunc(p.namedOf(collection), func(e *entity) bool { return e.scope != "" })
	if len(all) == 0 {
		return "default"
	}
	return pick(r, all...).name()
}

func (p *Platform) addReconcilers(r *rand.Rand) {
	flux := obj("interval", pick(r, "30s", "5m", "1h"))
	for _, f := range sample(r, 0, fluxOptions()...) {
		flux.set(f.label, f.value)
	}
	p.entity(r, "", "reconcilers", "flux", obj("flux", flux))
	argocd := obj()
	for _, f := range sample(r, 0, argocdOptions()...) {
		argocd.set(f.label, f.value)
	}
	p.entity(r, "", "reconcilers", "argocd", obj("argocd", argocd))
	if chance(r, 50) {
		p.entity(r, "", "reconcilers", "named", obj("#assignment", raw("schema.#Assignment"),
			"flux", obj("namePattern", raw(`"\(#assignment.environment)-\(#assignment.deploymentTarget)"`))))
	}
	if chance(r, 40) {
		p.entity(r, "", "reconcilers", "edge", raw(`reconciler.#FluxEdge & {#interval: "30m"}`))
	}
}

func fluxOptions() []field {
	return []field{{"retryInterval", str("1m")}, {"timeout", str("3m")}, {"prune", raw("true")}, {"wait", raw("false")},
		{"namespace", str("flux")}, {"serviceAccountName", str("deployer")}}
}

func argocdOptions() []field {
	return []field{
		{"project", str("fleet")}, {"namespace", str("argo")}, {"syncOptions", arr("ServerSideApply=true")},
		{"syncPolicy", obj("retry", obj("limit", 3, "backoff", obj("duration", "10s", "factor", 2, "maxDuration", "5m")))},
		{"ignoreDifferences", arr(obj("group", "apps", "kind", "Deployment", "jsonPointers", arr("/spec/replicas")))},
	}
}

func (p *Platform) addServices(r *rand.Rand) {
	secrets := func() *value {
		if chance(r, 30) {
			return obj("secretProviderClass", obj("provider", "vault", "parameters", obj("roleName", "app")))
		}
		return obj("externalSecret", obj("refreshInterval", pick(r, "1h", "10m")))
	}
	p.entity(r, "", "namespaceServices", "default",
		obj("labels", obj(`"example.com/cost"`, "shared"), "secrets", secrets()))
	p.entity(r, "", "namespaceServices", "wide", obj("#assignment", raw("schema.#Assignment"),
		"pattern", raw(`"\(#assignment.environment)-\(#assignment.deploymentTarget)"`),
		"annotations", obj("owner", raw(`"team-\(#assignment.workspace)"`)),
		"manifests", obj("marker", obj("apiVersion", "v1", "kind", "ConfigMap", "metadata", obj("name", "marker"),
			"data", obj("where", raw(`"\(#assignment.clusterType)"`), "level", "one"))),
		"secrets", secrets()))
	if chance(r, 60) {
		tight := obj("deletion", pick(r, "orphan", "delete"), "podSecurity", pick(r, "baseline", "restricted"),
			"quota", obj(`"requests.cpu"`, "4", "pods", 20),
			"limits", obj("Container", obj("default", obj("cpu", "500m", "memory", "256Mi"))),
			"networkPolicy", pick(r, str("isolated"), obj("ingressFrom",
				arr(obj("namespaceLabels", obj("zone", "a"), "ports", arr(obj("port", 80)))),
				"egressTo", arr(obj("cidr", "10.0.0.0/8", "except", arr("10.1.0.0/16"))))),
			"rbac", obj("viewers", obj("clusterRole", "view", "groups", arr("viewers"))),
			"serviceAccount", obj("automountToken", raw("true"), "imagePullSecrets", arr("registry")),
			"secrets", secrets(),
			"#assignment", raw("schema.#Assignment"),
			"pattern", raw(`"\(#assignment.deploymentTarget)-\(#assignment.labels.size)"`))
		p.entity(r, "", "namespaceServices", "tight", tight)
	}
	if chance(r, 20) {
		p.entity(r, "", "namespaceServices", "preset",
			raw(`namespace.#Small & {labels: size: "small", secrets: externalSecret: {}}`))
	}
}

func (p *Platform) addWorkloads(r *rand.Rand) {
	p.addWorkload(r, "core")
	for range few(r, 1, 5) {
		p.addWorkload(r, pick(r, "web", "data"))
	}
}

// addWorkload adds a workload with its targets. One of the tier core is assigned
// everywhere, so that others can depend on it.
func (p *Platform) addWorkload(r *rand.Rand, tier string) *entity {
	name := p.newName("app")
	body := obj("workspace", pick(r, teams...), "labels", obj("tier", tier))
	if chance(r, 20) {
		body.set("application", str("suite"))
	}
	pinned := false
	if chance(r, 50) {
		body.set("requires", pick(r,
			obj("LOG_LEVEL", raw("string"), "TIMEOUT", raw("int & >0")),
			obj("LOG_LEVEL", raw(`"debug" | "info" | "warn" | "error"`), "RETRIES", raw("*3 | int")),
			raw(`#Needs`),
			raw(`_ @embed(file="contracts/values.schema.json", type=jsonschema)`)))
		pinned = strings.Contains(body.get("requires").text, "@embed")
	}
	if chance(r, 20) {
		body.set("enforce", str("advise"))
	}
	targets := obj()
	if tier == "core" {
		for _, e := range p.environments {
			targets.set(strconv.Quote(e), p.newTarget(r, e, tier))
		}
	}
	for range few(r, 1, 3) {
		targets.set(strconv.Quote(p.newName("at")), p.newTarget(r, pick(r, p.environments...), tier))
	}
	if chance(r, 20) {
		targets.fields = append([]field{{"[string]", obj("description", "A flavour.")}}, targets.fields...)
	}
	body.set("deploymentTargets", targets)
	e := p.entity(r, "", "workloads", name, body)
	e.pinned = pinned
	return e
}

func (p *Platform) newTarget(r *rand.Rand, environment, tier string) *value {
	t := obj("environment", environment, "labels", obj("purpose", pick(r, purposes...)), "manifests", newManifests(r))
	if chance(r, 60) {
		t.set("version", raw(`"%d.%d.%d"`, r.IntN(4), r.IntN(20), r.IntN(10)))
	}
	if chance(r, 20) {
		t.get("labels").set("critical", str("true"))
	}
	if chance(r, 15) {
		t.set("requires", obj("TIMEOUT", raw("int & >0 & <100000")))
		t.set("enforce", str("advise"))
	}
	if core := p.namedOf("workloads"); tier != "core" && len(core) > 0 && p.hasGitOps(environment) && chance(r, 30) {
		t.set("dependsOn", arr(core[0].name()+"-"+environment))
	}
	return t
}

func (p *Platform) hasGitOps(environment string) bool {
	return slices.ContainsFunc(p.of("environments"), func(e *entity) bool {
		return e.name() == environment && e.body.get("gitops") != nil
	})
}

func newManifests(r *rand.Rand) *value {
	version := fmt.Sprintf("%d.%d.0", 1+r.IntN(3), r.IntN(9))
	git := func() *value {
		g := obj("repo", "https://git.example.com/apps")
		switch r.IntN(4) {
		case 0:
			g.set("branch", str("main"))
		case 1:
			g.set("tag", str("v"+version))
		case 2:
			g.set("semver", str(">="+version+" <9"))
		default:
			g.set("commit", str(strings.Repeat(strconv.Itoa(r.IntN(10)), 40)))
		}
		return g
	}
	oci := func() *value {
		o := obj("url", "oci://registry.example.com/apps/one")
		switch r.IntN(3) {
		case 0:
			o.set("tag", str(version))
		case 1:
			o.set("semver", str(">="+version))
		default:
			o.set("digest", str("sha256:"+strings.Repeat(strconv.Itoa(r.IntN(10)), 64)))
		}
		return o
	}
	switch r.IntN(6) {
	case 0, 1:
		g := git()
		g.set("path", str("./deploy"))
		return obj("git", g)
	case 2:
		return obj("oci", oci())
	case 3:
		return obj("helm", obj("repo", "https://charts.example.com", "chart", "one", "version", version,
			"values", obj("replicas", 1+r.IntN(3)),
			"platformValues", pick(r, "platform", "global.platform")))
	case 4:
		return obj("helm", obj("oci", "oci://registry.example.com/charts/one", "version", version))
	default:
		k := obj("path", "./overlay")
		if chance(r, 50) {
			k.set("git", git())
		} else {
			k.set("oci", oci())
		}
		return obj("kustomize", k)
	}
}

func (p *Platform) addPolicies(r *rand.Rand, scope string) {
	p.entity(r, scope, "schedulingPolicies", p.newName("core"),
		obj("deploymentTargets", obj("labels", obj("tier", "core")), "clusterTypes", obj()))
	for range 1 + r.IntN(3) {
		p.addPolicy(r, scope)
	}
}

func (p *Platform) addPolicy(r *rand.Rand, scope string) *entity {
	body := obj("deploymentTargets", p.targetSelector(r), "clusterTypes", p.typeSelector(r))
	switch r.IntN(10) {
	case 0:
		body.set("except", obj("deploymentTargets", obj("labels", obj("purpose", pick(r, purposes...)))))
	case 1:
		body.set("except", obj("clusterTypes", obj("labels", obj("restricted", "true"))))
	case 2:
		body.set("deny", raw("true"))
		body.set("deploymentTargets", obj("labels", obj("tier", raw(`!="core"`), "purpose", pick(r, purposes...))))
	case 3:
		body.set("pin", obj("version", "9.0.0"))
	}
	return p.entity(r, scope, "schedulingPolicies", p.newName("policy"), body)
}

func (p *Platform) targetSelector(r *rand.Rand) *value {
	switch r.IntN(8) {
	case 0:
		return obj()
	case 1:
		return obj("workload", p.nameOf(r, "workloads"))
	case 2:
		return obj("workspace", raw("%q | %q", pick(r, teams...), pick(r, teams...)))
	case 3:
		return obj("labels", obj("purpose", raw(`=~"^%s"`, pick(r, "t", "p", "[cs]"))))
	case 4:
		return obj("labels", obj("tier", pick(r, "web", "data"), "critical?", raw("_|_")))
	case 5:
		return raw(`{labels: tier: %q} | {labels: purpose: %q}`, pick(r, tiers...), pick(r, purposes...))
	case 6:
		return obj("labels", obj("purpose", raw("!=%q", pick(r, purposes...))))
	default:
		return obj("labels", obj("tier", pick(r, tiers...), "critical?", "true"))
	}
}

func (p *Platform) typeSelector(r *rand.Rand) *value {
	switch r.IntN(7) {
	case 0, 1:
		return obj()
	case 2:
		return obj("labels", obj("region", raw("%q | %q", pick(r, regions...), pick(r, regions...))))
	case 3:
		return obj("labels", obj("edge?", raw("_|_")))
	case 4:
		return obj("labels", obj("size", pick(r, sizes...), "restricted?", raw(`!="true"`)))
	case 5:
		return raw(`{labels: size: %q} | {labels: edge: "true"}`, pick(r, sizes...))
	default:
		return obj("labels", obj("region", raw(`=~"%s"`, pick(r, "st$", "^n", "^e"))))
	}
}
