package schedule

import (
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestNoEffect(t *testing.T) {
	env := sample()
	except := policy("except", where("name=prometheus"), where("name=small"))
	except.Except = []model.Except{{Path: "except", DeploymentTargets: where("name=prometheus", "labels.purpose=uat-test"), ClusterTypes: where("labels.region=north")}}
	env.SchedulingPolicies = []model.SchedulingPolicy{
		except,
		policy("key", where("labels.purpos=functional-test"), where("name=small")),
		policy("together", where("name=prometheus"), where("name=small", "labels.size=large")),
		policy("value", where("workspace=kaizen-app-taem"), where()),
	}
	deny := policy("deny", where("name=functional-test"), where("name=drone"))
	deny.Deny = true
	env.SchedulingPolicies = append(env.SchedulingPolicies, deny)
	want := []string{
		`K1902 schedulingPolicies.except.except.deploymentTargets: except.deploymentTargets of policy except selects nothing` +
			` (no deployment target has labels.purpose: "uat-test"; there are: functional-test, performance-test)`,
		`K1902 schedulingPolicies.except.except.clusterTypes: except.clusterTypes of policy except selects nothing` +
			` (no cluster type has labels.region: "north"; there are: east-us, west-us)`,
		`K1902 schedulingPolicies.key.deploymentTargets: deploymentTargets of policy key selects nothing` +
			` (no deployment target has labels.purpos; did you mean purpose?)`,
		`K1902 schedulingPolicies.together.clusterTypes: clusterTypes of policy together selects nothing` +
			` (no cluster type satisfies all of it at once)`,
		`K1902 schedulingPolicies.value.deploymentTargets: deploymentTargets of policy value selects nothing` +
			` (no deployment target has workspace: "kaizen-app-taem"; did you mean kaizen-app-team?)`,
		`K1903 workloads."hello-world-app".deploymentTargets."functional-test": no scheduling policy selects deployment target hello-world-app-functional-test (write a policy for it, such as schedulingPolicies: "hello-world-app": {deploymentTargets: workload: "hello-world-app", clusterTypes: {}}; if that is meant, write allowEmpty: true on the deployment target)`,
		`K1903 workloads."hello-world-app".deploymentTargets."performance-test": no scheduling policy selects deployment target hello-world-app-performance-test (write a policy for it, such as schedulingPolicies: "hello-world-app": {deploymentTargets: workload: "hello-world-app", clusterTypes: {}}; if that is meant, write allowEmpty: true on the deployment target)`,
		`K1904 clusterTypes."command-center": nothing is assigned to cluster type command-center (let the clusterTypes of a policy select it, or remove it)`,
		`K1904 clusterTypes.drone: nothing is assigned to cluster type drone (let the clusterTypes of a policy select it, or remove it)`,
		`K1904 clusterTypes.large: nothing is assigned to cluster type large (let the clusterTypes of a policy select it, or remove it)`,
	}
	_, ds := assign(t, env)
	equal(t, "warnings", lines(ds), want)

	env.Incomplete = true
	_, ds = assign(t, env)
	equal(t, "warnings of an uncertain environment", lines(ds), nil)
}

func TestNothingToSelect(t *testing.T) {
	env := &model.Environment{Name: "dev", SchedulingPolicies: []model.SchedulingPolicy{policy("p", where(), where())}}
	_, ds := assign(t, env)
	equal(t, "warnings", lines(ds), []string{
		"K1902 schedulingPolicies.p.deploymentTargets: deploymentTargets of policy p selects nothing (the environment has no deployment targets)",
		"K1902 schedulingPolicies.p.clusterTypes: clusterTypes of policy p selects nothing (the environment has no cluster types)"})
}

func TestSpelling(t *testing.T) {
	everything := []model.SchedulingPolicy{policy("p", where(), where())}
	types := func(labels ...string) []model.ClusterType {
		out := make([]model.ClusterType, len(labels))
		for i, l := range labels {
			out[i] = clusterTypeOf(string(rune('a'+i)), l)
		}
		return out
	}
	app := workload("app", "team", []string{"purpose=testing"}, targetOf("x"), targetOf("y"))
	for _, c := range []struct {
		name     string
		types    []model.ClusterType
		policies []model.SchedulingPolicy
		configs  []model.Config
		want     []string
	}{
		{"a key", types("region=a", "region=b", "regoin=a"), nil, nil, []string{
			`K1905 clusterTypes.c.labels.regoin: label "regoin" is used once, and looks like "region", which is used 2 times (did you mean region?)`}},
		{"a value", types("site=munich", "site=munich", "site=munick"), nil, nil, []string{
			`K1905 clusterTypes.c.labels.site: value of label site "munick" is used once, and looks like "munich", which is used 2 times (did you mean munich?)`}},
		{"a value that a selector names", types("site=munich", "site=munich", "site=munick"),
			[]model.SchedulingPolicy{policy("q", where(), where("labels.site=munick"))}, nil, nil},
		{"a value that a config names", types("site=munich", "site=munich", "site=munick"), nil,
			[]model.Config{{Name: "c", Match: where("site=munick")}}, nil},
		{"no word to compare with", types("site=munich", "site=munick"), nil, nil, nil},
		{"values of different labels", types("site=munich", "site=munich", "town=munick"), nil, nil, nil},
		{"a selector that holds all the same", types("region=a", "region=b"),
			[]model.SchedulingPolicy{policy("q", where(), where("labels.regions!"))}, nil, []string{
				`K1905 schedulingPolicies.q.clusterTypes.labels.regions: label "regions" is used once, and looks like "region", which is used 2 times (did you mean region?)`}},
		{"a selector that selects nothing says so once", types("region=a", "region=b"),
			[]model.SchedulingPolicy{policy("q", where(), where("labels.regions=a"))}, nil, []string{
				`K1902 schedulingPolicies.q.clusterTypes: clusterTypes of policy q selects nothing (no cluster type has labels.regions; did you mean region?)`}},
		{"two labels of one entity", []model.ClusterType{clusterTypeOf("a", "region=a", "regions=b"), clusterTypeOf("b", "region=a")}, nil, nil, nil},
		{"inherited labels count once", types("purpose=testing", "purpose=testing"), nil, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := &model.Environment{Name: "dev", ClusterTypes: c.types, Configs: c.configs,
				Workloads: []model.Workload{app}, SchedulingPolicies: append(everything, c.policies...)}
			_, ds := assign(t, env)
			equal(t, "warnings", lines(ds), c.want)
		})
	}
}
