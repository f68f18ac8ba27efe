package tree

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const canSyncAll = true

// syncAll writes all that the folder's file system holds to the disk.
func (k disk) syncAll() error {
	if err := k.step("sync", "."); err != nil {
		return err
	}
	f, err := k.root.Open(".")
	if err != nil {
		return err
	}
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		err = fmt.Errorf("syncing the file system: %w", err)
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
