// Package generate writes platforms of any size, for benchmarks and for tests
// that need more entities than a person would write.
//
// A generated platform is valid: its configs do not contradict each other, its
// contracts are satisfied, every policy selects something and every target and
// cluster type has an assignment. It has one environment, "dev". The same seed
// and size give the same bytes, on every machine.
package generate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Size is the size of a platform. All counts are exact except the count of policies. A few more
// policies make the number of assignments exact.
type Size struct {
	// Assignments is the number of assignments of all policies together.
	Assignments int
	// Workloads, each with TargetsPerWorkload deployment targets.
	Workloads, TargetsPerWorkload int
	ClusterTypes                  int
	Policies                      int
	// Configs of all levels together.
	Configs       int
	ConfigSchemas int
	// Overlap is the approximate number of configs that match one assignment. It is larger if
	// Configs could not be reached otherwise.
	Overlap int
	// StructuredShare is the share of configs, from 0 to 1, that have structs and lists in
	// addition to scalars.
	StructuredShare float64
	// DistinctTuples gives each cluster type and each deployment target a config
	// of its own, so that hardly two assignments have the same configuration.
	// Without it configs match by labels that many share.
	DistinctTuples bool
}

// maxEntities is the largest number of entries of one collection. CUE looks fields up by linear
// search, so that the time for a larger struct grows quadratically.
const maxEntities = 10_000

// ForAssignments returns the size of a realistic platform of n assignments, n >= 100. For n =
// 100,000, it has 1,000 targets, 300 cluster types and 2,000 configs, and each target is on a
// third of the cluster types. Both sides of the assignments shrink by the square root, so that
// this third stays.
func ForAssignments(n int) Size {
	const perWorkload = 5
	targets := math.Sqrt(10 * float64(n))
	workloads := max(4, int(math.Round(targets/perWorkload)))
	return Size{
		Assignments:        n,
		Workloads:          workloads,
		TargetsPerWorkload: perWorkload,
		ClusterTypes:       max(10, int(math.Round(0.3*targets))),
		Policies:           max(6, workloads/2),
		Configs:            max(60, int(math.Round(2*targets))),
		ConfigSchemas:      max(3, workloads/20),
		Overlap:            10,
		StructuredShare:    0.4,
	}
}

// check returns an error if there is no platform of the size.
func (s Size) check() error {
	targets := s.Workloads * s.TargetsPerWorkload
	// One for all, one in platform.cue, and the levels that every platform has.
	configs := 2 + regions(s) + len(classes) + products(s)
	if s.DistinctTuples {
		configs += targets + s.ClusterTypes
	}
	switch {
	case s.Workloads < 4 || s.TargetsPerWorkload < 1 || s.ClusterTypes < 4 || s.Policies < 4 || s.ConfigSchemas < 1:
		return fmt.Errorf("generate: %+v: at least 4 workloads, cluster types and policies, 1 target "+
			"per workload and 1 config schema are needed", s)
	case s.Assignments < max(2*targets, 2*s.ClusterTypes) || s.Assignments > targets*s.ClusterTypes*3/4:
		return fmt.Errorf("generate: %d assignments of %d targets on %d cluster types: %d to %d are possible", s.Assignments,
			targets, s.ClusterTypes, max(2*targets, 2*s.ClusterTypes), targets*s.ClusterTypes*3/4)
	case s.Configs < configs:
		return fmt.Errorf("generate: %d configs: at least %d are needed", s.Configs, configs)
	case max(s.Workloads, s.TargetsPerWorkload, s.ClusterTypes, s.Policies, s.Configs, s.ConfigSchemas) > maxEntities:
		return fmt.Errorf("generate: %+v: a collection holds at most %d entries", s, maxEntities)
	case s.StructuredShare < 0 || s.StructuredShare > 1:
		return fmt.Errorf("generate: a structured share of %g is not between 0 and 1", s.StructuredShare)
	}
	return nil
}

// Write writes the platform of a seed and a size into the directory dir. It creates dir, which
// must not contain another platform. It returns the number of assignments of the platform. This
// is s.Assignments if policies could be found that select exactly so many.
func Write(dir string, seed uint64, s Size) (assignments int, err error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	// Each part draws from a source of its own: another number of policies does
	// not change the workloads.
	draw := func(part uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, part)) }

	clusterTypes := newClusterTypes(draw(1), s)
	targets := newTargets(draw(2), s)
	policies, pairs := newPolicies(draw(3), s, targets, clusterTypes)
	configs, keys := newConfigs(draw(4), s, pairs)

	files := map[string]string{
		"cue.mod/module.cue": moduleText,
		"platform.cue":       platformText,
	}
	addFiles(files, "workloads", "workloads", workloadEntries(draw(5), targets, keys))
	addFiles(files, "environments/dev/cluster-types", "clusterTypes", clusterTypeEntries(draw(6), clusterTypes))
	addFiles(files, "environments/dev/policies", "schedulingPolicies", policies)
	addFiles(files, "environments/dev/configs", "configs", configs)
	addFiles(files, "environments/dev/schemas", "configSchemas", schemaEntries(s, pairs, keys))

	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return 0, fmt.Errorf("generate: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return 0, fmt.Errorf("generate: %w", err)
		}
	}
	return len(pairs), nil
}
