package incremental

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestBatches(t *testing.T) {
	for name, c := range map[string]struct {
		entities []int // of each unit
		shared   int   // bytes
		least    int
		want     string
	}{
		"few":                      {[]int{10, 20, 30}, 0, 300, "[[-1 0 1 2]]"},
		"one at a time":            {[]int{10, 20, 30}, 500, 1, "[[-1] [0] [1] [2]]"},
		"many":                     {[]int{100, 200, 300, 10, 290}, 0, 300, "[[-1 0 1] [2] [3 4]]"},
		"a small rest":             {[]int{300, 300, 10}, 0, 300, "[[-1 0] [1 2]]"},
		"a rest that is not small": {[]int{300, 300, 200}, 0, 300, "[[-1 0] [1] [2]]"},
		"much that is shared":      {[]int{300, 300, 300}, 600, 300, "[[-1 0 1] [2]]"},
	} {
		d := partition{bytes: c.shared}
		units := []int{sharedUnit}
		for n, entities := range c.entities {
			d.units = append(d.units, unit{entities: make([]model.Ref, entities), bytes: entities, files: []int{n}})
			units = append(units, n)
		}
		got := d.batches(units, c.least)
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
		var all []int
		for _, batch := range got {
			all = append(all, batch...)
			if left := d.leftOut(batch); len(left)+len(batch) < len(c.entities) {
				t.Errorf("%s: %v leaves out %v", name, batch, left)
			}
		}
		if !slices.Equal(all, units) {
			t.Errorf("%s: %v", name, all)
		}
	}
}

// TestManyFiles checks that there are few batches, even for many files, because CUE reads all
// files for each batch.
func TestManyFiles(t *testing.T) {
	d := partition{}
	for range 100_000 {
		d.units = append(d.units, unit{entities: make([]model.Ref, 1), bytes: 100, files: []int{len(d.units)}})
	}
	if n := len(d.batches(d.all(), batchEntities)); n < 2 || n > 2*maxBatches {
		t.Errorf("%d batches", n)
	}
}
