package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Need is a key that a contract names, and what the values say to it.
type Need struct {
	Path     string
	Contract model.Ref
	Text     string // what the contract says of the key
	Optional bool
	Advise   bool
	Met      bool // false also for an optional key that is absent
}

// contracted checks the values against all contracts, and fills in their
// defaults, which lie below the lowest layer. Each contract sees the values as
// the configs made them, so that none depends on another's place; where several
// fill in one key they must agree.
func (m *merger) contracted(contracts []*model.Contract) {
	given := m.graph.Values
	filled := map[string]Leaf{}
	for _, c := range contracts {
		r := m.check(c, given)
		for _, leaf := range fills("", given, r.Value) {
			leaf.From = []Origin{{Kind: FromContract, Name: c.Ref.Name, Ref: c.Ref.At(leaf.Path), Text: leaf.Value.String()}}
			m.fill(filled, leaf)
		}
	}
	for _, leaf := range filled {
		// A struct that a config left empty is no leaf any more.
		m.graph.Leaves = slices.DeleteFunc(m.graph.Leaves, func(l Leaf) bool { return strings.HasPrefix(leaf.Path, l.Path+".") })
		m.graph.Leaves = append(m.graph.Leaves, leaf)
		m.graph.Values = with(m.graph.Values, leaf.Path, leaf.Value)
	}
	for _, c := range contracts {
		m.breaches(c, m.check(c, m.graph.Values).Problems)
		m.needs(c)
	}
}

// check evaluates a contract on the fields that it speaks of, once for each of
// their values.
func (m *merger) check(c *model.Contract, values model.Value) expr.Result {
	if c.Mentions != nil {
		values = project(values, c.Mentions)
	}
	return m.ask(expr.Call{Contract: c.Expr, Value: &values})
}

func (m *merger) fill(filled map[string]Leaf, leaf Leaf) {
	other, there := filled[leaf.Path]
	switch {
	case !there:
		filled[leaf.Path] = leaf
	case other.Value.Equal(leaf.Value):
		other.From = slices.Concat(other.From, leaf.From)
		filled[leaf.Path] = other
	default:
		d := diag.New(diag.ConflictingContracts, "contracts give "+leaf.Path+" different defaults").On(leaf.Path).
			Hinting("give the key a value in a config")
		m.fail(origins(d, slices.Concat(other.From, leaf.From)))
	}
}

// breaches reports what a contract says against the values.
func (m *merger) breaches(c *model.Contract, problems []expr.Problem) {
	for _, p := range problems {
		code := diag.Unsatisfied
		if c.Advise {
			code = diag.Advice
		}
		d := diag.New(code, m.breach(p)).On(p.Path)
		if leaf, there := m.leafAt(p.Path); there {
			d = origins(d, leaf.From)
		}
		d = d.At(c.Ref.At(p.Path), "("+describeContract(c.Ref)+")").Hinting(hint(p))
		if c.Advise {
			m.graph.ds = append(m.graph.ds, d)
		} else {
			m.fail(d)
		}
	}
}

// leafAt returns the leaf at a path, or the list that the path is in.
func (m *merger) leafAt(path string) (Leaf, bool) {
	i := slices.IndexFunc(m.graph.Leaves, func(l Leaf) bool { return l.Path == path || strings.HasPrefix(path, l.Path+"[") })
	if i < 0 {
		return Leaf{}, false
	}
	return m.graph.Leaves[i], true
}

func (m *merger) breach(p expr.Problem) string {
	switch {
	case p.Path == "":
		return "the values break a contract: " + p.Message
	case p.Missing:
		message := fmt.Sprintf("required key %s has no value", p.Path)
		if constraint, says := strings.CutPrefix(p.Message, "incomplete value "); says {
			message += " (" + short(constraint) + ")"
		}
		return message
	case p.Unknown:
		return fmt.Sprintf("key %s is not allowed", p.Path)
	}
	if leaf, there := m.leafAt(p.Path); there && len(p.Allowed) > 0 {
		return fmt.Sprintf("%s breaks a contract: %s is not allowed", p.Path, short(leaf.Value.String()))
	}
	return fmt.Sprintf("%s breaks a contract: %s", p.Path, p.Message)
}

func hint(p expr.Problem) string {
	switch {
	case len(p.Allowed) > 0:
		return "allowed: " + strings.Join(p.Allowed, ", ")
	case p.Missing:
		if p.Path == "" {
			return "satisfy one of the contract's alternatives in a config that matches the assignment"
		}
		return "give " + p.Path + " a value in a config that matches the assignment"
	case p.Unknown:
		return "remove the key, or open the contract with ..."
	}
	return "change the value, or the contract"
}

func describe(o Origin) string {
	if o.Kind == FromContract {
		return "default of " + describeContract(o.Ref)
	}
	return fmt.Sprintf("config %s, layer %d", o.Name, o.Layer)
}

// describeContract says whose contract it is that something in refers to.
func describeContract(ref model.Ref) string {
	if ref.Collection != "workloads" {
		return "config schema " + ref.Name
	}
	if names := elements(ref.Path); len(names) > 1 && names[0] == "deploymentTargets" {
		return "contract of deployment target " + model.FullName(ref.Name, names[1])
	}
	return "contract of workload " + ref.Name
}

// needs notes which keys the contract names, for those who ask what is required.
func (m *merger) needs(c *model.Contract) {
	for _, f := range c.Fields {
		_, met := lookup(m.graph.Values, f.Path)
		m.graph.Needs = append(m.graph.Needs, Need{Path: f.Path, Contract: c.Ref, Text: f.Text, Optional: f.Optional, Advise: c.Advise, Met: met})
	}
}

// fills returns the leaves that a contract added to the values.
func fills(path string, given, got model.Value) []Leaf {
	if got.Kind() != model.Struct {
		return nil
	}
	var out []Leaf
	for _, f := range got.Fields() {
		at := model.JoinPath(path, model.Label(f.Name))
		old, there := given.Lookup(f.Name)
		switch {
		case there:
			out = append(out, fills(at, old, f.Value)...)
		case f.Value.Kind() == model.Struct && len(f.Value.Fields()) > 0:
			out = append(out, fills(at, model.StructOf(), f.Value)...)
		default:
			out = append(out, Leaf{Path: at, Value: f.Value})
		}
	}
	return out
}

// project keeps some fields of a struct.
func project(v model.Value, names []string) model.Value {
	var fields []model.Field
	for _, name := range names {
		if f, there := v.Lookup(name); there {
			fields = append(fields, model.Field{Name: name, Value: f})
		}
	}
	return model.StructOf(fields...)
}
