package tree

import (
	"io/fs"
	"time"
)

// stat is what tells whether a file may have changed. Times are in nanoseconds
// since 1970, 0 where the system does not have them.
type stat struct {
	size, mtime, ctime int64
	ino                uint64
}

func statOf(info fs.FileInfo) stat {
	ctime, ino := changeOf(info)
	return stat{size: info.Size(), mtime: info.ModTime().UnixNano(), ctime: ctime, ino: ino}
}

// before says whether the file was last changed before the time.
func (s stat) before(t time.Time) bool { return max(s.mtime, s.ctime) < t.UnixNano() }
