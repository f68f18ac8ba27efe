//go:build darwin || freebsd || netbsd

package tree

import (
	"io/fs"
	"syscall"
)

func changeOf(info fs.FileInfo) (ctime int64, ino uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ctimespec.Nano(), uint64(st.Ino)
}
