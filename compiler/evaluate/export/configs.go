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
	var out []model.Config
	x.each("configs", func(v cue.Value, ref model.Ref) {
		c := model.Config{Name: ref.Name, MatchUnknown: true}
		self := ref.Entity()
		x.Guard(ref.At("match"), func() { c.Match, c.MatchUnknown = x.match(v, ref) })
		if !x.Invalid[self] {
			x.Guard(ref, func() { x.configValues(v, ref, &c) })
		}
		c.Invalid = x.Invalid[self]
		out = append(out, c)
	})
	return out
}

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
	data, ok := x.read.entity(v, ref, append([]string{"match"}, valueFields...)...)
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

func (x *Exporter) configSchemas() []model.ConfigSchema {
	var out []model.ConfigSchema
	x.each("configSchemas", func(v cue.Value, ref model.Ref) {
		s := model.ConfigSchema{Name: ref.Name, MatchUnknown: true}
		self := ref.Entity()
		x.Guard(ref.At("match"), func() { s.Match, s.MatchUnknown = x.match(v, ref) })
		if !x.Invalid[self] {
			x.Guard(ref, func() { x.configSchema(v, ref, &s) })
		}
		s.Invalid = x.Invalid[self]
		out = append(out, s)
	})
	return out
}

func (x *Exporter) configSchema(v cue.Value, ref model.Ref, s *model.ConfigSchema) {
	data, ok := x.read.entity(v, ref, "match", "schema")
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
