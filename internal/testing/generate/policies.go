package generate

import (
	"fmt"
	"math/rand/v2"
)

// pair is an assignment: a target on a cluster type.
type pair struct {
	target      *target
	clusterType *clusterType
}

// newPolicies makes the policies and returns them with their assignments, in no useful order but
// always the same.
//
// A main policy assigns a product to a run of regions, so that each region is used. Some have an
// exception. Further policies select pairs again that are already selected. They add a second
// reason to assignments, by every kind of constraint. The last ones, by name, make the number of
// assignments exact.
func newPolicies(draw *rand.Rand, s Size, targets []target, clusterTypes []clusterType) ([]entry, []pair) {
	products := group(targets, func(t *target) string { return t.labels["product"] })
	byRegion := group(clusterTypes, func(c *clusterType) string { return c.labels["region"] })

	p := plan{taken: map[pair]bool{}}
	var runs [][]string // per product, its regions
	next := draw.IntN(len(byRegion))
	targetsLeft := len(targets)
	for i, product := range products {
		// The remaining products share the remaining assignments, so that each product makes up for
		// the error of the one before.
		goal := (s.Assignments - len(p.pairs)) * len(product.members) / targetsLeft
		targetsLeft -= len(product.members)
		var run []string
		var clusters []*clusterType
		for len(run) < len(byRegion) {
			r := byRegion[(next+len(run))%len(byRegion)]
			if len(run) > 0 && (len(clusters)+len(r.members))*len(product.members) > goal {
				break
			}
			run, clusters = append(run, r.key), append(clusters, r.members...)
		}
		next += len(run)
		runs = append(runs, run)
		p.main(product, run, clusters, i%4 == 1)
	}
	for i := range s.Policies - len(products) {
		product := i % len(products)
		run := runs[product]
		p.again(i, products[product].key, run[draw.IntN(len(run))])
	}
	p.topUp(s.Assignments, targets, clusterTypes)
	return p.entries, p.pairs
}

// plan has the policies so far and their selection.
type plan struct {
	entries []entry
	pairs   []pair
	taken   map[pair]bool
}

func (p *plan) take(t *target, c *clusterType) {
	if pr := (pair{t, c}); !p.taken[pr] {
		p.taken[pr] = true
		p.pairs = append(p.pairs, pr)
	}
}

// main adds the policy of a product on all clusters of some regions; except
// leaves uncritical targets out of restricted clusters.
func (p *plan) main(product member[target], regions []string, clusters []*clusterType, except bool) {
	e := entry{name: product.key}
	e.line("deploymentTargets: labels: product", product.key)
	e.line("clusterTypes: labels: region", oneOf(regions))
	if except {
		e.line("except", expr(`{deploymentTargets: labels: criticality: "low", clusterTypes: labels: restricted: "true"}`))
	}
	p.entries = append(p.entries, e)
	for _, t := range product.members {
		for _, c := range clusters {
			if except && t.labels["criticality"] == "low" && c.labels["restricted"] == "true" {
				continue
			}
			p.take(t, c)
		}
	}
}

// again adds a policy that selects a part of the selection of the product's main policy in a
// region: critical targets, which no exception concerns.
func (p *plan) again(i int, product, region string) {
	e := entry{name: fmt.Sprintf("critical-%03d", i)}
	e.line("deploymentTargets: labels", expr(fmt.Sprintf("{product: %q, criticality: !=\"low\"}", product)))
	clusterLabels := []string{
		fmt.Sprintf("{region: %q}", region),
		fmt.Sprintf("{region: =~%q}", "^"+region+"$"),
		fmt.Sprintf("{region: %q, restricted?: _|_}", region),
		fmt.Sprintf("{region: %q, size?: string}", region),
		fmt.Sprintf("{region: %q, class: !=\"none\"}", region),
	}
	e.line("clusterTypes: labels", expr(clusterLabels[i%len(clusterLabels)]))
	p.entries = append(p.entries, e)
}

// topUp adds pairs that are missing to n, by name: all the free clusters of some
// targets in policies of one target each.
func (p *plan) topUp(n int, targets []target, clusterTypes []clusterType) {
	for i := len(targets) - 1; i >= 0 && len(p.pairs) < n; i-- {
		t := &targets[i]
		var names []string
		for j := range clusterTypes {
			c := &clusterTypes[j]
			if len(p.pairs) < n && !p.taken[pair{t, c}] {
				p.take(t, c)
				names = append(names, c.name)
			}
		}
		if len(names) == 0 {
			continue
		}
		e := entry{name: "pilot-" + t.workload + "-" + t.name}
		e.line("deploymentTargets", expr(fmt.Sprintf("{workload: %q, name: %q}", t.workload, t.name)))
		e.line("clusterTypes: name", oneOf(names))
		p.entries = append(p.entries, e)
	}
}

// member has the members of a group, and their common key.
type member[T any] struct {
	key     string
	members []*T
}

// group groups by key, in order of first appearance.
func group[T any](all []T, key func(*T) string) []member[T] {
	var out []member[T]
	at := map[string]int{}
	for i := range all {
		k := key(&all[i])
		if _, ok := at[k]; !ok {
			at[k] = len(out)
			out = append(out, member[T]{key: k})
		}
		out[at[k]].members = append(out[at[k]].members, &all[i])
	}
	return out
}
