//go:build unix

package main

import (
	"os"
	"syscall"
)

// memoryFolder is where Linux keeps files in memory.
const memoryFolder = "/dev/shm"

// workFolder returns where to work by default: in memory, where there is room
// for a build's output, else where temporary files are. A disk would measure
// its own history: ext4 takes up to a hundred times as long to create a file
// while it remembers those that were removed in the last half minute
// (recently_deleted in fs/ext4/ialloc.c), which tests do all the time.
func workFolder(sizes []int) string {
	const perAssignment = 64 << 10 // 4 files, their folder and the platform, in pages, and twice that
	assignments := 0
	for _, n := range sizes {
		assignments += 2 * n // of each kind
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memoryFolder, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) > uint64(assignments)*perAssignment {
		return memoryFolder
	}
	return os.TempDir()
}
