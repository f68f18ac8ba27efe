package schedule

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestSample(t *testing.T) {
	s, ds := assign(t, sample())
	equal(t, "assignments", ids(s), []string{
		"drone/hello-world-app-functional-test", "large/hello-world-app-performance-test", "large/observability-prometheus"})
	equal(t, "diagnostics", lines(ds), []string{
		`K1904 clusterTypes."command-center": nothing is assigned to cluster type command-center (let the clusterTypes of a policy select it, or remove it)`,
		`K1904 clusterTypes.small: nothing is assigned to cluster type small (let the clusterTypes of a policy select it, or remove it)`})
	a, ok := s.Find("large", "observability-prometheus")
	if !ok || a.Workload.Name != "observability" || a.Target.Name != "prometheus" || a.Manifests.Git.Branch != "main" {
		t.Errorf("found %+v", a)
	}
	equal(t, "policies", a.Policies, []string{"observability"})
	if _, ok := s.Find("large", "nothing"); ok {
		t.Error("found nothing")
	}
}

func TestPolicies(t *testing.T) {
	all := where()
	except := func(p model.SchedulingPolicy, targets, types model.Selector) model.SchedulingPolicy {
		p.Except = append(p.Except, model.Except{Path: fmt.Sprintf("except[%d]", len(p.Except)), DeploymentTargets: targets, ClusterTypes: types})
		return p
	}
	deny := func(p model.SchedulingPolicy) model.SchedulingPolicy { p.Deny = true; return p }
	for _, c := range []struct {
		name     string
		policies []model.SchedulingPolicy
		want     string // cluster type/target by policies
	}{
		{"none", nil, ""},
		{"everything everywhere", []model.SchedulingPolicy{policy("p", all, all)}, "a/w-x:p a/w-y:p b/w-x:p b/w-y:p"},
		{"one pair of two policies is one assignment", []model.SchedulingPolicy{
			policy("q", where("name=x"), all), policy("p", all, where("name=a")),
		}, "a/w-x:p,q a/w-y:p b/w-x:q"},
		{"except narrows pairs", []model.SchedulingPolicy{except(policy("p", all, all), where("name=x"), where("name=a"))}, "a/w-y:p b/w-x:p b/w-y:p"},
		{"an absent side of except is all of it", []model.SchedulingPolicy{except(policy("p", all, all), all, where("name=a"))}, "b/w-x:p b/w-y:p"},
		{"any pair of several is left out", []model.SchedulingPolicy{
			except(except(policy("p", all, all), where("name=x"), where("name=a")), where("name=y"), where("name=b")),
		}, "a/w-y:p b/w-x:p"},
		{"except is its own policy's", []model.SchedulingPolicy{
			except(policy("p", all, all), all, where("name=a")), policy("q", where("name=x"), all),
		}, "a/w-x:q b/w-x:p,q b/w-y:p"},
		{"deny takes from all", []model.SchedulingPolicy{
			policy("p", all, all), policy("q", where("name=x"), all), deny(policy("d", where("name=x"), where("name=a"))),
		}, "a/w-y:p b/w-x:p,q b/w-y:p"},
		{"except narrows deny, too", []model.SchedulingPolicy{
			policy("p", all, all), deny(except(policy("d", all, all), all, where("name=b"))),
		}, "b/w-x:p b/w-y:p"},
		{"implied labels", []model.SchedulingPolicy{policy("p", where("labels.workload=w", "labels.workspace=team", "environment=dev", "name=y"), all)},
			"a/w-y:p b/w-y:p"},
		{"absent labels", []model.SchedulingPolicy{policy("p", where("name=x", "labels.edge!"), where("labels.edge!"))}, "b/w-x:p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := &model.Environment{Name: "dev", SchedulingPolicies: c.policies,
				ClusterTypes: []model.ClusterType{clusterTypeOf("a", "edge=true"), clusterTypeOf("b")},
				Workloads:    []model.Workload{workload("w", "team", nil, targetOf("x"), targetOf("y"))}}
			s, _ := assign(t, env)
			var got []string
			for i, id := range ids(s) {
				got = append(got, id+":"+strings.Join(s.Assignments[i].Policies, ","))
			}
			equal(t, "assignments", got, strings.Fields(c.want))
		})
	}
}

// fleetOf is a random environment with policies, pins and dependencies of every
// kind.
func fleetOf(seed uint64) *model.Environment {
	d := rand.New(rand.NewPCG(seed, 0))
	env := &model.Environment{Name: "dev"}
	label := func() string { return fmt.Sprintf("%c=%d", 'p'+d.IntN(3), d.IntN(3)) }
	for i := range 12 {
		env.ClusterTypes = append(env.ClusterTypes, clusterTypeOf(fmt.Sprint("type-", i), label(), label()))
	}
	for i := range 6 {
		var targets []model.DeploymentTarget
		for j := range 3 {
			target := targetOf(fmt.Sprint("t", j), label())
			for range d.IntN(3) {
				target.DependsOn = append(target.DependsOn, fmt.Sprintf("w%d-t%d", d.IntN(7), d.IntN(3)))
			}
			targets = append(targets, target)
		}
		env.Workloads = append(env.Workloads, workload(fmt.Sprint("w", i), "team", []string{label()}, targets...))
	}
	for i := range 10 {
		p := policy(fmt.Sprint("policy-", i), where("labels."+label()), where("labels."+label()))
		switch d.IntN(5) {
		case 0:
			p.Deny = true
		case 1:
			p.Except = []model.Except{{Path: "except", DeploymentTargets: where("labels." + label()), ClusterTypes: where()}}
			if d.IntN(2) == 0 {
				p.Except = append(p.Except, model.Except{Path: "except[1]", DeploymentTargets: where("labels." + label()), ClusterTypes: where("labels." + label())})
			}
		case 2:
			p.Pin = &model.Pin{Version: fmt.Sprint("1.0.", d.IntN(2))}
		case 3:
			pin := manifests(fmt.Sprintf(`{"git": {"tag": "v%d"}}`, d.IntN(2)))
			p.Pin = &model.Pin{Manifests: &pin}
		}
		env.SchedulingPolicies = append(env.SchedulingPolicies, p)
	}
	return env
}

func shuffle(env *model.Environment, d *rand.Rand) {
	shuffled(d, env.ClusterTypes)
	shuffled(d, env.Workloads)
	shuffled(d, env.SchedulingPolicies)
	for i := range env.Workloads {
		shuffled(d, env.Workloads[i].Targets)
		for j := range env.Workloads[i].Targets {
			shuffled(d, env.Workloads[i].Targets[j].DependsOn)
		}
	}
}

func shuffled[T any](d *rand.Rand, s []T) {
	d.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
}

// describe writes all of a schedule and its diagnostics.
func describe(s *Schedule, ds []diag.Diagnostic) string {
	var b strings.Builder
	for _, a := range s.Assignments {
		fmt.Fprintln(&b, a.ID(s.Environment), a.Policies, a.Version, *a.Manifests.Git, a.DependsOn, a.Wave, a.Failed)
	}
	for _, d := range ds {
		fmt.Fprintf(&b, "%+v\n", d)
	}
	return b.String()
}

func TestOrderDoesNotMatter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(60) {
		want := describe(Assign(fleetOf(seed), never))
		d := rand.New(rand.NewPCG(seed, 1))
		for procs := range 3 {
			runtime.GOMAXPROCS(procs + 1)
			env := fleetOf(seed)
			shuffle(env, d)
			if got := describe(Assign(env, never)); got != want {
				t.Fatalf("seed %d:\n got %s\nwant %s", seed, got, want)
			}
		}
	}
}

// A pair is assigned, or WhyNot returns the reason. Both agree with the policies evaluated
// pair by pair.
func TestEveryPairIsExplained(t *testing.T) {
	for seed := range uint64(20) {
		env := fleetOf(seed)
		s, _ := Assign(env, never)
		if !slices.IsSortedFunc(s.Assignments, func(a, b Assignment) int {
			return strings.Compare(a.ClusterType.Name+"/"+a.Target.FullName, b.ClusterType.Name+"/"+b.Target.FullName)
		}) {
			t.Fatal("not sorted")
		}
		for _, c := range env.ClusterTypes {
			for _, w := range env.Workloads {
				for _, target := range w.Targets {
					explained(t, s, env, c.Name, target.FullName)
				}
			}
		}
	}
}

func explained(t *testing.T, s *Schedule, env *model.Environment, clusterType, fullName string) {
	t.Helper()
	n, _ := s.fleet.targetNamed(fullName)
	c, _ := s.fleet.typeNamed(clusterType)
	holds := func(targets, types model.Selector) bool {
		return s.fleet.targetIndex.Holds(targets, n) && s.fleet.typeIndex.Holds(types, c)
	}
	selects := func(p model.SchedulingPolicy) bool {
		return holds(p.DeploymentTargets, p.ClusterTypes) && !slices.ContainsFunc(p.Except, func(e model.Except) bool { return holds(e.DeploymentTargets, e.ClusterTypes) })
	}
	denied := slices.ContainsFunc(env.SchedulingPolicies, func(p model.SchedulingPolicy) bool { return p.Deny && selects(p) })
	var want []string
	for _, p := range env.SchedulingPolicies {
		if !denied && !p.Deny && selects(p) {
			want = append(want, p.Name)
		}
	}
	var got []string
	if a, ok := s.Find(clusterType, fullName); ok {
		got = a.Policies
	}
	equal(t, clusterType+"/"+fullName, got, want)
	why, absent := s.WhyNot(clusterType, fullName)
	if absent != (want == nil) || absent && len(why.Removals)+len(why.Nearest) == 0 {
		t.Errorf("%s/%s: WhyNot gives %+v", clusterType, fullName, why)
	}
}
