// Package incremental evaluates a CUE package, and no more of it than has changed.
//
// A package is evaluated in units where that cannot be told from evaluating it at once.
// Its files are divided by their syntax (profile, partition): some are shared, and the
// others declare entities only. A unit is a set of such files that declare entities in
// common, evaluated together with the shared files in a CUE context of its own; the shared
// unit has all other entities. The context is dropped when the unit's model is made, unless
// it has functions of the assignment.
//
// What a unit gives is cached under a digest of all that can change it. The result is the same with and
// without a cache, whatever the units.
package incremental

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// Stats say how much of a package was evaluated.
type Stats struct {
	// Units is the number of units that the package is made of, one where it is
	// evaluated in one piece. Evaluated of them were, the others were in the cache.
	Units, Evaluated int
	// Whole says why the package is not evaluated in units; "" where it is.
	Whole string
}

// Evaluation evaluates one package of a platform: what is not remembered, in as
// few and as small pieces as give the same as the whole.
type Evaluation struct {
	Platform *source.Platform
	Name     string // of the environment; "" for the base
	dir      string
	cache    memo.Cache
	Least    int  // the least number of entities to evaluate at once; 1 for each unit alone
	AsOne    bool // in one piece, for comparison

	sources   *source.Sources
	partition partition
	keys      *keys
	Stats     Stats

	mu     sync.Mutex
	fresh  map[int]map[model.Ref][]model.Position // of the units that were evaluated
	loaded map[int]*loader.Package                // of units with functions of the assignment
	put    []func()                               // what is to be remembered
}

// wholeUnit is the number of the whole package, as a unit of itself.
const wholeUnit = -2

func New(p *source.Platform, name string, c memo.Cache) *Evaluation {
	return &Evaluation{Platform: p, Name: name, dir: p.Dir(name), cache: c, Least: batchEntities}
}

// export exports the package: the platform's base, or an environment.
func (e *Evaluation) export(x *export.Exporter) *export.Result {
	if e.Name == "" {
		return x.Stages()
	}
	return x.Environment(e.Name)
}

// Evaluate returns what the package is, before what needs all entities at once
// has been checked. The result is nil where nothing of the package is readable,
// which the diagnostics say.
func (e *Evaluation) Evaluate(ctx context.Context) (*export.Result, []diag.Diagnostic, error) {
	var err error
	if e.sources, err = e.scan(); err != nil {
		return nil, nil, err
	}
	e.fresh, e.loaded = map[int]map[model.Ref][]model.Position{}, map[int]*loader.Package{}
	profiles := make([]profile, len(e.sources.Files))
	for i := range e.sources.Files {
		profiles[i] = e.profile(&e.sources.Files[i])
	}
	if e.partition = newPartition(e.sources, profiles); e.AsOne {
		e.partition = partition{whole: "so it is asked for"}
	}
	e.keys = newKeys(e.Name, e.sources, &e.partition)
	e.Stats = Stats{Units: 1, Whole: e.partition.whole}
	if r, ok := memo.Recall[export.Result](e.cache, e.keys.whole); ok {
		if e.partition.whole == "" {
			e.partition.whole = notClean
		}
		e.Stats.Whole = e.partition.whole
		return r, nil, nil
	}
	if e.partition.whole == "" {
		switch p, err := e.inUnits(ctx); {
		case err == nil:
			return p, nil, e.remember()
		case !errors.Is(err, errNotClean):
			return nil, nil, err
		}
	}
	r, ds, err := e.inOnePiece(ctx)
	if err == nil && r != nil {
		err = e.remember()
	}
	return r, ds, err
}

const notClean = "something is wrong in it"

var errNotClean = errors.New(notClean)

func (e *Evaluation) scan() (*source.Sources, error) {
	return e.Platform.Sources(e.Name)
}

func (e *Evaluation) profile(f *source.File) profile {
	key := profileKey(f)
	if p, ok := memo.Recall[profile](e.cache, key); ok {
		return *p
	}
	p := profileOf(f.Name, f.Data)
	memo.Remember(e.cache, key, &p)
	return p
}

// ErrChanged says that a file of the platform was changed while it was evaluated,
// so that what was read may be partly old and partly new.
var ErrChanged = errors.New("files of the platform were changed while it was compiled")

// unchanged returns ErrChanged if the files are not those that were scanned.
func (e *Evaluation) unchanged() error {
	now, err := e.scan()
	if err == nil && now.Digest() != e.sources.Digest() {
		err = ErrChanged
	}
	return err
}

// remember keeps what was evaluated, if it is of the files that were scanned.
func (e *Evaluation) remember() error {
	if err := e.unchanged(); err != nil {
		return err
	}
	for _, put := range e.put {
		put()
	}
	e.put = nil
	return nil
}

// inOrder returns all units in the order of their numbers.
func (e *Evaluation) inOrder(units map[int]*export.Result) []*export.Result {
	out := make([]*export.Result, 0, len(units))
	for n := sharedUnit; n < len(e.partition.units); n++ {
		out = append(out, units[n])
	}
	return out
}

// without returns the shared unit without the entities that others declare,
// which a comprehension may have made as well.
func (e *Evaluation) without(shared *export.Result) *export.Result {
	if !slices.ContainsFunc(shared.Entities, func(ref model.Ref) bool { return e.partition.unitOf(ref) != sharedUnit }) {
		return shared
	}
	return e.partition.split(shared, append(e.partition.all(), sharedUnit))[sharedUnit]
}

// heapPerByte is about how much memory CUE takes for each byte of sources, as
// measured on generated platforms.
const heapPerByte = 250

// workers is how many batches are evaluated at once: as many as there are
// processors, and as the soft memory limit of the process leaves room for.
func workers(batches [][]int, d *partition) int {
	largest := 1
	for _, batch := range batches {
		bytes := d.bytes
		for _, n := range batch {
			if n != sharedUnit {
				bytes += d.units[n].bytes
			}
		}
		largest = max(largest, bytes)
	}
	room := debug.SetMemoryLimit(-1) / int64(largest) / heapPerByte
	return int(max(1, min(int64(runtime.GOMAXPROCS(0)), room)))
}

// batch evaluates some units at once.
func (e *Evaluation) batch(ctx context.Context, batch []int) (map[int]*export.Result, error) {
	x, all, err := e.reduced(ctx, batch)
	if err != nil {
		return nil, err
	}
	if x == nil || !all.Clean || e.crosses(x) {
		if len(batch) == 1 {
			memo.Remember(e.cache, e.keys.unit(batch[0]), &export.Result{})
		}
		return nil, errNotClean
	}
	return e.keep(x, all, batch), nil
}

// reduced evaluates a package without the files that some units do not need; the
// exporter is nil where it is not readable.
func (e *Evaluation) reduced(ctx context.Context, batch []int) (*export.Exporter, *export.Result, error) {
	l, _, err := loader.Platform(ctx, e.Platform, e.dir, e.leftOut(batch))
	if l == nil || err != nil {
		return nil, nil, err
	}
	x := export.New(l)
	x.Wants = func(ref model.Ref) bool { return slices.Contains(batch, e.unitOf(ref)) }
	var all *export.Result
	if _, ok := finding.Guarded("the package", func() { all = e.export(x) }); !ok {
		return nil, nil, nil // the whole says so
	}
	return x, all, nil
}

// crosses says whether a mistake in one unit was not repeated for another, which
// would tell it if it were evaluated alone.
func (e *Evaluation) crosses(x *export.Exporter) bool {
	for pair := range x.Alike {
		if e.partition.unitOf(pair[0]) != e.partition.unitOf(pair[1]) {
			return true
		}
	}
	return false
}

// leftOut returns the names of the files that a batch does not need.
func (e *Evaluation) leftOut(batch []int) []string {
	var out []string
	if batch[0] != wholeUnit {
		for _, i := range e.partition.leftOut(batch) {
			out = append(out, e.sources.Files[i].Name)
		}
	}
	return out
}
