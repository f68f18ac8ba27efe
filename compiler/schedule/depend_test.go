package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestDependencies(t *testing.T) {
	for _, c := range []struct {
		name     string
		targets  string // of workload w: x:dependency,dependency
		types    string // cluster type:target,target
		want     string // cluster type/target=wave, with ! if it failed
		problems []string
	}{
		{"none", "x y", "a:x,y", "a/w-x=0 a/w-y=0", nil},
		{"a chain and a short cut", "x:w-y,w-z y:w-z z", "a:x,y,z b:y,z", "a/w-x=2 a/w-y=1 a/w-z=0 b/w-y=1 b/w-z=0", nil},
		{"twice", "x:w-y,w-y y", "a:x,y", "a/w-x=1 a/w-y=0", nil},
		{"itself", "x:w-x", "a:x", "a/w-x=0!", []string{
			"K2103 workloads.w.deploymentTargets.x.dependsOn: w-x depends on itself (remove it from its dependsOn) [dev/a/w-x]"}},
		{"unknown", "exporter:w-databaes database", "a:exporter,database b:exporter", "a/w-database=0 a/w-exporter=0! b/w-exporter=0!", []string{
			"K2103 workloads.w.deploymentTargets.exporter.dependsOn: w-exporter depends on w-databaes, which is no deployment target of environment dev" +
				" (did you mean w-database?) [dev/a/w-exporter dev/b/w-exporter]"}},
		{"unknown and assigned nowhere", "x:w-z y", "a:y", "a/w-y=0", []string{
			"K2103 workloads.w.deploymentTargets.x.dependsOn: w-x depends on w-z, which is no deployment target of environment dev (did you mean w-y?)"}},
		{"elsewhere", "x:w-y y", "a:x b:x,y c:x", "a/w-x=0! b/w-x=1 b/w-y=0 c/w-x=0!", []string{
			"K2103 workloads.w.deploymentTargets.x.dependsOn: w-x depends on w-y, which is not assigned to the same cluster type" +
				" (schedule w-y wherever w-x goes, or remove it from dependsOn) [dev/a/w-x dev/c/w-x]"}},
		{"a circle", "x:w-y y:w-z z:w-x,w-u u v:w-x", "a:u,v,x,y,z b:u", "a/w-u=0 a/w-v=2 a/w-x=1! a/w-y=1! a/w-z=1! b/w-u=0", []string{
			"K2103 workloads.w.deploymentTargets.x.dependsOn: dependencies in a circle: w-x -> w-y -> w-z -> w-x" +
				" (none of them can be applied first: remove one of the dependencies) [dev/a/w-x dev/a/w-y dev/a/w-z]"}},
		{"sick", "x:sick-z,w-sick y", "a:x", "a/w-x=0!", []string{
			"K2103 workloads.w.deploymentTargets.x.dependsOn: w-x depends on sick-z, which is no deployment target of environment dev" +
				" (sick-z has errors of its own: correct them first) [dev/a/w-x]",
			"K2103 workloads.w.deploymentTargets.x.dependsOn: w-x depends on w-sick, which is no deployment target of environment dev" +
				" (w-sick has errors of its own: correct them first) [dev/a/w-x]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := &model.Environment{Name: "dev", Incomplete: true, Invalid: map[model.Ref]bool{
				{Collection: "workloads", Name: "sick"}:                              true,
				{Collection: "workloads", Name: "w", Path: "deploymentTargets.sick"}: true,
			}}
			var targets []model.DeploymentTarget
			for _, text := range strings.Fields(c.targets) {
				name, dependsOn, _ := strings.Cut(text, ":")
				target := targetOf(name)
				if dependsOn != "" {
					target.DependsOn = strings.Split(dependsOn, ",")
				}
				targets = append(targets, target)
			}
			env.Workloads = []model.Workload{workload("w", "team", nil, targets...)}
			for _, text := range strings.Fields(c.types) {
				name, names, _ := strings.Cut(text, ":")
				env.ClusterTypes = append(env.ClusterTypes, clusterTypeOf(name))
				for _, target := range strings.Split(names, ",") {
					env.SchedulingPolicies = append(env.SchedulingPolicies, policy(name+target, where("name="+target), where("name="+name)))
				}
			}
			s, ds := assign(t, env)
			var got []string
			for i, id := range ids(s) {
				id, failed := strings.CutSuffix(id, "!")
				id = fmt.Sprintf("%s=%d", id, s.Assignments[i].Wave)
				if failed {
					id += "!"
				}
				got = append(got, id)
			}
			equal(t, "assignments", got, strings.Fields(c.want))
			equal(t, "problems", lines(ds), c.problems)
		})
	}
}

// Waves and components hold for a chain that is as long as a fleet is large.
func TestLongChain(t *testing.T) {
	edges := make([][]int, 100_000)
	for i := range edges[1:] {
		edges[i] = []int{i + 1}
	}
	found := components(edges)
	if len(found) != len(edges) || !slices.Equal(found[0], []int{len(edges) - 1}) {
		t.Errorf("%d components, first %v", len(found), found[0])
	}
	edges[len(edges)-1] = []int{0}
	if found := components(edges); len(found) != 1 || len(circle(edges, found[0])) != len(edges)+1 {
		t.Errorf("%d components of a circle", len(found))
	}
}
