package randplatform

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// addRendering adds rendered and registered workloads, with reconcilers of other families than
// Flux and Argo CD.
func (p *Platform) addRendering(r *rand.Rand) {
	p.addOtherReconcilers(r)
	for _, e := range p.of("clusterTypes") {
		if chance(r, 75) {
			e.body.set("kubernetesVersion", str(pick(r, kubernetesVersions...)))
		}
		if chance(r, 30) {
			e.body.set("apiVersions", arr("monitoring.example.com/v1"))
		}
		if chance(r, 15) {
			e.body.set("reconciler", str(p.nameOf(r, "reconcilers")))
		}
	}
	for _, e := range p.of("clusters") {
		if chance(r, 50) {
			e.body.set("values", obj("SITE", fmt.Sprintf("site-%d", r.IntN(9))))
		}
	}
	for range few(r, 1, 3) {
		p.addRenderedWorkload(r)
	}
	if chance(r, 50) {
		p.entity(r, "", "registrations", "team", obj("workspace", pick(r, teams...), "provides",
			arr("workloads", "configs"), "layers", obj("max", 9),
			"git", obj("repo", "https://git.example.com/registered", "branch", "main", "path", "./cue")))
	}
	if chance(r, 30) {
		p.entity(r, p.environments[0], "registrations", "batch", obj("workspace", pick(r, teams...),
			"git", obj("repo", "https://git.example.com/registered", "branch", "main", "path", "./yaml")))
	}
}

var kubernetesVersions = []string{"1.32.1", "1.33.0", "v1.34.2"}

func (p *Platform) addOtherReconcilers(r *rand.Rand) {
	if chance(r, 40) {
		p.entity(r, "", "reconcilers", "text", obj("gotemplate", obj("reconciler", obj(`"run.sh"`, obj("contentType", "sh",
			"template", raw(`"run {{ .Namespace | squote }} {{ .Manifests | toJson | squote }} {{ .ConfigData | toJson | squote }}\n"`))))))
	}
	if chance(r, 40) {
		p.entity(r, "", "reconcilers", "own", obj("#assignment", raw("schema.#Assignment"), "cue", obj("files", obj(
			`"facts.json"`, obj("json", obj("values", raw("#assignment.values"), "manifests",
				raw("#assignment.manifests"), "rendered", raw("len(#assignment.rendered)")))))))
	}
	if chance(r, 30) {
		p.entity(r, "", "reconcilers", "fleet", obj("fleet", obj("pollingInterval", pick(r, "15s", "2m"))))
	}
	if chance(r, 15) {
		p.entity(r, "", "reconcilers", "zarf", obj("zarf", obj()))
	}
}

func (p *Platform) addRenderedWorkload(r *rand.Rand) *entity {
	body := obj("workspace", pick(r, teams...), "labels", obj("tier", pick(r, "web", "data")))
	if chance(r, 50) {
		body.set("manifests", obj("helm", obj("values", obj("team", "all"), "defaults", obj("replicas", 2))))
	}
	targets := obj()
	for range few(r, 1, 3) {
		t := p.newTarget(r, pick(r, p.environments...), "core")
		t.set("manifests", newRendered(r))
		t.set("render", raw("true"))
		targets.set(strconv.Quote(p.newName("at")), t)
	}
	body.set("deploymentTargets", targets)
	return p.entity(r, "", "workloads", p.newName("drawn"), body)
}

// newRendered are manifests of a pinned source.
func newRendered(r *rand.Rand) *value {
	switch r.IntN(7) {
	case 0, 1:
		h := obj("repo", "https://charts.example.com", "chart", "plain", "version", "1.x")
		if chance(r, 70) {
			h.set("values", obj("replicas", 1+r.IntN(5)))
		}
		if chance(r, 70) {
			h.set("platformValues", str(pick(r, "platform", "global.platform")))
		}
		return obj("helm", h)
	case 2:
		return obj("helm", obj("oci", "oci://registry.example.com/charts/asking", "version", "2.0.0"))
	case 3:
		return obj("git", obj("repo", "https://git.example.com/rendered", "branch", "main", "path", "./deploy"))
	case 4:
		return obj("oci", obj("url", "oci://registry.example.com/rendered", "tag", "live", "path", "./overlay"))
	default:
		k := obj("git", obj("repo", "https://git.example.com/rendered", "branch", "main"), "path",
			pick(r, "./overlay", "./deploy"))
		if chance(r, 50) {
			k.set("images", arr(obj("name", "registry.example.com/server", "newTag", fmt.Sprintf("v%d", r.IntN(9)))))
		}
		if chance(r, 30) {
			k.set("namePrefix", str("blue-"))
		}
		return obj("kustomize", k)
	}
}

// drawn returns a random deployment target of a workload that is rendered.
func (p *Platform) drawn(r *rand.Rand) (e *entity, f field, ok bool) {
	for range 8 {
		if e, f, ok = p.target(r); ok && f.value.get("render") != nil {
			return e, f, true
		}
	}
	return nil, field{}, false
}

// The edits below change rendered or registered workloads.

// changePin pins another revision of a source.
func changePin(p *Platform, r *rand.Rand) string {
	i := r.IntN(len(p.pinned))
	s := &p.pinned[i]
	was := s.revision
	if s.revision = r.IntN(4); s.revision == was {
		return ""
	}
	return fmt.Sprintf("pin revision %d of %s", s.revision, s.source)
}

// changeChart changes a value of a chart, of all targets of a workload or of one.
func changeChart(p *Platform, r *rand.Rand) string {
	e, f, ok := p.drawn(r)
	if !ok {
		return ""
	}
	if defaults := e.body.get("manifests", "helm", "defaults"); defaults != nil && chance(r, 40) {
		defaults.set("replicas", raw("%d", 1+r.IntN(9)))
		return "default replicas of " + e.title() + " is " + defaults.get("replicas").text
	}
	switch h, k := f.value.get("manifests", "helm"), f.value.get("manifests", "kustomize"); {
	case h != nil && chance(r, 30):
		h.set("platformValues", str(pick(r, "platform", "global.platform")))
	case h != nil:
		h.set("values", obj("replicas", 1+r.IntN(9)))
	case k != nil:
		k.set("images", arr(obj("name", "registry.example.com/server", "newTag", fmt.Sprintf("v%d", r.IntN(9)))))
	default:
		return ""
	}
	return "manifests of " + e.title() + " " + f.label + " are " + valueText(f.value.get("manifests"))
}

// changeRender renders a target of a pinned source, or no longer.
func changeRender(p *Platform, r *rand.Rand) string {
	e, f, ok := p.drawn(r)
	if !ok {
		return ""
	}
	was := f.value.get("render").text
	f.value.set("render", raw("%t", was == "false"))
	return "render of " + e.title() + " " + f.label + " is no longer " + was
}

// changeCapabilities changes the capabilities of a type's clusters, which charts read.
func changeCapabilities(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, "clusterTypes")
	if !ok {
		return ""
	}
	switch r.IntN(4) {
	case 0:
		e.body.set("apiVersions", arr("monitoring.example.com/v1", fmt.Sprintf("more.example.com/v%d", r.IntN(3))))
	case 1:
		e.body.drop("apiVersions")
	default:
		e.body.set("kubernetesVersion", str(pick(r, kubernetesVersions...)))
	}
	return "capabilities of " + valueText(e.body)
}

// changeCluster changes the values of one cluster.
func changeCluster(p *Platform, r *rand.Rand) string {
	e, ok := p.oneOf(r, "clusters")
	if !ok {
		return ""
	}
	if e.body.get("values") != nil && chance(r, 20) {
		e.body.drop("values")
	} else {
		e.body.set("values", obj("SITE", fmt.Sprintf("site-%d", r.IntN(9))))
	}
	return e.title() + " is " + valueText(e.body)
}

// harmSource removes a source, or makes it unusable.
func harmSource(p *Platform, r *rand.Rand) (breakage, bool) {
	i := r.IntN(len(p.pinned) - 1)
	h := pick(r, broken, broken, unlocked, absent, absent)
	what := map[harm]string{broken: "broken content", unlocked: "no entry in the lock", absent: "no content"}[h]
	return breakage{what: what + " of " + p.pinned[i].source.String(), harm: h, pinned: i}, true
}
