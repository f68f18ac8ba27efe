package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/registration"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// Request describes the build of environments. All environments of a build share it, and the
// build does not change it.
type Request struct {
	Platform     *source.Platform
	Declarations []model.Declaration
	// Backends are by their key in #Reconciler.
	Backends map[string]backends.Backend
	Library  *dependency.Library
	// Registry has the sources that registrations refer to.
	Registry registration.Registry
	Meter    *Meter
	Workers  *worker.Pool // nil to use this process
	// Supervisor limits the evaluation of CUE; nil for no limits.
	Supervisor *supervisor.Supervisor
	// Source is the source of the only environment. It is nil if Sources has the sources by
	// environment, or if only the digests of files identify the sources.
	Source  *tree.Source
	Sources map[string]tree.Source
	Shard   Shard
	// Ring is the ring of the only environment to build, or "" to build all of it. Rings are all
	// rings of the environment.
	Ring  string
	Rings []model.Ring
	// Formerly are earlier names of the only environment, in addition to those in Declarations.
	Formerly []string
	// Members are rings of cluster types, which take precedence over labels; nil for
	// labels only.
	Members map[string]string
	// AllowRemovals and AllowEmpty are as in compiler.Request.
	AllowRemovals bool
	AllowEmpty    []string
	// Preview makes the build continue after it reports too many removals.
	Preview bool
	// Progress, if not nil, is called by several goroutines.
	Progress func(Progress)
	// Incomplete reports whether parts of environments may be in a folder that belongs to no
	// environment.
	Incomplete bool
}

// Progress is the progress of a build in one environment.
type Progress struct {
	Environment string
	// Done and Total count assignments. Both are 0 until the number of assignments is known.
	Done, Total int
}

// Shard is a part of the cluster types of every environment, so that several machines can build a
// fleet together. Each cluster type is in one of the shards 1/n to n/n. Only its name determines
// the shard. The zero Shard has all cluster types.
type Shard struct {
	Index, Of int // Index counts from 1
}

// ParseShard parses a shard in the form i/n. It returns an error unless 1 <= i <= n.
func ParseShard(s string) (Shard, error) {
	i, n, ok := strings.Cut(s, "/")
	index, err := strconv.Atoi(i)
	of, err2 := strconv.Atoi(n)
	if !ok || err != nil || err2 != nil || index < 1 || index > of {
		return Shard{}, fmt.Errorf("%q is no shard: write 1/4 for the first of four", s)
	}
	return Shard{index, of}, nil
}

// Has reports whether a cluster type is in the shard.
func (s Shard) Has(clusterType string) bool {
	if s.Of <= 1 {
		return true
	}
	sum := sha256.Sum256([]byte(clusterType))
	return binary.BigEndian.Uint64(sum[:])%uint64(s.Of) == uint64(s.Index-1)
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// Counts counts the results of an environment's build.
type Counts struct {
	ClusterTypes int `json:"clusterTypes"`
	Assignments  int `json:"assignments"` // built by this build
	Kept         int `json:"kept"`        // folders that stay as they were
	Failed       int `json:"failed"`      // assignments with an error and nothing to keep
}

func (s *Counts) add(t Counts) {
	s.ClusterTypes += t.ClusterTypes
	s.Assignments += t.Assignments
	s.Kept += t.Kept
	s.Failed += t.Failed
}

// count adds the numbers of kept and of built folders.
func (s *Counts) count(folders []tree.Folder) {
	for _, f := range folders {
		if f.Kept != nil {
			s.Kept++
		} else {
			s.Assignments++
		}
	}
}

// reports collects the diagnostics of an environment.
type reports struct {
	environment string
	all         []diag.Diagnostic
}

func (r *reports) add(ds ...diag.Diagnostic) {
	for i := range ds {
		ds[i].Environment = r.environment
	}
	r.all = append(r.all, ds...)
}

// drop removes the diagnostics with this code and this path.
func (r *reports) drop(code diag.Code, path string) {
	r.all = slices.DeleteFunc(r.all,
		func(d diag.Diagnostic) bool { return d.Code == code && d.Path == path })
}

// newSatisfier returns a satisfier that evaluates selectors with CUE. It is safe for concurrent
// use by multiple goroutines.
func newSatisfier(elsewhere *expr.Elsewhere) selector.Satisfier {
	var mu sync.Mutex
	eval := expr.New(elsewhere)
	return func(e model.Expr, value string) bool {
		mu.Lock()
		defer mu.Unlock()
		return eval.Satisfies(e, value)
	}
}

const clusters = "clusters"

// AllEmpty stands for all selectors in Request.AllowEmpty.
const AllEmpty = "*"

// codes lists the codes of the errors among diagnostics, sorted and without duplicates.
func codes(ds []diag.Diagnostic) string {
	var out []string
	for _, d := range ds {
		if d.Severity == diag.Error {
			out = append(out, string(d.Code))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

func hashStrings(h *cache.Hash, list []string) *cache.Hash {
	h.Int(len(list))
	for _, s := range list {
		h.String(s)
	}
	return h
}
