package evaluate

import (
	"context"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestFacts(t *testing.T) {
	all := "application clusterType configFormat dependsOn deploymentTarget environment gitops images labels manifests namespace rendered values version wave workload workspace"
	for body, want := range map[string]string{
		`values: A: 1`:                 "",
		`#assignment: _, values: A: 1`: "",
		`#assignment: _, values: A: #assignment.clusterType`:                                                     "clusterType",
		`#assignment: _, values: A: "\(#assignment.workload)-\(#assignment.labels.zone)"`:                        "labels workload",
		`#assignment: _, values: {if #assignment.environment == "dev" {A: 1}}`:                                   "environment",
		`#assignment: _, if #assignment.environment == "dev" {values: A: 1}`:                                     "environment",
		`#assignment: _, values: A: [for k, v in #assignment.labels {k}]`:                                        "labels",
		`#assignment: _, defaults: A: #assignment.version`:                                                       "version",
		`#assignment: _, let a = #assignment, values: A: a.workload`:                                             all,
		`#assignment: _, let a = #assignment.workload, values: {A: a, B: #assignment.environment}`:               "environment workload",
		`#assignment: _, _a: x: _b, _b: #assignment.workload, values: {A: _a.x, B: #assignment.environment}`:     "environment workload",
		`#assignment: _, _a: #assignment.workload, values: B: #assignment.environment`:                           "environment",
		`#assignment: _, values: {A: B, B: A, C: #assignment.environment}, defaults: D: #assignment.clusterType`: "clusterType environment",
		`_made`: "clusterType",
	} {
		t.Run(body, func(t *testing.T) {
			config := "{match: {}, " + body + "}"
			if body == "_made" {
				config = "_made & {match: {}}"
			}
			pkg := healthy(t, "_made: {#assignment: _, values: A: #assignment.clusterType, ...}\nconfigs: c: "+config)
			if got := strings.Join(pkg.Model.Configs[0].Facts, " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestApply(t *testing.T) {
	pkg := healthy(t, `configs: c: {
	#assignment: _
	match: {}
	values: {WHERE: #assignment.clusterType, if #assignment.environment == "dev" {DEV: true}}
	defaults: ZONE: *#assignment.labels.zone | "none"
}`)
	facts := func(clusterType string) model.Value {
		return model.StructOf(
			model.Field{Name: "environment", Value: model.StringOf("dev")},
			model.Field{Name: "clusterType", Value: model.StringOf(clusterType)},
			model.Field{Name: "labels", Value: model.StructOf()},
		)
	}
	ref := model.Ref{Collection: "configs", Name: "c"}
	out, err := pkg.Apply(context.Background(), []function.Call{{Entity: ref, Facts: facts("small")}, {Entity: ref, Facts: facts("large")}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{DEV: true, WHERE: "small"}{ZONE: "none"}`, `{DEV: true, WHERE: "large"}{ZONE: "none"}`} {
		if got := outline(out[i].Values) + outline(out[i].Defaults); got != want || len(out[i].Diagnostics) > 0 {
			t.Errorf("got %s %v, want %s", got, out[i].Diagnostics, want)
		}
	}
}

// TestApplyWithoutAFact checks that a diagnostic names a fact that the assignment lacks.
func TestApplyWithoutAFact(t *testing.T) {
	pkg := healthy(t, `configs: c: {#assignment: _, match: {}, values: ZONE: "in \(#assignment.labels.zone)"}`)
	call := function.Call{Entity: model.Ref{Collection: "configs", Name: "c"}, Facts: model.StructOf(model.Field{Name: "labels", Value: model.StructOf()})}
	out, err := pkg.Apply(context.Background(), []function.Call{call})
	if err != nil {
		t.Fatal(err)
	}
	if ds := out[0].Diagnostics; len(ds) != 1 || ds[0].Code != "K2013" || !strings.Contains(ds[0].Message, "zone") {
		t.Errorf("%+v", ds)
	}
}
