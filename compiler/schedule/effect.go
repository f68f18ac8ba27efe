package schedule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// side is one of the selectors of a policy, with the number of selected entities.
type side struct {
	ref      model.Ref
	kind     string // the kind of the selected entities, for messages
	selector *model.Selector
	selected int
	except   bool
}

const (
	kindTarget  = "deployment target"
	kindType    = "cluster type"
	kindCluster = "cluster"
)

// sides returns the selectors of the policy.
func (s *selection) sides() []side {
	ref := model.Ref{Collection: "schedulingPolicies", Name: s.policy.Name}
	p := s.policy
	out := []side{
		{ref.At("deploymentTargets"), kindTarget, &p.DeploymentTargets, len(s.targets), false},
		{ref.At("clusterTypes"), kindType, &p.ClusterTypes, s.ofType, false},
	}
	out = append(out, s.clusters(ref, p.Clusters, false)...)
	for i := range p.Except {
		e, of := &p.Except[i], s.except[i]
		except := ref.At(e.Path)
		out = append(out,
			side{except.At("deploymentTargets"), kindTarget, &e.DeploymentTargets, len(of.targets), true},
			side{except.At("clusterTypes"), kindType, &e.ClusterTypes, of.ofType, true})
		out = append(out, of.clusters(except, e.Clusters, true)...)
	}
	return out
}

// clusters returns the selector of clusters at a reference. It returns nil if there are no
// types whose clusters the selector can distinguish.
func (p product) clusters(of model.Ref, s *model.Selector, except bool) []side {
	if s == nil || p.ofType == 0 {
		return nil
	}
	return []side{{of.At("clusters"), kindCluster, s, len(p.types), except}}
}

// Empty is a selector of a policy that selects nothing.
type Empty struct {
	Policy *model.SchedulingPolicy
	Except bool // whether it is a selector of the policy's except
	// Warning is the warning about it: diag.SelectsNothing, unresolved.
	Warning diag.Diagnostic
}

// Empty returns the selectors of policies that select nothing, by policy.
func (s *Schedule) Empty() []Empty {
	var out []Empty
	words := map[string]selector.Vocabulary{}
	for i := range s.selections {
		p := &s.selections[i]
		for _, side := range p.sides() {
			if side.selected > 0 {
				continue
			}
			if len(words) == 0 {
				words[kindTarget], words[kindType] = selector.VocabularyOf(s.fleet.targetFacts()),
					selector.VocabularyOf(s.fleet.typeFacts())
				words[kindCluster] = selector.VocabularyOf(s.fleet.clusterFacts())
			}
			d := selectsNothing(p.policy.Name, side, words[side.kind])
			d.Environment = s.Environment
			out = append(out, Empty{p.policy, side.except, d})
		}
	}
	return out
}

// warnOfNoEffect reports selectors that select nothing, targets without assignments
// and cluster types without assignments.
func (s *Schedule) warnOfNoEffect(r *report) {
	misspelt := map[string]string{} // the entities that have misspelt labels, by the label
	for _, d := range r.found {
		if d.Code == diag.LikelyMisspelt {
			misspelt[d.Suggestion.Wrong] = d.Sites[0].Ref.Entity().String()
		}
	}
	for _, e := range s.Empty() {
		if !e.Policy.AllowEmpty {
			r.add(e.Warning.Following(misspelt[e.Warning.Suggestion.Right]))
		}
	}
	c := s.causes()
	s.warnOfUnassigned(c, r)
	s.warnOfEmptyTypes(c, r)
	s.warnOfDevices(r)
}

// warnOfDevices reports names of folders of the output that Windows keeps for devices.
func (s *Schedule) warnOfDevices(r *report) {
	add := func(collection, kind, name string) {
		if model.IsDevice(name) {
			ref := model.Ref{Collection: collection, Name: name}
			r.add(diag.New(diag.Unportable,
				fmt.Sprintf(
					"%s %s has the name of a device on Windows, so its folder cannot be checked out there", kind,
					name)).
				On(ref.String()).At(ref, "").Hinting("give it another name"))
		}
	}
	add("environments", "environment", s.Environment)
	for _, c := range s.fleet.types {
		if c.Class == "" {
			add("clusterTypes", kindType, c.Name)
		}
	}
}

// warnOfUnassigned reports deployment targets without any assignment.
func (s *Schedule) warnOfUnassigned(c *causes, r *report) {
	assigned := map[*model.DeploymentTarget]bool{}
	for i := range s.Assignments {
		assigned[s.Assignments[i].Target] = true
	}
	denied := map[string][]string{}
	for _, d := range s.Denied {
		denied[d.DeploymentTarget] = append(denied[d.DeploymentTarget], d.Policies...)
	}
	for i, t := range s.fleet.targets {
		if assigned[t.DeploymentTarget] || t.AllowEmpty {
			continue
		}
		why, sites := s.unassigned(i, denied)
		d := diag.New(diag.Unassigned, why).On(t.ref().String()).At(t.ref(), "")
		for _, ref := range sites {
			d = d.At(ref, "")
		}
		hint := "if that is meant, write allowEmpty: true on the deployment target"
		if len(sites) == 0 {
			hint = fmt.Sprintf("write a policy for it, such as schedulingPolicies: %s: "+
				"{deploymentTargets: workload: %q, clusterTypes: {}}; %s", model.Label(t.workload.Name),
				t.workload.Name, hint)
		}
		r.add(d.Hinting(hint).Following(c.ofTarget(i)))
	}
}

// unassigned returns the reason why a deployment target has no assignment, and the policies
// that are involved. denied has, by full name, the policies that remove pairs.
func (s *Schedule) unassigned(target int, denied map[string][]string) (why string,
	policies []model.Ref) {
	name := s.fleet.targets[target].FullName
	var selecting []string
	some := false // whether a policy selects a pair with it
	for i := range s.selections {
		if p := &s.selections[i]; !p.policy.Deny && contains(p.targets, target) {
			selecting, some = append(selecting, p.policy.Name), some || len(p.types) > 0
		}
	}
	taking := slices.Compact(slices.Sorted(slices.Values(denied[name])))
	for _, name := range slices.Concat(selecting, taking) {
		if ref := (model.Ref{Collection: "schedulingPolicies", Name: name}); !slices.Contains(policies,
			ref) {
			policies = append(policies, ref)
		}
	}
	switch {
	case len(selecting) == 0:
		return "no scheduling policy selects deployment target " + name, nil
	case !some:
		return fmt.Sprintf("deployment target %s is assigned to nothing: no cluster type is "+
			"selected by %s", name, named(selecting)), policies
	default:
		return fmt.Sprintf("deployment target %s is assigned to nothing: all its pairs are "+
			"taken away by %s", name, named(taking)), policies
	}
}

func named(policies []string) string {
	if len(policies) == 1 {
		return "policy " + policies[0]
	}
	return "policies " + strings.Join(policies, ", ")
}

func (s *Schedule) warnOfEmptyTypes(c *causes, r *report) {
	used := make(map[string]bool) // by the names of declared ones
	for assignments := range s.clusterTypes {
		used[assignments[0].ClusterType.TypeName()] = true
	}
	for i, t := range s.fleet.types {
		if name := t.TypeName(); !used[name] {
			used[name] = true
			ref := t.Ref()
			r.add(diag.New(diag.EmptyClusterType,
				fmt.Sprintf("nothing is assigned to cluster type %s", t.Name)).
				On(ref.String()).At(ref, "").
				Hinting("let the clusterTypes of a policy select it, or remove it").Following(c.ofType(i)))
		}
	}
}

func selectsNothing(policy string, s side, words selector.Vocabulary) diag.Diagnostic {
	d := diag.New(diag.SelectsNothing,
		fmt.Sprintf("%s of policy %s selects nothing", s.ref.Path, policy)).
		On(s.ref.String()).At(s.ref, "")
	return words.Explain(d, s.kind, s.selector)
}
