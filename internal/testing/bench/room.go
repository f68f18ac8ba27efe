//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// memoryFolder is the folder in which Linux keeps files in memory.
const memoryFolder = "/dev/shm"

// workFolder returns the default folder to work in. It is in memory if there is room for all
// files of the largest platform, else in the folder for temporary files.
//
// A disk would measure its own history. ext4 without a journal takes up to a hundred times as
// long to create a file while it remembers removed files. It remembers the files of the last
// minute, or of five minutes if the removal was not written yet (recently_deleted in
// fs/ext4/ialloc.c). Tests remove files all the time.
func workFolder(sizes []int) string {
	if hasRoom(memoryFolder, slices.Max(append(sizes, 0))) {
		return memoryFolder
	}
	return os.TempDir()
}

// diskFolder returns the default folder for measurements on a disk: in the user's cache, else in
// the current folder. It must have room for all platforms, because no file is removed before the
// end. diskFolder returns "" if no folder has room, or if all work is on a disk.
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

// hasRoom reports whether all files of a platform fit into a folder's file system.
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
