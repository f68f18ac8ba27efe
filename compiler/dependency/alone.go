package dependency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// retry is the time between two attempts of [Store.Alone] to get the lock.
const retry = 50 * time.Millisecond

// Alone locks the pins of the platform, or the application, at root. It waits until no
// other process on this machine changes them, and excludes the others until the caller
// calls release. It returns the context's error. Files must be read after the call, because
// the other process may have changed them.
//
// The lock file is in the machine's folder, so that no lock is left in the platform. If the
// folder is not writable, there is no lock: then little can be pinned.
func (s *Store) Alone(ctx context.Context, root string) (release func(), err error) {
	name, err := s.aloneFile(root)
	if err != nil {
		return func() {}, nil
	}
	l := regular.Lock(name, 0o644)
	locked, err := l.TryLock()
	if err == nil && !locked {
		locked, err = l.TryLockContext(ctx, retry)
	}
	if !locked && ctx.Err() != nil {
		return nil, fmt.Errorf("wait for another kalypso that locks %s: %w", root, context.Cause(ctx))
	}
	if err != nil {
		return func() {}, nil
	}
	return func() { _ = l.Close() }, nil
}

// aloneFile returns the lock file for changes of root. Its folder exists.
func (s *Store) aloneFile(root string) (string, error) {
	if s.machine == "" {
		return "", os.ErrNotExist
	}
	real, err := filepath.Abs(root)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.machine, "locking")
	sum := sha256.Sum256([]byte(real))
	return filepath.Join(dir, hex.EncodeToString(sum[:])), os.MkdirAll(dir, 0o777)
}
