package application_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The output depends neither on the order in which files were made, nor on their folder,
// nor on the number of targets that are rendered at once.
func TestOrderDoesNotMatter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	names := slices.Sorted(maps.Keys(shop))
	var want folder
	r := rand.New(rand.NewPCG(1, 2))
	for _, processors := range []int{1, 2, 8, 1, 8} {
		runtime.GOMAXPROCS(processors)
		dir, out := t.TempDir(), t.TempDir()
		shop.put(t, dir, names)
		written(t, dir, out)
		got := everything(t, out)
		if want == nil {
			want = got
		}
		equal(t, fmt.Sprintf("%d processors", processors), got, want)
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	}
	if len(want) < 8 {
		t.Errorf("only %q were compared", slices.Sorted(maps.Keys(want)))
	}
}

// The output does not depend on the clock: a day later, nothing changes, not even in the
// records.
func TestClockDoesNotMatter(t *testing.T) {
	for name, app := range map[string]folder{"chart": shop, "overlays": overlays} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, out := app.in(t), t.TempDir()
				written(t, dir, out)
				want := everything(t, out)
				time.Sleep(24 * time.Hour)
				for environment, c := range written(t, dir, out) {
					if !c.Empty() {
						t.Errorf("%s: %+v", environment, c)
					}
				}
				equal(t, "a day later", everything(t, out), want)
			})
		})
	}
}
