package export

import (
	"fmt"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Configs exports the configs, invalid ones included: the assignments that such a one
// matches fail.
func (x *Exporter) Configs() []model.Config {
	return entities(x, "configs", func(v cue.Value, ref model.Ref) (model.Config, bool) {
		c := model.Config{Name: ref.Name, MatchUnknown: true}
		c.Invalid = x.matching(v, ref, &c.Match, &c.MatchUnknown, &c.Clusters, func() { x.configValues(v, ref, &c) })
		return c, true
	})
}

// configSchemas exports the config schemas, invalid ones included.
func (x *Exporter) configSchemas() []model.ConfigSchema {
	return entities(x, "configSchemas", func(v cue.Value, ref model.Ref) (model.ConfigSchema, bool) {
		s := model.ConfigSchema{Name: ref.Name, MatchUnknown: true}
		s.Invalid = x.matching(v, ref, &s.Match, &s.MatchUnknown, &s.Clusters, func() { x.configSchema(v, ref, &s) })
		return s, true
	})
}

// matching compiles the match of an entity, and its clusters, unless that is nil, and then,
// while the entity is valid, exports the rest of it. It returns whether the entity is
// invalid. Clusters that cannot be read are all.
func (x *Exporter) matching(v cue.Value, ref model.Ref, match *model.Selector, unknown *bool,
	clusters **model.Selector, rest func()) bool {
	x.Guard(ref.At("match"), func() { *match, *unknown = x.match(v, ref) })
	if clusters != nil {
		x.Guard(ref.At("clusters"), func() {
			if of, ok := x.selectors.clusters(v, ref); ok {
				*clusters = of
			}
		})
	}
	if !x.Invalid[ref] {
		x.Guard(ref, rest)
	}
	return x.Invalid[ref]
}

// match compiles a match. It is unknown where it cannot be read, and where something breaks
// the name of the entity, which nobody writes: that is a field meant for something else,
// such as a pattern that is one level too high, and then in match as well.
func (x *Exporter) match(v cue.Value, ref model.Ref) (s model.Selector, unknown bool) {
	m := cuevalue.Field(v, "match")
	if !m.Exists() {
		return model.Selector{Op: model.OpAll}, true
	}
	if cuevalue.Explicit(m) {
		x.note(m, ref.At("match"))
		x.Fail(ref.At("match"), diag.New(diag.BadSelector, "match cannot use #assignment").
			Hinting("match compares the assignment's facts by their names: region: \"east\""))
		return model.Selector{Op: model.OpNone}, true
	}
	s, ok := x.selectors.selector(m, ref.At("match"), false)
	return s, !ok || x.ReportedAt(ref.At("name"))
}

func (x *Exporter) configValues(v cue.Value, ref model.Ref, c *model.Config) {
	data, ok := x.read.entity(v, ref, append([]string{"match", "clusters"}, valueFields...)...)
	if !ok {
		return
	}
	decode(data, c)
	for i, path := range c.Plain {
		p, ok := model.ParsePath(path)
		if !ok {
			x.Fail(ref.At(fmt.Sprintf("plain[%d]", i)), badPath(path))
		}
		c.Plain[i] = p
	}
	dependent := []cue.Value{cuevalue.Field(v, "values"), cuevalue.Field(v, "defaults"), cuevalue.Field(v, "overrides")}
	if cuevalue.IsUnknown(v) {
		dependent = append(dependent, v)
	}
	if x.usesFact(ref, "values", "the values of a config are what makes them", dependent...) ||
		x.usesFact(ref, "rendered", "the values of a config are what charts render with", dependent...) {
		return
	}
	if c.Facts = factsOf(v, dependent...); c.Facts != nil {
		for _, name := range valueFields {
			if f := cuevalue.Field(v, name); f.Exists() {
				x.noteAll(f, ref.At(name))
			}
		}
		return
	}
	c.Values, c.Defaults, c.Overrides = x.trees.trees(v, ref)
}

func (x *Exporter) configSchema(v cue.Value, ref model.Ref, s *model.ConfigSchema) {
	data, ok := x.read.entity(v, ref, "match", "clusters", "schema")
	if !ok {
		return
	}
	var said struct {
		Enforce    string `json:"enforce"`
		AllowEmpty bool   `json:"allowEmpty"`
	}
	decode(data, &said)
	s.AllowEmpty = said.AllowEmpty
	if lists, ok := data.Lookup("lists"); ok {
		s.Lists = x.strategies(lists, ref.At("lists"))
	}
	if schema := cuevalue.Field(v, "schema"); schema.Exists() {
		s.Schema = x.contracts.contract(schema, ref.At("schema"), said.Enforce)
	}
}

func (x *Exporter) strategies(lists model.Value, ref model.Ref) map[string]model.ListStrategy {
	out := map[string]model.ListStrategy{}
	for _, f := range lists.Fields() {
		path, ok := model.ParsePath(f.Name)
		if !ok {
			x.Fail(ref.At(model.Label(f.Name)), badPath(f.Name))
			continue
		}
		var s model.ListStrategy
		switch by, isMerge := f.Value.Lookup("mergeBy"); {
		case isMerge:
			s.MergeBy = by.Text()
		default:
			s.Append, s.Unique = f.Value.Text() == "append", f.Value.Text() == "unique"
		}
		out[path] = s
	}
	return out
}

func badPath(path string) diag.Diagnostic {
	return diag.New(diag.BadPath, "the path "+string(model.AppendJSONString(nil, path))+" cannot be read").
		Hinting(`write names with dots between them, and quote a name with a dot in it: module."reject.tags"`)
}
