package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// changeOf returns the time of the last change of a file, and its inode.
func changeOf(info fs.FileInfo) (ctime int64, ino uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ctim.Nano(), st.Ino
}

// scanner looks at many files, folder by folder, and follows no symbolic link. It opens
// a folder once, and finds its files in it. With full paths, the system would start
// from the root for each file.
type scanner struct {
	root   *os.File
	around int    // the last opened folder in root
	name   string // its name
	in     int    // the current folder
}

// notOpen is the descriptor of no folder.
const notOpen = -1

// openScanner returns a scanner of the folder. It is for one goroutine.
func openScanner(root *os.Root) (*scanner, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	return &scanner{root: f, around: notOpen, in: notOpen}, nil
}

func (s *scanner) close() error {
	s.leave()
	closeFD(&s.around)
	return s.root.Close()
}

// leave closes the current folder, unless it stays open as around.
func (s *scanner) leave() {
	if s.in != s.around {
		closeFD(&s.in)
	}
	s.in = notOpen
}

// closeFD closes a descriptor, if it is open.
func closeFD(fd *int) {
	if *fd != notOpen {
		_ = unix.Close(*fd) // it was opened to look, so nothing can be lost
		*fd = notOpen
	}
}

// enter opens a folder; it returns false if the folder does not exist.
func (s *scanner) enter(dir string) bool {
	s.leave()
	first, rest, deeper := strings.Cut(dir, "/")
	if s.around == notOpen || s.name != first {
		closeFD(&s.around)
		s.name = first
		s.around = openFolder(int(s.root.Fd()), first)
	}
	s.in = s.around
	for deeper && s.in != notOpen {
		var name string
		name, rest, deeper = strings.Cut(rest, "/")
		next := openFolder(s.in, name)
		s.leave()
		s.in = next
	}
	return s.in != notOpen
}

// openFolder opens a folder in another one; it returns notOpen if it cannot.
func openFolder(in int, name string) int {
	if name == "" || name == "." || name == ".." { // an index may be damaged
		return notOpen
	}
	for {
		fd, err := unix.Openat(in, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return notOpen
		}
		return fd
	}
}

// stat looks at a file of the folder. It returns false if the file does not exist, or if its
// executable bit differs from executable.
func (s *scanner) stat(name string, executable bool) (stat, bool) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(s.in, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&ownerMayRun != 0 != executable {
			return stat{}, false
		}
		return stat{size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), ino: st.Ino}, true
	}
}

const canSyncAll = true

// syncAll writes all changes in the folder's file system to the disk.
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

// exchangeAt exchanges the names of two files or folders, each in an open folder, in one step.
func exchangeAt(inA int, a string, inB int, b string) error {
	return unix.Renameat2(inA, a, inB, b, unix.RENAME_EXCHANGE)
}
