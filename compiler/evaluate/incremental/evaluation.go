// Package incremental evaluates a CUE package, and no more of it than has changed.
//
// It evaluates a package in units if that has the same result as evaluating it at once. Its
// files are divided by their syntax (profile, partition): some are shared, and the others
// declare entities only. A unit is a set of such files that declare common entities. It is
// evaluated together with the shared files in a CUE context of its own. The shared unit has all
// other entities. Evaluation drops the context after it has made the unit's model, unless the
// unit has functions of the assignment.
//
// The result of a unit is cached under a digest of all its inputs. The result is the same with
// and without a cache, whatever the units.
//
// For example, a text in configs.cue of examples/hello-world changes. The input is the package
// of environment dev with that file, and the output is an [export.Result] with all entities of
// dev. The entities of configs.cue come from CUE, and all others from the cache.
package incremental

import (
	"context"
	"crypto/sha256"
	"errors"
	"path"
	"slices"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
)

// Stats describe how much of a package was evaluated.
type Stats struct {
	// Units is the number of units of the package; it is 1 if the package is evaluated in one
	// piece. Evaluated is the number of units that were not in the cache.
	Units, Evaluated int
	// Whole is the reason why the package is evaluated in one piece; "" if it is evaluated in
	// units.
	Whole string
}

// Evaluation evaluates one package of a platform. It evaluates everything that is not in the
// cache, in as few and as small pieces as possible, with the same result as for the whole.
type Evaluation struct {
	Platform *source.Platform
	Name     string // of the environment; "" for the base
	// the least number of entities to evaluate at once; 1 to evaluate each unit separately
	Least int
	AsOne bool // in one piece, for comparison
	// Supervisor bounds the evaluation, by Bounds of the environment; nil for no bounds.
	Supervisor *supervisor.Supervisor
	Bounds     supervisor.Bounds
	dir        string // of the package
	cache      memo.Cache

	// Stats are the statistics of Evaluate.
	Stats     Stats
	sources   *source.Sources
	partition partition
	keys      *keys
	costs     *supervisor.Evaluation
	inPieces  bool // each unit separately, one after the other

	mu     sync.Mutex
	fresh  map[int]map[model.Ref][]model.Position // of the units evaluated now
	loaded map[int]*loader.Package                // of units with functions of the assignment
	put    []entry                                // the entries to put into the cache
}

// New returns the evaluation of an environment, or of the platform's base for "". The cache
// may be nil.
func New(p *source.Platform, name string, c memo.Cache) *Evaluation {
	return &Evaluation{Platform: p, Name: name, dir: p.Dir(name), cache: c, Least: batchEntities}
}

// export exports the package, which is the platform's base or an environment.
func (e *Evaluation) export(x *export.Exporter) *export.Result {
	if e.Name == "" {
		return x.Declarations()
	}
	return x.Environment(e.Name)
}

// Evaluate exports the package. It does not make the checks that need all entities at once. The
// caller calls it only once. The result is nil, with diagnostics, if the package is unreadable.
func (e *Evaluation) Evaluate(ctx context.Context) (*export.Result, []diag.Diagnostic, error) {
	var part *supervisor.Part
	var err error
	e.sources, err = e.Platform.Sources(e.Name, func(names []string, of source.Digest) (err error) {
		e.costs = e.Supervisor.Evaluation(e.what(), of, e.Bounds)
		if e.costs.Tripped() != nil {
			return errTripped
		}
		part, err = e.costs.Begin(ctx)
		part.SetPlace(e.placeOf(names))
		return err
	})
	defer part.End()
	if err == nil {
		e.costs.Identify(e.sources.Digest())
	}
	if trip := e.costs.Tripped(); trip != nil {
		return nil, []diag.Diagnostic{trip.Diagnostic()}, nil
	}
	if none := (*source.NoFileError)(nil); errors.As(err, &none) {
		return nil, []diag.Diagnostic{none.Diagnostic()}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	e.fresh, e.loaded = map[int]map[model.Ref][]model.Position{}, map[int]*loader.Package{}
	profiles := make([]profile, len(e.sources.Files))
	for i := range e.sources.Files {
		part.SetPlace(e.placeOf([]string{e.sources.Files[i].Name}))
		profiles[i] = e.profile(&e.sources.Files[i])
	}
	if ds := tooLarge(e.sources.Files, profiles); len(ds) > 0 {
		return nil, ds, nil
	}
	if e.partition = newPartition(e.sources, profiles); e.AsOne {
		e.partition = partition{obstacle: "so it is asked for"}
	}
	e.inPieces = e.costs.InPieces()
	e.keys = newKeys(e.Name, e.sources, &e.partition)
	e.Stats = Stats{Units: 1, Whole: e.partition.obstacle}
	if r, ok := memo.Recall[export.Result](e.cache, e.keys.undivided); ok {
		if e.partition.obstacle == "" {
			e.partition.obstacle = notClean
		}
		e.Stats.Whole = e.partition.obstacle
		return r, nil, nil
	}
	part.SetPlace(supervisor.Place{})
	if e.partition.obstacle == "" {
		switch p, err := e.inUnits(ctx); {
		case err == nil:
			return p, nil, e.remember()
		case !errors.Is(err, errNotClean):
			return nil, nil, err
		}
	}
	r, ds, err := e.inOnePiece(ctx, part)
	if err == nil && r != nil {
		err = e.remember()
	}
	return r, ds, err
}

const base = "the platform's base"

// The method what returns the package's name in messages.
func (e *Evaluation) what() string {
	if e.Name == "" {
		return base
	}
	return "environment " + e.Name
}

const notClean = "something is wrong in it"

// errNotClean reports that the package must be evaluated in one piece.
var errNotClean = errors.New(notClean)

func (e *Evaluation) profile(f *source.File) profile {
	key := memo.Key(sha256.Sum256(append([]byte("profile "), f.Content[:]...)))
	if p, ok := memo.Recall[profile](e.cache, key); ok {
		return *p
	}
	p := profileOf(f.Name, f.Data)
	memo.Remember(e.cache, key, &p)
	return p
}

// ErrChanged reports that a file of the platform changed during the evaluation, so that the
// result may mix old and new contents.
var ErrChanged = errors.New("files of the platform were changed while it was compiled")

// unchanged returns ErrChanged if the files differ from the scanned ones.
func (e *Evaluation) unchanged() error {
	now, err := e.Platform.Sources(e.Name, nil)
	if err == nil && now.Digest() != e.sources.Digest() {
		err = ErrChanged
	}
	return err
}

// maxPlaces is the maximal number of files that the place of a diagnostic names.
const maxPlaces = 5

// placeOf returns the place of files while it is unknown which of them is being evaluated. It
// leaves out files outside the package's folder if other files remain: they belong to the base,
// which is evaluated first.
func (e *Evaluation) placeOf(names []string) supervisor.Place {
	own := slices.DeleteFunc(slices.Clone(names),
		func(name string) bool { return path.Dir(name) != e.dir })
	if len(own) > 0 {
		names = own
	}
	slices.Sort(names)
	p := supervisor.Place{Files: len(names)}
	for _, name := range names[:min(maxPlaces, len(names))] {
		p.At = append(p.At, model.Position{File: name, Line: 1, Column: 1})
	}
	return p
}

// Tripped reports whether the package exceeded its bounds before a restart of the program.
func (e *Evaluation) Tripped() bool { return e.costs.Tripped() != nil }

// errTripped ends the scan of sources whose evaluation exceeded a bound.
var errTripped = errors.New("the evaluation was beyond a bound")

// entry is an entry to put into the cache.
type entry struct {
	key  memo.Key
	data []byte
}

// keepUnits divides the result of one evaluation into the units of the batch, and keeps each.
func (e *Evaluation) keepUnits(x *export.Exporter, all *export.Result,
	batch []int) map[int]*export.Result {
	positions := map[int]map[model.Ref][]model.Position{}
	for _, n := range batch {
		positions[n] = map[model.Ref][]model.Position{}
	}
	for ref, at := range x.Positions.All() {
		positions[e.partition.unitOf(ref)][ref] = at
	}
	units := e.partition.split(all, batch)
	for n, r := range units {
		e.keep(n, r, positions[n], x.Package)
	}
	return units
}

// keep adds digests to the result of a unit, and keeps the data for later calls. It queues the
// entries for the cache until it is certain that no file has changed.
func (e *Evaluation) keep(n int, r *export.Result, positions map[model.Ref][]model.Position,
	l *loader.Package) {
	key := e.keys.unit(n)
	r.Digest(key)
	var put []entry
	if e.cache != nil {
		put = []entry{{positionsKey(key), model.Encode(positions)}, {key, model.Encode(*r)}}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fresh[n] = positions
	if r.HasFunctions() {
		e.loaded[n] = l
	}
	e.put = append(e.put, put...)
}

// remember puts the results into the cache if the scanned files have not changed.
func (e *Evaluation) remember() error {
	if err := e.unchanged(); err != nil {
		return err
	}
	for _, p := range e.put {
		e.cache.Put(p.key, p.data)
	}
	e.put = nil
	return nil
}

// Positions returns the table of the positions of the evaluated entities. It reads the
// positions of a unit when a caller first needs one of them.
func (e *Evaluation) Positions(r *export.Result) *model.Positions {
	of := map[int][]model.Ref{}
	for _, ref := range r.Entities {
		of[e.unitOf(ref)] = append(of[e.unitOf(ref)], ref)
	}
	// The standard service exists even if no file declares it.
	standard := model.Ref{Collection: "namespaceServices", Name: shape.DefaultNamespaceService}
	of[e.unitOf(standard)] = append(of[e.unitOf(standard)], standard)
	t := &model.Positions{}
	for n, entities := range of {
		t.Defer(entities, func() map[model.Ref][]model.Position { return e.positionsOf(n) })
	}
	return t
}

// unitOf returns the number of the unit that an entity is in.
func (e *Evaluation) unitOf(ref model.Ref) int {
	if e.partition.obstacle != "" {
		return wholeUnit
	}
	return e.partition.unitOf(ref)
}

// positionsOf returns the positions of a unit's entities: from this evaluation, from the cache,
// or from another evaluation of the unit.
func (e *Evaluation) positionsOf(n int) map[model.Ref][]model.Position {
	e.mu.Lock()
	fresh, ok := e.fresh[n]
	e.mu.Unlock()
	if ok {
		return fresh
	}
	if stored, ok := memo.Recall[map[model.Ref][]model.Position](e.cache,
		positionsKey(e.keys.unit(n))); ok {
		return *stored
	}
	x, _, err := e.reduced(context.Background(), []int{n})
	if x == nil || err != nil {
		return nil // the sources have been removed in the meantime
	}
	return x.Positions.All()
}
