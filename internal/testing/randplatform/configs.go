package randplatform

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// match is a selector over the facts of an assignment.
func (p *Platform) match(r *rand.Rand) *value {
	switch r.IntN(14) {
	case 0, 1, 12, 13:
		return obj()
	case 2:
		return obj("region", pick(r, regions...))
	case 3:
		return obj("size", pick(r, sizes...))
	case 4:
		return obj("region", raw(`=~"^%s"`, pick(r, "e", "[nw]")))
	case 5:
		return obj("edge?", raw("_|_"))
	case 6:
		return obj("workload", p.nameOf(r, "workloads"))
	case 7:
		return obj("environment", pick(r, p.environments...))
	case 8:
		if types := p.namedOf("clusterTypes"); len(types) > 0 {
			return obj("clusterType", pick(r, types...).name())
		}
		return obj("clusterType", "none")
	case 9:
		return obj("region", raw("!=%q", pick(r, regions...)), "tier", pick(r, tiers...))
	case 10:
		return raw(`{size: %q} | {purpose: %q}`, pick(r, sizes...), pick(r, purposes...))
	default:
		return obj("workspace", pick(r, teams...), "critical?", "true")
	}
}

// layers are the layers that configs are in. A default that several configs of one
// layer give is a function of the layer, so that they agree.
var layers = []int{0, 10, 20}

func layered(key string, layer int) *value {
	i := layer / 10
	switch key {
	case "LOG_LEVEL":
		return str([]string{"info", "debug", "warn"}[i])
	case "TIMEOUT":
		return raw("%d", 30+layer)
	default:
		return raw("%g", 0.25*float64(1+i))
	}
}

var layeredKeys = []string{"LOG_LEVEL", "TIMEOUT", "RATE"}

// addCommonConfigs adds the values of every assignment: the keys that contracts require, and an
// open leaf.
func (p *Platform) addCommonConfigs(r *rand.Rand) {
	p.entity(r, "", "configs", "common", obj("match", obj(),
		"defaults", obj("TIMEOUT", layered("TIMEOUT", 0), "RATE", layered("RATE", 0)),
		"values", obj("LOG_LEVEL", raw(`*"info" | string`), "POOL", raw("int & >=1 & <=100 & (*10 | _)"),
			"startup", arr("check"))))
	for _, region := range regions {
		p.entity(r, "", "configs", "in-"+region, obj("match", obj("region", region),
			"values", obj("REGION", strings.ToUpper(region), "services",
				obj("dns", obj("host", region+".example.com", "port", 53)))))
	}
}

// addConfig adds a config with values of its own, and more that all configs
// share.
func (p *Platform) addConfig(r *rand.Rand) *entity {
	name := p.newName(pick(r, "net", "log", "db", "cache"))
	scope := p.somewhere(r)
	layer := pick(r, layers...)
	body := obj("match", p.match(r))
	if layer != 0 {
		body.set("layer", raw("%d", layer))
	}
	if chance(r, 10) {
		body.set("layer", raw("_layer.l%d", layer))
	}
	own := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	values := obj()
	for range 1 + r.IntN(3) {
		p.addValue(r, body, values, own, name)
	}
	if chance(r, 30) {
		values.set("startup", arr("check-"+name))
	}
	if chance(r, 25) {
		values.set("tags", arr("all", name))
	}
	if chance(r, 20) {
		values.set("sinks", arr(obj("name", "audit", "on", raw("true")), obj("name", name, "port", 500+r.IntN(9))))
	}
	if chance(r, 30) {
		values.set("services", obj(`"`+name+`"`, obj("host", name+".example.com", "pools", arr(obj("size", 1+r.IntN(8))))))
	}
	body.set("values", values)
	if chance(r, 35) {
		defaults := obj()
		for _, key := range sample(r, 1, layeredKeys...) {
			defaults.set(key, layered(key, layer))
		}
		body.set("defaults", defaults)
	}
	if chance(r, 6) {
		body.set("overrides", obj("TIMEOUT", 1+r.IntN(3)))
	}
	e := p.entity(r, scope, "configs", name, body)
	if strings.Contains(valueText(body), "@embed") {
		e.scope, e.pinned = "", true
		e.file = p.file(r, "")
	}
	return e
}

// addValue adds a value under a key of the config's own. It adds to the body everything that the
// value needs in addition to the values.
func (p *Platform) addValue(r *rand.Rand, body, values *value, own, name string) {
	key := fmt.Sprintf("%s_%d", own, len(values.fields))
	assignment := func() { body.set("#assignment", raw("%s", pick(r, "schema.#Assignment", "_"))) }
	switch r.IntN(16) {
	case 0, 1, 2:
		values.set(key, str(pick(r, "yes", "1.10", "a b", "0x1F", "plain", "null")))
	case 3, 4:
		values.set(key, raw("%d", r.IntN(1000)))
	case 5:
		values.set(key, raw("%g", float64(r.IntN(100))/8))
	case 6:
		values.set(key, raw("%t", chance(r, 50)))
	case 7:
		values.set(key, pick(r, raw("null"), obj(), arr(), arr(1, 2, 3)))
	case 8:
		assignment()
		values.set(key, raw(`"\(#assignment.environment)/\(#assignment.%s)"`,
			pick(r, "clusterType", "workload", "deploymentTarget", "workspace", "namespace")))
	case 9:
		assignment()
		values.set(key, raw(`#assignment.labels.%s`, pick(r, "region", "size")))
	case 10:
		values.set(key, raw(`schema.#Secret & {store: "vault", key: %q, property: "password"}`, name))
	case 11:
		values.set(own+"_TOKEN", str("public"))
		if chance(r, 80) {
			body.set("plain", arr(own+"_TOKEN"))
		}
	case 12:
		values.set(key, raw("%s", pick(r, helperPackage+".Port", `"https://\(`+helperPackage+`.Domain)"`, "_names.short")))
	case 13:
		body.set("let machine", str("host-"+name))
		values.set(key, raw(`"\(machine).example.com"`))
	case 14:
		values.set(key, raw(`*"none" | string`))
	default:
		values.set(key, raw(`_ @embed(file="data/limits.json", type=json)`))
	}
}

func valueText(v *value) string {
	var b strings.Builder
	v.write(&b, compact, 0)
	return b.String()
}

func (p *Platform) addSchemas(r *rand.Rand) {
	p.entity(r, "", "configSchemas", "lists", obj("match", obj(), "lists",
		obj("startup", "append", "tags", "unique", "sinks", obj("mergeBy", "name"))))
	for range r.IntN(3) {
		p.addSchema(r)
	}
}

func (p *Platform) addSchema(r *rand.Rand) *entity {
	body := obj("match", p.match(r), "schema", pick(r,
		obj("LOG_LEVEL", raw("value.#LogLevel"), "RETRIES", raw("*3 | int")),
		obj("TIMEOUT", raw("int & >=%d", r.IntN(4))),
		obj("RATE", raw("number & >0 & <=1"), "REGION?", raw("string")),
		obj("services?", raw("{...}"), "POOL", raw("int & <=50")),
		raw(`_ @embed(file="contracts/values.schema.json", type=jsonschema)`)))
	if chance(r, 30) {
		body.set("enforce", str("advise"))
	}
	e := p.entity(r, "", "configSchemas", p.newName("schema"), body)
	e.pinned = strings.Contains(body.get("schema").text, "@embed")
	return e
}

// addLanguage adds the parts of CUE that are not in collections: hidden fields, definitions, a
// helper package, comprehensions and pattern constraints.
func (p *Platform) addLanguage(r *rand.Rand) {
	p.top(r, "", "_layer", obj("l0", 0, "l10", 10, "l20", 20))
	p.top(r, "", "_names", obj("short", "kal", "long", "kalypso"))
	p.top(r, "", "#Needs", obj("LOG_LEVEL", raw("string"), "TIMEOUT?", raw("int")))
	p.top(r, helperPackage, "Port", raw("8443"))
	p.top(r, helperPackage, "Domain", str("example.com"))
	p.top(r, helperPackage, "Regions", arr("east", "west"))
	p.top(r, "", "_flags", obj("extra", raw("%t", chance(r, 50))))
	p.add(&entity{collection: "configs", key: `"each-\(item)"`, file: p.file(r, ""), items: sample(r, 1, regions...),
		body: obj("match", obj("region", raw("item")), "values", obj("EACH", raw(`"in \(item)"`)))})
	if chance(r, 60) {
		p.top(r, "", "configs", raw(
			`{for place in %s.Regions {"far-\(place)": {match: {region: place, size: "large"}, layer: 10, values: FAR: place}}}`, helperPackage))
	}
	if chance(r, 50) {
		p.top(r, "", "configs", raw(`{if _flags.extra {extra: {match: {}, layer: 20, values: EXTRA: "on"}}}`))
	}
	if chance(r, 40) {
		p.add(&entity{collection: "configs", key: `[=~"^net-"]`, file: p.file(r, ""), body: obj("description", "A network.")})
	}
	if chance(r, 30) {
		p.add(&entity{collection: "workloads", key: `[string]`, file: p.file(r, ""),
			body: obj("labels", obj("made", "here"))})
	}
}
