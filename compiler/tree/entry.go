package tree

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Entries of clusters are in folders clusters/<shard>. Each of these folders is written and
// recorded like the folder of a cluster type, so that one more cluster changes one of them. Such a
// folder has files and no assignments.

// Entry is the part of the output that one cluster pulls: files that make its
// reconciler apply a folder.
type Entry struct {
	Cluster string
	Folder  string // that it names: of a cluster type, or of a class of a cluster type
	// Kept means that the entry stays as in the previous record, which must list it.
	Kept bool
	// Files are the entry's files, by path in it; nil if Kept. Equal entries may share them.
	Files *EntryFiles
}

// EntryFiles are the files of entries by path in an entry, sorted.
type EntryFiles struct {
	Files []File
	Tree  ID // of Files
	blobs map[string]Blob
}

// EntryOf returns files, sorted by path, as the files of an entry.
func EntryOf(files []backends.File) *EntryFiles {
	e := &EntryFiles{Files: FilesOf(files)}
	e.blobs = blobsOf(e.Files)
	e.Tree = TreeID(e.blobs)
	return e
}

// root returns the files at the cluster type's root: for a folder of entries, the files of all
// entries that are not kept.
func (c *Content) root() []File {
	if c.Entries == nil {
		return c.Files
	}
	var out []File
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.Kept {
			continue
		}
		for _, f := range e.Files.Files {
			f.Path = e.Cluster + "/" + f.Path
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// EntryRecord records the entry of a cluster.
type EntryRecord struct {
	Cluster string `json:"cluster"`
	Folder  string `json:"folder"`
	// by path in the entry; other entries may share it, so do not change it
	Files map[string]Blob `json:"files"`
}

// ShardName returns the name of the folder of entries with the entry of a cluster.
func ShardName(cluster string) string {
	return backends.EntriesDir + "/" +
		backends.ShardOf(cluster)
}

// IsShard reports whether a name in a tree or a record is a folder of
// entries, and not a cluster type.
func IsShard(name string) bool {
	shard, below := strings.CutPrefix(name, backends.EntriesDir+"/")
	return below && isHex(shard)
}

// PartOf returns the name of the cluster type, or of the folder of entries, that contains a path.
// If a cluster type is called clusters, its folder has no folders with names of two digits, because
// full names of deployment targets have a dash.
func PartOf(p string) string {
	first, rest, _ := strings.Cut(p, "/")
	if shard, _, within := strings.Cut(rest, "/"); within && first == backends.EntriesDir &&
		isHex(shard) {
		return first + "/" + shard
	}
	return first
}

// isHex reports whether a text consists of two hexadecimal digits.
func isHex(s string) bool { return len(s) == 2 && strings.Trim(s, "0123456789abcdef") == "" }

// recordedBy returns the cluster type or the folder of entries whose record is
// a file in recordsFolder.
func recordedBy(file string) string {
	name := strings.TrimSuffix(file, path.Ext(file))
	if dir, shard, found := strings.Cut(name, "."); found && IsShard(dir+"/"+shard) {
		return dir + "/" + shard
	}
	return name
}

// checkPart is checkNext for cluster types and folders of entries.
func checkPart(last, name string) error {
	if IsShard(name) && name > last {
		return nil
	}
	return checkNext("cluster type", last, name)
}

// checkPartName returns an error if a name is not valid for a cluster type or a folder of entries.
func checkPartName(name string) error {
	if IsShard(name) {
		return nil
	}
	return checkName(name)
}

// entryFilesRead remembers the rest of an entry's line, after the name of the cluster: most
// clusters of a class have the same entry. It may be used by several goroutines.
type entryFilesRead struct {
	known sync.Map // *EntryRecord without a cluster, by the rest of the line
	count atomic.Int32
}

// maxRead is the maximum number of remembered entries.
const maxRead = 10_000

// entries removes the entries from a record of a folder of entries, and leaves an empty list. It
// needs the form that Encode writes. For any other form it returns the record unchanged, and nil.
func (r *entryFilesRead) entries(data []byte) (rest []byte, entries []EntryRecord) {
	const begin, next, end = "\n  \"entries\": [", "\n    {\"cluster\":\"", "\n  ]"
	at := bytes.Index(data, []byte(begin))
	if at < 0 {
		return data, nil
	}
	at += len(begin)
	left := data[at:]
	for {
		line, found := bytes.CutPrefix(left, []byte(next))
		if !found {
			break
		}
		n := bytes.IndexByte(line, '\n')
		if n < 0 {
			return data, nil
		}
		text, comma := bytes.CutSuffix(line[:n], []byte(","))
		name, files, ok := bytes.Cut(text, []byte(`",`))
		if !ok || comma != bytes.HasPrefix(line[n:], []byte(next)) || bytes.ContainsAny(name, `\"`) ||
			!utf8.Valid(name) {
			return data, nil
		}
		e := r.read(files)
		if e == nil {
			return data, nil
		}
		entries, left = append(entries, EntryRecord{string(name), e.Folder, e.Files}), line[n:]
	}
	rest = slices.Concat(data[:at], left)
	// Another field with this name, or text that may have this name, does not count as entries.
	if len(entries) == 0 || !bytes.HasPrefix(left, []byte(end)) ||
		bytes.Count(rest, []byte(`"entries"`)) != 1 || bytes.Contains(rest, []byte(`\u`)) {
		return data, nil
	}
	return rest, entries
}

// read reads the line of an entry after the name of its cluster; nil if it cannot be read.
func (r *entryFilesRead) read(line []byte) *EntryRecord {
	if known, is := r.known.Load(string(line)); is {
		return known.(*EntryRecord)
	}
	if bytes.Contains(line, []byte(`"cluster"`)) || bytes.IndexByte(line, '\\') >= 0 {
		return nil // it may name its cluster twice
	}
	e := &EntryRecord{}
	if err := jsonv2.Unmarshal(append([]byte{'{'}, line...), e); err != nil {
		return nil
	}
	if e.Files == nil {
		e.Files = map[string]Blob{}
	}
	if r.count.Add(1) <= maxRead {
		r.known.Store(string(line), e)
	}
	return e
}

// Entries returns the recorded entries of clusters, one folder of entries after the other, each
// sorted by cluster. It returns an error if kalypso cannot read one of the folders.
func (r *Record) Entries() ([]EntryRecord, error) {
	if r == nil {
		return nil, nil
	}
	var out []EntryRecord
	for _, e := range r.ClusterTypes {
		if !IsShard(e.Name) {
			continue
		}
		c, err := r.ClusterType(e.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, c.Entries...)
	}
	return out, nil
}

// Follower is a listed cluster and the folder that it uses.
type Follower struct {
	Cluster, Folder string
	Entry           *EntryRecord // nil for a cluster that pulls the folder itself
}

// Followers returns the listed clusters of all cluster types, sorted by name. It does not read the
// folders for which skip returns true; a nil skip omits nothing. If clusters of a type have
// entries, Followers omits the clusters without an entry, because they do not pull anything yet. It
// returns an error if kalypso cannot read part of the record, which may be nil.
func (r *Record) Followers(skip func(folder string) bool) ([]Follower, error) {
	if r == nil {
		return nil, nil
	}
	var out []Follower
	hasEntries := map[string]bool{} // cluster types
	for _, e := range r.ClusterTypes {
		if !IsShard(e.Name) || skip != nil && skip(e.Name) {
			continue
		}
		c, err := r.ClusterType(e.Name)
		if err != nil {
			return nil, err
		}
		for i := range c.Entries {
			e := &c.Entries[i]
			hasEntries[model.TypeOfFolder(e.Folder)] = true
			out = append(out, Follower{e.Cluster, e.Folder, e})
		}
	}
	for _, e := range r.ClusterTypes {
		if IsShard(e.Name) || hasEntries[model.TypeOfFolder(e.Name)] || skip != nil && skip(e.Name) {
			continue
		}
		c, err := r.Part(e.Name, func(string, string, bool) bool { return false })
		if err != nil {
			return nil, err
		}
		for _, name := range c.Clusters {
			out = append(out, Follower{Cluster: name, Folder: e.Name})
		}
	}
	slices.SortFunc(out, func(a, b Follower) int {
		if a.Cluster == b.Cluster && (a.Entry == nil) != (b.Entry == nil) {
			if a.Entry == nil {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Cluster, b.Cluster)
	})
	// clusters with entries stay
	return slices.CompactFunc(out, func(a, b Follower) bool { return a.Cluster == b.Cluster }), nil
}

// FolderTree returns the id of the recorded folder of a cluster type. It returns "" if the record
// does not list the folder, and "unknown" if the record has no id for it.
func (r *Record) FolderTree(clusterType string) ID {
	if e := r.entry(clusterType); e != nil {
		return cmp.Or(e.Tree, ID("unknown"))
	}
	return ""
}

// FolderOf returns the folder that the recorded entry of a cluster names. It returns "" if there is
// no entry, or if kalypso cannot read the record, which may be nil.
func (r *Record) FolderOf(cluster string) string {
	ct, err := r.ClusterType(ShardName(cluster))
	if e := ct.entryOf(cluster); err == nil && e != nil {
		return e.Folder
	}
	return ""
}

// entryOf returns the recorded entry of a cluster; nil if there is no entry or the record is nil.
func (c *ClusterTypeRecord) entryOf(cluster string) *EntryRecord {
	if c == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(c.Entries, cluster,
		func(e EntryRecord, name string) int { return strings.Compare(e.Cluster, name) })
	if !found {
		return nil
	}
	return &c.Entries[i]
}

// Matches reports whether the files at the content's root match a record. Kept files always match.
func (c *Content) Matches(r *ClusterTypeRecord) bool {
	return c.Entries == nil && len(r.Entries) == 0 && OfFiles(c.Files) == TreeID(r.Files)
}

// EntriesMatch reports whether the entries of the content match the recorded entries that name
// certain folders. Kept entries always match.
func (c *Content) EntriesMatch(r *ClusterTypeRecord, folder func(name string) bool) bool {
	compared := map[string]bool{}
	for i := range c.Entries {
		e := &c.Entries[i]
		is := r.entryOf(e.Cluster)
		switch {
		case is == nil:
			return false
		case !folder(is.Folder):
			continue
		case is.Folder != e.Folder, !e.Kept && e.Files.Tree != TreeID(is.Files):
			return false
		}
		compared[e.Cluster] = true
	}
	return !slices.ContainsFunc(r.Entries,
		func(e EntryRecord) bool { return folder(e.Folder) && !compared[e.Cluster] })
}
