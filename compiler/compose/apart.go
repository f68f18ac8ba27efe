package compose

import (
	"crypto/sha256"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// contract is a contract with what is known of it once for all tuples.
//
// A contract whose fields do not depend on each other is checked field by field,
// and each field once for each of its values: most values of a tuple are those of
// many others. Whatever does not hold this way is asked as a whole, so that what
// is reported of it does not depend on the way.
type contract struct {
	root   *root
	paths  [][]string // of the fields that the contract names, by element
	apart  bool       // fields are all that it says
	fields []*fieldContract
}

// fieldContract is a contract on one field of a struct.
type fieldContract struct {
	expr.Field
	parent string // the path of the struct
	// nested are the contracts on the field's fields, where isStruct says that they
	// are all its constraints.
	isStruct bool
	nested   []*fieldContract
	verdicts table[string, *verdict] // by the form of the value; "" for none
}

// verdict is the answer of a contract for one value of a field.
type verdict struct {
	holds bool
	fills []fill
}

var holdsAsIs = &verdict{holds: true}

// fill is a leaf that contracts give.
type fill struct {
	value model.Value
	from  []*site // of the same path
}

func (f fill) path() string { return f.from[0].path }

// contract returns what is known of a contract.
func (m *memo) contract(c *model.Contract) *contract {
	if known, there := m.contracts.load(c); there {
		return known
	}
	known := &contract{root: &root{kind: FromContract, name: c.Ref.Name, ref: c.Ref}}
	for _, f := range c.Fields {
		known.paths = append(known.paths, model.Elements(f.Path))
	}
	if fields, ok := expr.Fields(c.Expr); ok {
		known.apart = c.Mentions == nil || !slices.ContainsFunc(fields,
			func(f expr.Field) bool { return !slices.Contains(c.Mentions, f.Name) })
		known.fields = fieldContracts("", fields)
	}
	return m.contracts.store(c, known)
}

func fieldContracts(parent string, fields []expr.Field) []*fieldContract {
	out := make([]*fieldContract, len(fields))
	for i, f := range fields {
		out[i] = &fieldContract{Field: f, parent: parent}
		if nested, ok := expr.Fields(f.Constraint); ok {
			out[i].isStruct, out[i].nested = true, fieldContracts(model.JoinPath(parent, model.Label(f.Name)), nested)
		}
	}
	return out
}

// holds says whether contracts on fields hold for a struct, and appends what they
// fill in.
func (m *merger) holds(c *contract, fields []*fieldContract, values model.Value, fills []fill) ([]fill, bool) {
	for _, f := range fields {
		v, there := values.Lookup(f.Name)
		switch {
		case !there && f.Optional:
			continue
		case there && f.isStruct && v.Kind() == model.Struct:
			var ok bool
			if fills, ok = m.holds(c, f.nested, v, fills); !ok {
				return nil, false
			}
			continue
		}
		says := m.verdict(c, f, v, there)
		if !says.holds {
			return nil, false
		}
		fills = append(fills, says.fills...)
	}
	return fills, true
}

// verdict asks for one field, once for each of its values.
func (m *merger) verdict(c *contract, f *fieldContract, v model.Value, there bool) *verdict {
	key := m.bytes[:0]
	if there {
		key = v.AppendBinary(key)
	}
	m.bytes = key
	if len(key) >= sha256.Size { // the length tells a form from a digest
		sum := sha256.Sum256(key)
		key = append(key[:0], sum[:]...)
	}
	if says, known := f.known(key); known {
		return says
	}
	given := model.StructOf()
	if there {
		given = model.StructOf(model.Field{Name: f.Name, Value: v})
	}
	r := m.eval.Eval([]expr.Call{{Contract: f.Contract, Value: &given}})[0]
	says := &verdict{holds: len(r.Problems) == 0}
	if says.holds {
		if says.fills = c.fills(f.parent, given, r.Value); len(says.fills) == 0 {
			says = holdsAsIs
		}
	}
	return f.verdicts.store(string(key), says)
}

// known is a load that does not copy the key.
func (f *fieldContract) known(key []byte) (*verdict, bool) {
	f.verdicts.mu.RLock()
	defer f.verdicts.mu.RUnlock()
	says, there := f.verdicts.of[string(key)]
	return says, there
}

// fills returns the leaves that the contract added to values at a path.
func (c *contract) fills(path string, given, got model.Value) []fill {
	if got.Kind() != model.Struct {
		return nil
	}
	var out []fill
	for _, f := range got.Fields() {
		at := model.JoinPath(path, model.Label(f.Name))
		old, there := given.Lookup(f.Name)
		switch {
		case there:
			out = append(out, c.fills(at, old, f.Value)...)
		case f.Value.Kind() == model.Struct && len(f.Value.Fields()) > 0:
			out = append(out, c.fills(at, model.StructOf(), f.Value)...)
		default:
			out = append(out, fill{value: f.Value, from: []*site{{root: c.root, path: at}}})
		}
	}
	return out
}
