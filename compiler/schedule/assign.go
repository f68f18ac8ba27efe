package schedule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// selection are the pairs that one policy selects: its targets times its types,
// but for those of except. All are numbers in the fleet, ascending.
type selection struct {
	policy         *model.SchedulingPolicy
	targets, types []int
	exceptTargets  []int
	exceptTypes    []int
}

// selections evaluates the policies, sorted by name.
func (f *fleet) selections(policies []model.SchedulingPolicy) []selection {
	out := make([]selection, len(policies))
	for i := range policies {
		p := &policies[i]
		out[i] = selection{policy: p, targets: f.targetIndex.Select(p.DeploymentTargets), types: f.typeIndex.Select(p.ClusterTypes)}
		if p.Except != nil {
			out[i].exceptTargets = f.targetIndex.Select(p.Except.DeploymentTargets)
			out[i].exceptTypes = f.typeIndex.Select(p.Except.ClusterTypes)
		}
	}
	slices.SortFunc(out, func(a, b selection) int { return strings.Compare(a.policy.Name, b.policy.Name) })
	return out
}

func contains(ascending []int, n int) bool {
	_, found := slices.BinarySearch(ascending, n)
	return found
}

// holds says whether both sides of the policy select the pair.
func (s *selection) holds(target, clusterType int) bool {
	return contains(s.types, clusterType) && contains(s.targets, target)
}

// excepts says whether the policy's except takes the pair from it.
func (s *selection) excepts(target, clusterType int) bool {
	return contains(s.exceptTypes, clusterType) && contains(s.exceptTargets, target)
}

// denies says whether the policy takes the pair from all policies.
func (s *selection) denies(target, clusterType int) bool {
	return s.policy.Deny && s.holds(target, clusterType) && !s.excepts(target, clusterType)
}

// pair is a deployment target that a policy assigns to the cluster type at hand.
type pair struct{ target, selection int }

// assign makes the assignments, cluster type by cluster type.
func (s *Schedule) assign(r *report) {
	byType := make([][]int, len(s.fleet.types)) // selections, ascending
	for i := range s.selections {
		for _, c := range s.selections[i].types {
			byType[c] = append(byType[c], i)
		}
	}
	known := pins{known: make(map[string]pinned)}
	var pairs []pair
	for c, selections := range byType {
		pairs = s.pairs(c, selections, pairs[:0])
		for first := 0; first < len(pairs); {
			last := first + 1
			for last < len(pairs) && pairs[last].target == pairs[first].target {
				last++
			}
			s.add(c, pairs[first:last], &known, r)
			first = last
		}
	}
}

// pairs appends to pairs those of one cluster type, by target and selection.
func (s *Schedule) pairs(c int, selections []int, pairs []pair) []pair {
	var denying []*selection
	for _, i := range selections {
		if s.selections[i].policy.Deny {
			denying = append(denying, &s.selections[i])
		}
	}
	for _, i := range selections {
		p := &s.selections[i]
		if p.policy.Deny {
			continue
		}
		for _, t := range p.targets {
			denied := func(d *selection) bool { return d.denies(t, c) }
			if !p.excepts(t, c) && !slices.ContainsFunc(denying, denied) {
				pairs = append(pairs, pair{t, i})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.target, b.target), cmp.Compare(a.selection, b.selection))
	})
	return pairs
}

// add makes the assignment that one target's pairs are.
func (s *Schedule) add(c int, pairs []pair, known *pins, r *report) {
	t := s.fleet.targets[pairs[0].target]
	a := Assignment{
		Workload:    t.workload,
		Target:      t.DeploymentTarget,
		ClusterType: s.fleet.types[c],
		Policies:    make([]string, len(pairs)),
		Version:     t.Version,
		Manifests:   t.Manifests,
	}
	var pinning []*model.SchedulingPolicy
	for i, p := range pairs {
		policy := s.selections[p.selection].policy
		a.Policies[i] = policy.Name
		if policy.Pin != nil {
			pinning = append(pinning, policy)
		}
	}
	if len(pinning) > 0 {
		p := known.of(t, pinning)
		a.Version, a.Manifests = p.version, p.manifests
		a.Failed = len(p.problems) > 0
		for _, d := range p.problems {
			r.add(d, a.ID(s.Environment))
		}
	}
	s.Assignments = append(s.Assignments, a)
}
