package tree

import (
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
)

// ID is the id of a git object, in hex. Ids are git's own, SHA-1 included, so
// that a folder and a commit of it can be compared by id
// (https://git-scm.com/book/en/v2/Git-Internals-Git-Objects). They tell content
// apart; nothing here trusts them against an attacker.
type ID string

// BlobID returns the id of a file's content: what `git hash-object` prints.
func BlobID(data []byte) ID { return objectID("blob", data) }

// TreeID returns the id of the tree that holds the files, given by path: what
// `git write-tree` prints when they are all that is in the index. No path may be a
// folder of another.
func TreeID(files map[string]Blob) ID {
	return treeID(files, slices.Sorted(maps.Keys(files)), 0)
}

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

func appendEntry(b []byte, mode git.Mode, name string, id ID) []byte {
	sum := hash(id)
	b = append(append(append(append(b, mode...), ' '), name...), 0)
	return append(b, sum[:]...)
}

func objectID(kind string, content []byte) ID {
	var buf [40]byte
	header := append(strconv.AppendInt(append(append(buf[:0], kind...), ' '), int64(len(content)), 10), 0)
	h := sha1.New()
	h.Write(header)
	h.Write(content)
	return ID(hex.EncodeToString(h.Sum(buf[:0])))
}

// emptyTree is the id of a tree without files, which git has in no other.
var emptyTree = objectID("tree", nil)

// treeOfEntries returns the id of the tree with the entries, given in any order.
func treeOfEntries(entries []git.Entry) ID {
	empty := hash(emptyTree)
	entries = slices.DeleteFunc(entries, func(e git.Entry) bool { return e.Mode == git.FolderMode && e.ID == empty })
	return objectID("tree", git.EncodeTree(entries))
}

// valid says whether the id looks like one.
func (id ID) valid() bool {
	for i := range len(id) {
		if !isDigit[id[i]] {
			return false
		}
	}
	return len(id) == 2*sha1.Size
}

// isDigit says which bytes are hexadecimal digits as ids have them.
var isDigit = func() (out [256]bool) {
	for _, c := range []byte("0123456789abcdef") {
		out[c] = true
	}
	return out
}()
