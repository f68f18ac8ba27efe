package tree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockWait is how long a process waits for another that works on the same
// folder, and lockRetry how often it looks.
const (
	lockWait  = 10 * time.Second
	lockRetry = 20 * time.Millisecond
)

// errHeld says that another process has the lock.
var errHeld = errors.New("another kalypso works on this folder")

// lock takes the lock, which is a file in ownFolder, and waits for it if another
// process has it. ownFolder must be there. The operating system releases the
// lock of a process that was killed.
//
// A lock belongs to an open file, so it also holds between two Dirs of one
// process; on network file systems it holds as far as those implement flock.
func (d *Dir) lock() error {
	// The library opens by name, so what must not be followed is looked for first.
	s := newSurvey(d.root)
	there, err := s.look(lockPath)
	if err != nil {
		return err
	}
	if there.kind != nothing && there.kind != regular {
		return fmt.Errorf("%s is not a file", d.display(lockPath))
	}
	l := flock.New(filepath.Join(d.dir, filepath.FromSlash(lockPath)), flock.SetPermissions(0o644))
	locked, err := l.TryLock()
	if err == nil && !locked {
		ctx, cancel := context.WithTimeout(context.Background(), d.wait)
		defer cancel()
		_, err = l.TryLockContext(ctx, lockRetry)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("locking %s: %w (waited %s); build again when that one is done", d.dir, errHeld, d.wait)
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", d.dir, err)
	}
	d.held = l
	return nil
}
