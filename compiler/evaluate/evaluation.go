package evaluate

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// Stats say how much of a package was evaluated.
type Stats struct {
	// Parts is the number of parts that the package is made of, one where it is
	// evaluated in one piece; Evaluated of them were, the others were remembered.
	Units, Evaluated int
	// Whole says why the package is not evaluated in parts; "" where it is.
	Whole string
}

// evaluation evaluates one package of a platform: what is not remembered, in as
// few and as small pieces as give the same as the whole.
type evaluation struct {
	platform *source.Platform
	name     string // of the environment; "" for the base
	dir      string
	cache    Cache
	least    int  // the least number of entities to evaluate at once; 1 for each component alone
	asOne    bool // never in parts

	sources   *source.Sources
	partition partition
	keys      *keys
	stats     Stats

	mu     sync.Mutex
	fresh  map[int]map[model.Ref][]model.Position // of the parts that were evaluated
	loaded map[int]*loaded                        // of parts with functions of the assignment
	put    []func()                               // what is to be remembered
}

// wholePart is the number of the whole package as a part of itself.
const wholeUnit = -2

func newEvaluation(p *source.Platform, name string, c Cache) *evaluation {
	return &evaluation{platform: p, name: name, dir: p.Dir(name), cache: c, least: batchEntities}
}

// export exports the package: the platform's base, or an environment.
func (e *evaluation) export(x *exporter) *Result {
	if e.name == "" {
		return x.stages()
	}
	return x.environment(e.name)
}

// evaluate returns what the package is, before what needs all entities at once
// has been checked. The result is nil where nothing of the package is readable,
// which the diagnostics say.
func (e *evaluation) evaluate(ctx context.Context) (*Result, []diag.Diagnostic, error) {
	var err error
	if e.sources, err = e.scan(); err != nil {
		return nil, nil, err
	}
	e.fresh, e.loaded = map[int]map[model.Ref][]model.Position{}, map[int]*loaded{}
	profiles := make([]profile, len(e.sources.Files))
	for i := range e.sources.Files {
		profiles[i] = e.profile(&e.sources.Files[i])
	}
	if e.partition = newPartition(e.sources, profiles); e.asOne {
		e.partition = partition{whole: "so it is asked for"}
	}
	e.keys = newKeys(e.name, e.sources, &e.partition)
	e.stats = Stats{Units: 1, Whole: e.partition.whole}
	if r, ok := recall[Result](e.cache, e.keys.whole); ok {
		if e.partition.whole == "" {
			e.partition.whole = notClean
		}
		e.stats.Whole = e.partition.whole
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

func (e *evaluation) scan() (*source.Sources, error) {
	return e.platform.Sources(e.name)
}

func (e *evaluation) profile(f *source.File) profile {
	key := profileKey(f)
	if p, ok := recall[profile](e.cache, key); ok {
		return *p
	}
	p := profileOf(f.Name, f.Data)
	remember(e.cache, key, &p)
	return p
}

// ErrChanged says that a file of the platform was changed while it was evaluated,
// so that what was read may be partly old and partly new.
var ErrChanged = errors.New("files of the platform were changed while it was compiled")

// unchanged returns ErrChanged if the files are not those that were scanned.
func (e *evaluation) unchanged() error {
	now, err := e.scan()
	if err == nil && now.Digest() != e.sources.Digest() {
		err = ErrChanged
	}
	return err
}

// remember keeps what was evaluated, if it is of the files that were scanned.
func (e *evaluation) remember() error {
	if err := e.unchanged(); err != nil {
		return err
	}
	for _, put := range e.put {
		put()
	}
	e.put = nil
	return nil
}

// inParts evaluates the parts that are not remembered. The error is errNotClean
// where the package has to be evaluated in one piece, since something is wrong.
func (e *evaluation) inUnits(ctx context.Context) (*Result, error) {
	d := &e.partition
	parts := map[int]*Result{}
	var missing []int
	for n := sharedUnit; n < len(d.units); n++ {
		p, ok := recall[Result](e.cache, e.keys.unit(n))
		switch {
		case !ok:
			missing = append(missing, n)
		case !p.Clean:
			return nil, errNotClean
		default:
			parts[n] = p
		}
	}
	e.stats.Units, e.stats.Evaluated = len(d.units)+1, len(missing)
	batches := d.batches(missing, e.least)
	if e.least > 1 && len(batches) == 1 && len(missing) == len(d.units)+1 {
		return nil, errNotClean // all of it at once is the whole
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers(batches, d))
	for _, batch := range batches {
		group.Go(func() error {
			of, err := e.batch(ctx, batch)
			if err != nil {
				return err
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			for n, p := range of {
				parts[n] = p
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	parts[sharedUnit] = e.without(parts[sharedUnit])
	all := e.inOrder(parts)
	if repeats(all) {
		return nil, errNotClean
	}
	return merge(e.name, all), nil
}

// inOrder returns all parts in the order of their numbers.
func (e *evaluation) inOrder(parts map[int]*Result) []*Result {
	out := make([]*Result, 0, len(parts))
	for n := sharedUnit; n < len(e.partition.units); n++ {
		out = append(out, parts[n])
	}
	return out
}

// without returns the shared part without the entities that components declare,
// which a comprehension may have made as well.
func (e *evaluation) without(shared *Result) *Result {
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

// batch evaluates some parts at once.
func (e *evaluation) batch(ctx context.Context, batch []int) (map[int]*Result, error) {
	x, all, err := e.reduced(ctx, batch)
	if err != nil {
		return nil, err
	}
	if x == nil || !all.Clean || e.crosses(x) {
		if len(batch) == 1 {
			remember(e.cache, e.keys.unit(batch[0]), &Result{})
		}
		return nil, errNotClean
	}
	return e.keep(x, all, batch), nil
}

// reduced evaluates a package without the files that some parts do not need; the
// exporter is nil where it is not readable.
func (e *evaluation) reduced(ctx context.Context, batch []int) (*exporter, *Result, error) {
	l, _, err := loadPackage(ctx, e.platform, e.dir, e.leftOut(batch))
	if l == nil || err != nil {
		return nil, nil, err
	}
	x := newExporter(l)
	x.wants = func(ref model.Ref) bool { return slices.Contains(batch, e.unitOf(ref)) }
	var all *Result
	if _, ok := guarded("the package", func() { all = e.export(x) }); !ok {
		return nil, nil, nil // the whole says so
	}
	return x, all, nil
}

// crosses says whether a mistake in one part was not repeated for another, which
// would tell it if it were evaluated alone.
func (e *evaluation) crosses(x *exporter) bool {
	for pair := range x.alike {
		if e.partition.unitOf(pair[0]) != e.partition.unitOf(pair[1]) {
			return true
		}
	}
	return false
}

// keep takes what was evaluated at once apart, to be remembered.
func (e *evaluation) keep(x *exporter, all *Result, batch []int) map[int]*Result {
	parts := e.partition.split(all, batch)
	positions := map[int]map[model.Ref][]model.Position{}
	for _, n := range batch {
		positions[n] = map[model.Ref][]model.Position{}
	}
	for ref, at := range x.positions.All() {
		positions[e.partition.unitOf(ref)][ref] = at
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for n, p := range parts {
		key := e.keys.unit(n)
		p.digest(key)
		e.fresh[n] = positions[n]
		if p.hasFunctions() {
			e.loaded[n] = x.loaded
		}
		if e.cache != nil {
			e.put = append(e.put, func() {
				of := positions[n]
				remember(e.cache, positionsOf(key), &of)
			})
			stored := model.Encode(*p)
			e.put = append(e.put, func() { e.cache.Put(key, stored) })
		}
	}
	return parts
}

// inOnePiece evaluates the whole package.
func (e *evaluation) inOnePiece(ctx context.Context) (*Result, []diag.Diagnostic, error) {
	l, ds, err := loadPackage(ctx, e.platform, e.dir, nil)
	if l == nil || err != nil {
		return nil, ds, err
	}
	clear(e.loaded) // of parts that count no longer
	x := newExporter(l)
	var all *Result
	if d, ok := guarded("the package in "+e.dir, func() { all = e.export(x) }); !ok {
		return nil, []diag.Diagnostic{d}, nil
	}
	if e.partition.whole == "" && all.Clean && !e.crosses(x) {
		batch := append(e.partition.all(), sharedUnit)
		if !repeats(e.inOrder(e.partition.split(all, batch))) {
			e.stats.Evaluated = e.stats.Units
			return merge(e.name, e.inOrder(e.keep(x, all, batch))), nil, nil
		}
	}
	if e.partition.whole == "" {
		e.partition.whole = notClean
	}
	e.stats = Stats{Units: 1, Evaluated: 1, Whole: e.partition.whole}
	all.digest(e.keys.whole)
	e.fresh[wholeUnit] = x.positions.All()
	if all.hasFunctions() {
		e.loaded[wholeUnit] = l
	}
	if e.cache != nil {
		stored, positions := model.Encode(*all), model.Encode(x.positions.All())
		e.put = append(e.put, func() { e.cache.Put(positionsOf(e.keys.whole), positions) }, func() { e.cache.Put(e.keys.whole, stored) })
	}
	return all, nil, nil
}

// leftOut returns the names of the files that a batch does not need.
func (e *evaluation) leftOut(batch []int) []string {
	var out []string
	if batch[0] != wholeUnit {
		for _, i := range e.partition.leftOut(batch) {
			out = append(out, e.sources.Files[i].Name)
		}
	}
	return out
}
