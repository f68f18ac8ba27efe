package schedule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// selection is the pairs that one policy selects, without the pairs that its except
// selects.
type selection struct {
	policy *model.SchedulingPolicy
	product
	except []product // as in the policy
}

// product are some targets times some types, by their numbers in the fleet,
// ascending.
type product struct {
	targets, types []int
	// ofType is the number of types before clusters distinguishes them.
	ofType int
}

// selections evaluates the policies, sorted by name.
func (f *fleet) selections(policies []model.SchedulingPolicy) []selection {
	out := make([]selection, len(policies))
	for i := range policies {
		p := &policies[i]
		ref := model.Ref{Collection: "schedulingPolicies", Name: p.Name}
		out[i] = selection{policy: p,
			product: f.product(p.DeploymentTargets, p.ClusterTypes, p.Clusters, ref)}
		for _, e := range p.Except {
			out[i].except = append(out[i].except,
				f.product(e.DeploymentTargets, e.ClusterTypes, e.Clusters, ref.At(e.Path)))
		}
	}
	slices.SortFunc(out,
		func(a, b selection) int { return strings.Compare(a.policy.Name, b.policy.Name) })
	return out
}

// product returns the targets and the cluster types that selectors select. The selector
// clusters narrows the cluster types to those whose clusters it selects; it belongs to the
// entity at the reference of, and may be nil.
func (f *fleet) product(targets, types model.Selector, clusters *model.Selector,
	of model.Ref) product {
	p := product{targets: f.targetIndex.Select(targets), types: f.typeIndex.Select(types)}
	p.ofType = len(p.types)
	if clusters != nil {
		name := model.SelectorOf(of)
		p.types = slices.DeleteFunc(p.types,
			func(n int) bool { return !f.types[n].Selects(clusters, name) })
	}
	return p
}

func contains(ascending []int, n int) bool {
	_, found := slices.BinarySearch(ascending, n)
	return found
}

// holds reports whether both sides select the pair.
func (p product) holds(target, clusterType int) bool {
	return contains(p.types, clusterType) && contains(p.targets, target)
}

// excepts reports whether the policy's except removes the pair from it.
func (s *selection) excepts(target, clusterType int) bool {
	return slices.ContainsFunc(s.except, func(p product) bool { return p.holds(target, clusterType) })
}

// denies reports whether the policy removes the pair from all policies.
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
	known := pins{known: make(map[string]pinnedTarget)}
	ofType, count := make([][]pair, len(byType)), 0
	for c, selections := range byType {
		pairs, denied := s.pairs(c, selections)
		s.deny(c, pairs, denied)
		for n := range pairs {
			if n == 0 || pairs[n].target != pairs[n-1].target {
				count++
			}
		}
		ofType[c] = pairs
	}
	s.Assignments = slices.Grow(s.Assignments, count) // they are large, and many
	for c, pairs := range ofType {
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

// pairs returns the pairs of one cluster type, by target and selection, and the pairs that
// policies remove.
func (s *Schedule) pairs(c int, selections []int) (pairs, denied []pair) {
	var denying []int
	most := 0
	for _, i := range selections {
		if s.selections[i].policy.Deny {
			denying = append(denying, i)
		} else {
			most += len(s.selections[i].targets)
		}
	}
	pairs = make([]pair, 0, most)
	for _, i := range selections {
		p := &s.selections[i]
		if p.policy.Deny {
			continue
		}
		for _, t := range p.targets {
			if p.excepts(t, c) {
				denied = append(denied, pair{t, i})
				continue
			}
			before := len(denied)
			for _, d := range denying {
				if s.selections[d].denies(t, c) {
					denied = append(denied, pair{t, d})
				}
			}
			if len(denied) == before {
				pairs = append(pairs, pair{t, i})
			}
		}
	}
	slices.SortFunc(pairs, comparePairs)
	slices.SortFunc(denied, comparePairs)
	return pairs, slices.Compact(denied)
}

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.target, b.target), cmp.Compare(a.selection, b.selection))
}

// add makes the assignment of one target from its pairs.
func (s *Schedule) add(c int, pairs []pair, known *pins, r *report) {
	number := pairs[0].target
	t := s.fleet.targets[number]
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
	a.SparedBy = s.sparing(number, c)
	if len(pinning) > 0 {
		p := known.apply(t, pinning)
		a.Version, a.Manifests = p.version, p.manifests
		a.Failed = len(p.problems) > 0
		for _, d := range p.problems {
			r.add(d, a.ID(s.Environment))
		}
	}
	s.Assignments = append(s.Assignments, a)
}
