//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// memoryFolder is where Linux keeps files in memory.
const memoryFolder = "/dev/shm"

// workFolder returns where to work by default: in memory, where there is room
// for all that is made of the largest platform, else where temporary files are. A
// disk would measure its own history: ext4 without a journal takes up to a hundred
// times as long to create a file while it remembers those that were removed in the
// last minute, or five if that was not written yet (recently_deleted in
// fs/ext4/ialloc.c), which tests do all the time.
func workFolder(sizes []int) string {
	if hasRoom(memoryFolder, slices.Max(append(sizes, 0))) {
		return memoryFolder
	}
	return os.TempDir()
}

// diskFolder returns where to measure on a disk by default: in the user's cache, else
// in the current folder, where there is room for all platforms, because nothing is
// removed before the end. It returns "" if there is none, or if all work is on a disk.
func diskFolder(work string, sizes []int) string {
	all := 0
	for _, n := range sizes {
		all += 2 * n // of each kind
	}
	cache, _ := os.UserCacheDir() // "" has no room
	for _, dir := range []string{cache, "."} {
		if inMemory(work) && hasRoom(dir, all) {
			return dir
		}
	}
	return ""
}

func inMemory(dir string) bool { return strings.HasPrefix(dir+"/", memoryFolder+"/") }

// hasRoom tells if all that is made of a platform fits into a folder's file system.
func hasRoom(dir string, assignments int) bool {
	const perAssignment = 96 << 10 // twice: 4 files and their folder, in pages, in two folders and as git's objects
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && fs.Bavail*uint64(fs.Bsize) > uint64(assignments)*perAssignment
}

// shortPath is a path with ~ for the user's home folder.
func shortPath(path string) string {
	home, _ := os.UserHomeDir()
	if rest, err := filepath.Rel(home, path); err == nil && home != "" && filepath.IsLocal(rest) {
		return filepath.Join("~", rest)
	}
	return path
}
