package delivery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// ChartValues returns the values of the assignment's chart: the application's,
// with the platform's under the path platformValues. nil means none. The
// platform never overwrites what the application gives: that is an error.
func ChartValues(a *backends.Assignment, h *model.Helm) (*model.Value, []diag.Diagnostic) {
	values := model.StructOf()
	if h.Values != nil {
		values = *h.Values
	}
	if h.PlatformValues == "" {
		if len(values.Fields()) == 0 {
			return nil, nil
		}
		return &values, nil
	}
	path := strings.Split(h.PlatformValues, ".")
	merged, taken := values.Insert(path, a.Values)
	if taken > 0 {
		at := strings.Join(path[:taken], ".")
		field := model.JoinPath("manifests.helm.values", at)
		message := fmt.Sprintf("the chart's values already hold something at %s, where platformValues puts the platform's", at)
		if taken < len(path) {
			message = fmt.Sprintf("%s of the chart's values is no struct, so platformValues cannot put the platform's at %s", at, h.PlatformValues)
		}
		return nil, []diag.Diagnostic{diag.New(diag.HelmValues, message).On(field).
			At(a.Ref.At(field), "the application's value").
			At(a.Ref.At("manifests.helm.platformValues"), "").
			Hinting("give platformValues a path that the chart's values leave free").For(a.ID())}
	}
	return &merged, nil
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
