package generate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A level is a set of configs that match different values of the same labels: of each
// level at most one config matches an assignment. A level has a layer, and a topic
// whose keys no other level sets. So configs cannot contradict each other, except the
// keys that all levels share; see defaultKey.
type level struct {
	topic  string
	labels []string // the labels that its configs match; without any, they match all assignments
	layer  int
}

var topics = []string{"network", "storage", "logging", "database", "messaging", "metrics", "cache", "search", "proxy",
	"registry", "backup", "tracing", "gateway", "archive", "scheduler", "printing"}

// sharedLabels are the labels that levels match, coarse to fine. Assignments
// that agree in all of them have the same configuration.
var sharedLabels = [][]string{{"region"}, {"class"}, {"product"}, {"class", "region"},
	{"class", "product"}, {"product", "region"}}

// defaultKey is a key that the base level gives a default, which higher levels
// replace by defaults of theirs; one level may set it for good.
type defaultKey struct {
	name    string
	typ     string // as a contract writes it
	options []any
	final   int // the level that may set it for good
}

// newConfigs makes the configs of all levels for the assignments, and returns
// them with the keys that every assignment has.
func newConfigs(draw *rand.Rand, s Size, pairs []pair) ([]entry, []defaultKey) {
	levels, instances := newLevels(s, pairs)
	keys := newDefaultKeys(len(levels))
	var out []entry
	for l, level := range levels {
		for _, values := range instances[l] {
			out = append(out, newConfig(draw, s, l, level, values, keys))
		}
	}
	return out, keys
}

// newLevels chooses the levels, so that they have s.Configs configs together, and
// returns with each level the label values of its configs. One config is already
// in platform.cue.
func newLevels(s Size, pairs []pair) (levels []level, instances [][][]string) {
	left := s.Configs - 1
	add := func(labels []string, values [][]string) {
		topic := topics[len(levels)%len(topics)]
		if round := len(levels) / len(topics); round > 0 {
			topic = fmt.Sprintf("%s%d", topic, round+1)
		}
		levels = append(levels, level{topic, labels, 10 * len(levels)})
		instances = append(instances, values)
		left -= len(values)
	}
	add(nil, [][]string{nil})

	var own [][]string
	if s.DistinctTuples {
		own = [][]string{{"clusterType"}, {"deploymentTarget"}}
		for _, l := range own {
			left -= len(distinct(pairs, l))
		}
	}
	candidates := make([][][]string, len(sharedLabels))
	for i, l := range sharedLabels {
		candidates[i] = distinct(pairs, l)
	}
	// Every assignment has a region, a class and a product.
	for i := range 3 {
		add(sharedLabels[i], candidates[i])
	}
	for last := -1; left > 0; {
		last = choose(candidates, left/max(1, s.Overlap-len(levels)-len(own)), last)
		add(sharedLabels[last], candidates[last][:min(left, len(candidates[last]))])
	}
	for _, l := range own {
		values := distinct(pairs, l)
		left += len(values)
		add(l, values)
	}
	return levels, instances
}

// choose is the index of the finest candidate of at most share values, or else of
// the coarsest, but not the last one again.
func choose(candidates [][][]string, share, last int) int {
	best, size := -1, func(i int) int { return len(candidates[i]) }
	for i := range candidates {
		switch {
		case i == last:
		case best < 0,
			size(i) <= share && (size(best) > share || size(i) > size(best)),
			size(best) > share && size(i) < size(best):
			best = i
		}
	}
	return best
}

// distinct are the values that the assignments have for some labels, sorted.
func distinct(pairs []pair, names []string) [][]string {
	seen := map[string][]string{}
	for _, p := range pairs {
		values := make([]string, len(names))
		for i, name := range names {
			values[i] = p.label(name)
		}
		seen[strings.Join(values, " ")] = values
	}
	out := make([][]string, 0, len(seen))
	for _, values := range seen {
		out = append(out, values)
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

// label is a label of either side.
func (p pair) label(name string) string {
	if v, ok := p.clusterType.labels[name]; ok {
		return v
	}
	return p.target.labels[name]
}

func newDefaultKeys(levels int) []defaultKey {
	keys := []defaultKey{
		{name: "LOG_LEVEL", typ: `"debug" | "info" | "warn" | "error"`, options: []any{"info", "debug", "warn", "error"}},
		{name: "TIMEOUT_SECONDS", typ: `int & >0`, options: []any{30, 60, 5, 300}},
		{name: "SAMPLE_RATE", typ: `number & >=0 & <=1`, options: []any{0.1, 0.01, 0.5, 0.25}},
		{name: "TRACING", typ: `bool`, options: []any{false, true}},
		{name: "API_VERSION", typ: `string`, options: []any{"1.10", "yes", "2024-01-31", "0x1F", "on"}},
		{name: "TIMEZONE", typ: `string`, options: []any{"UTC", "Europe/Berlin", "America/New_York"}},
		{name: "CA_BUNDLES", typ: `[...string]`, options: []any{[]string{"root"}, []string{"root", "site"}, []string{}}},
		{name: "MAX_CONNECTIONS", typ: `int & >=10 & <=1000`, options: []any{100, 250, 500, 1000}},
	}
	for i := range keys {
		keys[i].final = 1 + i*3%max(1, levels-1)
	}
	return keys
}

func newConfig(draw *rand.Rand, s Size, l int, level level, values []string, keys []defaultKey) entry {
	id := strings.Join(values, "-")
	e := entry{name: strings.Trim(level.topic+"-"+id, "-")}
	match := map[string]string{}
	for i, name := range level.labels {
		match[name] = values[i]
	}
	e.line("match", match)
	e.line("layer", level.layer)

	topic := strings.ToUpper(level.topic)
	set := map[string]any{
		topic + "_URL": fmt.Sprintf("https://%s.%s.example.com:%d", level.topic,
			strings.Join(append(values, "svc"), "."), 1024+draw.IntN(60000)),
		topic + "_ENABLED": draw.IntN(2) == 0,
		topic + "_WEIGHT":  draw.IntN(1000),
	}
	// Facts that all levels of a label agree upon.
	for i, name := range level.labels {
		set[strings.ToUpper(name)] = values[i]
	}
	if draw.Float64() < s.StructuredShare {
		addStructures(draw, set, level.topic, id)
	}
	if defaults := addDefaults(draw, l, set, keys); len(defaults) > 0 {
		e.line("defaults", defaults)
	}
	e.line("values", set)
	if l == 0 {
		// A default with a constraint, which is not data.
		e.line("values: MAX_CONNECTIONS", expr("int & >=10 & <=1000 & (*100 | _)"))
	}
	return e
}

// addStructures adds structs that unify with structs of other levels, lists that compose by a
// strategy, and a list of only this level.
func addStructures(draw *rand.Rand, set map[string]any, topic, id string) {
	set["services"] = map[string]any{topic: map[string]any{
		"endpoint": map[string]any{"host": fmt.Sprintf("%s.%s.internal", topic, id),
			"port": 1024 + draw.IntN(60000), "tls": true},
		"pools": []any{map[string]any{"name": "read", "size": 1 + draw.IntN(32)},
			map[string]any{"name": "write", "size": 1 + draw.IntN(8)}},
		"windows": []int{draw.IntN(12), 12 + draw.IntN(12)},
	}}
	set["startup"] = []string{"check-" + topic}
	set["tags"] = []string{"generated", topic}
	set["sinks"] = []any{map[string]any{"name": "audit", topic: true},
		map[string]any{"name": topic, "url": "tcp://" + topic + ".internal:514"}}
}

// addDefaults returns the defaults of a config, all keys for the base level and
// some for others, and sets some keys for good in the level that may.
func addDefaults(draw *rand.Rand, l int, set map[string]any, keys []defaultKey) map[string]any {
	out := map[string]any{}
	for _, k := range keys {
		option := k.options[draw.IntN(len(k.options))]
		switch {
		case k.name == "MAX_CONNECTIONS":
			if l == k.final {
				set[k.name] = option
			}
		case l == 0:
			out[k.name] = k.options[0]
		case l == k.final && draw.IntN(2) == 0:
			set[k.name] = option
		case draw.IntN(4) == 0:
			out[k.name] = option
		}
	}
	return out
}

// contract is a contract on some of the keys.
func contract(draw *rand.Rand, keys []defaultKey) expr {
	var fields []string
	for _, k := range keys {
		if draw.IntN(2) == 0 {
			fields = append(fields, fmt.Sprintf("%s!: %s", k.name, k.typ))
		}
	}
	fields = append(fields, "REGION: string", "RETRIES: *3 | int", "services?: {...}")
	return expr("{" + strings.Join(fields, ", ") + "}")
}

// schemaEntries are the platform's own contracts: the strategies of lists for
// all, then a contract for each of some products.
func schemaEntries(s Size, pairs []pair, keys []defaultKey) []entry {
	lists := entry{name: "lists"}
	lists.line("match", map[string]string{})
	lists.line("lists", expr(`{startup: "append", tags: "unique", sinks: mergeBy: "name"}`))
	out := []entry{lists}
	products := distinct(pairs, []string{"product"})
	for i := 1; i < s.ConfigSchemas && i <= len(products); i++ {
		product := products[i-1][0]
		k := keys[i%len(keys)]
		e := entry{name: product}
		e.line("match", map[string]string{"product": product})
		e.line("schema", expr(fmt.Sprintf("{%s: %s, WHEREABOUTS!: =~\"^dev/\"}", k.name, k.typ)))
		out = append(out, e)
	}
	return out
}
