package export

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func (x *Exporter) clusterType(v cue.Value, ref model.Ref) (c model.ClusterType, ok bool) {
	ok = x.read.decode(&c, v, ref, "clusters")
	x.checkLabels(c.Labels, ref.At("labels"))
	ok = x.checkImages(c.Images, ref.At("images")) && ok
	of, good := x.selectors.optional(v, ref, "clusters", true)
	if cuevalue.Field(v, "clusters").Exists() {
		c.Clusters = &of
	}
	return c, ok && good
}

func (x *Exporter) cluster(v cue.Value, ref model.Ref) (c model.Cluster, ok bool) {
	ok = x.read.decode(&c, v, ref)
	return c, ok
}

func (x *Exporter) inventory(v cue.Value, ref model.Ref) (i model.Inventory, ok bool) {
	ok = x.read.decode(&i, v, ref, "labels", "where")
	x.checkLabels(i.Columns.Labels, ref.At("columns.labels"))
	var labels, where bool
	i.Labels, labels = x.selectors.optional(v, ref, "labels", false)
	i.Where, where = x.selectors.optional(v, ref, "where", false)
	return i, ok && labels && where
}

func (x *Exporter) workspace(v cue.Value, ref model.Ref) (w model.Workspace, ok bool) {
	const clusterTypes = "clusterTypes"
	if cuevalue.Field(v, clusterTypes).IncompleteKind() != cue.StructKind {
		ok = x.read.decode(&w, v, ref)
		w.Complete()
		return w, ok
	}
	ok = x.read.decode(&w, v, ref, clusterTypes)
	w.Complete()
	of, selected := x.selectors.optional(v, ref, clusterTypes, true)
	w.SelectedTypes = &of
	return w, ok && selected
}

func (x *Exporter) schedulingPolicy(v cue.Value, ref model.Ref) (p model.SchedulingPolicy,
	ok bool) {
	if !x.read.decode(&p, v, ref, "deploymentTargets", "clusterTypes", "clusters", "except") {
		return p, false
	}
	var targets, types, clusters bool
	p.DeploymentTargets, targets = x.selectors.optional(v, ref, "deploymentTargets", true)
	p.ClusterTypes, types = x.selectors.optional(v, ref, "clusterTypes", true)
	p.Clusters, clusters = x.selectors.clusters(v, ref)
	ok = x.excepts(v, ref, &p) && targets && types && clusters
	return p, ok
}

// excepts compiles the pairs that a policy excludes: one struct, or a list of them.
func (x *Exporter) excepts(v cue.Value, ref model.Ref, p *model.SchedulingPolicy) bool {
	of := cuevalue.Field(v, "except")
	if !of.Exists() {
		return true
	}
	ok := true
	pair := func(v cue.Value, at model.Ref) {
		e := model.Except{Path: at.Path}
		var targets, types, clusters bool
		e.DeploymentTargets, targets = x.selectors.optional(v, at, "deploymentTargets", true)
		e.ClusterTypes, types = x.selectors.optional(v, at, "clusterTypes", true)
		e.Clusters, clusters = x.selectors.clusters(v, at)
		ok = ok && targets && types && clusters
		if e.DeploymentTargets.Op == model.OpAll && e.ClusterTypes.Op == model.OpAll &&
			e.Clusters == nil {
			x.Fail(at, diag.New(diag.ExceptNothing, at.Path+" leaves out every pair of policy "+p.Name).
				Hinting("give it a selector of deploymentTargets, clusterTypes or clusters, or remove the "+
					"policy"))
			ok = false
		}
		p.Except = append(p.Except, e)
	}
	if at := ref.At("except"); of.IncompleteKind() == cue.ListKind {
		before := len(x.Diagnostics)
		x.read.elements(v, ref, "except", pair)
		ok = ok && !diag.Errors(x.Diagnostics[before:])
	} else {
		x.note(of, at)
		pair(of, at)
	}
	return ok
}

// registration exports a registration. Package registration evaluates the registered files
// separately.
func (x *Exporter) registration(v cue.Value, ref model.Ref) (model.Registration, bool) {
	var r struct {
		model.Registration
		Provides []string `json:"provides"`
		Layers   struct {
			Min int `json:"min"`
			Max int `json:"max"`
		} `json:"layers"`
	}
	if !x.read.decode(&r, v, ref, "match") {
		return r.Registration, false
	}
	r.Workloads, r.Configs = slices.Contains(r.Provides, "workloads"),
		slices.Contains(r.Provides, "configs")
	r.MinLayer, r.MaxLayer = r.Layers.Min, r.Layers.Max
	var ok bool
	if r.Match, ok = x.selectors.optional(v, ref, "match", false); !ok {
		return r.Registration, false
	}
	switch {
	case r.Git.Verify != nil:
		x.Fail(ref.At("git.verify"),
			diag.New(diag.Unverifiable,
				"registrations are fetched by `kalypso lock`, which verifies no signatures").
				Hinting("remove verify; the lock file pins the commit that was reviewed"))
		return r.Registration, false
	case r.MaxLayer < r.MinLayer:
		x.Fail(ref.At("layers"), diag.New(diag.WrongValue,
			"the highest layer of registration "+ref.Name+" is below its lowest").
			Hinting("raise layers.max, or lower layers.min"))
		return r.Registration, false
	}
	return r.Registration, true
}

// Configs exports the configs, including invalid ones: the assignments that an invalid config
// matches fail.
func (x *Exporter) Configs() []model.Config {
	return entities(x, "configs", func(v cue.Value, ref model.Ref) (model.Config, bool) {
		c := model.Config{Name: ref.Name, MatchUnknown: true}
		c.Invalid = x.matching(v, ref, &c.Match, &c.MatchUnknown, &c.Clusters,
			func() { x.configValues(v, ref, &c) })
		return c, true
	})
}

// matching compiles the match of an entity and, if clusters is not nil, its clusters. If the
// entity is still valid, it exports the rest of it. It returns whether the entity is invalid.
// Unreadable clusters select all clusters.
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

// match compiles a match. unknown is true if match cannot be read, or if there is an error
// about the name of the entity. As users do not write that name, the error comes from a
// misplaced field, such as a pattern one level too high. Such a field also affects match.
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
	dependent := []cue.Value{cuevalue.Field(v, "values"), cuevalue.Field(v, "defaults"),
		cuevalue.Field(v, "overrides")}
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
	var fields struct {
		Enforce    string `json:"enforce"`
		AllowEmpty bool   `json:"allowEmpty"`
	}
	decode(data, &fields)
	s.AllowEmpty = fields.AllowEmpty
	if lists, ok := data.Lookup("lists"); ok {
		s.Lists = x.strategies(lists, ref.At("lists"))
	}
	if schema := cuevalue.Field(v, "schema"); schema.Exists() {
		s.Schema = x.contracts.contract(schema, ref.At("schema"), fields.Enforce)
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
	return diag.New(diag.BadPath,
		"the path "+string(model.AppendJSONString(nil, path))+" cannot be read").
		Hinting(`write names with dots between them, and quote a name with a dot in it: module."reject.tags"`)
}

func (x *Exporter) test(v cue.Value, ref model.Ref, t *model.Test) {
	var fields struct {
		Description string `json:"description"`
	}
	if !x.read.decode(&fields, v, ref, "match", "clusters", "values", "assignment", "count") {
		return
	}
	t.Description = fields.Description
	if of := cuevalue.Field(v, "values"); of.Exists() {
		t.Values = x.contracts.contract(of, ref.At("values"), "")
	}
	if of := cuevalue.Field(v, "assignment"); of.Exists() {
		t.Assignment = x.contracts.contract(of, ref.At("assignment"), "")
	}
	if of := cuevalue.Field(v, "count"); of.Exists() {
		t.Count = x.number(of, ref.At("count"))
	}
	if t.Values == nil && t.Assignment == nil && t.Count == nil && !x.Invalid[ref] {
		x.Fail(ref, diag.New(diag.Missing,
			"the test asks nothing").Hinting("give it values, assignment or count"))
	}
}

// number exports a constraint on a number, or a single number. It returns nil if the constraint
// cannot be used.
func (x *Exporter) number(v cue.Value, ref model.Ref) *model.Contract {
	x.note(v, ref)
	if v.Validate() != nil {
		return nil // check has reported it
	}
	if cuevalue.IsUnknown(v) {
		x.read.unknown(v, ref)
		return nil
	}
	_, text, err := cuevalue.SyntaxText(v)
	if err != nil {
		x.Fail(ref, diag.New(diag.BadContract, fmt.Sprintf("the constraint cannot be used: %v", err)))
		return nil
	}
	return &model.Contract{Ref: ref, Expr: model.Expr(text),
		Fields: []model.ContractField{{Text: x.contracts.asWritten(v)}}}
}
