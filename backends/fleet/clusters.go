package fleet

import (
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// onCluster returns the values as they are on a cluster, and whether it has any
// of its own that differ.
func onCluster(values model.Value, c model.Cluster) (model.Value, bool) {
	if c.Values == nil {
		return values, false
	}
	merged := merge(values, *c.Values)
	return merged, !merged.Equal(values)
}

// merge returns base with what over gives added or in its place: structs field by
// field, anything else as a whole, lists included. It is how Fleet merges the
// values of a target into those of a chart, so that the platform config and a
// chart get the same.
func merge(base, over model.Value) model.Value {
	if base.Kind() != model.Struct || over.Kind() != model.Struct {
		return over
	}
	fields := slices.Clone(base.Fields())
	for _, f := range over.Fields() {
		i := slices.IndexFunc(fields, func(b model.Field) bool { return b.Name == f.Name })
		if i < 0 {
			fields = append(fields, f)
			continue
		}
		fields[i].Value = merge(fields[i].Value, f.Value)
	}
	return model.StructOf(fields...)
}

// valuesOf refers to the values of a cluster.
func valuesOf(c model.Cluster) model.Ref {
	return model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}
}
