package incremental

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
)

// inUnits evaluates the units that are not in the cache. It returns errNotClean if the package
// must be evaluated in one piece because of errors.
func (e *Evaluation) inUnits(ctx context.Context) (*export.Result, error) {
	d := &e.partition
	units := map[int]*export.Result{}
	unclean := false // in pieces, an error in one unit does not prevent the evaluation of others
	var missing []int
	for n := sharedUnit; n < len(d.units); n++ {
		p, ok := memo.Recall[export.Result](e.cache, e.keys.unit(n))
		switch {
		case !ok:
			missing = append(missing, n)
		case !p.Clean && e.inPieces:
			unclean = true
		case !p.Clean:
			return nil, errNotClean
		default:
			units[n] = p
		}
	}
	e.Stats.Units, e.Stats.Evaluated = len(d.units)+1, len(missing)
	least := e.Least
	if e.inPieces {
		least = 1
	}
	batches := d.batches(missing, least)
	if least > 1 && len(batches) == 1 && len(missing) == len(d.units)+1 {
		return nil, errNotClean // all units at once are the whole package
	}
	group, ctx := errgroup.WithContext(ctx)
	if group.SetLimit(workers(batches, d)); e.inPieces {
		group.SetLimit(1)
	}
	for _, batch := range batches {
		group.Go(func() error {
			of, err := e.batch(ctx, batch)
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.inPieces && errors.Is(err, errNotClean) {
				unclean, err = true, nil
			}
			maps.Copy(units, of)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if unclean {
		return nil, errNotClean
	}
	units[sharedUnit] = e.withoutDeclared(units[sharedUnit])
	all := e.inOrder(units)
	if repeats(all) {
		return nil, errNotClean
	}
	return merge(e.Name, all), nil
}

// batch evaluates some units at once. It returns errNotClean like inUnits.
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
	return e.keepUnits(x, all, batch), nil
}

// reduced evaluates a package without the files that some units do not need. The exporter is
// nil if the package is unreadable.
func (e *Evaluation) reduced(ctx context.Context, batch []int) (*export.Exporter, *export.Result,
	error) {
	part, err := e.costs.Begin(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer part.End()
	part.SetPlace(e.place(batch))
	l, _, err := loader.Platform(ctx, e.Platform, e.dir, e.leftOut(batch))
	if l == nil || err != nil {
		return nil, nil, err
	}
	x := export.New(l)
	x.Supervised = part
	x.Wants = func(ref model.Ref) bool { return slices.Contains(batch, e.unitOf(ref)) }
	var all *export.Result
	if _, ok := finding.Guarded("the package", func() { all = e.export(x) }); !ok {
		return nil, nil, nil // the evaluation of the whole reports it
	}
	return x, all, nil
}

// crosses reports whether an error in one unit suppressed the same error in another unit, which
// would report it in a separate evaluation.
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

// heapPerByte is CUE's approximate use of memory for each byte of sources, as measured on
// generated platforms.
const heapPerByte = 250

// workers returns the number of batches to evaluate at once. It is limited by the number of
// processors, and by the soft memory limit of the process.
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

// wholeUnit is the number of the whole package, as a unit of itself.
const wholeUnit = -2

// place returns the place of the files of a batch. In pieces, the shared files were evaluated
// before, and a unit may be one entity.
func (e *Evaluation) place(batch []int) supervisor.Place {
	numbers := slices.Clone(e.partition.shared)
	if e.inPieces && batch[0] >= 0 {
		numbers = nil
	}
	for _, n := range batch {
		if n >= 0 {
			numbers = append(numbers, e.partition.units[n].files...)
		}
	}
	var names []string
	for _, i := range numbers {
		names = append(names, e.sources.Files[i].Name)
	}
	p := e.placeOf(names)
	if e.inPieces && batch[0] >= 0 && len(e.partition.units[batch[0]].entities) == 1 {
		p.Entity = e.partition.units[batch[0]].entities[0]
	}
	return p
}

// allFiles is the place of the whole package.
func (e *Evaluation) allFiles() supervisor.Place {
	var names []string
	for _, f := range e.sources.Files {
		names = append(names, f.Name)
	}
	return e.placeOf(names)
}

// inOnePiece evaluates the whole package.
func (e *Evaluation) inOnePiece(ctx context.Context, part *supervisor.Part) (*export.Result,
	[]diag.Diagnostic, error) {
	part.SetPlace(e.allFiles())
	l, ds, err := loader.Platform(ctx, e.Platform, e.dir, nil)
	if l == nil || err != nil {
		return nil, ds, err
	}
	clear(e.loaded) // of units that do not matter now
	x := export.New(l)
	x.Supervised = part
	var all *export.Result
	if d, ok := finding.Guarded("the package in "+e.dir, func() { all = e.export(x) }); !ok {
		return nil, []diag.Diagnostic{d}, nil
	}
	if e.partition.obstacle == "" && all.Clean && !e.crosses(x) {
		batch := append(e.partition.all(), sharedUnit)
		if !repeats(e.inOrder(e.partition.split(all, batch))) {
			e.Stats.Evaluated = e.Stats.Units
			return merge(e.Name, e.inOrder(e.keepUnits(x, all, batch))), nil, nil
		}
	}
	if e.partition.obstacle == "" {
		e.partition.obstacle = notClean
	}
	e.Stats = Stats{Units: 1, Evaluated: 1, Whole: e.partition.obstacle}
	e.keep(wholeUnit, all, x.Positions.All(), l)
	return all, nil, nil
}

// split divides the result of one evaluation into the units of a batch.
func (d *partition) split(all *export.Result, batch []int) map[int]*export.Result {
	out := map[int]*export.Result{}
	for _, n := range batch {
		out[n] = &export.Result{Clean: true, Invalid: map[model.Ref]bool{}}
	}
	from := &all.Model
	if p, ok := out[d.unitOf(model.Ref{Collection: "environments", Name: from.Name})]; ok {
		p.Model.Settings = from.Settings
	}
	for _, c := range model.Collections {
		c.Distribute(from, func(ref model.Ref) *model.Environment { return &out[d.unitOf(ref)].Model })
	}
	for _, ref := range all.Entities {
		p := out[d.unitOf(ref)]
		p.Entities = append(p.Entities, ref)
	}
	for _, u := range all.Uses {
		p := out[d.unitOf(u.Ref)]
		p.Uses = append(p.Uses, u)
	}
	for _, s := range all.Declarations {
		p := out[d.unitOf(model.Ref{Collection: "environments", Name: s.Name})]
		p.Declarations = append(p.Declarations, s)
	}
	for _, t := range all.Reported {
		p := out[d.unitOf(t.About)]
		p.Reported = append(p.Reported, t)
	}
	for ref := range all.Invalid {
		out[d.unitOf(ref)].Invalid[ref] = true
	}
	return out
}

// repeats reports whether two units may report the same mistake at the same place. An
// evaluation of the whole package reports only the first of them.
func repeats(units []*export.Result) bool {
	type mistake struct {
		code    diag.Code
		message string
		at      string // "" if the place is a reference
	}
	in := map[mistake]int{}
	vague, several := map[mistake]bool{}, map[mistake]bool{}
	for n, p := range units {
		for _, t := range p.Reported {
			what := mistake{code: t.Diagnostic.Code, message: t.Diagnostic.Message}
			exact := what
			for _, s := range t.Diagnostic.Sites {
				exact.at += fmt.Sprint(s.Position, " ")
				vague[what] = vague[what] || s.Position.IsZero()
			}
			if other, there := in[exact]; there && other != n {
				return true
			}
			if other, there := in[what]; there && other != n {
				several[what] = true
			}
			in[exact], in[what] = n, n
		}
	}
	for what := range several {
		if vague[what] {
			return true
		}
	}
	return false
}

// merge joins the units of a package.
func merge(name string, units []*export.Result) *export.Result {
	out := &export.Result{Clean: true, Model: model.Environment{Name: name,
		NamespaceServices: []model.NamespaceService{}}, Declarations: []model.Declaration{},
		Invalid: map[model.Ref]bool{}}
	m := &out.Model
	for _, p := range units {
		of := &p.Model
		if !reflect.ValueOf(of.Settings).IsZero() { // only one unit declares the environment
			m.Settings = of.Settings
		}
		for _, c := range model.Collections {
			c.Distribute(of, func(model.Ref) *model.Environment { return m })
		}
		out.Entities = append(out.Entities, p.Entities...)
		out.Uses = append(out.Uses, p.Uses...)
		out.Declarations = append(out.Declarations, p.Declarations...)
		out.Reported = append(out.Reported, p.Reported...)
		maps.Copy(out.Invalid, p.Invalid)
	}
	for _, c := range model.Collections {
		c.Sort(m)
	}
	slices.SortFunc(out.Declarations,
		func(a, b model.Declaration) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Entities, model.CompareEntities)
	slices.SortStableFunc(out.Uses,
		func(a, b check.Use) int { return model.CompareEntities(a.Ref, b.Ref) })
	return out
}

// inOrder returns all units in the order of their numbers.
func (e *Evaluation) inOrder(units map[int]*export.Result) []*export.Result {
	out := make([]*export.Result, 0, len(units))
	for n := sharedUnit; n < len(e.partition.units); n++ {
		out = append(out, units[n])
	}
	return out
}

// withoutDeclared returns the shared unit without the entities that other units declare, because a
// comprehension may have made these, too.
func (e *Evaluation) withoutDeclared(shared *export.Result) *export.Result {
	if !slices.ContainsFunc(shared.Entities,
		func(ref model.Ref) bool { return e.partition.unitOf(ref) != sharedUnit }) {
		return shared
	}
	return e.partition.split(shared, append(e.partition.all(), sharedUnit))[sharedUnit]
}
