package randplatform

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func TestSeedsAreReproducible(t *testing.T) {
	for seed := range uint64(20) {
		a, b := New(seed), New(seed)
		r, s := source(seed), source(seed)
		for range 30 {
			if !maps.Equal(a.Files(), b.Files()) {
				t.Fatalf("seed %d gives two platforms", seed)
			}
			if what, other := a.Edit(r), b.Edit(s); what != other {
				t.Fatalf("seed %d: one edit is %q and %q", seed, what, other)
			}
		}
	}
	if maps.Equal(New(1).Files(), New(2).Files()) {
		t.Error("two seeds give one platform")
	}
}

func TestWriteLeavesWhatIsThePlatforms(t *testing.T) {
	dir := t.TempDir()
	p, r := New(3), source(3)
	for range 40 {
		if err := p.Write(dir); err != nil {
			t.Fatal(err)
		}
		there := map[string]string{}
		err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
			there[name] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(there, p.Files()) {
			t.Fatal("the folder holds other files than the platform has")
		}
		p.Edit(r)
	}
}

func TestClonesShareNothing(t *testing.T) {
	for seed := range uint64(10) {
		p, r := New(seed), source(seed)
		c := p.Clone()
		before := p.Files()
		for range 30 {
			c.Edit(r)
		}
		c.Shuffle(r)
		if !maps.Equal(p.Files(), before) {
			t.Errorf("seed %d: an edit of a copy changed the platform", seed)
		}
	}
}

func TestUndoRestores(t *testing.T) {
	for seed := range uint64(20) {
		p, r := New(seed), source(seed)
		before := p.Files()
		what := p.Edit(r)
		if undo(p, r) == "" || !maps.Equal(p.Files(), before) {
			t.Errorf("seed %d: undo does not restore what this changed: %s", seed, what)
		}
	}
}

// TestSlowEveryEditIsMade makes each kind of edit on many platforms. An edit must return a
// description if, and only if, it changed something.
func TestSlowEveryEditIsMade(t *testing.T) {
	isolated.Slow(t, "it compiles a thousand platforms")
	for i, kind := range editKinds {
		made, changed := 0, 0
		for seed := range uint64(60) {
			p, r := New(seed), source(seed)
			for range seed % 3 {
				p.Edit(r)
			}
			before := p.Files()
			what := kind.apply(p, r)
			same := maps.Equal(p.Files(), before)
			if what != "" {
				made++
			} else if !same {
				t.Errorf("kind %d changes the platform of seed %d, and says nothing", i, seed)
			}
			if !same {
				changed++
			}
		}
		const touches = "touch all files"
		p := New(1)
		if made == 0 || changed == 0 && kind.apply(p, source(1)) != touches {
			t.Errorf("kind %d is made %d times, and changes the platform %d times", i, made, changed)
		}
	}
}

func failed(t *testing.T, p *Platform) bool {
	t.Helper()
	dir := t.TempDir()
	if err := p.Write(dir); err != nil {
		t.Fatal(err)
	}
	b, err := compiler.Compile(t.Context(), compiler.Request{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return b.Failed()
}

func TestPlatformsCompile(t *testing.T) {
	seeds, bad := 10, 0
	for seed := range seeds {
		if failed(t, New(uint64(seed))) {
			bad++
		}
	}
	if bad > seeds/2 { // sources that are not locked, and settings that a reconciler refuses
		t.Errorf("%d of %d platforms have errors", bad, seeds)
	}
}

// TestSlowMistakesAreErrors makes each mistake until one is an error, because some depend on the
// platform.
func TestSlowMistakesAreErrors(t *testing.T) {
	isolated.Slow(t, "it compiles a thousand platforms")
	const sound = 4
	if failed(t, New(sound)) {
		t.Fatalf("the platform of seed %d has errors of its own", sound)
	}
	for i, m := range mistakes {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for seed := range uint64(20) {
				p := New(sound)
				b, ok := m.make(p, source(seed))
				if !ok {
					continue
				}
				p.broken = append(p.broken, b)
				if failed(t, p) {
					repair(p, source(seed))
					if !maps.Equal(p.Files(), New(sound).Files()) {
						t.Error("the repair leaves something")
					}
					return
				}
			}
			t.Error("the mistake is never an error")
		})
	}
}
