//go:build unix

package application_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Wherever a write is killed, every file is whole, old or new. Foreign files do not change,
// and the next run finishes the write.
func TestKilledWriteIsFinished(t *testing.T) {
	t.Parallel()
	e := edit{
		from:    many(6, "1", "dev", "prod").with(folder{"environments/dev/gone/values.yaml": ""}).in(t),
		to:      many(6, "2", "dev", "prod").with(folder{"environments/dev/t003/values.yaml": "-", "environments/dev/new/values.yaml": ""}).in(t),
		foreign: folder{"dev/t001/mine": "m", "dev/gone/mine": "m", "notes.md": "m"},
	}
	e.before, e.after = afresh(t, e.from), afresh(t, e.to)
	var kills atomic.Int64
	t.Run("at", func(t *testing.T) {
		for _, k := range []kill{
			{Rendering: true},
			{Journal: "dev"},
			{Journal: "dev", After: 300 * time.Microsecond},
			{Journal: "dev", After: 2 * time.Millisecond},
			{Journal: "prod", After: 500 * time.Microsecond},
		} {
			t.Run(fmt.Sprintf("%+v", k), func(t *testing.T) {
				t.Parallel()
				if e.killed(t, k) && k.Journal != "" {
					kills.Add(1)
				}
			})
		}
	})
	for range 50 { // on a busy machine, writes end before anybody sees them
		if kills.Load() == 0 && e.killed(t, kill{Journal: "dev"}) {
			kills.Add(1)
		}
	}
	if kills.Load() == 0 {
		t.Error("no write was killed")
	}
}

// edit writes a version over an earlier one, among foreign files.
type edit struct {
	from, to      string // the folders of the versions
	before, after folder // the trees that they are written as
	foreign       folder
}

// killed kills the write, and reports whether it got that far. A journal has the name of
// its environment.
func (e edit) killed(t *testing.T, k kill) bool {
	t.Helper()
	out := t.TempDir()
	written(t, e.from, out)
	e.foreign.put(t, out, slices.Collect(maps.Keys(e.foreign)))
	if k.Journal != "" {
		k.Journal = filepath.Join(out, k.Journal, ".kalypso", "journal.json")
	}
	killed, err := child{Dir: e.to, To: out, Kill: &k}.run()
	must(t, err)
	half := read(t, out)
	if k.Rendering {
		if !killed {
			t.Error("it was not killed")
		}
		equal(t, "killed before anything is written", half, e.before.with(e.foreign))
	}
	for name, text := range half {
		if text != e.before[name] && text != e.after[name] && text != e.foreign[name] && !strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s is %q", name, text)
		}
	}
	equal(t, "what others wrote", half.with(e.foreign), half)

	written(t, e.to, out)
	equal(t, "finished", read(t, out), e.after.with(e.foreign))
	for name := range everything(t, out) {
		if strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, "journal.json") {
			t.Errorf("%s is left", name)
		}
	}
	for environment, c := range written(t, e.to, out) {
		if !c.Empty() {
			t.Errorf("written again, %s: %+v", environment, c)
		}
	}
	return killed
}

// If several processes write two versions of an application to one folder at once, each
// environment has the whole output of one of them. The next write can continue from that
// state.
func TestProcessesAtOnce(t *testing.T) {
	t.Parallel()
	one, two := many(4, "1", "dev", "prod").in(t), many(4, "2", "dev", "prod").with(folder{"environments/dev/two/values.yaml": ""}).in(t)
	wantOne, wantTwo := afresh(t, one), afresh(t, two)
	out := filepath.Join(t.TempDir(), "out")
	for range 2 { // the first time there is no folder
		var group sync.WaitGroup
		for i := range 3 {
			dir := []string{one, two}[i%2]
			group.Go(func() {
				if _, err := (child{Dir: dir, To: out}).run(); err != nil && !strings.Contains(err.Error(), "another kalypso works on this folder") {
					t.Error(err)
				}
			})
		}
		group.Wait()
		got := read(t, out)
		for _, environment := range []string{"dev", "prod"} {
			if g := below(got, environment); !maps.Equal(g, below(wantOne, environment)) && !maps.Equal(g, below(wantTwo, environment)) {
				t.Errorf("%s is neither: %q", environment, g)
			}
		}
		written(t, one, out)
		equal(t, "afterwards", read(t, out), wantOne)
	}
}
