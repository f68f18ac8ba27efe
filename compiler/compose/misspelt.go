package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// misspelt adds the key that was probably meant to a diagnostic of a contract. If a key has no
// value, this is a similar key beside it that no contract names. If a key is not allowed, it is a
// similar key of the contract that has no value.
func (m *checker) misspelt(d diag.Diagnostic, p expr.Problem, c *model.Contract) diag.Diagnostic {
	switch {
	case p.Path == "":
	case p.Missing:
		like := lookalike(p.Path, m.graph.Values, m.contracts)
		if like == "" {
			break
		}
		if c.Ref.Collection == "tests" {
			return d.Hinting(fmt.Sprintf("%s has a value: did you mean that?", like))
		}
		return m.meant(d, like, p.Path).Hinting(fmt.Sprintf("no contract names %s, which has a value: "+
			"did you mean %s there?", like, p.Path))
	case p.Unknown:
		parent, name := cutPath(p.Path)
		for i, names := range m.memo.contract(c).paths {
			of, key := cutPath(c.Fields[i].Path)
			if _, there := valueAt(m.graph.Values, names); of == parent && !there &&
				spelling.Misspelt(name, key) {
				return m.meant(d, p.Path, c.Fields[i].Path).Hinting("did you mean " + key + "?")
			}
		}
	}
	return d
}

// lookalikes warns of keys that no contract names and that look like a key of one contract. If
// configs set both keys, one may be the plural of the other.
func (m *checker) lookalikes(c *model.Contract) {
	if c.Ref.Collection == "tests" {
		return
	}
	for i, names := range m.memo.contract(c).paths {
		_, both := valueAt(m.given, names)
		_, filled := valueAt(m.graph.Values, names)
		if !filled && !c.Fields[i].Optional {
			continue // which is an error
		}
		path := c.Fields[i].Path
		like := lookalike(path, m.given, m.contracts)
		if like == "" || both &&
			(like == path+"s" || path == like+"s" || like == path+"S" || path == like+"S") ||
			slices.ContainsFunc(m.graph.ds, func(d diag.Diagnostic) bool { return d.Path == like }) {
			continue
		}
		d := diag.New(diag.LikelyMisspelt,
			fmt.Sprintf("no contract names %s, and it looks like %s of the %s", like, path,
				describeContract(c.Ref))).On(like)
		d = m.meant(d, like, path).At(c.Ref.At(path), "("+describeContract(c.Ref)+")")
		m.graph.ds = append(m.graph.ds,
			d.Hinting(fmt.Sprintf("did you mean %s? If not, let the contract name it too: %s?: _", path,
				asFields(like))))
	}
}

// meant adds the place of a misspelt key, and suggests the right name.
func (m *checker) meant(d diag.Diagnostic, wrong, right string) diag.Diagnostic {
	_, wrongName := cutPath(wrong)
	_, rightName := cutPath(right)
	d.Suggestion = diag.Suggestion{Wrong: wrongName, Right: rightName}
	if leaf, there := m.leafAt(wrong); there && d.Path != wrong || there && len(d.Sites) == 0 {
		d = origins(d, leaf.From)
	}
	return d
}

// lookalike returns the path of a similar key beside the key at a path, if no contract names it; ""
// if there is no such key.
func lookalike(path string, values model.Value, contracts []*model.Contract) string {
	names := model.Elements(path)
	last := len(names) - 1
	parent, there := valueAt(values, names[:last])
	if !there {
		return ""
	}
	for _, f := range parent.Fields() {
		if !spelling.Misspelt(f.Name, names[last]) {
			continue
		}
		of, _ := cutPath(path)
		like := model.JoinPath(of, model.Label(f.Name))
		if !named(like, contracts) {
			return like
		}
	}
	return ""
}

// named reports whether a contract names a path.
func named(path string, contracts []*model.Contract) bool {
	for _, c := range contracts {
		for _, f := range c.Fields {
			if f.Path == path {
				return true
			}
		}
	}
	return false
}

// asFields returns a path in the form of CUE fields, such as "a: b".
func asFields(path string) string {
	names := model.Elements(path)
	for i, name := range names {
		names[i] = model.Label(name)
	}
	return strings.Join(names, ": ")
}

// cutPath returns the path of the struct that contains the key at a path, and the key's name.
func cutPath(path string) (parent, name string) {
	names := model.Elements(path)
	for _, of := range names[:len(names)-1] {
		parent = model.JoinPath(parent, model.Label(of))
	}
	return parent, names[len(names)-1]
}
