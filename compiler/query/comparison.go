package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Comparison is the difference between two environments, or between one at two commits.
type Comparison struct {
	Before ComparedSide `json:"before"`
	After  ComparedSide `json:"after"`
	// Workloads are the different workloads, sorted by name, and Same counts the others.
	Workloads []WorkloadComparison `json:"workloads"`
	Same      int                  `json:"same"`
}

// ComparedSide is one of the compared environments.
type ComparedSide struct {
	Environment string `json:"environment"`
	Revision    string `json:"revision,omitempty"` // "" for the platform's folder as it is
	Assignments int    `json:"assignments"`
	Failed      int    `json:"failed"` // assignments with errors; their values are not compared
}

// WorkloadComparison has the differences of a workload.
type WorkloadComparison struct {
	Workload string `json:"workload"`
	// Differences are the placements, then versions, namespaces and contracts, then values sorted
	// by path.
	Differences []WorkloadDifference `json:"differences"`
}

// WorkloadDifference is a difference between all assignments of a workload on both sides.
type WorkloadDifference struct {
	Kind DifferenceKind `json:"kind"`
	Path string         `json:"path,omitempty"` // of a value
	// ClusterType is the cluster type of a value's difference, or the folder of a class whose
	// clusters only one side lists. It is "" for a difference on all cluster types.
	ClusterType string `json:"clusterType,omitempty"`
	// Clusters are the clusters on both sides that have the workload only on one side, or
	// different values of it. They are sorted, and absent if the difference is not about single
	// clusters.
	Clusters []string `json:"clusters,omitempty"`
	// Before and After are the texts of the assignments on each side, sorted and without
	// duplicates. For a value they are JSON, and come from assignments that are configured
	// differently on both sides.
	Before []string `json:"before"`
	After  []string `json:"after"`
}

// DifferenceKind is the kind of a difference.
type DifferenceKind string

// The compared aspects of a workload.
const (
	DiffersInPlacement DifferenceKind = "placement" // its cluster types and clusters
	DiffersInVersion   DifferenceKind = "version"
	// without the names in it that depend on the assignment
	DiffersInNamespace DifferenceKind = "namespace"
	DiffersInContract  DifferenceKind = "contract"
	DiffersInValue     DifferenceKind = "value"
)

// workloadSide are the assignments of a workload on one side.
type workloadSide struct {
	e       *engine.Environment
	digests []model.Digest // of configurations, by number of the assignment; "" if it failed
	all     []int          // by number
}

// Compare compares two environments, workload by workload. Both must have a model. Compare
// compares clusters that both environments list one by one, whatever their classes are.
func Compare(ctx context.Context, before, after *engine.Environment) (*Comparison, error) {
	out := &Comparison{Before: sideOf(before), After: sideOf(after), Workloads: []WorkloadComparison{}}
	is, was := byWorkload(after), byWorkload(before)
	digestsBefore, err := configurations(ctx, before)
	if err != nil {
		return nil, err
	}
	digestsAfter, err := configurations(ctx, after)
	if err != nil {
		return nil, err
	}
	clusters, err := clustersOfBoth(before, after, digestsBefore, digestsAfter)
	if err != nil {
		return nil, err
	}
	either := maps.Clone(was)
	maps.Copy(either, is)
	for _, name := range slices.Sorted(maps.Keys(either)) {
		differences, err := differencesOf(ctx, name, workloadSide{before, digestsBefore, was[name]},
			workloadSide{after, digestsAfter, is[name]}, clusters)
		if err != nil {
			return nil, err
		}
		if len(differences) == 0 {
			out.Same++
			continue
		}
		out.Workloads = append(out.Workloads, WorkloadComparison{name, differences})
	}
	return out, nil
}

// configurations returns the digests of the values of assignments, by number; "" for those that
// failed.
func configurations(ctx context.Context, e *engine.Environment) (out []model.Digest, err error) {
	out = make([]model.Digest, len(e.Schedule.Assignments))
	for i := range out {
		if !e.Failed(i) && err == nil {
			out[i], err = e.Configuration(ctx, i)
		}
	}
	return out, err
}

func sideOf(e *engine.Environment) ComparedSide {
	out := ComparedSide{Environment: e.Name, Assignments: len(e.Schedule.Assignments)}
	for i := range e.Schedule.Assignments {
		if e.Failed(i) {
			out.Failed++
		}
	}
	return out
}

func byWorkload(e *engine.Environment) map[string][]int {
	out := map[string][]int{}
	for i := range e.Schedule.Assignments {
		name := e.Schedule.Assignments[i].Workload.Name
		out[name] = append(out[name], i)
	}
	return out
}

func differencesOf(ctx context.Context, workload string, before, after workloadSide,
	clusters *onClusters) ([]WorkloadDifference, error) {
	var out []WorkloadDifference
	for _, of := range []struct {
		kind DifferenceKind
		of   func(workloadSide, int) []string
	}{
		{DiffersInPlacement, placement}, {DiffersInVersion, version}, {DiffersInNamespace, namespace},
		{DiffersInContract, contracts},
	} {
		if d := (WorkloadDifference{Kind: of.kind, Before: before.set(of.of),
			After: after.set(of.of)}); !slices.Equal(d.Before, d.After) {
			out = append(out, d)
		}
		if of.kind != DiffersInPlacement {
			continue
		}
		if len(before.all) == 0 || len(after.all) == 0 {
			return out, nil // the workload is only on one side
		}
		out = append(out, clusters.placements(workload, before.set(of.of), after.set(of.of))...)
	}
	values, err := valuesThatDiffer(ctx, workload, before, after, clusters)
	return append(append(out, values...), clustersThatDiffer(before, after)...), err
}

// set returns the texts of all assignments, sorted and without duplicates.
func (c workloadSide) set(of func(workloadSide, int) []string) []string {
	found := map[string]bool{}
	for _, i := range c.all {
		for _, text := range of(c, i) {
			found[text] = true
		}
	}
	return sorted(found)
}

func placement(c workloadSide, i int) []string {
	return []string{c.e.Schedule.Assignments[i].ClusterType.TypeName()}
}

func version(c workloadSide, i int) []string {
	if v, from := c.e.Version(i); from.Compares() && v != "" {
		return []string{v}
	}
	return nil
}

// namespace returns the namespace with placeholders for the names that distinguish assignments.
func namespace(c workloadSide, i int) []string {
	a := &c.e.Schedule.Assignments[i]
	open := "-" + c.e.Plan.Namespaces[i] + "-"
	for _, of := range [][2]string{{a.Target.FullName, "DEPLOYMENT-TARGET"},
		{a.ClusterType.TypeName(), "CLUSTER-TYPE"}, {c.e.Name, "ENVIRONMENT"}} {
		open = strings.ReplaceAll(open, "-"+of[0]+"-", "-"+of[1]+"-")
	}
	return []string{strings.Trim(open, "-")}
}

// contracts returns the contracts of an assignment.
func contracts(c workloadSide, i int) []string {
	a := &c.e.Schedule.Assignments[i]
	out := c.e.Plan.ConfigSchemas(i)
	for _, of := range []struct {
		name     string
		contract *model.Contract
	}{{"requires of the workload", a.Workload.Requires},
		{"requires of the deployment target", a.Target.Requires}} {
		if of.contract != nil {
			out = append(out, fmt.Sprintf("%s (%.8s)", of.name, of.contract.Digest))
		}
	}
	return out
}

// valuesThatDiffer compares the values of the assignments that are configured differently on both
// sides. It composes only these, and each configuration once. It first compares all assignments
// of the workload together. After that it compares cluster types that both sides have, clusters
// that both sides list, and folders of other clusters. If both sides list a type's clusters and
// these are in classes, differences of other cluster types do not hide a difference of that type.
func valuesThatDiffer(ctx context.Context, workload string, before, after workloadSide,
	both *onClusters) ([]WorkloadDifference, error) {
	was, is := before.outside(both.classified), after.outside(both.classified)
	pairs := []valuePair{pairOf("", was, is)}
	for _, name := range was.set(placement) {
		pairs = append(pairs, pairOf(name, was.onType(name), is.onType(name)))
	}
	for _, p := range both.pairs[workload] {
		if p.Changed() {
			of := pairOf(p.ClusterType(), before.inFolder(p.Way.From), after.inFolder(p.Way.To))
			of.clusters = p.Way.Clusters
			pairs = append(pairs, of)
		}
	}
	// Only one side lists the clusters of other folders.
	apart := func(c workloadSide, i int) []string {
		if ct := c.e.Schedule.Assignments[i].ClusterType; (ct.Class != "" ||
			both.classified[ct.TypeName()]) && !both.stays[ct.Name] {
			return []string{ct.Name}
		}
		return nil
	}
	for _, name := range before.set(apart) {
		if len(after.inFolder(name).all) > 0 {
			pairs = append(pairs, pairOf(name, before.inFolder(name), after.inFolder(name)))
		}
	}
	pairs = slices.DeleteFunc(pairs, func(p valuePair) bool { return p.before == nil })
	composed := [2]map[model.Digest]int{{}, {}}
	for _, p := range pairs {
		maps.Copy(composed[0], p.before)
		maps.Copy(composed[1], p.after)
	}
	a, err := before.values(ctx, composed[0])
	if err != nil {
		return nil, err
	}
	b, err := after.values(ctx, composed[1])
	if err != nil {
		return nil, err
	}
	var out []WorkloadDifference
	told := map[[2]string]bool{} // by cluster type, which is "" for all, and path
	for _, p := range pairs {
		x, y := together(a, p.before), together(b, p.after)
		paths := maps.Clone(x)
		maps.Copy(paths, y)
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			d := WorkloadDifference{Kind: DiffersInValue, Path: path, ClusterType: p.clusterType,
				Before: sorted(x[path]), After: sorted(y[path])}
			of := model.TypeOfFolder(p.clusterType)
			if slices.Equal(d.Before, d.After) || !both.classified[of] &&
				(told[[2]string{"", path}] || told[[2]string{of, path}]) {
				continue
			}
			if d.Clusters = p.clusters; d.Clusters != nil {
				d.ClusterType = ""
			} else {
				told[[2]string{p.clusterType, path}] = true
			}
			out = append(out, d)
		}
	}
	return merged(out), nil
}

// valuePair are two sets of compared configurations, each with an assignment that has it. They
// belong to all cluster types, to one, or to clusters of one.
type valuePair struct {
	clusterType   string
	clusters      []string
	before, after map[model.Digest]int // nil if there is nothing to compare
}

// pairOf pairs the different configurations of both sides. If all configurations of one side are
// on the other side too, it pairs the other side's differences with all of them.
func pairOf(clusterType string, before, after workloadSide) valuePair {
	was, is := before.configurations(), after.configurations()
	onlyBefore, onlyAfter := without(was, is), without(is, was)
	// a side failed, or both are equal
	if len(was) == 0 || len(is) == 0 || len(onlyBefore)+len(onlyAfter) == 0 {
		return valuePair{}
	}
	if len(onlyBefore) == 0 {
		onlyBefore = was
	}
	if len(onlyAfter) == 0 {
		onlyAfter = is
	}
	return valuePair{clusterType: clusterType, before: onlyBefore, after: onlyAfter}
}

// onType returns the assignments on a cluster type.
func (c workloadSide) onType(clusterType string) workloadSide {
	return c.those(func(ct *model.ClusterType) bool { return ct.TypeName() == clusterType })
}

// outside returns the assignments on other cluster types.
func (c workloadSide) outside(clusterTypes map[string]bool) workloadSide {
	return c.those(func(ct *model.ClusterType) bool { return !clusterTypes[ct.TypeName()] })
}

// inFolder returns the assignments in the folder of a class.
func (c workloadSide) inFolder(folder string) workloadSide {
	return c.those(func(ct *model.ClusterType) bool { return ct.Name == folder })
}

// those returns the assignments on the cluster types, or classes, that meet a condition.
func (c workloadSide) those(is func(*model.ClusterType) bool) workloadSide {
	out := workloadSide{e: c.e, digests: c.digests}
	for _, i := range c.all {
		if is(c.e.Schedule.Assignments[i].ClusterType) {
			out.all = append(out.all, i)
		}
	}
	return out
}

func sorted(set map[string]bool) []string {
	return append([]string{}, slices.Sorted(maps.Keys(set))...)
}

// configurations returns an assignment for each digest of composed values.
func (c workloadSide) configurations() map[model.Digest]int {
	out := map[model.Digest]int{}
	for _, i := range c.all {
		if !c.e.Failed(i) {
			out[c.digests[i]] = i
		}
	}
	return out
}

func without(all, others map[model.Digest]int) map[model.Digest]int {
	out := map[model.Digest]int{}
	for digest, i := range all {
		if _, there := others[digest]; !there {
			out[digest] = i
		}
	}
	return out
}

// values returns the values of configurations, by digest and path.
func (c workloadSide) values(ctx context.Context,
	of map[model.Digest]int) (map[model.Digest]map[string]string, error) {
	tuples := map[int32][]model.Digest{}
	for digest, i := range of {
		tuple := c.e.Plan.TupleOf[i]
		tuples[tuple] = append(tuples[tuple], digest)
	}
	out := map[model.Digest]map[string]string{}
	err := c.e.Graphs(ctx, slices.Sorted(maps.Keys(tuples)), func(tuple int32, g *compose.Graph) {
		all := map[string]string{}
		for _, leaf := range g.Leaves() {
			all[leaf.Path] = compose.Shown(leaf.Path, leaf.Value).String()
		}
		for _, digest := range tuples[tuple] {
			out[digest] = all
		}
	})
	return out, err
}

// together returns all values of configurations, by path.
func together(values map[model.Digest]map[string]string,
	of map[model.Digest]int) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for digest := range of {
		for path, value := range values[digest] {
			if out[path] == nil {
				out[path] = map[string]bool{}
			}
			out[path][value] = true
		}
	}
	return out
}
