package source

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// repository reads a git repository. It is not for use by several goroutines.
//
// It is go-git's storage without go-git's Repository, which refuses repositories
// with a sparse checkout, takes a branch named like the digits of an object for
// that object, and reads HEAD@{1} as HEAD. Objects of alternates are looked up
// here: go-git reads their index anew for every object, and takes relative paths
// for others.
type repository struct {
	*filesystem.Storage
	alternates []*filesystem.Storage
	workTree   string // the folder that has .git
	partial    bool   // objects may be missing that git would fetch
}

// openRepository opens the repository that a folder, an absolute path without
// links, is in.
func openRepository(dir string) (*repository, error) {
	workTree, gitDir, err := findRepository(dir)
	if err != nil {
		return nil, err
	}
	common := gitDir
	if b, err := os.ReadFile(filepath.Join(gitDir, "commondir")); err == nil {
		common = resolvePath(gitDir, string(b))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	r := &repository{workTree: workTree}
	if err := r.readFormat(filepath.Join(common, "config")); err != nil {
		return nil, err
	}
	var files billy.Filesystem = osfs.New(gitDir)
	if common != gitDir {
		files = dotgit.NewRepositoryFilesystem(files, osfs.New(common))
	}
	r.Storage = openStorage(files)
	for _, objects := range alternates(filepath.Join(common, "objects")) {
		r.alternates = append(r.alternates, openStorage(osfs.New(filepath.Dir(objects))))
	}
	return r, nil
}

// openStorage opens the files of a repository without its alternates, which are
// looked for in a file system that has none.
func openStorage(files billy.Filesystem) *filesystem.Storage {
	return filesystem.NewStorageWithOptions(files, cache.NewObjectLRUDefault(), filesystem.Options{KeepDescriptors: true, AlternatesFS: memfs.New()})
}

// Close closes the files that are open.
func (r *repository) Close() error {
	errs := []error{r.Storage.Close()}
	for _, s := range r.alternates {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// EncodedObject returns an object of the repository or of its alternates.
func (r *repository) EncodedObject(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := r.Storage.EncodedObject(t, h)
	for i := 0; i < len(r.alternates) && errors.Is(err, plumbing.ErrObjectNotFound); i++ {
		o, err = r.alternates[i].EncodedObject(t, h)
	}
	return o, err
}

// EncodedObjectSize returns the size of the content of an object of the
// repository or of its alternates.
func (r *repository) EncodedObjectSize(h plumbing.Hash) (int64, error) {
	n, err := r.Storage.EncodedObjectSize(h)
	for i := 0; i < len(r.alternates) && errors.Is(err, plumbing.ErrObjectNotFound); i++ {
		n, err = r.alternates[i].EncodedObjectSize(h)
	}
	return n, err
}

// findRepository returns the work tree that a folder is in and the folder with
// its own part of the repository.
func findRepository(dir string) (workTree, gitDir string, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		at := filepath.Join(d, ".git")
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			b, err := os.ReadFile(at)
			if err != nil {
				return "", "", err
			}
			to, ok := strings.CutPrefix(string(b), "gitdir:")
			if !ok {
				return "", "", fmt.Errorf("%s does not say where the repository is", at)
			}
			if at = resolvePath(d, to); !isGitDir(at) {
				return "", "", fmt.Errorf("%s says that the repository is in %s, and it is not; `git worktree repair` mends moved work trees", filepath.Join(d, ".git"), at)
			}
			return d, at, nil
		case err == nil && isGitDir(at):
			return d, at, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", "", err
		}
		if d == filepath.Dir(d) {
			return "", "", fmt.Errorf("%s is not in a git repository, so it has no revisions; run git init and commit it, or name a folder instead of a revision", dir)
		}
	}
}

// isGitDir says whether git would take a folder for its own.
func isGitDir(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil
}

// resolvePath returns a path that a file of git names, relative to dir.
func resolvePath(dir, line string) string {
	line = filepath.FromSlash(strings.TrimSpace(line))
	if filepath.IsAbs(line) {
		return filepath.Clean(line)
	}
	return filepath.Join(dir, line)
}

// alternates returns the folders of objects that a folder of objects borrows
// from, in the order in which git searches them. Those that are not there are
// left out.
func alternates(objects string) []string {
	const deepest = 5 // as for git
	var all []string
	seen := map[string]bool{objects: true}
	level := []string{objects}
	for range deepest {
		var next []string
		for _, from := range level {
			for _, to := range readAlternates(from) {
				info, err := os.Stat(to)
				if err != nil || !info.IsDir() || seen[to] {
					continue
				}
				seen[to] = true
				next = append(next, to)
			}
		}
		all = append(all, next...)
		level = next
	}
	return all
}

func readAlternates(objects string) []string {
	f, err := os.Open(filepath.Join(objects, "info", "alternates"))
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); line != "" && line[0] != '#' {
			out = append(out, resolvePath(objects, line))
		}
	}
	return out
}

// ignored are git's extensions that change nothing for a reader of what is there.
var ignored = []string{"noop", "noop-v1", "partialclone", "preciousobjects", "worktreeconfig", "relativeworktrees"}

// readFormat reads from a repository's configuration how its files are to be
// read, and fails where they cannot be.
func (r *repository) readFormat(name string) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	c := config.New()
	if err := config.NewDecoder(f).Decode(c); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	version := c.Section("core").Option("repositoryformatversion")
	if !slices.Contains([]string{"", "0", "1"}, version) {
		return unreadable("its format has version " + version)
	}
	for _, remote := range c.Section("remote").Subsections {
		r.partial = r.partial || remote.HasOption("promisor")
	}
	for _, e := range c.Section("extensions").Options {
		key, value := strings.ToLower(e.Key), strings.ToLower(e.Value)
		switch {
		case key == "objectformat" && value == "sha1", key == "refstorage" && value == "files", slices.Contains(ignored, key):
		case key == "objectformat", key == "refstorage":
			return unreadable("its " + e.Key + " is " + e.Value)
		case version == "1":
			return unreadable("it has the extension " + e.Key)
		}
	}
	return nil
}

func unreadable(why string) error {
	return fmt.Errorf("kalypso cannot read the git repository: %s; check the revision out (git worktree add --detach DIR REVISION) and name that folder", why)
}

// explain says why an object is missing, and how to get it.
func (r *repository) explain(err error, what string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		switch shallow, _ := r.Shallow(); {
		case len(shallow) > 0:
			return fmt.Errorf("%s is not in the shallow clone; run git fetch --unshallow, or let CI clone the whole history", what)
		case r.partial:
			return fmt.Errorf("%s is not in the partial clone; let git fetch it (git worktree add --detach DIR REVISION does) and name that folder", what)
		}
		return fmt.Errorf("an object of %s is missing in the git repository; git fsck says more", what)
	}
	return fmt.Errorf("%s: %w", what, err)
}
