package query

import (
	"context"
	"slices"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/build"
	"github.com/kalypso-io/kalypso/compiler/compose"
)

// EachValues calls f with the composed values of each assignment without errors, in the order
// of Assignments. A few hundred assignments are composed at a time, and the values of these
// alone are in memory. It returns the first error of f.
func EachValues(ctx context.Context, b *compiler.Build, f func(*Assignment, []Value) error) error {
	for e := range readable(b) {
		var built []int
		for i := range e.Schedule.Assignments {
			if !e.Failed(i) {
				built = append(built, i)
			}
		}
		const atOnce = 256
		for some := range slices.Chunk(built, atOnce) {
			if err := valuesOfEach(ctx, e, some, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// valuesOfEach composes the tuples of some assignments, each once.
func valuesOfEach(ctx context.Context, e *build.Environment, assignments []int, f func(*Assignment, []Value) error) error {
	of := map[int32][]Value{}
	var tuples []int32
	for _, i := range assignments {
		tuples = append(tuples, e.Plan.TupleOf[i])
	}
	slices.Sort(tuples)
	err := e.Graphs(ctx, slices.Compact(tuples), func(tuple int32, g *compose.Graph) { of[tuple] = valuesOf(e, g.Leaves()) })
	if err != nil {
		return err
	}
	for _, i := range assignments {
		a := assignmentOf(e, i)
		if err := f(&a, of[e.Plan.TupleOf[i]]); err != nil {
			return err
		}
	}
	return nil
}
