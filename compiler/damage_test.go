package compiler_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
)

// damaged builds with a cache that is damaged between builds.
func damaged(t *testing.T, root string) follower {
	out, dir := filepath.Join(root, "out"), filepath.Join(root, "cache")
	return follower{name: "with a damaged cache", step: func(s *step) string {
		how := damages[s.r.IntN(len(damages))]
		if err := how.do(s.r, dir); err != nil {
			t.Fatal(err)
		}
		c, err := cache.Open(cache.Options{Dir: dir})
		var unusable *cache.UnusableError
		if err != nil && !errors.As(err, &unusable) {
			return err.Error()
		}
		got := compileTo(t, compiler.Request{Dir: s.platformDir, Cache: c}, out)
		if err := c.Close(); err != nil {
			return how.name + ": " + err.Error()
		}
		if d := same(got, s.want); d != "" {
			return how.name + ": " + d
		}
		return ""
	}}
}

// damages are the possible damages to the folder of a cache.
var damages = []struct {
	name string
	do   func(r *rand.Rand, dir string) error
}{
	{"some bits flipped", each(func(r *rand.Rand, data []byte) []byte {
		if len(data) > 0 {
			data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		}
		return data
	})},
	{"some files cut off", each(func(r *rand.Rand, data []byte) []byte { return data[:r.IntN(len(data)+1)] })},
	{"some files swapped", swap},
	{"half emptied", half},
	{"emptied", func(_ *rand.Rand, dir string) error { return os.RemoveAll(dir) }},
	{"a file in its place", func(_ *rand.Rand, dir string) error {
		return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, []byte("a file"), 0o666))
	}},
}

// cacheFiles returns the paths of the results in a cache, sorted. If the cache is a file,
// cacheFiles removes the file, so that it can become a folder again.
func cacheFiles(dir string) ([]string, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, os.Remove(dir)
	}
	return filepath.Glob(filepath.Join(dir, "??", "*-[ad]"))
}

// each changes about a third of the files of a cache.
func each(change func(r *rand.Rand, data []byte) []byte) func(*rand.Rand, string) error {
	return func(r *rand.Rand, dir string) error {
		names, err := cacheFiles(dir)
		for _, name := range names {
			if r.IntN(3) > 0 {
				continue
			}
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if err := overwrite(name, change(r, data)); err != nil {
				return err
			}
		}
		return err
	}
}

// overwrite replaces the text of a file, even if the file is write-protected.
func overwrite(name string, data []byte) error {
	return errors.Join(os.Remove(name), os.WriteFile(name, data, 0o666))
}

// swap exchanges files of a cache that are of the same kind.
func swap(r *rand.Rand, dir string) error {
	names, err := cacheFiles(dir)
	if err != nil {
		return err
	}
	for _, kind := range []string{"-a", "-d"} {
		of := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasSuffix(name, kind) })
		r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		for i := 0; i+1 < len(of)/2; i += 2 {
			a, errA := os.ReadFile(of[i])
			b, errB := os.ReadFile(of[i+1])
			if err := errors.Join(errA, errB, overwrite(of[i], b), overwrite(of[i+1], a)); err != nil {
				return err
			}
		}
	}
	return nil
}

func half(r *rand.Rand, dir string) error {
	names, err := cacheFiles(dir)
	for _, name := range names {
		if r.IntN(2) == 0 {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}
