package tree

import (
	"os"
	"time"
)

// The tests are outside the package, and see what a build sees. Only these hooks are inside: a
// test can neither make a disk fail between two changes of a write, nor take away what a file
// system is able to do, nor wait ten seconds for each lock.

// OpenWithin is Open, but waits only that long for the lock.
func OpenWithin(dir string, wait time.Duration) (*Dir, error) { return open(dir, wait) }

// Hooks are what a test does to the writes of a Dir, which then are by one worker, so that
// their changes have an order. A nil function does nothing.
type Hooks struct {
	// Step is called before each change to the disk, and its error is the change's: a killed
	// process, or a full disk.
	Step func(op, path string) error
	// Exchange is called in place of the system call that lets two folders change places.
	Exchange func(root *os.Root, a, b string) error
	// Remake makes each write ask for the content of a cluster type twice, as it does of large
	// trees, which are not kept in memory.
	Remake bool
}

// Hook sets the hooks.
func (d *Dir) Hook(h Hooks) {
	d.workers = 1
	if h.Step != nil {
		d.step = h.Step
	}
	if h.Exchange != nil {
		d.exchange = h.Exchange
	}
	if h.Remake {
		d.maxHeld = 0
	}
}
