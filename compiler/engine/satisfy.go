package engine

import (
	"sync"

	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// newSatisfier returns what asks CUE for selectors; several goroutines may use it.
func newSatisfier(elsewhere *expr.Elsewhere) selector.Satisfier {
	var mu sync.Mutex
	eval := expr.New(elsewhere)
	return func(e model.Expr, value string) bool {
		mu.Lock()
		defer mu.Unlock()
		return eval.Satisfies(e, value)
	}
}
