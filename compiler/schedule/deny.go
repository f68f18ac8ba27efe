package schedule

import "slices"

// lenient returns the policies that have deny and an except, sorted by name.
func lenient(selections []selection) []*selection {
	var out []*selection
	for i := range selections {
		if p := selections[i].policy; p.Deny && len(p.Except) > 0 {
			out = append(out, &selections[i])
		}
	}
	return out
}

// deny notes the pairs of a cluster type that are taken away altogether. Both slices
// are sorted.
func (s *Schedule) deny(c int, assigned, denied []pair) {
	for first := 0; first < len(denied); {
		target := denied[first].target
		d := Denial{ClusterType: s.fleet.types[c].Name,
			DeploymentTarget: s.fleet.targets[target].FullName}
		for first < len(denied) && denied[first].target == target {
			d.Policies = append(d.Policies, s.selections[denied[first].selection].policy.Name)
			first++
		}
		_, also := slices.BinarySearchFunc(assigned, target,
			func(p pair, target int) int { return p.target - target })
		if !also {
			s.Denied = append(s.Denied, d)
		}
	}
}

// sparing returns the policies with deny that would remove a pair, but whose except
// excludes it.
func (s *Schedule) sparing(target, clusterType int) []string {
	var out []string
	for _, p := range s.lenient {
		if p.holds(target, clusterType) && p.excepts(target, clusterType) {
			out = append(out, p.policy.Name)
		}
	}
	return out
}
