package progress

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kalypso-io/kalypso/compiler/engine"
)

func at(environment string, done, total int) engine.Progress {
	return engine.Progress{Environment: environment, Done: done, Total: total}
}

func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		d := Start(Options{Out: &out})
		defer d.Stop()
		d.Report(at("dev", 0, 100_000))
		d.Report(at("prod", 5, 5))
		d.Report(at("dev", 12_000, 100_000))
		d.Report(at("dev", 11_000, 100_000)) // overtaken
		out.after(t, 9900*time.Millisecond, "")
		out.after(t, 200*time.Millisecond, "dev: 12,000 of 100,000 assignments\n")
		d.Report(at("qa", 1, 2_000_000))
		out.after(t, 10*time.Second, "qa: 1 of 2,000,000 assignments\n") // dev did not move
		d.Report(at("dev", 100_000, 100_000))
		d.Report(at("qa", 999, 2_000_000))
		d.Stop()
		d.Stop()
		out.after(t, time.Minute, "")
	})
}

func TestBars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		columns, rows := 60, 24
		var out output
		d := Start(Options{Out: &out, Size: func() (int, int) { return columns, rows }})
		out.after(t, 290*time.Millisecond, "")
		out.after(t, 20*time.Millisecond, "reading the platform\x1b[K\n\x1b[J")
		d.Report(at("prod", 2_000, 4_000))
		d.Report(at("dev", 0, 10))
		out.after(t, 100*time.Millisecond, "\r\x1b[1A"+
			"dev  [                                ] 0 of 10 assignments\x1b[K\n"+
			"prod [============>            ] 2,000 of 4,000 assignments\x1b[K\n\x1b[J")
		out.after(t, time.Second, "") // no progress, no output
		d.Report(at("dev", 10, 10))
		rows = 2 // room for one line, and the cursor's
		out.after(t, 100*time.Millisecond, "\r\x1b[2Aand 2 more\x1b[K\n\x1b[J")
		rows, columns = 24, 12
		out.after(t, 100*time.Millisecond, "\r\x1b[1Aprod  2,000\x1b[K\ndev   10 of\x1b[K\n\x1b[J")
		d.Stop()
		out.after(t, 0, "\r\x1b[2A\x1b[J")
		d.Stop()
		out.after(t, time.Minute, "")
	})
}

func TestNothingOfShortBuilds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		d := Start(Options{Out: &out, Size: func() (int, int) { return 80, 24 }})
		d.Report(at("dev", 1, 2))
		time.Sleep(patience - time.Millisecond)
		d.Stop()
		out.after(t, time.Minute, "")
		var none *Display
		none.Report(at("dev", 1, 2))
		none.Stop()
	})
}

// TestTimeLeft: the time that is left is known after a while of steady progress.
func TestTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		d := Start(Options{Out: &out, Size: func() (int, int) { return 80, 24 }})
		time.Sleep(redraw / 2) // between two drawings
		for done := range 40 {
			d.Report(at("dev", done*10, 1000))
			time.Sleep(redraw)
		}
		synctest.Wait()
		if s := out.take(); !strings.Contains(s, " assignments, 6s left\x1b[K") {
			t.Errorf("%q", s)
		}
		d.Report(at("dev", 1000, 1000))
		time.Sleep(redraw)
		synctest.Wait()
		if s := out.take(); !strings.Contains(s, "] 1,000 of 1,000 assignments\x1b[K") {
			t.Errorf("%q", s)
		}
		d.Stop()
	})
}

func TestManyGoroutines(t *testing.T) {
	var out output
	d := Start(Options{Out: &out, Size: func() (int, int) { return 80, 24 }})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 1000 {
				d.Report(at("dev", i, 1000))
			}
			d.Stop()
		})
	}
	group.Wait()
	if all := d.all(); len(all) != 1 || all[0].Done != 999 {
		t.Errorf("%v", all)
	}
}

// output collects text until a test takes it.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.text.Reset()
	return o.text.String()
}

// after waits for a time, and compares the text that was written in this time with want.
func (o *output) after(t *testing.T, d time.Duration, want string) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if got := o.take(); got != want {
		t.Errorf("after %v:\n%q\nnot\n%q", d, got, want)
	}
}
