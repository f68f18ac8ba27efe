package incremental

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
)

// keys are the keys of one package of a platform.
type keys struct {
	undivided memo.Key // of the package in one piece
	shared    memo.Key // of the units
	units     []memo.Key
}

// unit returns the key of a unit.
func (k *keys) unit(n int) memo.Key {
	switch n {
	case wholeUnit:
		return k.undivided
	case sharedUnit:
		return k.shared
	}
	return k.units[n]
}

// newKeys returns the keys of an environment, or of the base for "".
func newKeys(environment string, s *source.Sources, d *partition) *keys {
	begin := func(kind string) hash.Hash {
		h := sha256.New()
		fmt.Fprintf(h, "%s %q %q %q %x\n", kind, environment, os.Getenv("CUE_EXPERIMENT"),
			os.Getenv("CUE_DEBUG"), s.Module)
		return h
	}
	files := func(h hash.Hash, numbers []int) {
		for _, i := range numbers {
			of := s.Files[i].Digest()
			h.Write(of[:])
		}
	}
	k := &keys{}
	h, all := begin("whole"), s.Digest()
	h.Write(all[:])
	k.undivided = memo.Key(h.Sum(nil))
	if d.obstacle != "" {
		return k
	}
	h = begin("shared")
	files(h, d.shared)
	shared := memo.Key(h.Sum(nil))
	h.Write(fmt.Appendf(nil, "without %q %q", d.twice, d.made))
	k.shared = memo.Key(h.Sum(nil))
	for _, c := range d.units {
		h := begin("component")
		h.Write(shared[:])
		files(h, c.files)
		k.units = append(k.units, memo.Key(h.Sum(nil)))
	}
	return k
}

// positionsKey returns the key of the positions of a result with another key.
func positionsKey(key memo.Key) memo.Key {
	return sha256.Sum256(append([]byte("positions "), key[:]...))
}

// Digests identify the inputs of the package, once it is evaluated. own covers the files of its
// own folder, and base all others, with imports and embedded files.
func (e *Evaluation) Digests() (base, own model.Digest) {
	s, folder := e.sources, e.dir
	baseLines, ownLines := []string{fmt.Sprintf("cue.mod %x", s.Module)}, []string(nil)
	add := func(name string, digest source.Digest) {
		line := fmt.Sprintf("%s %x", name, digest)
		if folder != "." && strings.HasPrefix(name, folder+"/") {
			ownLines = append(ownLines, line)
		} else {
			baseLines = append(baseLines, line)
		}
	}
	for _, f := range s.Files {
		add(f.Name, f.Content)
		for name, digest := range f.Needs {
			add(name, digest)
		}
	}
	digest := func(lines []string) model.Digest {
		slices.Sort(lines)
		return model.DigestBytes([]byte(strings.Join(slices.Compact(lines), "\n")))
	}
	return digest(baseLines), digest(ownLines)
}

// Functions are the entities of a package that are functions of the assignment. They
// keep the CUE values of their units.
type Functions struct {
	evaluation *Evaluation
	loaded     map[int]*loader.Package // by unit
}

// Functions returns the functions of the package, after its evaluation. The evaluation, which
// still answers requests for positions, then no longer keeps CUE values.
func (e *Evaluation) Functions() *Functions {
	f := &Functions{e, e.loaded}
	e.loaded = nil
	return f
}

// Call calls f with the unit of the entity, to evaluate a function of an assignment. Only one
// goroutine may call it at a time.
func (f *Functions) Call(ctx context.Context, entity model.Ref, call func(*loader.Package)) error {
	l, err := f.load(ctx, entity)
	if err != nil {
		return err
	}
	part, err := f.evaluation.costs.Begin(ctx)
	if err != nil {
		return err
	}
	defer part.End()
	part.SetPlace(supervisor.Place{Entity: entity,
		At: f.evaluation.positionsOf(f.evaluation.unitOf(entity))[entity]})
	call(l)
	return nil
}

// load returns the evaluated unit of an entity. It evaluates each unit only once.
func (f *Functions) load(ctx context.Context, ref model.Ref) (*loader.Package, error) {
	e := f.evaluation
	n := e.unitOf(ref)
	if l, done := f.loaded[n]; done {
		return l, nil
	}
	part, err := e.costs.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer part.End()
	if part.SetPlace(e.allFiles()); n != wholeUnit {
		part.SetPlace(e.place([]int{n}))
	}
	l, ds, err := loader.Platform(ctx, e.Platform, e.dir, e.leftOut([]int{n}))
	if err != nil {
		return nil, err
	}
	if err := e.unchanged(); err != nil {
		return nil, err
	}
	if l == nil {
		return nil, fmt.Errorf("%s cannot be read again: %s", ref, ds[0].Message)
	}
	f.loaded[n] = l
	return l, nil
}
