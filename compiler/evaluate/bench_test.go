package evaluate_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/testing/generate"
)

// remembering is a cache that never drops anything.
type remembering struct{ sync.Map }

func (r *remembering) Get(key [32]byte) ([]byte, bool) {
	data, ok := r.Load(key)
	if !ok {
		return nil, false
	}
	return data.([]byte), true
}

func (r *remembering) Put(key [32]byte, data []byte) { r.Store(key, data) }

// BenchmarkEnvironment evaluates a platform with 5,000 assignments and about 700 entities in
// the files of several teams. It evaluates it for the first time, without changes, and after a
// change of one file.
func BenchmarkEnvironment(b *testing.B) {
	dir := b.TempDir()
	if _, err := generate.Write(dir, 1, generate.ForAssignments(5_000)); err != nil {
		b.Fatal(err)
	}
	evaluateWith := func(b *testing.B, c evaluate.Cache) {
		p, ds, err := source.Open(dir)
		if err != nil || len(ds) > 0 {
			b.Fatal(err, ds)
		}
		pkg, ds, err := evaluate.Environment(context.Background(), p, "dev", nil, evaluate.Options{Cache: c})
		if err != nil || len(ds) > 0 || pkg.Model == nil {
			b.Fatal(err, ds)
		}
	}
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			evaluateWith(b, nil)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		c := &remembering{}
		evaluateWith(b, c)
		b.ReportAllocs()
		for b.Loop() {
			evaluateWith(b, c)
		}
	})
	b.Run("one file changed", func(b *testing.B) {
		c := &remembering{}
		evaluateWith(b, c)
		name := filepath.Join(dir, "environments", "dev", "configs-001.cue")
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			text = append(text, "// One more line.\n"...)
			if err := os.WriteFile(name, text, 0o666); err != nil {
				b.Fatal(err)
			}
			evaluateWith(b, c)
		}
	})
}
