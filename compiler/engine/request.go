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

// Request says how environments are built. It is the same for all of a build, and nothing
// changes it.
type Request struct {
	Platform     *source.Platform
	Declarations []model.Declaration
	// Backends are by their key in #Reconciler.
	Backends map[string]backends.Backend
	Library  *dependency.Library
	// Registry has what registrations refer to.
	Registry registration.Registry
	Meter    *Meter
	Workers  *worker.Pool // nil for in this process
	// Supervisor bounds the evaluation of CUE; nil for no bounds.
	Supervisor *supervisor.Supervisor
	// Source is what the one environment is compiled from; nil where Sources say it, by
	// environment, or it is known by the digests of files alone.
	Source  *tree.Source
	Sources map[string]tree.Source
	Shard   Shard
	// Ring is the part of the one environment to build, and Rings are all its parts; ""
	// for everything.
	Ring  string
	Rings []model.Ring
	// Formerly are earlier names of the one environment, beside those in Declarations.
	Formerly []string
	// Members are the rings of cluster types that count instead of what their labels say; nil for none.
	Members map[string]string
	// AllowRemovals and AllowEmpty are those of compiler.Request.
	AllowRemovals bool
	AllowEmpty    []string
	// Preview reports removals that are too many, and goes on with the tree.
	Preview bool
	// Progress, if given, is called by several goroutines.
	Progress func(Progress)
	// Incomplete says that what environments have may be in a folder that is none of
	// theirs.
	Incomplete bool
}

// Progress is how far a build has come with an environment.
type Progress struct {
	Environment string
	// Done and Total count assignments; both are 0 before they are known.
	Done, Total int
}

// Shard is a part of the cluster types of every environment, so that several
// machines can build a fleet together: the shards 1/n to n/n have each cluster
// type once, and which one has it follows from its name alone. The zero Shard has
// all.
type Shard struct {
	Index, Of int // Index counts from 1
}

// ParseShard reads i/n.
func ParseShard(s string) (Shard, error) {
	i, n, ok := strings.Cut(s, "/")
	index, err := strconv.Atoi(i)
	of, err2 := strconv.Atoi(n)
	if !ok || err != nil || err2 != nil || index < 1 || index > of {
		return Shard{}, fmt.Errorf("%q is no shard: write 1/4 for the first of four", s)
	}
	return Shard{index, of}, nil
}

// Has says whether a cluster type is of the shard.
func (s Shard) Has(clusterType string) bool {
	if s.Of <= 1 {
		return true
	}
	sum := sha256.Sum256([]byte(clusterType))
	return binary.BigEndian.Uint64(sum[:])%uint64(s.Of) == uint64(s.Index-1)
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// Counts counts what an environment's build gave.
type Counts struct {
	ClusterTypes int `json:"clusterTypes"`
	Assignments  int `json:"assignments"` // that were built
	Kept         int `json:"kept"`        // folders that stay as they were
	Failed       int `json:"failed"`      // assignments with an error and nothing to keep
}

func (s *Counts) add(t Counts) {
	s.ClusterTypes += t.ClusterTypes
	s.Assignments += t.Assignments
	s.Kept += t.Kept
	s.Failed += t.Failed
}

// count counts folders.
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

// drop leaves a diagnostic out.
func (r *reports) drop(code diag.Code, path string) {
	r.all = slices.DeleteFunc(r.all, func(d diag.Diagnostic) bool { return d.Code == code && d.Path == path })
}

// newSatisfier returns what asks CUE for selectors; several goroutines may use it.
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

// codes lists the codes of the errors among diagnostics.
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
