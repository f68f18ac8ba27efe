package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// where returns the selector of conditions such as workspace=a and labels.edge=true; key!
// requires absence. Without conditions it selects everything.
func where(conditions ...string) model.Selector {
	all := model.Selector{Op: model.OpAnd}
	for _, c := range conditions {
		path, constraint := c, model.Selector{}
		op := model.OpField
		if key, value, ok := strings.Cut(c, "="); ok {
			path, constraint = key, model.Selector{Op: model.OpEqual, Text: value}
		} else if key, ok := strings.CutSuffix(c, "!"); ok {
			path, op, constraint = key, model.OpOptional, model.Selector{Op: model.OpNone}
		}
		parent, label, nested := strings.Cut(path, ".")
		if !nested {
			all.Args = append(all.Args, model.Selector{Op: op, Key: path, Args: []model.Selector{constraint}})
			continue
		}
		inner := model.Selector{Op: op, Key: label, Args: []model.Selector{constraint}}
		all.Args = append(all.Args, model.Selector{Op: model.OpField, Key: parent, Args: []model.Selector{inner}})
	}
	if len(all.Args) == 0 {
		return model.Selector{Op: model.OpAll}
	}
	return all
}

func policy(name string, targets, types model.Selector) model.SchedulingPolicy {
	return model.SchedulingPolicy{Name: name, DeploymentTargets: targets, ClusterTypes: types}
}

func clusterTypeOf(name string, labels ...string) model.ClusterType {
	return model.ClusterType{Name: name, Labels: labelsOf(labels)}
}

func labelsOf(pairs []string) map[string]string {
	labels := make(map[string]string)
	for _, p := range pairs {
		key, value, _ := strings.Cut(p, "=")
		labels[key] = value
	}
	return labels
}

// workload has targets with its own labels and the given ones, in the form that evaluate
// returns.
func workload(name, workspace string, labels []string, targets ...model.DeploymentTarget) model.Workload {
	w := model.Workload{Name: name, Workspace: workspace, Labels: labelsOf(labels), Targets: targets}
	for i := range targets {
		t := &targets[i]
		t.FullName = model.FullName(name, t.Name)
		for k, v := range w.Labels {
			if _, own := t.Labels[k]; !own {
				t.Labels[k] = v
			}
		}
	}
	return w
}

func targetOf(name string, labels ...string) model.DeploymentTarget {
	return model.DeploymentTarget{Name: name, Labels: labelsOf(labels),
		Manifests: model.Manifests{Git: &model.Git{Repo: "https://git", Branch: "main", Path: "./" + name}}}
}

// sample is the dev environment of the sample platform.
func sample() *model.Environment {
	return &model.Environment{
		Name: "dev",
		ClusterTypes: []model.ClusterType{
			clusterTypeOf("command-center", "region=east-us", "restricted=true"),
			clusterTypeOf("drone", "region=east-us", "restricted=true", "edge=true"),
			clusterTypeOf("large", "region=west-us", "size=large"),
			clusterTypeOf("small", "region=west-us", "size=small"),
		},
		Workloads: []model.Workload{
			workload("hello-world-app", "kaizen-app-team", []string{"type=application", "family=force"},
				targetOf("functional-test", "purpose=functional-test", "edge=true"),
				targetOf("performance-test", "purpose=performance-test", "edge=false")),
			workload("observability", "platform-team", []string{"type=service", "stack=observability"}, targetOf("prometheus")),
		},
		SchedulingPolicies: []model.SchedulingPolicy{
			policy("functional-test", where("workspace=kaizen-app-team", "labels.purpose=functional-test", "labels.edge=true"),
				where("labels.restricted=true", "labels.edge=true")),
			policy("observability", where("workspace=platform-team", "labels.stack=observability"), where("labels.size=large")),
			policy("performance-test", where("workspace=kaizen-app-team", "labels.purpose=performance-test", "labels.edge=false"),
				where("labels.size=large")),
		},
		Configs: []model.Config{
			{Name: "east-us", Match: where("region=east-us")},
			{Name: "west-us", Match: where("region=west-us")},
			{Name: "drone", Match: where("clusterType=drone")},
		},
	}
}

// never is for selectors without expressions for CUE.
func never(model.Expr, string) bool { panic("asked of CUE") }

func assign(t *testing.T, env *model.Environment) (*Schedule, []diag.Diagnostic) {
	t.Helper()
	s, ds := Assign(env, never)
	for _, d := range ds {
		if d.Environment != env.Name || d.Severity != d.Code.Severity() || len(d.Sites) == 0 || d.Path == "" {
			t.Errorf("incomplete diagnostic %+v", d)
		}
	}
	return s, ds
}

// ids returns the assignments without their environment; failed ones end in !.
func ids(s *Schedule) []string {
	var out []string
	for _, a := range s.Assignments {
		id := strings.TrimPrefix(a.ID(s.Environment), s.Environment+"/")
		if a.Failed {
			id += "!"
		}
		out = append(out, id)
	}
	return out
}

// lines returns diagnostics as code, first site, message, hint and assignments.
func lines(ds []diag.Diagnostic) []string {
	var out []string
	for _, d := range ds {
		line := fmt.Sprintf("%s %s: %s", d.Code, d.Sites[0].Ref, d.Message)
		if d.Hint != "" {
			line += " (" + d.Hint + ")"
		}
		if len(d.Assignments) > 0 {
			line += fmt.Sprint(" ", d.Assignments)
		}
		out = append(out, line)
	}
	return out
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}
