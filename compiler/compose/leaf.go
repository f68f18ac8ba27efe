package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// leaf composes a path at which every part is a leaf.
func (m *merger) leaf(path string, parts, replaced []*node) (model.Value, bool) {
	if rule, listed := m.lists[path]; listed {
		m.graph.lists = append(m.graph.lists, path)
		if !givesNull(parts) {
			return m.list(path, rule, parts, replaced)
		}
	}
	finals := only(parts, func(p *node) bool { return isFinal(p) && !isDefault(p) })
	opens := only(parts, isOpen)
	if len(finals) > 0 {
		return m.final(path, finals, opens, append(slices.Clip(replaced),
			only(parts, func(p *node) bool { return isFinal(p) && isDefault(p) })...))
	}
	if candidates := only(parts, hasDefault); len(candidates) > 0 {
		return m.defaulted(path, candidates, opens, replaced)
	}
	r := m.ask(expr.Call{Terms: terms(opens)})
	if len(r.Problems) > 0 {
		if !m.unanswered(path, r, opens) {
			m.noValue(path, opens, r.Problems[0])
		}
		return model.Value{}, false
	}
	m.addAll(path, r.Value, opens, replaced)
	return r.Value, true
}

// unanswered reports that CUE would need too much time or memory to evaluate the parts of a path.
func (m *merger) unanswered(path string, r expr.Result, parts []*node) bool {
	if len(r.Problems) == 0 || !r.Problems[0].Unbounded {
		return false
	}
	m.fail(sites(unbounded(path, "what configs say of "+path, r.Problems[0]), parts))
	return true
}

// unbounded returns the diagnostic for an evaluation that would take too much time or memory.
func unbounded(path, what string, p expr.Problem) diag.Diagnostic {
	return diag.New(diag.Unbounded, what+" cannot be evaluated: "+p.Message).On(path).
		Hinting("write it so that it does less for these values")
}

// noValue reports constraints that leave a value open, or exclude each other.
func (m *merger) noValue(path string, opens []*node, p expr.Problem) {
	if !p.Missing && len(opens) > 1 {
		d := diag.New(diag.ConflictingValues, "conflicting constraints on "+path).On(path).
			Hinting("no value satisfies all of them: loosen one")
		m.fail(sites(d, opens))
		return
	}
	d := diag.New(diag.NoValue, "no config gives "+model.JoinPath(path, p.Path)+" a value").On(path).
		Hinting("give it a value, or a default with *…|…, in a config that matches")
	m.fail(sites(d, opens))
}

// final composes final values: all must unify, and satisfy every constraint.
func (m *merger) final(path string, finals, opens, replaced []*node) (model.Value, bool) {
	v, at, ok := united(finals, func(n *node) model.Value { return n.tree.Final })
	if !ok {
		m.conflict(path, at, finals)
		return v, false
	}
	if isOverride(finals[0]) {
		m.overridden(path, finals, append(slices.Clip(replaced), opens...))
		m.add(path, v, finals, append(slices.Clip(replaced), opens...))
		return v, true
	}
	if v, ok = m.satisfies(path, v, finals, opens); !ok {
		return v, false
	}
	m.add(path, v, finals, append(slices.Clip(replaced), only(opens, hasDefault)...))
	return v, true
}

// satisfies checks a value against the constraints of other configs, and adds the fields that they
// fill in below it. Its numbers keep their texts.
func (m *merger) satisfies(path string, v model.Value, from, opens []*node) (model.Value, bool) {
	if len(opens) == 0 {
		return v, true
	}
	r := m.ask(expr.Call{Terms: terms(opens), Value: &v})
	if len(r.Problems) == 0 {
		v, _, _ = unify(r.Value, v, fromSecond) // v is in the answer
		return v, true
	}
	if m.unanswered(path, r, opens) {
		return v, false
	}
	against, hint := m.conflictingParts(v, opens)
	d := diag.New(diag.ConflictingValues,
		fmt.Sprintf("conflicting values for %s: %s is not allowed", path, shown(path, v))).On(path).
		Hinting(hint)
	m.fail(sites(sites(d, from), against))
	return v, false
}

// conflictingParts returns the parts whose constraints a value breaks, with a hint. It returns all
// parts if only their combination excludes the value.
func (m *merger) conflictingParts(v model.Value, opens []*node) (against []*node, hint string) {
	hint = "change the value, or loosen the constraint"
	for _, p := range opens {
		if r := m.ask(expr.Call{Terms: terms([]*node{p}), Value: &v}); len(r.Problems) > 0 {
			against = append(against, p)
			hint = loosen(r.Problems[0])
		}
	}
	if len(against) == 0 {
		against = opens
	}
	return against, hint
}

// loosen returns a hint for a value that a constraint forbids.
func loosen(p expr.Problem) string {
	if len(p.Allowed) > 0 {
		return "allowed: " + strings.Join(p.Allowed, ", ")
	}
	return "change the value, or loosen the constraint"
}

// defaulted composes a path that has only defaults: the default of the highest layer applies.
func (m *merger) defaulted(path string, candidates, opens, replaced []*node) (model.Value, bool) {
	highest := inLayer(top(candidates))
	high, rest := only(candidates, highest), only(candidates, not(highest))
	v := defaultOf(high[0])
	for _, p := range high[1:] {
		if !defaultOf(p).Equal(v) {
			d := diag.New(diag.ConflictingDefaults, "conflicting defaults for "+path).On(path).
				Hinting("give one of the configs a higher layer, or the key a value")
			m.fail(sites(d, high))
			return v, false
		}
	}
	holds := func(p *node) bool { return hasDefault(p) && highest(p) }
	others := only(opens, not(holds))
	if v.Kind() == model.Null { // null removes the path, and the constraints of its value
		others = only(others, func(p *node) bool { return !m.yields(p, high[0].root.layer) })
	}
	if len(others) > 0 || len(high) > 1 && len(opens) > 0 { // a single default satisfies itself
		if r := m.ask(
			expr.Call{Terms: append(
				distinct(others, func(p *node) model.Expr { return p.tree.Open.Constraint }),
				terms(high)...)}); len(r.Problems) > 0 || !r.Value.Same(v) {
			if m.unanswered(path, r, opens) {
				return v, false
			}
			against, hint := m.conflictingParts(v, others)
			d := diag.New(diag.NoValue,
				fmt.Sprintf("no config gives %s a value: its default %s is not allowed", path,
					shown(path, v))).On(path).
				Hinting(strings.Replace(hint, "change the value", "give it a value, change the default", 1))
			m.fail(sites(sites(d, high), against))
			return v, false
		}
	}
	m.addAll(path, v, high, append(slices.Clip(replaced), rest...))
	return v, true
}

// unit composes a path at which structs meet a leaf that CUE must evaluate, such as a struct with
// optional fields: CUE unifies all of it at once.
func (m *merger) unit(path string, parts, replaced []*node) (model.Value, bool) {
	r := m.ask(expr.Call{Terms: terms(parts)})
	if m.unanswered(path, r, parts) {
		return model.Value{}, false
	}
	if len(r.Problems) > 0 {
		problem := r.Problems[0]
		at := model.JoinPath(path, problem.Path)
		d := diag.New(diag.ConflictingValues,
			fmt.Sprintf("conflicting values for %s: %s", at, problem.Message)).Hinting(loosen(problem))
		if problem.Missing {
			d = diag.New(diag.NoValue, "no config gives "+at+" a value").Hinting("give it a value, or a " +
				"default with *…|…, in a config that matches")
		}
		m.fail(sites(d.On(at), parts))
		return model.Value{}, false
	}
	m.addAll(path, r.Value, parts, replaced)
	return r.Value, true
}

// addAll adds the leaves of a value that CUE made from parts. The origins of a leaf are the parts
// that set a value at its path, or else the open parts.
func (m *merger) addAll(path string, v model.Value, parts, replaced []*node) {
	if v.Kind() != model.Struct || len(v.Fields()) == 0 {
		from := only(parts, isFinal)
		if len(from) == 0 {
			from = only(parts, not(isStruct))
		}
		if len(from) == 0 {
			from = parts
		}
		m.add(path, v, from, replaced)
		return
	}
	for _, f := range v.Fields() {
		var below []*node
		for _, p := range parts {
			if !isStruct(p) {
				below = append(below, p)
				continue
			}
			if i := indexOf(p.fields, f.Name); i >= 0 {
				below = append(below, &p.fields[i])
			}
		}
		m.addAll(model.JoinPath(path, model.Label(f.Name)), f.Value, below, replaced)
	}
}

// terms returns parts as CUE, with their defaults, each text once.
func terms(parts []*node) []model.Expr { return distinct(parts, term) }

// distinct returns the output of a function for the parts, each text once.
func distinct(parts []*node, write func(*node) model.Expr) []model.Expr {
	var out []model.Expr
	seen := map[model.Expr]bool{}
	for _, p := range parts {
		if t := write(p); !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

// term returns a part as CUE.
func term(p *node) model.Expr {
	switch {
	case isOpened(p):
		return model.Expr("(" + p.opened.Text + ")")
	case isOpen(p):
		return p.open.term
	}
	var b strings.Builder
	writeTree(&b, p.tree, isDefault(p))
	return model.Expr(b.String())
}

// writeTree writes a tree as CUE; with open, each final leaf is a default.
func writeTree(b *strings.Builder, t *model.Tree, open bool) {
	switch t.Kind {
	case model.StructTree:
		b.WriteString("{")
		for i := range t.Fields {
			b.Write(model.AppendJSONString(nil, t.Fields[i].Name))
			b.WriteString(": ")
			writeTree(b, &t.Fields[i].Tree, open)
			b.WriteString("\n")
		}
		b.WriteString("}")
	case model.OpenLeaf:
		b.WriteString("(" + t.Open.Text + ")")
	case model.FinalLeaf:
		text := expr.Text(t.Final)
		if open {
			text = "(*" + text + " | _)"
		}
		b.WriteString(text)
	}
}

// conflict reports values that do not unify, and differ at a path below. In one layer no value has
// priority; with several layers, only a default could have been replaced.
func (m *merger) conflict(path, at string, parts []*node) {
	a, b := differing(parts)
	where := model.JoinPath(path, at)
	lower, higher := a.root, b.root
	var d diag.Diagnostic
	switch {
	case sameNumbers(a, b):
		d = diag.New(diag.ConflictingValues, "conflicting values for "+where+": one number in two texts").
			Hinting("applications get a number as it is written: write it in one way")
	case isOverride(a):
		d = diag.New(diag.ConflictingOverrides, "conflicting overrides for "+where).
			Hinting("remove one of the overrides, or give its config a higher layer")
	case isStruct(a) != isStruct(b) && !takesAway(a) && !takesAway(b):
		d = diag.New(diag.ConflictingValues,
			"conflicting values for "+where+": a struct and a single value").
			Hinting("a key is a struct in all configs or in none: rename one of the two")
	case lower.layer == higher.layer:
		d = diag.New(diag.ConflictingValues, "conflicting values for "+where).
			Hinting(fmt.Sprintf("if %s may override %s, move %s of %s from values to defaults", higher.name,
				lower.name, path, lower.name))
		d.Suggestion.ToDefaults = lower.value(path)
		if a.tree.Final.Kind() == model.List && b.tree.Final.Kind() == model.List {
			d = d.Hinting(fmt.Sprintf("lists unify element by element: give %s a list strategy in a "+
				"config schema, or move it from values to defaults in one of the configs", path))
		}
	default:
		d = diag.New(diag.FinalValue, "the final value of "+where+" is contradicted by a higher layer").
			Hinting(fmt.Sprintf("to open it, move %s of %s from values to defaults", path, lower.name))
		if takesAway(b) {
			d = d.Hinting(fmt.Sprintf("%s, or write null under overrides of %s: under values it takes "+
				"away defaults only", d.Hint, higher.name))
		}
		d.Suggestion.ToDefaults = lower.value(path)
	}
	m.fail(sites(d.On(path), parts))
}

// differing returns the first two parts that do not unify, from one layer if there are such parts.
func differing(parts []*node) (a, b *node) {
	found := false
	for i, p := range parts {
		for _, q := range parts[i+1:] {
			if isStruct(p) == isStruct(q) {
				if isStruct(p) {
					continue
				}
				as := fromSecond
				if p.root.layer == q.root.layer {
					as = inLayerAlike
				}
				if _, _, ok := unify(p.tree.Final, q.tree.Final, as); ok {
					continue
				}
			}
			if p.root.layer == q.root.layer {
				return p, q
			}
			if !found {
				a, b, found = p, q, true
			}
		}
	}
	return a, b
}

// sameNumbers reports whether two leaves differ only in the texts of numbers.
func sameNumbers(a, b *node) bool {
	if a.tree.Kind != model.FinalLeaf || b.tree.Kind != model.FinalLeaf {
		return false
	}
	_, _, ok := unify(a.tree.Final, b.tree.Final, fromSecond)
	return ok
}

// overridden warns of an override in use, and names the overruled parts.
func (m *merger) overridden(path string, overrides, overruled []*node) {
	d := diag.New(diag.Override,
		fmt.Sprintf("%s is overridden by config %s", path, overrides[0].root.name)).On(path).
		Hinting("overrides are for emergencies: remove it once the configs are right")
	m.graph.ds = append(m.graph.ds, sites(sites(d, overrides), overruled))
}

// sites adds each part to the places of a diagnostic.
func sites(d diag.Diagnostic, parts []*node) diag.Diagnostic {
	for _, p := range parts {
		d = origins(d, []Origin{p.origin(model.Value{})})
	}
	return d
}

// origins adds each origin to the places of a diagnostic.
func origins(d diag.Diagnostic, from []Origin) diag.Diagnostic {
	for _, o := range from {
		d = d.At(o.Ref, fmt.Sprintf("%s (%s)", short(o.Text), describe(o)))
	}
	return d
}

var (
	breaks  = lazyregexp.New(`\s*\n\s*`)
	opening = lazyregexp.New(`([{\[(]), `)
	closing = lazyregexp.New(`, ([}\])])`)
)

// oneLine returns an expression on one line, for people.
func oneLine(text string) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	text = breaks.ReplaceAllString(text, ", ")
	text = opening.ReplaceAllString(text, "$1")
	return closing.ReplaceAllString(text, "$1")
}

// short returns a text on one line, shortened if it is long.
func short(text string) string {
	const maxRunes = 100
	text = oneLine(text)
	if runes := []rune(text); len(runes) > maxRunes {
		text = string(runes[:maxRunes-1]) + "…"
	}
	return text
}
