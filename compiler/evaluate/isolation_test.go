package evaluate

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestIsolation checks the extent of a mistake: it invalidates its entity, the complete list of
// entities, or the whole environment.
func TestIsolation(t *testing.T) {
	const target = `{environment: "dev", manifests: git: {repo: "https://git.example/a", branch: "main"}}`
	for name, c := range map[string]struct {
		declarations string
		codes        string // of the diagnostics
		targets      string // the remaining targets, by their full names
		uncertain    bool
		kept         bool // the environment as a whole
	}{
		"nothing wrong":             {`workloads: a: {workspace: "w", deploymentTargets: {x: ` + target + `, y: ` + target + `}}`, "", "a-x a-y", false, false},
		"a target's field":          {`workloads: a: {workspace: "w", deploymentTargets: {x: ` + target + `, y: ` + target + ` & {lables: {}}}}`, "K1102", "a-x", true, false},
		"a target without manifest": {`workloads: a: {workspace: "w", deploymentTargets: {x: ` + target + `, y: environment: "dev"}}`, "K1105", "a-x", true, false},
		"a target's name":           {`workloads: a: {workspace: "w", deploymentTargets: {x: ` + target + `, Y: ` + target + `}}`, "K1106", "a-x", true, false},
		"a workload's field":        {`workloads: a: {workspace: "w", lables: {}, deploymentTargets: x: ` + target + `}, workloads: b: {workspace: "w", deploymentTargets: x: ` + target + `}`, "K1102", "b-x", true, false},
		"targets not known":         {`workloads: a: {workspace: "w", deploymentTargets: {x: ` + target + `, if _on {y: ` + target + `}}}, _on: bool`, "K1109", "a-x", true, false},
		"a policy":                  {`schedulingPolicies: p: {deploymentTargets: {}}`, "K1105", "", true, false},
		"a config":                  {`configs: c: {match: {}, layr: 1}`, "K1102", "", false, false},
		"a misspelt collection":     {`config: c: {match: {}}`, "K1101", "", true, true},
		"configs not known":         {`configs: {if _on {c: match: {}}}, _on: bool`, "K1109", "", true, true},
		"cluster types not known":   {`clusterTypes: {if _on {c: reconciler: "flux"}}, _on: bool`, "K1109", "", true, false},
		"gitops":                    {`environments: dev: gitops: {repo: "https://a/b"}`, "K1105", "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			pkg, ds := dev(t, strings.ReplaceAll(c.declarations, "}, workloads: b", "}\nworkloads: b")+"\n")
			if pkg.Model == nil {
				t.Fatal("no model: ", ds)
			}
			var codes, targets []string
			for _, d := range ds {
				codes = append(codes, string(d.Code))
				if len(d.Sites) == 0 {
					t.Errorf("%s has no position", d.Message)
				}
			}
			for _, w := range pkg.Model.Workloads {
				for _, t := range w.Targets {
					targets = append(targets, t.FullName)
				}
			}
			if got := strings.Join(codes, " "); got != c.codes {
				t.Errorf("codes %s, want %s", got, c.codes)
			}
			if got := strings.Join(targets, " "); got != c.targets {
				t.Errorf("targets %s, want %s", got, c.targets)
			}
			if pkg.Model.Incomplete != c.uncertain {
				t.Errorf("uncertain: %v", pkg.Model.Incomplete)
			}
			if kept := pkg.Model.Invalid[model.Ref{Collection: "environments", Name: "dev"}]; kept != c.kept {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}

// TestHiddenFiles checks that a syntax error or a skipped file marks the environment as
// incomplete.
func TestHiddenFiles(t *testing.T) {
	p := open(t, map[string]string{"environments/dev/dev.cue": "package platform\n", "environments/dev/empty.cue": ""})
	pkg, _ := environment(t, p)
	if !pkg.Model.Incomplete || !pkg.Model.Invalid[model.Ref{Collection: "environments", Name: "dev"}] {
		t.Error("an empty file hides nothing")
	}
	p = open(t, map[string]string{"environments/dev/dev.cue": "package platform\nconfigs: {"})
	pkg, ds := environment(t, p)
	if pkg.Model != nil || !slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Code == diag.Syntax }) {
		t.Error(ds)
	}
}
