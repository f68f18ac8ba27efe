package query

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
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

// ClusterValue is a value that a single cluster has, beside those of its assignments.
type ClusterValue struct {
	Environment, Cluster string
	// DeploymentTarget is the full name of the one that it is composed for; "" for the
	// cluster's own value, which it has for all of them.
	DeploymentTarget string
	Path             string
	Value            model.Value // null where a composed value is taken away
	// Positions are where an own value is written.
	Positions []model.Position
}

// EachClusterValue calls f with the values of single clusters, by environment, cluster,
// deployment target and path. It returns the first error of f.
func EachClusterValue(b *compiler.Build, f func(*ClusterValue) error) error {
	for e := range readable(b) {
		for i := range e.Model.Clusters {
			c := &e.Model.Clusters[i]
			own := model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}
			if c.Values != nil {
				err := eachLeaf("", *c.Values, func(path string, v model.Value) error {
					return f(&ClusterValue{e.Name, c.Name, "", path, v, positions(e, own.At(path))})
				})
				if err != nil {
					return err
				}
			}
			for _, target := range slices.Sorted(maps.Keys(c.Composed)) {
				err := eachLeaf("", c.Composed[target], func(path string, v model.Value) error {
					return f(&ClusterValue{Environment: e.Name, Cluster: c.Name, DeploymentTarget: target, Path: path, Value: v})
				})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// eachLeaf calls f with the leaves of a value, as they are shown, by path.
func eachLeaf(path string, v model.Value, f func(path string, v model.Value) error) error {
	if v.Kind() != model.Struct || path != "" && len(v.Fields()) == 0 {
		return f(path, compose.Shown(path, v))
	}
	fields := slices.SortedFunc(slices.Values(v.Fields()),
		func(x, y model.Field) int { return strings.Compare(x.Name, y.Name) })
	for _, field := range fields {
		if err := eachLeaf(model.JoinPath(path, model.Label(field.Name)), field.Value, f); err != nil {
			return err
		}
	}
	return nil
}

// valuesOfEach composes the tuples of some assignments, each once.
func valuesOfEach(ctx context.Context, e *engine.Environment, assignments []int,
	f func(*Assignment, []Value) error) error {
	of := map[int32][]Value{}
	var tuples []int32
	for _, i := range assignments {
		tuples = append(tuples, e.Plan.TupleOf[i])
	}
	slices.Sort(tuples)
	err := e.Graphs(ctx, slices.Compact(tuples),
		func(tuple int32, g *compose.Graph) { of[tuple] = valuesOf(e, g.Leaves()) })
	if err != nil {
		return err
	}
	followers := followersOf(e)
	for _, i := range assignments {
		a := assignmentOf(e, i, followers)
		if err := f(&a, of[e.Plan.TupleOf[i]]); err != nil {
			return err
		}
	}
	return nil
}
