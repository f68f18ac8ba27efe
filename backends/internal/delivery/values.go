package delivery

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// ChartValues returns the values of the assignment's chart: the application's,
// with the platform's under the path platformValues, where null takes a default of
// the chart away. nil means none. That the
// application gives nothing there has been checked where it was composed. Helm
// knows no texts of numbers, so that they are in canonical form.
func ChartValues(a *backends.Assignment, h *model.Helm) *model.Value {
	values := model.StructOf()
	if h.Values != nil {
		values = *h.Values
	}
	if h.PlatformValues != "" {
		values, _ = values.Insert(strings.Split(h.PlatformValues, "."), model.Merge(a.Removed, a.Values))
	} else if len(values.Fields()) == 0 {
		return nil
	}
	values = values.Canonical()
	return &values
}

// HasNull says whether a value is null, or holds one anywhere. Reconcilers lose nulls of objects
// that are changed by merge patches, which take null for "no such key".
func HasNull(v model.Value) bool {
	return v.Kind() == model.Null || slices.ContainsFunc(v.Elems(), HasNull) ||
		slices.ContainsFunc(v.Fields(), func(f model.Field) bool { return HasNull(f.Value) })
}

// Merge returns base with what over gives added or in its place: structs field by
// field, anything else as a whole, lists included, as Helm merges values, and as
// Fleet merges those of a target into a chart's. It is how the values of a cluster
// take the place of the composed ones there.
func Merge(base, over model.Value) model.Value { return model.Merge(base, over) }

// ReleaseName returns the name of the chart's release.
func ReleaseName(a *backends.Assignment, h *model.Helm) string {
	if h.ReleaseName != "" {
		return h.ReleaseName
	}
	return model.ShortName(a.DeploymentTarget, model.MaxHelmRelease)
}
