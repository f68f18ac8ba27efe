package tree

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/internal/git"
)

// ID is the id of a git object, in hex. Ids are git's own, SHA-1 included, so
// that a folder and a commit of it can be compared by id
// (https://git-scm.com/book/en/v2/Git-Internals-Git-Objects). They only
// distinguish content: they do not protect against an attacker.
type ID string

// BlobID returns the id of a file's content: the output of `git hash-object`.
func BlobID(data []byte) ID { return objectID("blob", data) }

// TreeID returns the id of the tree with the files, given by path. It is the id
// that `git write-tree` prints for an index with only these files. No path may be
// a folder of another path.
func TreeID(files map[string]Blob) ID { return treeID(files, slices.Sorted(maps.Keys(files)), 0) }

// treeID returns the id of the tree that holds the paths, which are sorted and
// share their first skip bytes. Git sorts a folder as if its name ended in a
// slash, which is the order of whole paths.
func treeID(files map[string]Blob, paths []string, skip int) ID {
	var content []byte
	for len(paths) > 0 {
		name, _, isFolder := strings.Cut(paths[0][skip:], "/")
		if !isFolder {
			content = appendEntry(content, files[paths[0]].mode(), name, files[paths[0]].ID)
			paths = paths[1:]
			continue
		}
		prefix := paths[0][:skip+len(name)+1]
		n := slices.IndexFunc(paths, func(p string) bool { return !strings.HasPrefix(p, prefix) })
		if n < 0 {
			n = len(paths)
		}
		content = appendEntry(content, git.FolderMode, name, treeID(files, paths[:n], len(prefix)))
		paths = paths[n:]
	}
	return objectID("tree", content)
}

// appendEntry appends an entry in the format of git's trees.
func appendEntry(b []byte, mode git.Mode, name string, id ID) []byte {
	sum := hash(id)
	b = append(append(append(append(b, mode...), ' '), name...), 0)
	return append(b, sum[:]...)
}

// objectID returns the id of a git object.
func objectID(kind string, content []byte) ID {
	var buf [40]byte
	header := append(strconv.AppendInt(append(append(buf[:0], kind...), ' '), int64(len(content)), 10),
		0)
	h := sha1.New()
	h.Write(header)
	h.Write(content)
	return ID(hex.EncodeToString(h.Sum(buf[:0])))
}

// emptyTree is the id of a tree without files, which git never has in another tree.
var emptyTree = objectID("tree", nil)

// treeOfEntries returns the id of the tree with the entries, given in any order.
func treeOfEntries(entries []git.Entry) ID {
	empty := hash(emptyTree)
	entries = slices.DeleteFunc(entries,
		func(e git.Entry) bool { return e.Mode == git.FolderMode && e.ID == empty })
	return objectID("tree", git.EncodeTree(entries))
}

// valid reports whether the id has the form of one.
func (id ID) valid() bool {
	for i := range len(id) {
		if !isDigit[id[i]] {
			return false
		}
	}
	return len(id) == 2*sha1.Size
}

// isDigit contains the hexadecimal digits of ids.
var isDigit = func() (out [256]bool) {
	for _, c := range []byte("0123456789abcdef") {
		out[c] = true
	}
	return out
}()

// Blob is the entry of a file in a git tree: the id of its content, and whether it is executable.
// Git knows no other permission.
//
// In JSON a Blob is its id. An executable file is an object with the fields "id" and
// "executable", which is true.
type Blob struct {
	ID         ID
	Executable bool
}

// BlobOf returns the entry of a file in a tree.
func BlobOf(f backends.File) Blob { return Blob{BlobID(f.Data), f.Executable} }

// mode returns the file's mode in a tree.
func (b Blob) mode() git.Mode {
	if b.Executable {
		return git.ExecutableMode
	}
	return git.FileMode
}

// permissions returns the permissions of a file on the disk, before the umask.
func permissions(executable bool) fs.FileMode {
	if executable {
		return 0o755
	}
	return 0o644
}

// executableJSON is the JSON of the Blob of an executable file.
type executableJSON struct {
	ID         ID   `json:"id"`
	Executable bool `json:"executable"`
}

// MarshalJSON encodes the Blob. It does not fail.
func (b Blob) MarshalJSON() ([]byte, error) {
	if b.Executable {
		return json.Marshal(executableJSON(b))
	}
	return json.Marshal(b.ID)
}

// UnmarshalJSON decodes the output of MarshalJSON. It does not check the id.
func (b *Blob) UnmarshalJSON(data []byte) error {
	*b = Blob{}
	if bytes.HasPrefix(data, []byte{'{'}) {
		return json.Unmarshal(data, (*executableJSON)(b))
	}
	// A record has an id for every file, so the decoder is used only if the text is not a plain id.
	if text, ok := bytes.CutPrefix(data, []byte{'"'}); ok {
		if id := ID(bytes.TrimSuffix(text, []byte{'"'})); id.valid() {
			b.ID = id
			return nil
		}
	}
	return json.Unmarshal(data, &b.ID)
}

// append appends the JSON of the Blob.
func (b Blob) append(to []byte) []byte {
	if !b.Executable {
		return appendString(to, string(b.ID))
	}
	to = appendString(appendField(append(to, '{'), "id", true), string(b.ID))
	return append(appendField(to, "executable", false), "true}"...)
}

// hasModes reports whether the file system of this operating system stores
// which files are executable.
const hasModes = runtime.GOOS != "windows"

// ownerMayRun is the permission that makes a file executable to git.
const ownerMayRun = 0o100

// IsExecutable reports whether git would record a file on the disk as executable. If the operating
// system does not store that, it returns recorded.
func IsExecutable(info fs.FileInfo, recorded bool) bool {
	if !hasModes {
		return recorded
	}
	return info.Mode()&ownerMayRun != 0
}

// isFile reports whether info describes a regular file that is executable or not, as given.
func isFile(info fs.FileInfo, executable bool) bool {
	return info.Mode().IsRegular() && IsExecutable(info, executable) == executable
}
