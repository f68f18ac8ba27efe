package delivery

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// ChartValues returns the values of the assignment's chart: the application's,
// with the platform's under the path platformValues. nil means none. That the
// application gives nothing there has been checked where it was composed.
func ChartValues(a *backends.Assignment, h *model.Helm) *model.Value {
	values := model.StructOf()
	if h.Values != nil {
		values = *h.Values
	}
	if h.PlatformValues != "" {
		values, _ = values.Insert(strings.Split(h.PlatformValues, "."), a.Values)
	} else if len(values.Fields()) == 0 {
		return nil
	}
	return &values
}

// Merge returns base with what over gives added or in its place: structs field by
// field, anything else as a whole, lists included, as Helm merges values, and as
// Fleet merges those of a target into a chart's. It is how the values of a cluster
// take the place of the composed ones there.
func Merge(base, over model.Value) model.Value {
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
		fields[i].Value = Merge(fields[i].Value, f.Value)
	}
	return model.StructOf(fields...)
}

// ReleaseName returns the name of the chart's release.
func ReleaseName(a *backends.Assignment, h *model.Helm) string {
	if h.ReleaseName != "" {
		return h.ReleaseName
	}
	return model.ShortName(a.DeploymentTarget, model.MaxHelmRelease)
}
