package compose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// chartPlatform has a workload with a chart; %s are the chart's values of the workload
// and of the target.
const chartPlatform = `package platform

import "kalypso.io/schema"

environments: schema.#Environments
workloads:    schema.#Workloads
environments: dev: {}
workloads: shop: {
	workspace: "team"
	manifests: helm: {%s}
	deploymentTargets: test: {
		environment: "dev"
		manifests: helm: {oci: "oci://registry.example/shop", version: "1.2.3", %s}
	}
}
`

// TestChartValues has the rules for the composition of a chart's values: for all targets, for one
// target, and from the platform.
func TestChartValues(t *testing.T) {
	for _, test := range []struct{ name, all, target, want string }{
		{"none", ``, ``, `{}`},
		{"both", `values: {a: 1, s: x: 1}`, `values: {b: 2, s: y: 2}`, `{"a":1,"b":2,"s":{"x":1,"y":2}}`},
		{"the same", `values: a: 1`, `values: a: 1`, `{"a":1}`},
		{"different", `values: a: 1`, `values: a: 2`, `K2005 a @10 (workload shop) @13 (deployment target shop-test)`},
		{"a default of CUE", `values: a: *1 | int`, `values: a: 2`, `{"a":2}`},
		{"a default that stays", `values: a: *1 | int`, ``, `{"a":1}`},
		{"a default of all kinds", `defaults: {a: 1, b: [1]}`, `values: {a: "x", b: [2, 3]}`, `{"a":"x","b":[2,3]}`},
		{"a default over a default", `defaults: a: 1`, `defaults: a: 2`, `{"a":2}`},
		{"a constraint", `values: a: >1`, `values: a: 2`, `{"a":2}`},
		{"a constraint broken", `values: a: >1`, `values: a: 1`, `K2003 a @13 (deployment target shop-test) @10 (workload shop)`},
		{"a constraint alone", `values: a: >1`, ``, `K2006 a @10 (workload shop)`},
		{"null stays", `defaults: a: 1`, `values: a: null`, `{"a":null}`},
		{"a secret", ``, `values: a: schema.#Secret & {store: "vault", key: "db"}`, `K3002 workloads.shop.deploymentTargets.test.manifests.helm.values.a @13`},
		{"the platform's", `values: a: 1`, `platformValues: "platform"`, `{"a":1,"platform":{"REGION":"east"}}`},
		{"the platform's below", `values: global: a: 1`, `platformValues: "global.platform"`, `{"global":{"a":1,"platform":{"REGION":"east"}}}`},
		{"the path is taken", `values: platform: x: 1`, `platformValues: "platform"`, `K3006 workloads.shop.deploymentTargets.test.manifests.helm.values.platform @10 (workload shop) @13`},
		{"the path is no struct", ``, `values: global: 1, platformValues: "global.platform"`, `K3006 workloads.shop.deploymentTargets.test.manifests.helm.values.global @13 (deployment target shop-test) @13`},
	} {
		t.Run(test.name, func(t *testing.T) {
			values, ds := chartValues(t, fmt.Sprintf(chartPlatform, test.all, test.target))
			got := values.String()
			for _, d := range ds {
				got = fmt.Sprintf("%s %s", d.Code, d.Path)
				for _, s := range d.Sites {
					got += fmt.Sprintf(" @%d", s.Position.Line)
					if _, of, ok := strings.Cut(s.Note, "("); ok {
						got += " (" + of
					}
				}
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func chartValues(t *testing.T, platform string) (model.Value, []diag.Diagnostic) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"cue.mod/module.cue": "module: \"platform.example@v0\"\nlanguage: version: \"v0.15.0\"\ndeps: \"kalypso.io@v0\": v: \"v0.1.0\"\n", "platform.cue": platform} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p, _, err := source.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	pkg, ds, err := evaluate.Environment(t.Context(), p, "dev", nil, evaluate.Options{})
	if err != nil || len(ds) > 0 {
		t.Fatal(err, ds)
	}
	w := &pkg.Model.Workloads[0]
	satisfies := expr.New(nil).Satisfies
	s, _ := schedule.Assign(pkg.Model, satisfies)
	plan, _, err := compose.NewPlan(t.Context(), pkg.Model, s, pkg, satisfies, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := plan.ApplicationValues(w, &w.Targets[0], expr.New(nil))
	values, ds := g.Values, g.Diagnostics()
	if !g.Failed {
		platform := model.StructOf(model.Field{Name: "REGION", Value: model.StringOf("east")})
		values, ds = g.WithPlatform(platform, &schedule.Assignment{Workload: w, Target: &w.Targets[0], Manifests: w.Targets[0].Manifests})
	}
	diag.Resolve(ds, pkg.Model.Positions)
	return values, ds
}
