package selector

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Mismatch is a constraint of a selector that an entity does not satisfy.
type Mismatch struct {
	// Path is the fact's CUE path, such as labels.size; "" for the entity itself.
	Path string `json:"path"`
	// Want is the constraint: a CUE expression, "present", "absent", or "absent or"
	// and an expression.
	Want string `json:"want"`
	// Have are the existing values. It is nil if the fact is absent.
	Have []string `json:"have,omitempty"`
}

// String returns, for instance, `labels.size: wants "large", is absent`.
func (m Mismatch) String() string {
	text := "wants " + m.Want + ", is " + m.have()
	if m.Path != "" {
		text = m.Path + ": " + text
	}
	return text
}

func (m Mismatch) have() string {
	if len(m.Have) == 0 {
		return "absent"
	}
	quoted := make([]string, len(m.Have))
	for i, v := range m.Have {
		quoted[i] = quote(v)
	}
	return strings.Join(quoted, " and ")
}

// Why returns the constraints of a selector that do not hold for entity i, in the
// selector's order. It returns none exactly if the selector holds. For alternatives, it
// returns the constraints of the nearest one, which has the fewest mismatches.
func (x *Index) Why(s model.Selector, i int) []Mismatch {
	return x.mismatches(&s, &x.root, int32(i), "")
}

func (x *Index) mismatches(s *model.Selector, c *column, e int32, path string) []Mismatch {
	if x.structHolds(s, c, e) {
		return nil
	}
	switch s.Op {
	case model.OpAnd:
		var all []Mismatch
		for i := range s.Args {
			all = append(all, x.mismatches(&s.Args[i], c, e, path)...)
		}
		return all
	case model.OpOr:
		var nearest []Mismatch
		for i := range s.Args {
			if m := x.mismatches(&s.Args[i], c, e, path); nearest == nil || len(m) < len(nearest) {
				nearest = m
			}
		}
		if nearest != nil {
			return nearest
		}
	case model.OpField, model.OpOptional:
		field := c.below[s.Key]
		path = model.JoinPath(path, model.Label(s.Key))
		values := field.valuesOf(e)
		if len(values) == 1 && values[0] == isStruct && aboutFields(&s.Args[0]) {
			return x.mismatches(&s.Args[0], field, e, path)
		}
		return []Mismatch{{Path: path, Want: want(s), Have: field.texts(values)}}
	}
	return []Mismatch{{Path: path, Want: text(s), Have: []string{"{}"}}}
}

// texts returns the values at positions of c.distinct.
func (c *column) texts(values []int32) []string {
	var out []string
	for _, v := range values {
		if v == isStruct {
			out = append(out, "{}")
		} else {
			out = append(out, c.distinct[v].value)
		}
	}
	slices.Sort(out)
	return out
}

// aboutFields reports whether s is a constraint on a struct.
func aboutFields(s *model.Selector) bool {
	switch s.Op {
	case model.OpField, model.OpOptional:
		return true
	case model.OpAnd, model.OpOr:
		return slices.ContainsFunc(s.Args, func(a model.Selector) bool { return aboutFields(&a) })
	}
	return false
}
