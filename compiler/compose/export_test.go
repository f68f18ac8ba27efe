package compose

import (
	"crypto/sha256"

	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/expr"
)

// The tests are outside the package. These hooks are inside: no test can choose between the two
// ways to one result, and a key that forgets a field shows only if two calls happen to differ in
// that field.

// CallKey returns what the outcome of a function's call is remembered by.
func CallKey(c function.Call) string { return newCall(c).key }

// AnswerKey returns what CUE's answer is remembered by.
func AnswerKey(c expr.Call) [sha256.Size]byte { return (&merger{}).keyOf(c) }

// LongWays makes a plan that has composed nothing yet take no short ways: no tree of a config is
// known to be whole, and no contract comes apart.
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
