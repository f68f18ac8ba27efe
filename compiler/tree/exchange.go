package tree

import (
	"errors"
	"os"
	"path"
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
	err = exchangeAt(int(inA.Fd()), path.Base(a), int(inB.Fd()), path.Base(b))
	return errors.Join(err, inA.Close(), inB.Close())
}
