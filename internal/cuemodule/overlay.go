package cuemodule

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"cuelang.org/go/cue/load"
	"cuelang.org/go/cue/parser"
	"github.com/kalypso-io/kalypso"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// Overlay returns what must lie over the platform at root, for
// [load.Config.Overlay], so that the loader resolves the module from the binary:
// without a cache, a network or a pin. root must be written as it is in
// load.Config.Dir; it is made absolute.
//
// The module's packages lie under cue.mod/pkg. Pin and package together are
// ambiguous to CUE, so the pin is blanked out of module.cue; the rest of that
// file keeps its positions. Files of another version that were vendored into
// the platform are hidden.
//
// An asked-for language that is newer than the embedded CUE is a *LanguageError.
// Any other error of the module file is left to the loader, which reports it; a
// folder without a readable module file is an error that wraps the cause.
//
// over are files, by their paths from root, with slashes, whose text is not the one on the
// disk. They are a part of what is returned.
func Overlay(root string, over map[string][]byte) (map[string]load.Source, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	out := make(map[string]load.Source)
	for name, data := range over {
		out[filepath.Join(root, filepath.FromSlash(name))] = load.FromBytes(data)
	}
	for _, name := range []string{File, localModuleFile} {
		source, err := read(root, over, name)
		if errors.Is(err, fs.ErrNotExist) && name == localModuleFile {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the platform's module file: %w", err)
		}
		if name == File {
			if err := checkLanguage(source); err != nil {
				return nil, err
			}
		}
		if without, ok := blanked(name, source); ok {
			out[filepath.Join(root, filepath.FromSlash(name))] = load.FromBytes(without)
		}
	}

	vendored := filepath.Join(root, filepath.FromSlash(vendorDir))
	if err := hideStale(out, vendored); err != nil {
		return nil, err
	}
	for _, f := range packages() {
		out[filepath.Join(vendored, filepath.FromSlash(f.name))] = load.FromBytes(f.text)
	}
	return out, nil
}

func read(root string, over map[string][]byte, name string) ([]byte, error) {
	if data, ok := over[name]; ok {
		return data, nil
	}
	return regular.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
}

// blanked returns a module file without its pins, and whether it had any. A
// file that cannot be parsed is left to the loader.
func blanked(name string, source []byte) ([]byte, bool) {
	f, err := parser.ParseFile(name, source)
	if err != nil {
		return nil, false
	}
	pins := unpin(f)
	return blank(source, pins), len(pins) > 0
}

// hidden stands for a vendored file that the module does not have. Without a
// package clause it belongs to no package that can be imported.
var hidden = load.FromString("// Not part of " + basePath + " " + kalypso.ModuleVersion + ".\n")

// hideStale overlays the CUE files under dir that the module does not have.
// Reading a folder follows a link to it, as CUE does: a platform may vendor the
// module by linking to it.
func hideStale(over map[string]load.Source, dir string) error {
	var hide func(folder string) error
	hide = func(folder string) error {
		entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(folder)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the vendored %s: %w", basePath, err)
		}
		for _, e := range entries {
			name := path.Join(folder, e.Name())
			switch {
			case e.IsDir(), slices.Contains(folders(), name):
				if err := hide(name); err != nil {
					return err
				}
			case path.Ext(name) == ".cue" && !has(name):
				over[filepath.Join(dir, filepath.FromSlash(name))] = hidden
			}
		}
		return nil
	}
	return hide(".")
}
