package compose_test

import (
	"testing"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/internal/testing/fieldtest"
)

// The key of a remembered call contains every field of the call.
func TestCallKeys(t *testing.T) {
	fieldtest.Check(t, func() *function.Call { return &function.Call{} }, func(c *function.Call) string {
		return compose.CallKey(*c)
	}, map[string]string{"Entity.Path": "an entity has none"})
	fieldtest.Check(t, func() *expr.Call { return &expr.Call{} }, func(c *expr.Call) [32]byte {
		return compose.AnswerKey(*c)
	}, nil)
}
