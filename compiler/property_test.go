package compiler_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/internal/testing/randplatform"
)

func isLong() bool { return os.Getenv("KALYPSO_LONG") != "" }

// howMany returns a number of cases: test for make test. In a slow test it returns all for make
// test-all, or long for make test-long.
func howMany(t *testing.T, test, all, long int) int {
	switch {
	case !isolated.IsSlow(t):
		return test
	case isLong():
		return long
	}
	return all
}

// TestEditsEqualFromScratch edits random platforms, and builds each in two of the possible ways.
// Only the platform and the output folder may affect the result. With KALYPSO_LONG=1 it builds
// each in all ways.
func TestEditsEqualFromScratch(t *testing.T) { editsEqualFromScratch(t) }

func TestSlowEditsEqualFromScratch(t *testing.T) {
	isolated.Slow(t, "it builds more random platforms")
	editsEqualFromScratch(t)
}

func editsEqualFromScratch(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	dir := t.TempDir()
	shared := openCache(t, cache.Options{Dir: dir})
	ways := [][]variant{
		{cached, incremental}, {sharing(shared), affected(shared)}, {cached, shardedTogether(shared)}, {damaged, committed(shared)},
		{cached, shardedApart(shared)}, {sharing(shared), incremental}, {cached, affected(shared)},
	}
	seeds, steps := howMany(t, 7, 14, 130), howMany(t, 2, 15, 40)
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				h := history{seed: uint64(seed)}
				for i := range steps {
					h.edits = append(h.edits, i+1)
				}
				some := ways[seed%len(ways)]
				if isLong() {
					some = []variant{incremental, cached, damaged, sharing(shared), shardedTogether(shared), shardedApart(shared), committed(shared), affected(shared)}
				}
				holds(t, h, some)
			})
		}
	})
	closeCache(t, shared)
	verifyShared(t, dir, seeds)
}

// holds checks a history, and reports the edits that break a property.
func holds(t *testing.T, h history, variants []variant) {
	did, broken := h.check(t, variants)
	if broken == "" {
		return
	}
	h.edits = h.edits[:len(did)-1]
	t.Errorf("%s\n%s", broken, strings.Join(did, "\n"))
	h = h.shrink(t, variants)
	did, broken = h.check(t, variants)
	t.Errorf("fewer edits do: %v\n%s\n%s", h.edits, broken, strings.Join(did, "\n"))
}

// verifyShared computes the first step of some histories again. It compares the results with the
// cache that all histories used.
func verifyShared(t *testing.T, dir string, seeds int) {
	c := openCache(t, cache.Options{Dir: dir, Mode: cache.Verify})
	for seed := range uint64(min(seeds, howMany(t, 2, 6, 6))) {
		platformDir := filepath.Join(t.TempDir(), "platform")
		if err := randplatform.New(seed).Write(platformDir); err != nil {
			t.Fatal(err)
		}
		write(t, compiler.Request{Dir: platformDir, Cache: c}, compiler.Output{})
	}
	closeCache(t, c)
	if lies := c.Lies(); len(lies) > 0 {
		t.Errorf("the cache that all histories used lies: %q", lies)
	}
}

// TestProcessorsAndOrderDoNotMatter builds random platforms with one processor and with many, and
// with their files and declarations in another order.
func TestProcessorsAndOrderDoNotMatter(t *testing.T) { processorsAndOrderDoNotMatter(t) }

func TestSlowProcessorsAndOrderDoNotMatter(t *testing.T) {
	isolated.Slow(t, "it builds more random platforms")
	processorsAndOrderDoNotMatter(t)
}

func processorsAndOrderDoNotMatter(t *testing.T) {
	for seed := range uint64(howMany(t, 2, 8, 120)) {
		r := rand.New(rand.NewPCG(seed, 99))
		p := randplatform.New(1000 + seed)
		did := []string{fmt.Sprintf("seed %d", 1000+seed)}
		for range 3 * (seed % 4) {
			did = append(did, p.Edit(r))
		}
		at := func(p *randplatform.Platform, procs int) outcome {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			dir := t.TempDir()
			if err := p.Write(filepath.Join(dir, "platform")); err != nil {
				t.Fatal(err)
			}
			return compileTo(t, compiler.Request{Dir: filepath.Join(dir, "platform")}, filepath.Join(dir, "out"))
		}
		want, many := at(p, 1), at(p, 8)
		if d := same(many, want); d != "" {
			t.Errorf("GOMAXPROCS matters: %s\n%s", d, strings.Join(did, "\n"))
		}
		p.Shuffle(r)
		other := at(p, 8)
		if d := differs(withoutPlaces(other), withoutPlaces(want)); d != "" {
			t.Errorf("the way it is written matters: %s\n%s", d, strings.Join(did, "\n"))
		}
	}
}

// withoutPlaces returns an outcome without the parts that depend on the names of files and on
// line numbers.
func withoutPlaces(o outcome) map[string]string {
	out := map[string]string{}
	for p, text := range o.files {
		load := func(string) ([]byte, error) { return nil, fs.ErrNotExist }
		if record, err := tree.ParseRecord([]byte(text), load); err == nil {
			record.Source = tree.Source{}
			for i := range record.ClusterTypes {
				record.ClusterTypes[i].Digest = "" // the text of their files identifies functions
			}
			text = string(record.Encode())
		}
		out[p] = text
	}
	var said []string
	for _, d := range o.all {
		said = append(said, fmt.Sprintf("%s %s %s %v %s", d.Code, d.Path, d.Message, d.Assignments, d.Hint))
	}
	slices.Sort(said)
	out["diagnostics"] = strings.Join(said, "\n")
	for what, text := range o.said {
		if strings.HasPrefix(what, "summary") || what == "error" {
			out[what] = text
		}
	}
	return out
}

func removeAll(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}
