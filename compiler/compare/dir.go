package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// ReadDir returns the folders of an output as they are on disk now, whatever
// wrote them, sorted as Compare wants them. Ids are computed from the content of
// the files, which is read again by Files. An environment's record is used only
// for its name and to tell a cluster type's own folders from assignments.
//
// dir holds a folder for each environment, or is that of one: it is if it has
// kalypso's record, or if neither a folder in it has one and a file is where
// cluster types have theirs, at dir/<clusterType>. The environment is then the
// record's, or named as dir is. Every folder in a cluster type's folder is an
// assignment's, and what is below it, at any depth, are its files. Files that
// are in no cluster type's folder, folders without files, symbolic links,
// hidden folders and what is in a .git are left out.
//
// It fails where something cannot be read, with fs.ErrNotExist where dir is not
// there.
func ReadDir(dir string) ([]Folder, error) {
	folders, err := readDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading output %s: %w", dir, err)
	}
	return folders, nil
}

func readDir(dir string) ([]Folder, error) {
	environments, err := findEnvironments(dir)
	if err != nil {
		return nil, err
	}
	var found []diskFolder
	for _, e := range environments {
		more, err := e.folders()
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	group := errgroup.Group{}
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range found {
		group.Go(func() error { return found[i].identify() })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []Folder
	for _, f := range found {
		if f.Tree != "" {
			out = append(out, f.Folder)
		}
	}
	slices.SortFunc(out, func(a, b Folder) int { return order(&a, &b) })
	return out, nil
}

// environment is an environment's folder on disk.
type environment struct {
	dir    string
	name   string
	record *tree.Record // nil for none that can be read
}

// findEnvironments returns the environments of an output.
func findEnvironments(dir string) ([]environment, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	names, err := subfolders(dir)
	if err != nil {
		return nil, err
	}
	var nested []environment
	anyRecord, anyFile := false, false
	for _, name := range names {
		e, hasRecord := environmentAt(filepath.Join(dir, name), name)
		e.name = name
		nested = append(nested, e)
		anyRecord = anyRecord || hasRecord
		has, err := hasFile(e.dir)
		if err != nil {
			return nil, err
		}
		anyFile = anyFile || has
	}
	flat, hasRecord := environmentAt(dir, filepath.Base(abs))
	if hasRecord || !anyRecord && anyFile {
		return []environment{flat}, nil
	}
	return nested, nil
}

// environmentAt returns the environment of a folder, and whether the folder has
// a record, readable or not.
func environmentAt(dir, name string) (environment, bool) {
	e := environment{dir: dir, name: name}
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(tree.RecordPath)))
	if err == nil {
		load := func(clusterType string) ([]byte, error) {
			return os.ReadFile(filepath.Join(dir, filepath.FromSlash(tree.ClusterTypeRecordPath(clusterType))))
		}
		if e.record, err = tree.ParseRecord(data, load); err == nil && e.record.Environment != "" {
			e.name = e.record.Environment
		}
	}
	return e, !errors.Is(err, fs.ErrNotExist)
}

// subfolders returns the names of the folders in a folder that are not hidden.
func subfolders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// hasFile says whether a folder has a file of its own that is not hidden.
func hasFile(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".")
	}), err
}

// folders returns the folders of an environment, without their ids.
func (e environment) folders() ([]diskFolder, error) {
	clusterTypes, err := subfolders(e.dir)
	if err != nil {
		return nil, err
	}
	var out []diskFolder
	for _, ct := range clusterTypes {
		at := filepath.Join(e.dir, ct)
		names, err := subfolders(at)
		if err != nil {
			return nil, err
		}
		own := e.ownFolders(ct)
		out = append(out, diskFolder{Folder: Folder{Environment: e.name, ClusterType: ct}, dir: at, own: true, below: own})
		for _, name := range names {
			if !own[name] {
				out = append(out, diskFolder{Folder: Folder{Environment: e.name, ClusterType: ct, Assignment: name}, dir: filepath.Join(at, name)})
			}
		}
	}
	return out, nil
}

// ownFolders returns the names of the folders that belong to a cluster type
// itself, by the record.
func (e environment) ownFolders(clusterType string) map[string]bool {
	own := map[string]bool{}
	if e.record == nil {
		return own
	}
	ct, err := e.record.ClusterType(clusterType)
	if err != nil || ct == nil {
		return own // the folders say enough without it
	}
	for p := range ct.Files {
		if first, _, below := strings.Cut(p, "/"); below {
			own[first] = true
		}
	}
	return own
}

// diskFolder is a folder on disk.
type diskFolder struct {
	Folder
	dir string
	// own says that of the folders in dir only those in below count.
	own   bool
	below map[string]bool
}

// identify computes the folder's id; it stays "" where there are no files.
func (f *diskFolder) identify() error {
	ids := map[string]tree.ID{}
	err := f.each(func(p string, data []byte) { ids[p] = tree.BlobID(data) })
	if err != nil || len(ids) == 0 {
		return err
	}
	f.Tree = tree.TreeID(ids)
	from := *f // Files must not hold on to all folders
	f.Files = func() ([]backends.File, error) {
		files := map[string][]byte{}
		if err := from.each(func(p string, data []byte) { files[p] = data }); err != nil {
			return nil, err
		}
		out := make([]backends.File, 0, len(files))
		for _, p := range slices.Sorted(maps.Keys(files)) {
			out = append(out, backends.File{Path: p, Data: files[p]})
		}
		return out, nil
	}
	return nil
}

// each reads every file of the folder. No link is followed on the way.
func (f *diskFolder) each(yield func(p string, data []byte)) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			if f.leftOut(p) {
				return fs.SkipDir
			}
		case e.Type().IsRegular() && !isTemporary(p):
			data, err := root.ReadFile(p)
			if err != nil {
				return err
			}
			yield(p, data)
		}
		return nil
	})
	return errors.Join(err, root.Close())
}

func (f *diskFolder) leftOut(dir string) bool {
	first, _, below := strings.Cut(dir, "/")
	return path.Base(dir) == ".git" || f.own && dir != "." && !below && !f.below[first]
}

// isTemporary says whether a file is what a killed write of kalypso left.
func isTemporary(p string) bool {
	name := path.Base(p)
	return strings.HasPrefix(name, ".kalypso-") && strings.HasSuffix(name, ".tmp")
}
