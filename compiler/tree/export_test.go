package tree

import (
	"os"
	"time"
)

// The tests are outside the package, like its users. Only these hooks are inside. Without them, a
// test cannot make a disk fail between two changes of a write, or disable an ability of the file
// system. It would also have to wait ten seconds for each lock.

// OpenWithin is Open, but waits for the lock only for the given time.
func OpenWithin(dir string, wait time.Duration) (*Dir, error) { return open(dir, wait) }

// Hooks change the writes of a Dir for a test. The Dir then uses one worker, so that the changes
// have an order. A nil function does nothing.
type Hooks struct {
	// Step is called before each change to the disk. Its error replaces the change: it simulates a
	// killed process, or a full disk.
	Step func(op, path string) error
	// Exchange replaces the system call that exchanges two folders.
	Exchange func(root *os.Root, a, b string) error
	// Remake makes each write request the content of a cluster type twice, as for large trees,
	// which are not kept in memory.
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
