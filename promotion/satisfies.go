package promotion

import (
	"encoding/json"
	"errors"

	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/worker"
)

// satisfies evaluates the constraint of a policy gate, in workers that can be killed;
// nil for in this process.
func satisfies(workers *worker.Pool, constraint model.Expr, document json.RawMessage) ([]string, error) {
	var value model.Value
	if err := json.Unmarshal(document, &value); err != nil {
		return nil, err
	}
	result := expr.New(expr.In(workers)).Eval([]expr.Call{{Contract: constraint, Value: &value}})[0]
	var out []string
	for _, p := range result.Problems {
		if p.Unbounded {
			return nil, errors.New("the constraint takes too long, or too much memory")
		}
		out = append(out, p.Path+": "+p.Message)
	}
	return out, nil
}
