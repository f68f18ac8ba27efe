package compose

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// leaf composes a path to which every part contributes a leaf.
func (m *merger) leaf(path string, parts, replaced []part) (model.Value, bool) {
	if rule, listed := m.lists[path]; listed {
		return m.list(path, rule, parts, replaced)
	}
	finals := only(parts, func(p part) bool { return isFinal(p) && !isDefault(p) })
	opens := only(parts, isOpen)
	if len(finals) > 0 {
		return m.final(path, finals, opens, append(replaced, only(parts, func(p part) bool { return isFinal(p) && isDefault(p) })...))
	}
	if candidates := only(parts, hasDefault); len(candidates) > 0 {
		return m.defaulted(path, candidates, opens, replaced)
	}
	r := m.eval.Eval([]expr.Call{{Terms: constraints(opens)}})[0]
	if len(r.Problems) > 0 {
		d := diag.New(diag.NoValue, "no config gives "+path+" a value: "+texts(opens)).On(path).
			Hinting("give it a value, or a default with *…|…, in a config that matches")
		m.fail(sites(d, opens))
		return model.Value{}, false
	}
	m.add(path, r.Value, opens, replaced)
	return r.Value, true
}

func hasDefault(p part) bool {
	return isDefault(p) && isFinal(p) || isOpen(p) && p.tree.Open.Default != nil
}

func defaultOf(p part) model.Value {
	if isOpen(p) {
		return *p.tree.Open.Default
	}
	return p.tree.Final
}

// final composes final values: all must unify, and satisfy every constraint.
func (m *merger) final(path string, finals, opens, replaced []part) (model.Value, bool) {
	v := finals[0].tree.Final
	for _, p := range finals[1:] {
		u, _, ok := unify(v, p.tree.Final)
		if !ok {
			m.conflict(path, finals)
			return v, false
		}
		v = u
	}
	if isOverride(finals[0]) {
		m.overridden(path, finals, append(replaced, opens...))
		m.add(path, v, finals, append(replaced, opens...))
		return v, true
	}
	if !m.satisfies(path, v, finals, opens) {
		return v, false
	}
	m.add(path, v, finals, append(replaced, only(opens, hasDefault)...))
	return v, true
}

func (m *merger) satisfies(path string, v model.Value, from, opens []part) bool {
	if len(opens) == 0 {
		return true
	}
	r := m.eval.Eval([]expr.Call{{Terms: constraints(opens), Value: &v}})[0]
	if len(r.Problems) == 0 {
		return true
	}
	d := diag.New(diag.ConflictingValues, fmt.Sprintf("%s of %s does not satisfy what other configs demand", v, path)).On(path).
		Hinting("change the value, or loosen the constraint")
	m.fail(sites(sites(d, from), opens))
	return false
}

// defaulted composes a path that has only defaults: the highest layer's holds.
func (m *merger) defaulted(path string, candidates, opens, replaced []part) (model.Value, bool) {
	high := only(candidates, inLayer(top(candidates)))
	v := defaultOf(high[0])
	for _, p := range high[1:] {
		if !defaultOf(p).Equal(v) {
			d := diag.New(diag.ConflictingDefaults, "conflicting defaults for "+path).On(path).
				Hinting("give one of the configs a higher layer, or the key a value")
			m.fail(sites(d, high))
			return v, false
		}
	}
	if r := m.eval.Eval([]expr.Call{{Terms: constraints(opens), Value: &v}}); len(opens) > 0 && len(r[0].Problems) > 0 {
		d := diag.New(diag.NoValue, fmt.Sprintf("no config gives %s a value: its default %s is not allowed by other configs", path, v)).On(path).
			Hinting("give it a value that satisfies them, or change the default")
		m.fail(sites(sites(d, high), only(opens, not(inLayer(top(candidates))))))
		return v, false
	}
	rest := only(candidates, not(inLayer(top(candidates))))
	m.add(path, v, high, append(replaced, rest...))
	return v, true
}

// unit composes a path where structs meet a leaf that CUE must look into, such
// as a struct with optional fields: CUE unifies all of it at once.
func (m *merger) unit(path string, parts, replaced []part) (model.Value, bool) {
	var terms []model.Expr
	for _, p := range parts {
		terms = append(terms, term(p))
	}
	r := m.eval.Eval([]expr.Call{{Terms: terms}})[0]
	if len(r.Problems) > 0 {
		problem := r.Problems[0]
		code := diag.ConflictingValues
		if problem.Missing {
			code = diag.NoValue
		}
		at := model.JoinPath(path, problem.Path)
		m.fail(sites(diag.New(code, at+": "+problem.Message).On(at), parts))
		return model.Value{}, false
	}
	m.addAll(path, r.Value, parts, replaced)
	return r.Value, true
}

// addAll adds the leaves of a value that CUE made of parts. Each comes from the
// parts that name its path, or else from those that are open.
func (m *merger) addAll(path string, v model.Value, parts, replaced []part) {
	if v.Kind() != model.Struct || len(v.Fields()) == 0 {
		from := only(parts, not(isStruct))
		if len(from) == 0 {
			from = parts
		}
		m.add(path, v, from, replaced)
		return
	}
	for _, f := range v.Fields() {
		var below []part
		for _, p := range parts {
			if !isStruct(p) {
				below = append(below, p)
				continue
			}
			for i := range p.tree.Fields {
				if t := &p.tree.Fields[i]; t.Name == f.Name {
					below = append(below, part{p.layer, p.kind, &t.Tree, p.origin.At(model.Label(f.Name))})
				}
			}
		}
		m.addAll(model.JoinPath(path, model.Label(f.Name)), f.Value, below, nil)
	}
}

// term writes a part as CUE.
func term(p part) model.Expr {
	var b strings.Builder
	writeTree(&b, p.tree, isDefault(p))
	return model.Expr(b.String())
}

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

// conflict reports values that do not unify. In one layer nothing decides
// between them; over layers, only a default could have been replaced.
func (m *merger) conflict(path string, parts []part) {
	first := parts[0].layer.config
	if isOverride(parts[0]) {
		d := diag.New(diag.ConflictingOverrides, "conflicting overrides for "+path).On(path).
			Hinting("remove one of the overrides, or give its config a higher layer")
		m.fail(sites(d, parts))
		return
	}
	last := parts[len(parts)-1].layer.config
	if first.Layer == last.Layer {
		d := diag.New(diag.ConflictingValues, "conflicting values for "+path).On(path).
			Hinting(fmt.Sprintf("if %s may override %s, give it a higher layer and move %s of %s from values to defaults", last.Name, first.Name, path, first.Name))
		m.fail(sites(d, parts))
		return
	}
	d := diag.New(diag.FinalValue, "a final value of "+path+" is contradicted").On(path).
		Hinting(fmt.Sprintf("to open it, move %s of %s from values to defaults, or write it as *%s | _", path, first.Name, parts[0].from().Text))
	m.fail(sites(d, parts))
}

// overridden warns of an override in use, and names what it overruled.
func (m *merger) overridden(path string, overrides, overruled []part) {
	d := diag.New(diag.Override, fmt.Sprintf("%s is overridden by config %s", path, overrides[0].layer.config.Name)).On(path).
		Hinting("overrides are for emergencies: remove it once the configs are right")
	m.graph.ds = append(m.graph.ds, sites(sites(d, overrides), overruled))
}

// sites adds each part as a place to look at.
func sites(d diag.Diagnostic, parts []part) diag.Diagnostic {
	for _, p := range parts {
		o := p.from()
		d = d.At(o.Ref, fmt.Sprintf("%s (config %s, layer %d)", o.Text, o.Name, o.Layer))
	}
	return d
}

func constraints(opens []part) []model.Expr {
	var out []model.Expr
	seen := map[model.Expr]bool{}
	for _, p := range opens {
		if c := p.tree.Open.Constraint; !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return out
}

func texts(opens []part) string {
	var out []string
	for _, c := range constraints(opens) {
		out = append(out, string(c))
	}
	return strings.Join(out, " & ")
}
