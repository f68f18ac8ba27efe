package tree

import "golang.org/x/sys/unix"

func exchangeAt(inA int, a string, inB int, b string) error {
	return unix.RenameatxNp(inA, a, inB, b, unix.RENAME_SWAP)
}
