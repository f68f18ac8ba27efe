package cuemodule

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
)

// Vendor writes the module's packages into the platform at root, under cue.mod/pkg. Plain cue
// then resolves them without kalypso, cache or network. Vendor removes CUE files there that the
// module does not have. It also removes the pin from cue.mod/module.cue (and local-module.cue),
// because for CUE a pin and a package together are ambiguous. A module file that loses its pin
// keeps its comments, and has the format of cue fmt.
//
// changed has the names of written and removed files, with slashes, relative to root and
// sorted. A second call changes nothing. Vendor replaces each file in one step. If a call fails
// half way, changed has the files so far, and another call finishes the work. A link that leads
// out of root is an error, and Vendor does not touch anything behind it.
func Vendor(root string) (changed []string, err error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("vendor %s: %w", basePath, err)
	}
	defer dir.Close()
	v := vendoring{root: dir}
	if err := v.run(); err != nil {
		err = fmt.Errorf("vendor %s in %s: %w", basePath, root, err)
		return slices.Sorted(slices.Values(v.changed)), err
	}
	return slices.Sorted(slices.Values(v.changed)), nil
}

// vendoring is one call of Vendor.
type vendoring struct {
	root    *os.Root
	changed []string
}

func (v *vendoring) run() error {
	// An unreadable module file must be detected before anything changes.
	unpinned := make(map[string][]byte)
	for _, name := range []string{File, localModuleFile} {
		source, err := v.root.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) && name == localModuleFile {
			continue
		}
		if err != nil {
			return err
		}
		if unpinned[name], err = withoutPin(name, source); err != nil {
			return err
		}
	}
	for _, f := range packages() {
		if err := v.put(path.Join(vendorDir, f.name), f.text); err != nil {
			return err
		}
	}
	if err := v.removeStale(vendorDir, has); err != nil {
		return err
	}
	// Users vendored by hand into a folder with this name, which CUE no longer reads.
	if err := v.removeStale(vendorDir+"@"+major, func(string) bool { return false }); err != nil {
		return err
	}
	for name, text := range unpinned {
		if err := v.put(name, text); err != nil {
			return err
		}
	}
	return nil
}

// withoutPin returns a module file without its pins. It returns source if there are no pins.
func withoutPin(name string, source []byte) ([]byte, error) {
	f, err := parser.ParseFile(name, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if len(unpin(f)) == 0 {
		return source, nil
	}
	return format.Node(f)
}

// put writes a text to a file, in one step.
func (v *vendoring) put(name string, text []byte) error {
	held, err := v.root.ReadFile(name)
	if err == nil && bytes.Equal(held, text) {
		return nil
	}
	if ignore(err, fs.ErrNotExist) != nil {
		return err
	}
	if err := v.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	// CUE only loads files that end in .cue.
	temporary := name + ".tmp"
	if err := v.root.WriteFile(temporary, text, 0o666); err != nil {
		return err
	}
	if err := v.root.Rename(temporary, name); err != nil {
		return errors.Join(err, v.root.Remove(temporary))
	}
	v.changed = append(v.changed, name)
	return nil
}

// removeStale removes the CUE files under a vendored folder that keep does not accept, and
// folders that become empty. keep gets names relative to the folder. Other files are not CUE's
// and stay. removeStale does not follow links.
func (v *vendoring) removeStale(folder string, keep func(name string) bool) error {
	var dirs []string
	err := fs.WalkDir(v.root.FS(), folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return ignore(err, fs.ErrNotExist)
		}
		if entry.IsDir() {
			dirs = append(dirs, name)
			return nil
		}
		if path.Ext(name) != ".cue" || keep(strings.TrimPrefix(name, folder+"/")) {
			return nil
		}
		v.changed = append(v.changed, name)
		return v.root.Remove(name)
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if entries, err := fs.ReadDir(v.root.FS(), dir); err == nil && len(entries) == 0 {
			if err := v.root.Remove(dir); err != nil {
				return err
			}
		}
	}
	return nil
}
