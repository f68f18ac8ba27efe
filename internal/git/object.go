package git

import (
	"crypto/sha1"
	"strconv"
)

// Kind is the kind of an object.
type Kind uint8

// The kinds of objects, with their numbers in a pack.
const (
	CommitKind Kind = 1
	TreeKind   Kind = 2
	BlobKind   Kind = 3
	TagKind    Kind = 4
)

var kinds = [...]string{CommitKind: "commit", TreeKind: "tree", BlobKind: "blob", TagKind: "tag"}

func (k Kind) String() string { return kinds[k] }

// Object is an object as it is read.
type Object struct {
	Kind Kind
	Data []byte
}

// ID returns the id of an object: the SHA-1 of its kind, its size and its
// content (https://git-scm.com/book/en/v2/Git-Internals-Git-Objects).
func ID(kind Kind, data []byte) Hash {
	h := sha1.New()
	header := make([]byte, 0, 32)
	header = append(header, kind.String()...)
	header = append(header, ' ')
	header = strconv.AppendInt(header, int64(len(data)), 10)
	h.Write(append(header, 0))
	h.Write(data)
	var id Hash
	h.Sum(id[:0])
	return id
}

// Short returns an id as messages have it.
func Short(id Hash) string { return id.String()[:12] }
