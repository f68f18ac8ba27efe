package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Key identifies a result by everything that can change it: a SHA-256.
type Key [sha256.Size]byte

// String returns the key in hexadecimal, for people.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Hash collects the parts of a Key. It writes each part with its type and its length, so
// that no two different sequences of parts collide. The methods return the Hash itself, so
// that calls can be chained.
//
// A Hash is for one goroutine. Sum does not change it, so common first parts of many keys can be
// hashed once. Reset makes it ready for another key.
type Hash struct {
	sum     hash.Hash
	begun   bool   // sum has parts
	pending []byte // parts that sum does not have yet
}

// The type of a part.
const (
	partKind   = 'k'
	partString = 's'
	partBytes  = 'b'
	partKey    = 'h'
	partInt    = 'i'
)

// maxPending is the number of bytes that are collected before they are
// hashed: most parts are short.
const maxPending = 2048

// NewHash returns a Hash without parts. The kind separates domains. It names the computation and
// the version of its algorithm, such as "kalypso model v1".
func NewHash(kind string) *Hash {
	h := &Hash{sum: sha256.New(), pending: make([]byte, 0, 256)}
	return h.Reset(kind)
}

// Reset removes all parts and sets the kind, as NewHash does, without allocating.
func (h *Hash) Reset(kind string) *Hash {
	if h.begun {
		h.sum.Reset()
	}
	h.begun, h.pending = false, h.pending[:0]
	return add(h, partKind, kind)
}

// String adds a string. It differs from the same bytes added by Bytes.
func (h *Hash) String(s string) *Hash { return add(h, partString, s) }

// Bytes adds bytes; nil and empty are the same.
func (h *Hash) Bytes(b []byte) *Hash { return add(h, partBytes, b) }

// Key adds another key.
func (h *Hash) Key(k Key) *Hash { return add(h, partKey, k[:]) }

// Int adds a number.
func (h *Hash) Int(n int) *Hash {
	h.prefix(partInt, n)
	return h
}

// Sum returns the key of the parts so far.
func (h *Hash) Sum() (k Key) {
	if !h.begun {
		return sha256.Sum256(h.pending)
	}
	h.flush()
	h.sum.Sum(k[:0])
	return k
}

// flush hashes the pending parts.
func (h *Hash) flush() {
	h.sum.Write(h.pending)
	h.begun, h.pending = true, h.pending[:0]
}

// add adds a part with its type and its length.
func add[T ~string | ~[]byte](h *Hash, part byte, data T) *Hash {
	h.prefix(part, len(data))
	for len(data) > maxPending {
		h.pending = append(h.pending, data[:maxPending]...)
		h.flush()
		data = data[maxPending:]
	}
	h.pending = append(h.pending, data...)
	return h
}

// prefix adds the beginning of a part: its type, and its length or number.
func (h *Hash) prefix(part byte, n int) {
	if len(h.pending) > maxPending {
		h.flush()
	}
	h.pending = append(h.pending, part)
	h.pending = binary.BigEndian.AppendUint64(h.pending, uint64(n))
}
