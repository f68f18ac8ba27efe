package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/build"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Comparison is what differs between two environments, or one at two commits.
type Comparison struct {
	Before ComparedSide `json:"before"`
	After  ComparedSide `json:"after"`
	// Workloads are those that differ, by name, and Same counts the others.
	Workloads []WorkloadComparison `json:"workloads"`
	Same      int                  `json:"same"`
}

// ComparedSide is an environment that is compared.
type ComparedSide struct {
	Environment string `json:"environment"`
	Revision    string `json:"revision,omitempty"` // "" for the platform's folder as it is
	Assignments int    `json:"assignments"`
	Failed      int    `json:"failed"` // of them; their values are not compared
}

// WorkloadComparison is what differs in a workload.
type WorkloadComparison struct {
	Workload string `json:"workload"`
	// Differences are the placements, then versions, namespaces and contracts, then
	// values by their paths.
	Differences []WorkloadDifference `json:"differences"`
}

// WorkloadDifference is one thing that all assignments of a workload together have otherwise.
type WorkloadDifference struct {
	Kind DifferenceKind `json:"kind"`
	Path string         `json:"path,omitempty"` // of a value
	// Before and After are what the assignments have, sorted, each once. Of a value they are
	// JSON, of those assignments that are not configured alike on both sides.
	Before []string `json:"before"`
	After  []string `json:"after"`
}

// DifferenceKind says what differs.
type DifferenceKind string

// What is compared of a workload.
const (
	DiffersInPlacement DifferenceKind = "placement" // the cluster types that it is on
	DiffersInVersion   DifferenceKind = "version"
	DiffersInNamespace DifferenceKind = "namespace" // with the names of what the assignment is of left open
	DiffersInContract  DifferenceKind = "contract"
	DiffersInValue     DifferenceKind = "value"
)

// compared are the assignments of a workload on one side.
type compared struct {
	e   *build.Environment
	all []int // by number
}

// Compare compares two environments, workload by workload. Neither is nil, and both can be
// read. What is composed for single clusters is not compared.
func Compare(ctx context.Context, before, after *build.Environment) (*Comparison, error) {
	out := &Comparison{Before: sideOf(before), After: sideOf(after), Workloads: []WorkloadComparison{}}
	is, was := byWorkload(after), byWorkload(before)
	either := maps.Clone(was)
	maps.Copy(either, is)
	for _, name := range slices.Sorted(maps.Keys(either)) {
		differences, err := differencesOf(ctx, compared{before, was[name]}, compared{after, is[name]})
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

func sideOf(e *build.Environment) ComparedSide {
	out := ComparedSide{Environment: e.Name, Assignments: len(e.Schedule.Assignments)}
	for i := range e.Schedule.Assignments {
		if e.Failed(i) {
			out.Failed++
		}
	}
	return out
}

func byWorkload(e *build.Environment) map[string][]int {
	out := map[string][]int{}
	for i := range e.Schedule.Assignments {
		name := e.Schedule.Assignments[i].Workload.Name
		out[name] = append(out[name], i)
	}
	return out
}

func differencesOf(ctx context.Context, before, after compared) ([]WorkloadDifference, error) {
	var out []WorkloadDifference
	for _, of := range []struct {
		kind DifferenceKind
		of   func(compared, int) []string
	}{
		{DiffersInPlacement, placement}, {DiffersInVersion, version}, {DiffersInNamespace, namespace}, {DiffersInContract, contracts},
	} {
		if d := (WorkloadDifference{Kind: of.kind, Before: before.set(of.of), After: after.set(of.of)}); !slices.Equal(d.Before, d.After) {
			out = append(out, d)
		}
		if of.kind == DiffersInPlacement && (len(before.all) == 0 || len(after.all) == 0) {
			return out, nil // it is on one side alone
		}
	}
	values, err := valuesThatDiffer(ctx, before, after)
	return append(out, values...), err
}

// set returns what the assignments have, sorted, each once.
func (c compared) set(of func(compared, int) []string) []string {
	found := map[string]bool{}
	for _, i := range c.all {
		for _, text := range of(c, i) {
			found[text] = true
		}
	}
	return sorted(found)
}

func placement(c compared, i int) []string {
	return []string{c.e.Schedule.Assignments[i].ClusterType.TypeName()}
}

func version(c compared, i int) []string {
	if v := c.e.Schedule.Assignments[i].Version; v != "" {
		return []string{v}
	}
	return nil
}

// namespace returns the namespace with the names that tell assignments apart left open.
func namespace(c compared, i int) []string {
	a := &c.e.Schedule.Assignments[i]
	open := "-" + c.e.Plan.Namespaces[i] + "-"
	for _, of := range [][2]string{{a.Target.FullName, "DEPLOYMENT-TARGET"}, {a.ClusterType.TypeName(), "CLUSTER-TYPE"}, {c.e.Name, "ENVIRONMENT"}} {
		open = strings.ReplaceAll(open, "-"+of[0]+"-", "-"+of[1]+"-")
	}
	return []string{strings.Trim(open, "-")}
}

// contracts returns what an assignment has to satisfy.
func contracts(c compared, i int) []string {
	a := &c.e.Schedule.Assignments[i]
	out := c.e.Plan.ConfigSchemas(i)
	for _, of := range []struct {
		name     string
		contract *model.Contract
	}{{"requires of the workload", a.Workload.Requires}, {"requires of the deployment target", a.Target.Requires}} {
		if of.contract != nil {
			out = append(out, fmt.Sprintf("%s (%.8s)", of.name, of.contract.Digest))
		}
	}
	return out
}

// valuesThatDiffer compares the values of those assignments that are not configured alike on
// both sides: only these are composed.
func valuesThatDiffer(ctx context.Context, before, after compared) ([]WorkloadDifference, error) {
	was, is := before.configurations(), after.configurations()
	if len(was) == 0 || len(is) == 0 {
		return nil, nil // all of a side has errors
	}
	onlyBefore, onlyAfter := without(was, is), without(is, was)
	if len(onlyBefore) == 0 && len(onlyAfter) == 0 {
		return nil, nil
	}
	// Where all of one side is on the other too, the other is compared with all of it.
	if len(onlyBefore) == 0 {
		onlyBefore = was
	}
	if len(onlyAfter) == 0 {
		onlyAfter = is
	}
	a, err := before.values(ctx, onlyBefore)
	if err != nil {
		return nil, err
	}
	b, err := after.values(ctx, onlyAfter)
	if err != nil {
		return nil, err
	}
	paths := maps.Clone(a)
	maps.Copy(paths, b)
	var out []WorkloadDifference
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		d := WorkloadDifference{Kind: DiffersInValue, Path: path, Before: sorted(a[path]), After: sorted(b[path])}
		if !slices.Equal(d.Before, d.After) {
			out = append(out, d)
		}
	}
	return out, nil
}

func sorted(set map[string]bool) []string {
	return append([]string{}, slices.Sorted(maps.Keys(set))...)
}

// configurations returns an assignment for each digest of composed values.
func (c compared) configurations() map[model.Digest]int {
	out := map[model.Digest]int{}
	for _, i := range c.all {
		if !c.e.Failed(i) {
			out[c.e.Configuration(i)] = i
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

// values returns, by path, the values that assignments have.
func (c compared) values(ctx context.Context, of map[model.Digest]int) (map[string]map[string]bool, error) {
	tuples := make([]int32, 0, len(of))
	for _, i := range of {
		tuples = append(tuples, c.e.Plan.TupleOf[i])
	}
	slices.Sort(tuples)
	out := map[string]map[string]bool{}
	err := c.e.Graphs(ctx, slices.Compact(tuples), func(_ int32, g *compose.Graph) {
		for _, leaf := range g.Leaves() {
			if out[leaf.Path] == nil {
				out[leaf.Path] = map[string]bool{}
			}
			out[leaf.Path][compose.Shown(leaf.Path, leaf.Value).String()] = true
		}
	})
	return out, err
}
