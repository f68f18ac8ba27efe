package tree

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// exchange exchanges two folders in one step.
func exchange(root *os.Root, a, b string) error {
	inA, err := root.Open(path.Dir(a))
	if err != nil {
		return err
	}
	inB, err := root.Open(path.Dir(b))
	if err != nil {
		return errors.Join(err, inA.Close())
	}
	err = unix.Renameat2(int(inA.Fd()), path.Base(a), int(inB.Fd()), path.Base(b), unix.RENAME_EXCHANGE)
	return errors.Join(err, inA.Close(), inB.Close())
}
