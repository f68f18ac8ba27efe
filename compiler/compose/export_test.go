package compose

import (
	"crypto/sha256"

	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/expr"
)

// The tests are outside the package, except these hooks. Without them, no test can choose
// between the two ways to one result. A key that omits a field would be noticed only if two
// calls differ in that field.

// CallKey returns the key of the outcome of a function's call.
func CallKey(c function.Call) string { return newCall(c).key }

// AnswerKey returns the key of CUE's answer.
func AnswerKey(c expr.Call) [sha256.Size]byte { return (&merger{}).keyOf(c) }

// LongWays makes a plan use no short ways: no tree of a config is known to be whole, and no
// contract is split into fields. The plan must not have composed anything yet.
func (p *Plan) LongWays() {
	var unknown func(*node)
	unknown = func(n *node) {
		n.whole = false
		for i := range n.fields {
			unknown(&n.fields[i])
		}
	}
	for i := range p.env.Configs {
		c := &p.env.Configs[i]
		unknown(p.memo.tree(c, FromValues, "values", &c.Values))
		unknown(p.memo.tree(c, FromDefault, "defaults", &c.Defaults))
	}
	for i := range p.env.ConfigSchemas {
		if c := p.env.ConfigSchemas[i].Schema; c != nil {
			p.memo.contract(c).apart = false
		}
	}
}
