package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// nearestPolicies is the largest number of policies that WhyNot shows.
const nearestPolicies = 3

// Absence is the reason why a deployment target is not assigned to a cluster type.
type Absence struct {
	Environment      string `json:"environment"`
	ClusterType      string `json:"clusterType"`
	DeploymentTarget string `json:"deploymentTarget"` // the full name
	// Unknown are the sides that the environment does not have.
	Unknown []Unknown `json:"unknown,omitempty"`
	// Removals are the policies that select the pair but lose it. If there are some, they
	// are the only reason.
	Removals []Removal `json:"removals,omitempty"`
	// Nearest are the policies that select the pair except for the fewest constraints, the
	// nearest first. Of equally near ones, the policies that select the deployment target
	// come first.
	Nearest []NearMiss `json:"nearest,omitempty"`
	// Uncertain reports that errors hide a part of the environment, so there may be other
	// reasons.
	Uncertain bool `json:"uncertain,omitempty"`
}

// Unknown is a cluster type or deployment target that the environment does not
// have.
type Unknown struct {
	Kind string `json:"kind"` // cluster type or deployment target
	Name string `json:"name"`
	Hint string `json:"hint,omitempty"`
}

// Message returns the message that the environment does not have it, with a hint.
func (u Unknown) Message(environment string) string {
	text := fmt.Sprintf("there is no %s %s in %s", u.Kind, u.Name, environment)
	if u.Hint != "" {
		text += "; " + u.Hint
	}
	return text
}

// Removal is a policy that selects the pair, and the reason why it loses the pair.
type Removal struct {
	Policy string `json:"policy"`
	// Except reports that the policy's own except removes it.
	Except bool `json:"except,omitempty"`
	// DeniedBy are the policies with deny that do.
	DeniedBy []string `json:"deniedBy,omitempty"`
}

// NearMiss is a policy that does not select the pair.
type NearMiss struct {
	Policy           string              `json:"policy"`
	DeploymentTarget []selector.Mismatch `json:"deploymentTarget,omitempty"`
	ClusterType      []selector.Mismatch `json:"clusterType,omitempty"`
	// Clusters is the policy's selector of clusters if it does not hold for the clusters of
	// the cluster type. Otherwise it is "".
	Clusters string `json:"clusters,omitempty"`
}

// WhyNot returns the reason why a deployment target, by its full name, is not assigned to a
// cluster type. It returns false if it is assigned. The target and the cluster type need
// not exist.
func (s *Schedule) WhyNot(clusterType, fullName string) (Absence, bool) {
	a := Absence{Environment: s.Environment, ClusterType: clusterType, DeploymentTarget: fullName,
		Uncertain: s.uncertain}
	if _, assigned := s.Find(clusterType, fullName); assigned {
		return Absence{}, false
	}
	c, hasType := s.fleet.typeNamed(clusterType)
	if !hasType {
		a.Unknown = append(a.Unknown,
			Unknown{kindType, clusterType, spelling.DidYouMean(clusterType, s.fleet.typeNames())})
	}
	t, hasTarget := s.fleet.targetNamed(fullName)
	if !hasTarget {
		a.Unknown = append(a.Unknown,
			Unknown{kindTarget, fullName, spelling.DidYouMean(fullName, s.fleet.fullNames())})
	}
	if len(a.Unknown) > 0 {
		return a, true
	}
	if a.Removals = s.removals(t, c); len(a.Removals) == 0 {
		a.Nearest = s.nearest(t, c)
	}
	return a, true
}

// removals returns the policies that select a pair that is not assigned.
func (s *Schedule) removals(t, c int) []Removal {
	var denying []string
	for i := range s.selections {
		if s.selections[i].denies(t, c) {
			denying = append(denying, s.selections[i].policy.Name)
		}
	}
	var out []Removal
	for i := range s.selections {
		switch p := &s.selections[i]; {
		case p.policy.Deny || !p.holds(t, c):
		case p.excepts(t, c):
			out = append(out, Removal{Policy: p.policy.Name, Except: true})
		default:
			out = append(out, Removal{Policy: p.policy.Name, DeniedBy: denying})
		}
	}
	return out
}

// nearest returns the policies that need the fewest changes to select the pair.
func (s *Schedule) nearest(t, c int) []NearMiss {
	var out []NearMiss
	for i := range s.selections {
		if p := s.selections[i].policy; !p.Deny {
			miss := NearMiss{Policy: p.Name, DeploymentTarget: s.fleet.targetIndex.Why(p.DeploymentTargets,
				t), ClusterType: s.fleet.typeIndex.Why(p.ClusterTypes, c)}
			if !s.fleet.types[c].Selects(p.Clusters,
				model.SelectorOf(model.Ref{Collection: "schedulingPolicies", Name: p.Name})) {
				miss.Clusters = p.Clusters.String()
			}
			out = append(out, miss)
		}
	}
	slices.SortStableFunc(out, func(a, b NearMiss) int {
		return cmp.Or(cmp.Compare(a.mismatches(), b.mismatches()),
			cmp.Compare(len(a.DeploymentTarget), len(b.DeploymentTarget)))
	})
	return out[:min(len(out), nearestPolicies)]
}

func (n NearMiss) mismatches() int {
	all := len(n.DeploymentTarget) + len(n.ClusterType)
	if n.Clusters != "" {
		all++
	}
	return all
}

// String returns the reasons as lines of text.
func (a Absence) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is not assigned to %s in %s\n", a.DeploymentTarget, a.ClusterType,
		a.Environment)
	for _, u := range a.Unknown {
		fmt.Fprintf(&b, "  %s\n", u.Message(a.Environment))
	}
	for _, r := range a.Removals {
		if r.Except {
			fmt.Fprintf(&b, "  policy %s selects it, and its except leaves it out\n", r.Policy)
		} else {
			fmt.Fprintf(&b, "  policy %s selects it, and policy %s denies it\n", r.Policy,
				strings.Join(r.DeniedBy, ", "))
		}
	}
	for _, n := range a.Nearest {
		fmt.Fprintf(&b, "  policy %s does not select it\n", n.Policy)
		for _, m := range n.DeploymentTarget {
			fmt.Fprintf(&b, "    %s %s\n", kindTarget, m)
		}
		for _, m := range n.ClusterType {
			fmt.Fprintf(&b, "    %s %s\n", kindType, m)
		}
		if n.Clusters != "" {
			fmt.Fprintf(&b, "    its clusters are not among %s\n", n.Clusters)
		}
	}
	if len(a.Unknown)+len(a.Removals)+len(a.Nearest) == 0 {
		b.WriteString("  no policy assigns anything\n")
	}
	if a.Uncertain {
		b.WriteString("  the environment has errors, which may hide the reason\n")
	}
	return b.String()
}
