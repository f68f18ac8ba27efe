package randplatform

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// The edits below change the contents of an entity.

// changeLabel changes, adds or removes a label of a cluster type, a target or a
// workload.
func changeLabel(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, pick(r, "clusterTypes", "workloads"))
	if !ok {
		return ""
	}
	of, choices := e.body, map[string][]string{"region": regions, "size": sizes}
	what := e.title()
	if e.collection == "workloads" {
		choices = map[string][]string{"tier": tiers}
		if targets := e.body.get("deploymentTargets").targets(); len(targets) > 0 && chance(r, 70) {
			f := pick(r, targets...)
			of, what = f.value, what+" "+f.label
			choices = map[string][]string{"purpose": purposes}
		}
	}
	labels := of.get("labels")
	if labels == nil {
		return ""
	}
	flag := "edge"
	if e.collection == "workloads" {
		flag = "critical"
	}
	switch {
	case chance(r, 30) && labels.get(flag) != nil:
		labels.drop(flag)
		return "remove label " + flag + " of " + what
	case chance(r, 30):
		labels.set(flag, str(pick(r, "true", "false")))
		return "set label " + flag + " of " + what
	}
	for _, name := range []string{"tier", "purpose", pick(r, "region", "size")} {
		if values := choices[name]; values != nil {
			labels.set(name, str(pick(r, values...)))
			return "set label " + name + " of " + what + " to " + labels.get(name).text
		}
	}
	return ""
}

func changeSelector(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, pick(r, "configs", "schedulingPolicies", "configSchemas"))
	if !ok {
		return ""
	}
	if e.collection != "schedulingPolicies" {
		e.body.set("match", p.match(r))
		return "match of " + e.title() + " is " + valueText(e.body.get("match"))
	}
	switch r.IntN(6) {
	case 0, 1:
		e.body.set("deploymentTargets", p.targetSelector(r))
	case 2, 3:
		e.body.set("clusterTypes", p.typeSelector(r))
	case 4:
		e.body.set("except", obj("clusterTypes", obj("labels", obj("region", pick(r, regions...)))))
	default:
		e.body.drop("except")
		e.body.drop("deny")
		e.body.drop("pin")
	}
	return e.title() + " is " + valueText(e.body)
}

func changeLayer(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, "configs")
	if !ok {
		return ""
	}
	e.body.set("layer", raw("%d", pick(r, 0, 10, 20, 30)))
	return "layer of " + e.title() + " is " + e.body.get("layer").text
}

func changeStrategy(p *Platform, r *rand.Rand) string {
	for _, e := range p.of("configSchemas") {
		lists := e.body.get("lists")
		if lists == nil {
			continue
		}
		path := pick(r, "startup", "tags", "sinks")
		if path != "sinks" {
			lists.set(path, str(pick(r, "append", "unique")))
		} else {
			lists.set(path, obj("mergeBy", pick(r, "name", "name", "port")))
		}
		return "list strategy of " + path + " is " + valueText(lists.get(path))
	}
	return ""
}

func changeContract(p *Platform, r *rand.Rand) string {
	if chance(r, 50) {
		e, ok := p.oneOf(r, "configSchemas")
		if !ok || e.body.get("schema") == nil {
			return ""
		}
		e.body.set("schema", obj("TIMEOUT", raw("int & >=%d", r.IntN(40)), "LEVEL", raw("*%d | int", r.IntN(5))))
		e.body.set("enforce", str(pick(r, "block", "advise")))
		return "contract of " + e.title() + " is " + valueText(e.body)
	}
	e, ok := p.oneOf(r, "workloads")
	if !ok {
		return ""
	}
	if e.body.get("requires") != nil && chance(r, 40) {
		e.body.drop("requires")
		return "remove contract of " + e.title()
	}
	e.body.set("requires", obj("TIMEOUT", raw("int & <%d", 20+r.IntN(60)), "BUDGET", raw("*%d | int", r.IntN(5))))
	return "contract of " + e.title() + " is " + valueText(e.body.get("requires"))
}

func changeVersion(p *Platform, r *rand.Rand) string {
	e, f, ok := p.target(r)
	if !ok {
		return ""
	}
	f.value.set("version", raw(`"5.%d.%d"`, r.IntN(20), r.IntN(10)))
	return "version of " + e.title() + " " + f.label + " is " + f.value.get("version").text
}

func changeManifests(p *Platform, r *rand.Rand) string {
	e, f, ok := p.target(r)
	if !ok {
		return ""
	}
	f.value.set("manifests", newManifests(r))
	return "manifests of " + e.title() + " " + f.label + " are " + valueText(f.value.get("manifests"))
}

func changeService(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, "namespaceServices")
	if !ok {
		return ""
	}
	switch r.IntN(6) {
	case 0:
		e.body.set("quota", obj("pods", 1+r.IntN(100)))
	case 1:
		e.body.set("deletion", str(pick(r, "orphan", "delete")))
	case 2:
		e.body.set("networkPolicy", pick(r, str("none"), str("isolated"), obj("egressTo", arr(obj("cidr", "10.0.0.0/8")))))
	case 3:
		e.body.set("labels", obj("revision", pick(r, "a", "b", "c")))
	case 4:
		e.body.set("rbac", obj("editors", obj("clusterRole", "edit", "groups", arr(pick(r, teams...)))))
	default:
		e.body.set("secrets", pick(r, obj("externalSecret", obj("refreshInterval", pick(r, "5m", "2h"))),
			obj("secretProviderClass", obj("provider", "gcp"))))
	}
	return e.title() + " is " + valueText(e.body)
}

func changeReconciler(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, "reconcilers")
	if !ok {
		return ""
	}
	backend, options := "flux", append(fluxOptions(), field{"interval", str(pick(r, "1m", "2m", "3m"))})
	if e.body.get("argocd") != nil {
		backend, options = "argocd", append(argocdOptions(), field{"syncPolicy", obj("automated", raw("false"))})
	}
	if e.body.get("fleet") != nil {
		backend, options = "fleet", []field{{"pollingInterval", str(pick(r, "30s", "3m"))}}
	}
	f := pick(r, options...)
	of := e.body.get(backend)
	if of == nil {
		return ""
	}
	if of.get(f.label) != nil && chance(r, 40) {
		of.drop(f.label)
		return "remove " + f.label + " of " + e.title()
	}
	of.set(f.label, f.value)
	return f.label + " of " + e.title() + " is " + valueText(f.value)
}

// changeClusterType changes how a cluster type receives its assignments.
func changeClusterType(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, "clusterTypes")
	if !ok {
		return ""
	}
	switch r.IntN(3) {
	case 0:
		e.body.set("reconciler", str(p.nameOf(r, "reconcilers")))
	case 1:
		e.body.set("namespaceService", str(p.nameOf(r, "namespaceServices")))
	default:
		e.body.set("configFormat", str(pick(r, "configmap", "env", "sh", "json", "yaml")))
	}
	return e.title() + " is " + valueText(e.body)
}

func changeGitOps(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, "environments")
	switch {
	case !ok:
		return ""
	case e.body.get("gitops") == nil:
		e.body.set("gitops", obj("repo", "https://git.example.com/gitops", "branch", e.name()))
	case chance(r, 40):
		e.body.drop("gitops")
	default:
		e.body.get("gitops").set("path", str(pick(r, "a", "b/c")))
	}
	return e.title() + " is " + valueText(e.body)
}

func changeAfter(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, "environments")
	if !ok || e.name() == p.environments[0] {
		return ""
	}
	if e.body.get("after") != nil && chance(r, 50) {
		e.body.drop("after")
	} else {
		e.body.set("after", arr(p.environments[0]))
	}
	return e.title() + " is " + valueText(e.body)
}

func changeDependsOn(p *Platform, r *rand.Rand) string {
	e, f, ok := p.target(r)
	if !ok {
		return ""
	}
	if f.value.get("dependsOn") != nil && chance(r, 60) {
		f.value.drop("dependsOn")
		return "remove dependsOn of " + e.title() + " " + f.label
	}
	other, target, ok := p.target(r)
	if !ok || other == e {
		return ""
	}
	name, _ := strconv.Unquote(target.label)
	f.value.set("dependsOn", arr(other.name()+"-"+name))
	return e.title() + " " + f.label + " depends on " + other.name() + "-" + name
}

func changeComprehension(p *Platform, r *rand.Rand) string {
	for _, e := range p.entities {
		if len(e.items) == 0 {
			continue
		}
		e.items = sample(r, 1, regions...)
		return fmt.Sprintf("%s is over %v", e.title(), e.items)
	}
	return ""
}

// changeTop changes a scalar of a top-level field that does not belong to a collection.
func (p *Platform) changeTop(r *rand.Rand, scope string, keys ...string) string {
	for _, e := range p.entities {
		if key := pick(r, keys...); e.collection == "" && e.scope == scope && e.key == key {
			return changeLeaf(r, e)
		}
	}
	return ""
}

func changeHidden(p *Platform, r *rand.Rand) string {
	return p.changeTop(r, "", "_names", "_layer", "_flags")
}

func changeHelper(p *Platform, r *rand.Rand) string {
	return p.changeTop(r, helperPackage, "Port", "Domain", "Regions")
}

func changeData(p *Platform, r *rand.Rand) string {
	if chance(r, 50) {
		l := p.data["data/limits.json"].get("max")
		l.text = another(r, l.text)
		return "max of data/limits.json is " + l.text
	}
	l := p.data["contracts/values.schema.json"].get("properties", "TIMEOUT", "minimum")
	l.text = strconv.Itoa(r.IntN(40))
	return "minimum of contracts/values.schema.json is " + l.text
}
