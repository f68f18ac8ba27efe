package schedule

import (
	"encoding/json"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestWhyNot(t *testing.T) {
	env := sample()
	narrow := policy("narrow", where("workload=observability"), where())
	narrow.Except = []model.Except{{Path: "except", DeploymentTargets: where(), ClusterTypes: where("name=small")}}
	deny := policy("quarantine", where(), where("name=command-center"))
	deny.Deny = true
	env.SchedulingPolicies = append(env.SchedulingPolicies, narrow, deny)
	s, _ := assign(t, env)
	for _, c := range []struct{ name, clusterType, target, want, json string }{
		{"the nearest policies first", "small", "hello-world-app-performance-test", `hello-world-app-performance-test is not assigned to small in dev
  policy performance-test does not select it
    cluster type labels.size: wants "large", is "small"
  policy narrow does not select it
    deployment target workload: wants "observability", is "hello-world-app"
  policy observability does not select it
    deployment target workspace: wants "platform-team", is "kaizen-app-team"
    deployment target labels.stack: wants "observability", is absent
    cluster type labels.size: wants "large", is "small"
`, `{"environment":"dev","clusterType":"small","deploymentTarget":"hello-world-app-performance-test","nearest":[` +
			`{"policy":"performance-test","clusterType":[{"path":"labels.size","want":"\"large\"","have":["small"]}]},` +
			`{"policy":"narrow","deploymentTarget":[{"path":"workload","want":"\"observability\"","have":["hello-world-app"]}]},` +
			`{"policy":"observability","deploymentTarget":[{"path":"workspace","want":"\"platform-team\"","have":["kaizen-app-team"]},` +
			`{"path":"labels.stack","want":"\"observability\""}],"clusterType":[{"path":"labels.size","want":"\"large\"","have":["small"]}]}]}`},
		{"except", "small", "observability-prometheus", `observability-prometheus is not assigned to small in dev
  policy narrow selects it, and its except leaves it out
`, `{"environment":"dev","clusterType":"small","deploymentTarget":"observability-prometheus","removals":[{"policy":"narrow","except":true}]}`},
		{"deny", "command-center", "observability-prometheus", `observability-prometheus is not assigned to command-center in dev
  policy narrow selects it, and policy quarantine denies it
`, `{"environment":"dev","clusterType":"command-center","deploymentTarget":"observability-prometheus","removals":[{"policy":"narrow","deniedBy":["quarantine"]}]}`},
		{"no such cluster type", "drones", "observability-prometheus", `observability-prometheus is not assigned to drones in dev
  there is no cluster type drones in dev; did you mean drone?
`, ""},
		{"neither side", "cloud", "hello-world-app-uat-test", `hello-world-app-uat-test is not assigned to cloud in dev
  there is no cluster type cloud in dev; there are: command-center, drone, large, small
  there is no deployment target hello-world-app-uat-test in dev; there are: hello-world-app-functional-test, hello-world-app-performance-test, observability-prometheus
`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			why, ok := s.WhyNot(c.clusterType, c.target)
			if !ok || why.String() != c.want {
				t.Errorf("%v, got\n%swant\n%s", ok, why, c.want)
			}
			b, err := json.Marshal(why)
			if err != nil || c.json != "" && string(b) != c.json {
				t.Errorf("JSON, %v\n got %s\nwant %s", err, b, c.json)
			}
		})
	}
	if _, ok := s.WhyNot("drone", "hello-world-app-functional-test"); ok {
		t.Error("explains why an assignment is not there that is")
	}
}

func TestWhyNotWithoutPolicies(t *testing.T) {
	env := sample()
	env.SchedulingPolicies, env.Incomplete = nil, true
	s, _ := assign(t, env)
	why, ok := s.WhyNot("drone", "observability-prometheus")
	const want = `observability-prometheus is not assigned to drone in dev
  no policy assigns anything
  the environment has errors, which may hide the reason
`
	if !ok || why.String() != want {
		t.Errorf("%v, got\n%swant\n%s", ok, why, want)
	}
}
