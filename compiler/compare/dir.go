package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/regular"
)

// ReadDir returns the folders of an output as they are on disk now, whatever wrote them,
// sorted as Compare needs them. Ids are computed from the content of the files. Files reads
// it again, except for equal entries. ReadDir uses an environment's record for its name,
// and to distinguish a cluster type's own folders from assignments. On a system without
// executable bits, the record also says which files are executable.
//
// dir has a folder for each environment, or is the folder of one environment. It is the
// folder of one if it has kalypso's record. It is also one if no folder in it has a record,
// and a file is at the place of a cluster type's files, dir/<clusterType>. The environment
// then has the name in the record, or the name of dir. Every folder in a cluster type's
// folder belongs to an assignment, and has its files at any depth.
//
// ReadDir omits files outside of cluster types' folders, folders without files, symbolic
// links, hidden folders and the content of a .git. It also omits files in the entry of a
// cluster that the record does not list, because a build does not change them. If the files
// of an entry look as they did when they were written, it does not read them to identify
// them.
//
// It also returns the readable records, by environment. It fails if something cannot be
// read, with fs.ErrNotExist if dir does not exist.
func ReadDir(dir string) ([]Folder, map[string]*tree.Record, error) {
	environments, err := findEnvironments(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("reading output %s: %w", dir, err)
	}
	folders, err := readAll(environments)
	if err != nil {
		return nil, nil, fmt.Errorf("reading output %s: %w", dir, err)
	}
	return folders, records(environments), nil
}

func readAll(environments []environment) ([]Folder, error) {
	parts := make([][]diskFolder, len(environments))
	for i, e := range environments {
		var err error
		if parts[i], err = e.folders(); err != nil {
			return nil, err
		}
	}
	found := joined(parts)
	group := errgroup.Group{}
	group.SetLimit(runtime.GOMAXPROCS(0))
	kept := &keptEntries{files: map[tree.ID][]backends.File{}}
	for i := range found {
		group.Go(func() error { return found[i].identify(kept) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := make([]Folder, 0, len(found))
	for i := range found {
		if found[i].Tree != "" {
			out = append(out, found[i].Folder)
		}
	}
	for _, e := range environments {
		out = append(out, e.clusters(found)...)
	}
	Sort(out)
	return out, nil
}

// RecordsIn returns the readable records of the environments of an output, by environment.
// It fails in the same cases as ReadDir.
func RecordsIn(dir string) (map[string]*tree.Record, error) {
	environments, err := findEnvironments(dir)
	if err != nil {
		return nil, fmt.Errorf("reading output %s: %w", dir, err)
	}
	return records(environments), nil
}

func records(environments []environment) map[string]*tree.Record {
	out := map[string]*tree.Record{}
	for _, e := range environments {
		if e.record != nil {
			out[e.name] = e.record
		}
	}
	return out
}

// environment is an environment's folder on disk.
type environment struct {
	dir    string
	name   string
	record *tree.Record // nil if it cannot be read
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
	data, err := regular.ReadFile(filepath.Join(dir, filepath.FromSlash(tree.RecordPath)))
	if err == nil {
		load := func(clusterType string) ([]byte, error) {
			return regular.ReadFile(
				filepath.Join(dir, filepath.FromSlash(tree.ClusterTypeRecordPath(clusterType))))
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

// hasFile reports whether a folder has a file of its own that is not hidden.
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
	unchanged, err := tree.OpenUnchangedFiles(e.dir)
	if err != nil {
		return nil, err
	}
	defer unchanged.Close()
	var parts [][]diskFolder // there may be very many entries
	for _, ct := range clusterTypes {
		at := filepath.Join(e.dir, ct)
		names, err := subfolders(at)
		if err != nil {
			return nil, err
		}
		record := e.clusterType(ct)
		own := ownFolders(record)
		out := []diskFolder{{
			Folder: Folder{Environment: e.name, ClusterType: ct, Backend: backendOf(record)}, dir: at,
			own: true, below: own, executable: executables(record.Files),
		}}
		for _, name := range names {
			if own[name] {
				continue
			}
			if tree.IsShard(path.Join(ct, name)) {
				entries, err := e.entries(path.Join(ct, name), unchanged)
				if err != nil {
					return nil, err
				}
				parts = append(parts, entries)
				continue
			}
			f := diskFolder{Folder: Folder{Environment: e.name, ClusterType: ct, Assignment: name},
				dir: filepath.Join(at, name)}
			if a := record.Assignment(name); a != nil {
				f.executable, f.Backend, f.Info = executables(a.Files), a.Backend, &a.Folder
			}
			out = append(out, f)
		}
		parts = append(parts, out)
	}
	return joined(parts), nil
}

// joined returns the folders of all parts.
func joined(parts [][]diskFolder) []diskFolder {
	if len(parts) == 1 {
		return parts[0]
	}
	return slices.Concat(parts...)
}

// entries returns the folders of the clusters whose entries are in a folder of entries. It
// identifies the folders whose files are unchanged.
func (e environment) entries(shard string, unchanged *tree.UnchangedFiles) ([]diskFolder, error) {
	at := filepath.Join(e.dir, filepath.FromSlash(shard))
	names, err := subfolders(at)
	if err != nil {
		return nil, err
	}
	recorded := map[string]*tree.EntryRecord{}
	record := e.clusterType(shard)
	for i := range record.Entries {
		recorded[record.Entries[i].Cluster] = &record.Entries[i]
	}
	same := map[string]int{} // numbers of files, by cluster
	if err := unchanged.Files(shard, func(file string, b tree.Blob) {
		cluster, within, _ := strings.Cut(file, "/")
		// Deeper files may be behind a symbolic link.
		if r := recorded[cluster]; r != nil && r.Files[within] == b && !strings.Contains(within, "/") {
			same[cluster]++
		}
	}); err != nil {
		return nil, err
	}
	ids := map[uintptr]tree.ID{} // of files that several entries share
	out := make([]diskFolder, len(names))
	for i, name := range names {
		f := &out[i]
		f.Folder, f.dir = Folder{Environment: e.name, Cluster: name}, filepath.Join(at, name)
		r := recorded[name]
		if r == nil {
			continue
		}
		f.Follows, f.listed, f.executable = r.Folder, r.Files, executables(r.Files)
		if n := len(r.Files); n > 0 && same[name] == n {
			shared := reflect.ValueOf(r.Files).Pointer()
			if ids[shared] == "" {
				ids[shared] = tree.TreeID(r.Files)
			}
			f.Tree = ids[shared]
		}
	}
	return out, nil
}

// clusters returns the clusters that pull the folders of their cluster types, by the
// record: the clusters without an entry.
func (e environment) clusters(found []diskFolder) []Folder {
	if e.record == nil {
		return nil
	}
	all, err := e.record.Followers(nil)
	if err != nil {
		return nil // the folders have enough information without the record
	}
	entries := map[string]bool{}
	for i := range found {
		if found[i].Environment == e.name && found[i].Cluster != "" && found[i].Tree != "" {
			entries[found[i].Cluster] = true
		}
	}
	var out []Folder
	for _, f := range all {
		if f.Entry == nil && !entries[f.Cluster] {
			out = append(out, pulling(e.name, f.Cluster, f.Folder))
		}
	}
	return out
}

// clusterType returns the record of a cluster type. It may be empty, because the folders
// have enough information without it.
func (e environment) clusterType(name string) *tree.ClusterTypeRecord {
	if e.record != nil {
		if ct, err := e.record.ClusterType(name); err == nil && ct != nil {
			return ct
		}
	}
	return &tree.ClusterTypeRecord{}
}

// ownFolders returns the names of the folders that belong to a cluster type
// itself, by the record.
func ownFolders(ct *tree.ClusterTypeRecord) map[string]bool {
	own := map[string]bool{}
	for p := range ct.Files {
		if first, _, below := strings.Cut(p, "/"); below {
			own[first] = true
		}
	}
	return own
}

// executables returns the paths of executable files, by the record.
func executables(files map[string]tree.Blob) map[string]bool {
	var found map[string]bool
	for p, b := range files {
		if b.Executable {
			if found == nil {
				found = map[string]bool{}
			}
			found[p] = true
		}
	}
	return found
}

// diskFolder is a folder on disk.
type diskFolder struct {
	Folder
	dir string
	// executable are the paths of files that are executable according to the record, for
	// systems without executable bits.
	executable map[string]bool
	// own reports that only the folders in below count, of the folders in dir.
	own   bool
	below map[string]bool
	// listed are the files that count, by path in dir; nil if all do.
	listed map[string]tree.Blob
}

// keptEntries are files of entries by the ids of their trees: the entries of the clusters of a
// class are often equal, and are read once.
type keptEntries struct {
	mu    sync.Mutex
	files map[tree.ID][]backends.File // not written to
}

// filesOf returns the files of an entry with an id. If they are not known, read reads them.
func (k *keptEntries) filesOf(id tree.ID, read func() ([]backends.File, error)) ([]backends.File,
	error) {
	k.mu.Lock()
	files, known := k.files[id]
	k.mu.Unlock()
	if known {
		return files, nil
	}
	files, err := read()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.files) < maxKept {
		k.files[id] = files
	}
	return files, nil
}

// identify computes the folder's id, unless it is known. The id stays "" if the folder has
// no files.
func (f *diskFolder) identify(kept *keptEntries) error {
	if f.Tree == "" {
		blobs := map[string]tree.Blob{}
		if err := f.each(func(file backends.File) { blobs[file.Path] = tree.BlobOf(file) }); err != nil ||
			len(blobs) == 0 {
			return err
		}
		f.Tree = tree.TreeID(blobs)
	}
	from := *f // Files must not hold on to all folders
	f.Files = func() ([]backends.File, error) {
		if from.Cluster == "" {
			return from.files()
		}
		return kept.filesOf(from.Tree, from.files)
	}
	return nil
}

// files returns the files of the folder, sorted by path.
func (f *diskFolder) files() ([]backends.File, error) {
	var files []backends.File
	if err := f.each(func(file backends.File) { files = append(files, file) }); err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b backends.File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// each reads every file of the folder. No link is followed on the way.
func (f *diskFolder) each(yield func(backends.File)) error {
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
		case e.Type().IsRegular() && !isTemporary(p) && f.counts(p):
			info, err := e.Info()
			if err != nil {
				return err
			}
			data, err := root.ReadFile(p)
			if err != nil {
				return err
			}
			yield(backends.File{Path: p, Data: data, Executable: tree.IsExecutable(info, f.executable[p])})
		}
		return nil
	})
	return errors.Join(err, root.Close())
}

// counts reports whether a file in the folder counts as a part of the output.
func (f *diskFolder) counts(p string) bool {
	_, listed := f.listed[p]
	return listed || f.listed == nil
}

func (f *diskFolder) leftOut(dir string) bool {
	first, _, below := strings.Cut(dir, "/")
	return path.Base(dir) == ".git" || f.own && dir != "." && !below && !f.below[first]
}

// isTemporary reports whether a file is left over from a killed write of kalypso.
func isTemporary(p string) bool {
	name := path.Base(p)
	return strings.HasPrefix(name, ".kalypso-") && strings.HasSuffix(name, ".tmp")
}
