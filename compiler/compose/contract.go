package compose

import (
	"fmt"
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
	key := string(c.Expr) + "\x00" + values.String()
	if r, seen := m.memo.load(key); seen {
		return r
	}
	r := m.eval.Eval([]expr.Call{{Contract: c.Expr, Value: &values}})[0]
	m.memo.store(key, r)
	return r
}

func (m *merger) fill(filled map[string]Leaf, leaf Leaf) {
	other, there := filled[leaf.Path]
	switch {
	case !there:
		filled[leaf.Path] = leaf
	case other.Value.Equal(leaf.Value):
		other.From = append(other.From, leaf.From...)
		filled[leaf.Path] = other
	default:
		d := diag.New(diag.ConflictingContracts, "contracts give "+leaf.Path+" different defaults").On(leaf.Path).
			Hinting("give the key a value in a config")
		for _, o := range append(other.From, leaf.From...) {
			d = d.At(o.Ref, o.Text)
		}
		m.fail(d)
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
		for _, leaf := range m.graph.Leaves {
			if leaf.Path == p.Path {
				for _, o := range leaf.From {
					d = d.At(o.Ref, o.Text+" ("+describe(o)+")")
				}
			}
		}
		d = d.At(c.Ref.At(p.Path), "required here").Hinting(hint(p))
		if c.Advise {
			m.graph.ds = append(m.graph.ds, d)
		} else {
			m.fail(d)
		}
	}
}

func (m *merger) breach(p expr.Problem) string {
	switch {
	case p.Path == "":
		return "the values break a contract: " + p.Message
	case p.Missing:
		return fmt.Sprintf("required key %s has no value (%s)", p.Path, strings.TrimPrefix(p.Message, "incomplete value "))
	case p.Unknown:
		return fmt.Sprintf("key %s is not allowed", p.Path)
	}
	return fmt.Sprintf("%s breaks a contract: %s", p.Path, p.Message)
}

func hint(p expr.Problem) string {
	switch {
	case len(p.Allowed) > 0:
		return "allowed: " + strings.Join(p.Allowed, ", ")
	case p.Missing:
		return "give " + p.Path + " a value in a config that matches the assignment"
	case p.Unknown:
		return "remove the key, or open the contract with ..."
	}
	return "change the value, or the contract"
}

func describe(o Origin) string {
	if o.Kind == FromContract {
		return "contract default"
	}
	return fmt.Sprintf("config %s, layer %d", o.Name, o.Layer)
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
