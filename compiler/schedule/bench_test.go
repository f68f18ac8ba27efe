package schedule

import (
	"fmt"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// BenchmarkAssign makes 100,000 assignments of 1,000 targets and 300 cluster
// types by 400 policies.
func BenchmarkAssign(b *testing.B) {
	env := &model.Environment{Name: "dev"}
	for i := range 300 {
		env.ClusterTypes = append(env.ClusterTypes, clusterTypeOf(fmt.Sprint("type-", i), fmt.Sprint("region=r", i%20), fmt.Sprint("size=", i%3)))
	}
	for i := range 250 {
		var targets []model.DeploymentTarget
		for j := range 4 {
			target := targetOf(fmt.Sprint("t", j), fmt.Sprint("ring=", j))
			if j > 0 {
				target.DependsOn = []string{fmt.Sprintf("w%d-t%d", i, j-1)}
			}
			targets = append(targets, target)
		}
		env.Workloads = append(env.Workloads, workload(fmt.Sprint("w", i), fmt.Sprint("team-", i%20), nil, targets...))
	}
	for i := range 400 {
		p := policy(fmt.Sprint("p", i), where(fmt.Sprint("workspace=team-", i%20)), where(fmt.Sprint("labels.region=r", (i%20+i/40)%20)))
		if i%10 == 0 {
			p.Pin = &model.Pin{Version: "1.0.0"}
		}
		env.SchedulingPolicies = append(env.SchedulingPolicies, p)
	}
	var s *Schedule
	for b.Loop() {
		s, _ = Assign(env, never)
	}
	b.ReportMetric(float64(len(s.Assignments)), "assignments")
}
