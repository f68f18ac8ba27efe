package incremental

import (
	"testing"

	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/fieldtest"
)

// TestUnitsHaveEveryField checks that every field of a result survives the division into units.
func TestUnitsHaveEveryField(t *testing.T) {
	fieldtest.Check(t, func() *export.Result { return &export.Result{} }, func(r *export.Result) string {
		units := (&partition{}).split(r, []int{sharedUnit})
		return string(model.Encode(*merge("dev", []*export.Result{units[sharedUnit]})))
	}, map[string]string{
		"Clean":                    "all units are clean",
		"Incomplete":               "as Clean",
		"Model.Name":               "it is the name of the evaluation",
		"Model.Invalid":            "it is found when all units are together",
		"Model.Incomplete":         "as Model.Invalid",
		"Model.ClustersIncomplete": "as Model.Invalid",
		"Model.Positions":          "units have their own",
	})
}
