package evaluate

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// configs exports the configs, sick ones included: whom such a one concerns,
// its match says, and those assignments fail.
func (x *exporter) configs() []model.Config {
	var out []model.Config
	x.each("configs", func(v cue.Value, ref model.Ref) {
		c := model.Config{Name: ref.Name, MatchUnknown: true}
		self := ref.Entity()
		x.guard(ref.At("match"), func() { c.Match, c.MatchUnknown = x.match(v, ref) })
		if !x.invalid[self] {
			x.guard(ref, func() { x.configValues(v, ref, &c) })
		}
		c.Invalid = x.invalid[self]
		out = append(out, c)
	})
	return out
}

func (x *exporter) match(v cue.Value, ref model.Ref) (s model.Selector, unknown bool) {
	m := field(v, "match")
	if !m.Exists() {
		return model.Selector{Op: model.OpAll}, true
	}
	if explicit(m) {
		x.note(m, ref.At("match"))
		x.fail(ref.At("match"), diag.New(diag.BadSelector, "match cannot use #assignment").
			Hinting("match compares the assignment's facts by their names: region: \"east\""))
		return model.Selector{Op: model.OpNone}, true
	}
	s, ok := x.selectors.selector(m, ref.At("match"), false)
	return s, !ok || x.reportedAt(ref.At("name"))
}

// valueFields are the parts of a config that hold platform values.
var valueFields = []string{"values", "defaults", "overrides"}

func (x *exporter) configValues(v cue.Value, ref model.Ref, c *model.Config) {
	data, ok := x.read.entity(v, ref, append([]string{"match"}, valueFields...)...)
	if !ok {
		return
	}
	decode(data, c)
	for i, path := range c.Plain {
		p, ok := model.ParsePath(path)
		if !ok {
			x.fail(ref.At(fmt.Sprintf("plain[%d]", i)), badPath(path))
		}
		c.Plain[i] = p
	}
	dependent := []cue.Value{field(v, "values"), field(v, "defaults"), field(v, "overrides")}
	if isUnknown(v) {
		dependent = append(dependent, v)
	}
	if x.usesFact(ref, "values", "the values of a config are what makes them", dependent...) ||
		x.usesFact(ref, "rendered", "the values of a config are what charts render with", dependent...) {
		return
	}
	if c.Facts = factsOf(v, dependent...); c.Facts != nil {
		for _, name := range valueFields {
			if f := field(v, name); f.Exists() {
				x.noteAll(f, ref.At(name))
			}
		}
		return
	}
	c.Values, c.Defaults, c.Overrides = x.trees.trees(v, ref)
}

// trees exports the three parts of a config that hold values.
func (x *trees) trees(v cue.Value, ref model.Ref) (values, defaults, overrides model.Tree) {
	before := len(x.ds)
	for i, into := range []*model.Tree{&values, &defaults, &overrides} {
		f := field(v, valueFields[i])
		if !f.Exists() {
			continue
		}
		at := ref.At(valueFields[i])
		*into = x.tree(f, at)
		if valueFields[i] != "values" {
			x.finalOnly(*into, at)
		}
	}
	if len(x.ds) > before {
		return values, defaults, overrides
	}
	for i, t := range []model.Tree{values, defaults, overrides} {
		x.checkDependent(field(v, valueFields[i]), t, ref.At(valueFields[i]), valueFields[i] == "defaults")
	}
	return values, defaults, overrides
}

// finalOnly reports leaves under defaults and overrides that are no data: what
// they are for is a value.
func (x *trees) finalOnly(t model.Tree, ref model.Ref) {
	switch t.Kind {
	case model.StructTree:
		for _, f := range t.Fields {
			x.finalOnly(f.Tree, ref.At(model.Label(f.Name)))
		}
	case model.OpenLeaf:
		x.fail(ref, diag.New(diag.NotConcrete, ref.Path+" must be a value, and is "+t.Open.Text).
			Hinting("a constraint belongs under values"))
	}
}

func (x *exporter) configSchemas() []model.ConfigSchema {
	var out []model.ConfigSchema
	x.each("configSchemas", func(v cue.Value, ref model.Ref) {
		s := model.ConfigSchema{Name: ref.Name, MatchUnknown: true}
		self := ref.Entity()
		x.guard(ref.At("match"), func() { s.Match, s.MatchUnknown = x.match(v, ref) })
		if !x.invalid[self] {
			x.guard(ref, func() { x.configSchema(v, ref, &s) })
		}
		s.Invalid = x.invalid[self]
		out = append(out, s)
	})
	return out
}

func (x *exporter) configSchema(v cue.Value, ref model.Ref, s *model.ConfigSchema) {
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
	if schema := field(v, "schema"); schema.Exists() {
		s.Schema = x.contracts.contract(schema, ref.At("schema"), said.Enforce)
	}
}

func (x *exporter) strategies(lists model.Value, ref model.Ref) map[string]model.ListStrategy {
	out := map[string]model.ListStrategy{}
	for _, f := range lists.Fields() {
		path, ok := model.ParsePath(f.Name)
		if !ok {
			x.fail(ref.At(model.Label(f.Name)), badPath(f.Name))
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

// stages exports the environments.
func (x *exporter) stages() *Result {
	broken := x.collections.checkDefinite(func(path []string) bool { return len(path) == 1 && path[0] == "environments" })
	if x.collections.checkComprehensions("environments") || broken {
		return x.result(model.Environment{}, nil)
	}
	stages := []model.Stage{}
	x.each("environments", func(v cue.Value, ref model.Ref) {
		s := model.Stage{Name: ref.Name}
		if value, ok := x.read.entity(v, ref, "gates", "rings"); ok {
			decode(value, &s)
			s.Promotion = x.policies.promotion(v, value, ref)
		}
		stages = append(stages, s)
	})
	for _, ref := range x.found.all { // those that have errors are there as well
		if model.IsName(ref.Name) && !slices.ContainsFunc(stages, func(s model.Stage) bool { return s.Name == ref.Name }) {
			stages = append(stages, model.Stage{Name: ref.Name})
		}
	}
	slices.SortFunc(stages, func(a, b model.Stage) int { return strings.Compare(a.Name, b.Name) })
	return x.result(model.Environment{}, stages)
}
