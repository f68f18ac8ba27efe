package cuemodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/mod/modcache"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/modregistry"
	cuemodule "cuelang.org/go/mod/module"
	xmodule "golang.org/x/mod/module"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/internal/regular"
)

// EnsureCache makes sure that CUE's module cache holds the module, so that plain
// cue and its language server resolve a platform's pin without a network. The
// cache is $CUE_CACHE_DIR, else the folder "cue" in [os.UserCacheDir].
//
// If the cache holds the same module as the binary, EnsureCache reads some small files and
// writes nothing. If an entry differs, a development build replaces it. A release does not
// change it, and returns a *DifferentError: a published version never changes, so the entry is
// wrong.
//
// kalypso itself does not need the cache (Overlay), so an error of this function should not
// stop a command. A *DifferentError deserves a warning, because plain cue may then judge a
// platform differently from kalypso. Other errors, such as a missing or read-only home, deserve
// a warning at most if the user requested the cache.
//
// Any number of processes may call it at the same time, including CUE. It takes CUE's lock for
// this version, and an entry appears as a whole or not at all. While a development build
// replaces an entry, a cue process that starts at that moment may not find it. If ctx ends,
// EnsureCache stops waiting for the lock.
// may not find it. Waiting for the lock ends with ctx.
func EnsureCache(ctx context.Context) error {
	dir, err := CacheDir()
	if err != nil {
		return fmt.Errorf("find CUE's module cache: %w", err)
	}
	return entryIn(dir).ensure(ctx, development())
}

// DifferentError reports that CUE's module cache holds different files from the binary for the
// same version.
type DifferentError struct {
	Folder string // the entry in the cache
	File   string // a file that differs, named from the module's root
}

func (e *DifferentError) Error() string {
	return fmt.Sprintf("CUE's module cache holds another %s %s than this kalypso (%s differs): cue "+
		"may judge a platform differently; remove %s to have it written again",
		basePath, kalypso.ModuleVersion, e.File, e.Folder)
}

// CacheDir returns the folder of CUE's module cache, by CUE's own rule
// (cuelang.org/go/internal/cueconfig.CacheDir).
func CacheDir() (string, error) {
	if dir := os.Getenv("CUE_CACHE_DIR"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "cue"), err
}

// development reports whether the binary is not a release of kalypso, so that its module may
// change without a new version.
func development() bool {
	build, ok := debug.ReadBuildInfo()
	return !ok || !release(build)
}

// release reports whether a binary was built from a released version of this Go
// module, as its main module or as a dependency of another program.
func release(build *debug.BuildInfo) bool {
	const goModule = "github.com/kalypso-io/kalypso"
	for _, m := range append([]*debug.Module{&build.Main}, build.Deps...) {
		if m.Path == goModule {
			return m.Replace == nil && strings.HasPrefix(m.Version, "v") &&
				!strings.HasSuffix(m.Version, "+dirty") && !xmodule.IsPseudoVersion(m.Version)
		}
	}
	return false
}

// entry is the place of the module in a CUE cache, in the layout of
// cuelang.org/go/mod/modcache.
type entry struct {
	folder   string // the extracted module
	mod      string // its module.cue, which CUE reads to select versions
	lock     string // locked by the process that writes the two
	partial  string // exists while CUE extracts: the folder is incomplete
	download string // the folder of mod, lock and partial
}

func entryIn(cache string) entry {
	extract := filepath.Join(cache, "mod", "extract", filepath.FromSlash(basePath))
	download := filepath.Join(cache, "mod", "download", filepath.FromSlash(basePath), "@v")
	version := filepath.Join(download, kalypso.ModuleVersion)
	return entry{
		folder:   extract + "@" + kalypso.ModuleVersion,
		mod:      version + ".mod",
		lock:     version + ".lock",
		partial:  version + ".partial",
		download: download,
	}
}

// ensure makes the entry hold the module. replace reports whether to replace different content.
func (e entry) ensure(ctx context.Context, replace bool) error {
	done, err := e.holds(replace)
	if done || err != nil {
		return err
	}
	unlock, err := e.acquire(ctx)
	if err != nil {
		return fmt.Errorf("lock %s in CUE's module cache: %w", basePath, err)
	}
	defer unlock()
	// Another process may have written it while this one waited.
	done, err = e.holds(replace)
	if done || err != nil {
		return err
	}
	if err := e.write(); err != nil {
		return fmt.Errorf("write %s into CUE's module cache: %w", basePath, err)
	}
	return nil
}

// holds reports whether the entry holds the module. It returns false if the entry does not
// exist, or if CUE has not finished it. If the entry differs, it returns false if replace is
// set, and otherwise a *DifferentError.
func (e entry) holds(replace bool) (bool, error) {
	if _, err := os.Lstat(e.partial); err == nil {
		return false, nil
	}
	if _, err := os.Stat(e.folder); err != nil {
		return false, ignore(err, fs.ErrNotExist)
	}
	differs := e.differs()
	if differs == "" {
		mod, err := regular.ReadFile(e.mod)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil || !bytes.Equal(mod, moduleText()) {
			differs = File
		}
	}
	if differs == "" {
		return true, nil
	}
	if replace {
		return false, nil
	}
	return false, &DifferentError{Folder: e.folder, File: differs}
}

// differs returns the name of a file in which the entry's folder differs from the module, or
// "". It compares the files themselves, which costs less than computing digests of them. It
// ignores files that CUE never reads for the module's packages: a published module holds its
// whole repository.
func (e entry) differs() string {
	for _, f := range embedded() {
		text, err := regular.ReadFile(filepath.Join(e.folder, filepath.FromSlash(f.name)))
		if err != nil || !bytes.Equal(text, f.text) {
			return f.name
		}
	}
	for _, folder := range folders() {
		entries, err := os.ReadDir(filepath.Join(e.folder, filepath.FromSlash(folder)))
		if err != nil {
			return folder
		}
		for _, file := range entries {
			if name := path.Join(folder, file.Name()); path.Ext(name) == ".cue" && !has(name) {
				return name
			}
		}
	}
	return ""
}

// acquire takes the lock of the entry, or gives up when ctx ends, because CUE holds the lock
// while it downloads. CUE locks the same file in the same way, with flock.
func (e entry) acquire(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(e.download, 0o777); err != nil {
		return nil, err
	}
	lock := regular.Lock(e.lock, 0o666)
	const retry = 20 * time.Millisecond
	if _, err := lock.TryLockContext(ctx, retry); err != nil {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

// write replaces the content of the entry with the module. The caller must hold the lock. write
// creates the folder last: once it exists, the entry is complete.
func (e entry) write() error {
	parent, name := filepath.Split(e.folder)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	// As this process holds the lock, the creator of a temporary folder has ended. CUE also
	// removes folders with such names.
	leftover, _ := filepath.Glob(filepath.Join(parent, name+".tmp-*"))
	for _, dir := range leftover {
		modcache.RemoveAll(dir)
	}
	temporary, err := os.MkdirTemp(parent, name+".tmp-")
	if err != nil {
		return err
	}
	defer modcache.RemoveAll(temporary)

	mod := filepath.Join(temporary, "mod")
	if err := writeFile(mod, moduleText(), 0o666); err != nil {
		return err
	}
	if err := os.Rename(mod, e.mod); err != nil {
		return err
	}
	fresh := filepath.Join(temporary, "new")
	for _, f := range embedded() {
		if err := writeFile(filepath.Join(fresh, filepath.FromSlash(f.name)), f.text, 0o444); err != nil {
			return err
		}
	}
	if err := moveAway(e.folder, filepath.Join(temporary, "old")); err != nil {
		return err
	}
	if err := os.Rename(fresh, e.folder); err != nil {
		return err
	}
	if err := os.Remove(e.partial); ignore(err, fs.ErrNotExist) != nil {
		return err
	}
	protect(e.folder)
	return nil
}

// moveAway renames a folder of the cache if it exists.
func moveAway(from, to string) error {
	// Moving a folder to another parent needs write permission on the folder itself, which CUE
	// removes.
	info, err := os.Lstat(from)
	if err != nil {
		return ignore(err, fs.ErrNotExist)
	}
	if info.IsDir() {
		os.Chmod(from, info.Mode()|0o200)
	}
	return os.Rename(from, to)
}

// writeFile writes a file and its folders, and syncs it to the disk: a release would never
// repair an entry that a power failure emptied.
func writeFile(name string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// protect removes the write permission of a folder and of all folders below it, as CUE does
// with its cache. It ignores errors, because the permissions only prevent mistakes.
func protect(dir string) {
	filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(name, 0o555)
		}
		return nil
	})
}

// moduleText returns the module's own module.cue.
func moduleText() []byte {
	text, _ := kalypso.Module.ReadFile(File)
	return text
}

// ignore returns err. It returns nil if err wraps the error what.
func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// Dependency is a platform's dependency: a module at a version.
type Dependency struct {
	Path    string // with the major version, as example.com/base@v1
	Version string // such as v1.2.3
}

// PackageDir returns the folder in which a module may have its own copy of a dependency,
// relative to the root and with slashes.
func (d Dependency) PackageDir() string {
	base, _, _ := ast.SplitPackageVersion(d.Path)
	return path.Join("cue.mod", "pkg", base)
}

// Dependencies returns the modules that a module file depends on, including indirect ones and
// without kalypso.io itself. It returns nil for an unreadable file: loading reports the error.
func Dependencies(text []byte) []Dependency {
	f, err := modfile.ParseNonStrict(text, File)
	if err != nil {
		return nil
	}
	var out []Dependency
	for _, v := range f.DepVersions() {
		if v.BasePath() != basePath {
			out = append(out, Dependency{v.Path(), v.Version()})
		}
	}
	return out
}

// Cached reports whether CUE's module cache holds a module.
func Cached(d Dependency) (bool, error) {
	v, err := cuemodule.NewVersion(d.Path, d.Version)
	if err != nil {
		return false, err
	}
	dir, err := CacheDir()
	if err != nil {
		return false, err
	}
	cache, err := modcache.New(modregistry.NewClient(ocimem.New()), dir)
	if err != nil {
		return false, err
	}
	_, err = cache.FetchFromCache(v)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, modregistry.ErrNotFound) {
		return false, nil
	}
	return err == nil, nil
}

// Install puts a module, given as its zip file, into CUE's module cache, as cue does after it
// has fetched a module. Any number of processes may call it at the same time.
func Install(ctx context.Context, d Dependency, zip []byte) error {
	v, err := cuemodule.NewVersion(d.Path, d.Version)
	if err != nil {
		return err
	}
	dir, err := CacheDir()
	if err != nil {
		return fmt.Errorf("find CUE's module cache: %w", err)
	}
	registry := modregistry.NewClient(ocimem.New()) // in memory: CUE fetches from it
	if err := registry.PutModule(ctx, v, bytes.NewReader(zip), int64(len(zip))); err != nil {
		return fmt.Errorf("%s %s is no CUE module: %w", d.Path, d.Version, err)
	}
	cache, err := modcache.New(registry, dir)
	if err != nil {
		return err
	}
	if _, err := cache.ModFile(ctx, v); err != nil {
		return err
	}
	_, err = cache.Fetch(ctx, v)
	return err
}
