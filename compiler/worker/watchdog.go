package worker

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/internal/cputime"
)

// watchdog ends this process if its job takes more processor time than its limit, after it
// has reported that. On a busy machine, a job that only waits for a processor takes no
// processor time.
type watchdog struct {
	w io.Writer
	// answering is held while the answer is written, or the report that the job is late.
	answering sync.Mutex
	job       int // its number; 0 between jobs
	jobs      int
}

// begin starts to watch a job.
func (d *watchdog) begin(limit time.Duration) error {
	begun, err := cputime.OfProcess()
	if err != nil {
		return err
	}
	d.answering.Lock()
	defer d.answering.Unlock()
	d.jobs++
	d.job = d.jobs
	go d.watch(d.job, begun+limit, min(max(limit/20, 5*time.Millisecond), 250*time.Millisecond))
	return nil
}

func (d *watchdog) watch(job int, until, tick time.Duration) {
	for range time.Tick(tick) {
		now, err := cputime.OfProcess()
		d.answering.Lock()
		if d.job != job {
			d.answering.Unlock()
			return
		}
		if err == nil && now > until {
			_ = writeFrame(d.w, reply{Late: true}) // who does not read it sees that the process ended
			os.Exit(1)
		}
		d.answering.Unlock()
	}
}

// end writes the answer of the job that is watched.
func (d *watchdog) end(a reply) error {
	d.answering.Lock()
	defer d.answering.Unlock()
	d.job = 0
	return writeFrame(d.w, a)
}
