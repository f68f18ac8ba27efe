package cuemodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/mod/modcache"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/modregistry"
	cuemodule "cuelang.org/go/mod/module"
)

// Dependency is a version of a module that a platform depends on.
type Dependency struct {
	Path    string // with the major version: example.com/base@v1
	Version string // v1.2.3
}

// PackageDir returns the folder, from the root and with slashes, in which a module
// may have a dependency as its own copy.
func (d Dependency) PackageDir() string {
	base, _, _ := ast.SplitPackageVersion(d.Path)
	return path.Join("cue.mod", "pkg", base)
}

// Dependencies returns the modules that a module file depends on, those of others
// included, without kalypso.io itself. A file that cannot be read as one has none:
// loading says what is wrong with it.
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

// Cached says whether CUE's module cache holds a module.
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

// Install puts a module, given as its zip file, into CUE's module cache, as cue
// does when it has fetched one: any number of processes may do so at once.
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
