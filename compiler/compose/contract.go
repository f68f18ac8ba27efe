package compose

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Need is a key that a contract names, and whether the values satisfy it.
type Need struct {
	Path     string
	Contract model.Ref
	Text     string // of the contract for the key
	Optional bool
	Advise   bool
	Met      bool // false also for an optional key that is absent
}

// checker checks the composed values of one tuple against its contracts. It changes the values and
// the provenance of its merger, which it uses only until apply returns.
type checker struct {
	*merger
	contracts []*model.Contract // all contracts of the tuple
	given     model.Value       // the values as the configs made them, without the contracts' defaults
}

// contracted checks the values against all contracts, and fills in their defaults.
func (m *merger) contracted(contracts []*model.Contract) {
	check := checker{m, contracts, m.graph.Values}
	check.apply()
}

// apply checks the values against all contracts, and fills in their defaults, which are below the
// lowest layer. Each contract sees the values as the configs made them, so that no contract depends
// on the order of the others. If several contracts fill in one key, they must agree.
func (m *checker) apply() {
	filled := map[string]fill{}
	holds := make([]bool, len(m.contracts))
	for i, c := range m.contracts {
		var fills []fill
		fills, holds[i] = m.check(c, m.given)
		for _, f := range fills {
			m.fill(filled, f)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(filled)) {
		f := filled[path]
		if m.provenance.isAbove(path) {
			m.provenance.unfold(path) // a struct that a config left empty is not a leaf any more
		}
		if names := model.Elements(path); isNull(m.graph.Removed, names) {
			m.provenance.unfold(path) // a key that a config removed exists again
			m.graph.Removed = restored(m.graph.Removed, names)
		}
		m.provenance.addSites(f.value, traitsOf(path, f.value), f.from...)
		m.graph.Values = withValue(m.graph.Values, path, f.value)
	}
	for i, c := range m.contracts {
		if len(filled) > 0 {
			_, holds[i] = m.check(c, m.graph.Values)
		}
		if !holds[i] {
			m.breaches(c, m.ask(callOf(c, m.graph.Values)).Problems)
		}
		m.needs(c)
		m.lookalikes(c)
	}
}

// check evaluates a contract on values: it returns the filled in values, and
// whether the contract holds.
func (m *checker) check(c *model.Contract, values model.Value) ([]fill, bool) {
	known := m.memo.contract(c)
	if known.apart {
		if fills, ok := m.holds(known, known.fields, values, nil); ok {
			return fills, true
		}
	}
	call := callOf(c, values)
	r := m.ask(call)
	return known.fills("", values, r.Value), len(r.Problems) == 0
}

// callOf returns a call for the whole contract, on the fields that it names.
func callOf(c *model.Contract, values model.Value) expr.Call {
	if c.Mentions != nil {
		values = project(values, c.Mentions)
	}
	return expr.Call{Contract: c.Expr, Value: &values}
}

// fill adds a leaf that a contract fills in, and reports a different value from another contract.
func (m *checker) fill(filled map[string]fill, f fill) {
	other, there := filled[f.path()]
	switch {
	case !there:
		filled[f.path()] = f
	case other.value.Equal(f.value):
		other.from = slices.Concat(other.from, f.from)
		filled[f.path()] = other
	default:
		d := diag.New(diag.ConflictingContracts,
			"contracts give "+f.path()+" different defaults").On(f.path()).
			Hinting("give the key a value in a config")
		m.fail(origins(d, slices.Concat(originsOf(other.from, other.value), originsOf(f.from, f.value))))
	}
}

// breaches reports the problems of the values with a contract.
func (m *checker) breaches(c *model.Contract, problems []expr.Problem) {
	for _, p := range problems {
		if p.Unbounded {
			m.fail(unbounded("", "a contract", p).At(c.Ref, "("+describeContract(c.Ref)+")"))
			continue
		}
		code := diag.Unsatisfied
		if c.Advise {
			code = diag.Advice
		}
		d := diag.New(code, m.breach(p)).On(p.Path)
		if leaf, there := m.leafAt(p.Path); there {
			d = origins(d, leaf.From)
		}
		d = d.At(c.Ref.At(p.Path),
			"("+describeContract(c.Ref)+")").Hinting(cmp.Or(m.retype(p), m.unlisted(p), hint(p, c.Ref)))
		d = m.misspelt(d, p, c)
		if c.Advise {
			m.graph.ds = append(m.graph.ds, d)
		} else {
			m.fail(d)
		}
	}
}

func (m *checker) leafAt(path string) (Leaf, bool) { return leafAt(m.leaves(), path) }

// leafAt returns the leaf at a path, or the list that contains the path.
func leafAt(leaves []Leaf, path string) (Leaf, bool) {
	i := slices.IndexFunc(leaves,
		func(l Leaf) bool { return l.Path == path || strings.HasPrefix(path, l.Path+"[") })
	if i < 0 {
		return Leaf{}, false
	}
	return leaves[i], true
}

// breach returns the message for a problem with a contract.
func (m *checker) breach(p expr.Problem) string {
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
		return fmt.Sprintf("%s breaks a contract: %s is not allowed", p.Path,
			shown(leaf.Path, leaf.Value))
	} else if there && plaintext(leaf.Path, leaf.Value) {
		return p.Path + " breaks a contract"
	}
	return fmt.Sprintf("%s breaks a contract: %s", p.Path, m.plain(p))
}

var (
	mismatched = lazyregexp.New(`^conflicting values .+ \(mismatched types (\S+) and (\S+)\)$`)
	outOfBound = lazyregexp.New(`^invalid value (.+) \(out of bound ([<>!=].+)\)$`)
)

// plain rewrites CUE's message about a value of the wrong type, or a value beyond a bound.
func (m *checker) plain(p expr.Problem) string {
	if bound := outOfBound.FindStringSubmatch(p.Message); bound != nil {
		if pattern, ok := strings.CutPrefix(bound[2], "=~"); ok {
			return fmt.Sprintf("it must match %s, and is %s", pattern, bound[1])
		}
		if not, ok := strings.CutPrefix(bound[2], "!="); ok {
			return fmt.Sprintf("it must not be %s", not)
		}
		return fmt.Sprintf("it must be %s, and is %s", bound[2], bound[1])
	}
	if given, wanted := m.types(p); given != "" {
		return fmt.Sprintf("it must be of type %s, and is of type %s",
			strings.ReplaceAll(strings.Trim(wanted, "()"), "|", " or "), given)
	}
	return p.Message
}

// types returns the type of a value and the type that a contract requires, if they differ. It
// returns "" for any other problem.
func (m *checker) types(p expr.Problem) (given, wanted string) {
	types := mismatched.FindStringSubmatch(p.Message)
	leaf, there := m.leafAt(p.Path)
	if types == nil || !there || leaf.Path != p.Path {
		return "", ""
	}
	switch given = leaf.Value.Kind().String(); given {
	case types[1]:
		return given, types[2]
	case types[2]:
		return given, types[1]
	}
	return "", ""
}

// retype returns a hint to write a value in the type that a contract requires; "" if that would be
// a different value.
func (m *checker) retype(p expr.Problem) string {
	given, wanted := m.types(p)
	if given == "" {
		return ""
	}
	leaf, _ := m.leafAt(p.Path)
	switch text := leaf.Value.Text(); {
	case plaintext(leaf.Path, leaf.Value):
	case leaf.Value.Kind() == model.String && (number.MatchString(text) &&
		strings.Contains(wanted, "int") || wanted == "bool" && (text == "true" || text == "false")):
		return "write it without quotes: " + text
	case wanted == "string" &&
		slices.Contains([]model.Kind{model.Int, model.Float, model.Bool}, leaf.Value.Kind()):
		return "write it as a string: " + string(model.AppendJSONString(nil, leaf.Value.String()))
	}
	return ""
}

// number matches the texts of integers.
var number = lazyregexp.New(`^-?[0-9]+$`)

// unlisted returns a hint for a key that a config for single clusters may provide, if no such
// cluster is listed; "" for any other key.
func (m *checker) unlisted(p expr.Problem) string {
	if !p.Missing || p.Path == "" || m.forClusters == "" {
		return ""
	}
	return fmt.Sprintf("list the clusters of cluster type %s, for which config %s has values, or "+
		"give %s a value in another config that matches the assignment", m.clusterType, m.forClusters,
		p.Path)
}

// hint returns a hint for a problem with a contract of an assignment, of a test, or of a
// target of an application.
func hint(p expr.Problem, contract model.Ref) string {
	where, kind := "in a config that matches the assignment", "contract"
	if contract.Collection == "tests" {
		kind = "test"
	}
	if contract.Collection == "targets" {
		where = "in a values.yaml of the target's folder, or of one above it"
	}
	switch {
	case len(p.Allowed) > 0:
		return "allowed: " + strings.Join(p.Allowed, ", ")
	case p.Missing:
		if p.Path == "" {
			return "satisfy one of the " + kind + "'s alternatives " + where
		}
		return "give " + p.Path + " a value " + where
	case p.Unknown:
		return "remove the key, or open the " + kind + " with ..."
	}
	return "change the value, or the " + kind
}

// describe returns the name of an origin for messages.
func describe(o Origin) string {
	if o.Kind == FromContract {
		return "default of " + describeContract(o.Ref)
	}
	if o.Ref.Collection != "configs" {
		return o.Name
	}
	return fmt.Sprintf("config %s, layer %d", o.Name, o.Layer)
}

// describeContract describes the owner of a contract, given by the reference to
// the contract or into it.
func describeContract(ref model.Ref) string {
	switch ref.Collection {
	case "targets":
		return "contract of target " + ref.Name
	case "configSchemas":
		return "config schema " + ref.Name
	case "tests":
		return fmt.Sprintf("test %q", ref.Name)
	}
	if names := model.Elements(ref.Path); len(names) > 1 && names[0] == "deploymentTargets" {
		return "contract of deployment target " + model.FullName(ref.Name, names[1])
	}
	return "contract of workload " + ref.Name
}

// needs notes the keys that the contract names, for users who want to know the requirements.
func (m *checker) needs(c *model.Contract) {
	if len(c.Fields) == 0 {
		return
	}
	known := m.memo.contract(c)
	m.graph.Needs = slices.Grow(m.graph.Needs, len(c.Fields))
	for i, f := range c.Fields {
		_, met := valueAt(m.graph.Values, known.paths[i])
		m.graph.Needs = append(m.graph.Needs, Need{Path: f.Path, Contract: c.Ref, Text: f.Text,
			Optional: f.Optional, Advise: c.Advise, Met: met})
	}
}

// project returns a struct with only some of the fields.
func project(v model.Value, names []string) model.Value {
	var fields []model.Field
	for _, name := range names {
		if f, there := v.Lookup(name); there {
			fields = append(fields, model.Field{Name: name, Value: f})
		}
	}
	return model.StructOf(fields...)
}

// contract is a contract with the facts that all tuples share.
//
// If the fields of a contract do not depend on each other, the contract is checked field by
// field. Each field is checked once for each of its values, because most values occur in many
// tuples. If this way finds a problem, CUE evaluates the whole contract, so that the messages
// do not depend on the way.
type contract struct {
	root   *root
	paths  [][]string // of the fields that the contract names, by element
	apart  bool       // the fields are the whole contract
	fields []*fieldContract
}

// fieldContract is a contract on one field of a struct.
type fieldContract struct {
	expr.Field
	parent string // the path of the struct
	// nested are the contracts on the field's fields. isStruct means that the field
	// has no other constraints.
	isStruct bool
	nested   []*fieldContract
	verdicts table[string, *verdict] // by the form of the value; "" if there is no value
}

// verdict is the answer of a contract for one value of a field.
type verdict struct {
	holds bool
	fills []fill
}

// holdsAsIs is the verdict of a contract that holds and fills in nothing.
var holdsAsIs = &verdict{holds: true}

// fill is a leaf that contracts fill in.
type fill struct {
	value model.Value
	from  []*site // all have the same path
}

func (f fill) path() string { return f.from[0].path }

// contract returns the shared facts of a contract.
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

// fieldContracts returns the contracts on the fields of a struct at the path parent.
func fieldContracts(parent string, fields []expr.Field) []*fieldContract {
	out := make([]*fieldContract, len(fields))
	for i, f := range fields {
		out[i] = &fieldContract{Field: f, parent: parent}
		if nested, ok := expr.Fields(f.Constraint); ok {
			out[i].isStruct, out[i].nested = true,
				fieldContracts(model.JoinPath(parent, model.Label(f.Name)), nested)
		}
	}
	return out
}

// holds reports whether contracts on fields hold for a struct, and appends the
// values that they fill in.
func (m *checker) holds(c *contract, fields []*fieldContract, values model.Value,
	fills []fill) ([]fill, bool) {
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

// verdict evaluates one field, once for each of its values.
func (m *checker) verdict(c *contract, f *fieldContract, v model.Value, there bool) *verdict {
	key := m.bytes[:0]
	if there {
		key = v.AppendBinary(key)
	}
	m.bytes = key
	if len(key) >= sha256.Size { // forms and digests differ in their lengths
		sum := sha256.Sum256(key)
		key = append(key[:0], sum[:]...)
	}
	if says, known := f.cachedVerdict(key); known {
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

// cachedVerdict is load, but does not copy the key.
func (f *fieldContract) cachedVerdict(key []byte) (*verdict, bool) {
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
