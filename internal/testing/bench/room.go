//go:build unix

package main

import (
	"os"
	"syscall"
)

// memoryFolder is where Linux keeps files in memory.
const memoryFolder = "/dev/shm"

// workFolder returns where to work by default: in memory, where there is room
// for all that is made of the largest platform, else where temporary files are. A
// disk would measure its own history: ext4 takes up to a hundred times as long to
// create a file while it remembers those that were removed in the last half minute
// (recently_deleted in fs/ext4/ialloc.c), which tests do all the time.
func workFolder(sizes []int) string {
	const perAssignment = 96 << 10 // twice: 4 files and their folder, in pages, in two folders and as git's objects
	most := 0
	for _, n := range sizes {
		most = max(most, n)
	}
	room := uint64(most) * perAssignment
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memoryFolder, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) > room {
		return memoryFolder
	}
	return os.TempDir()
}
