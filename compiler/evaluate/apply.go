package evaluate

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Apply evaluates functions of assignments. Outcomes are in the order of calls.
// Of the environment only the units that have the entities are evaluated for it, once. It
// may be called by several goroutines, one of which works at a time.
func (p *Package) Apply(ctx context.Context, calls []function.Call) ([]function.Outcome, error) {
	if p.functions == nil {
		return nil, fmt.Errorf("an environment that cannot be read has no functions of the assignment")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]function.Outcome, len(calls))
	theirs := map[model.Ref][]int{} // functions of registrations -> calls
	for i, c := range calls {
		if p.registered[c.Entity] != nil {
			theirs[c.Entity] = append(theirs[c.Entity], i)
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, err := p.functions.Load(ctx, c.Entity)
		if err != nil {
			return nil, err
		}
		out[i] = export.Apply(l, c)
	}
	for entity, numbers := range theirs {
		of := make([]function.Call, len(numbers))
		for n, i := range numbers {
			of[n] = calls[i]
		}
		made, err := p.registered[entity].Call(ctx, of)
		if err != nil {
			return nil, err
		}
		for n, i := range numbers {
			out[i] = made[n]
		}
	}
	return out, nil
}
