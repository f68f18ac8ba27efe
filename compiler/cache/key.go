package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Key identifies a result by everything that can change it: a SHA-256.
type Key [sha256.Size]byte

// String is the key in hexadecimal, for people.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Hash collects what a Key is made of. Each part is written with its type and
// its length, so that no two different sequences of parts collide. The methods
// return the Hash itself, so that calls can be chained.
//
// A Hash is for one goroutine. Sum leaves it as it is, so parts that many keys
// begin with can be hashed once, and Reset makes it fit for another key.
type Hash struct {
	sum     hash.Hash
	scratch []byte
}

// The type of a part.
const (
	partKind   = 'k'
	partString = 's'
	partBytes  = 'b'
	partKey    = 'h'
	partInt    = 'i'
)

// NewHash returns a Hash without parts. The kind separates domains: what is
// computed, and by which version of the algorithm, such as "kalypso model v1".
func NewHash(kind string) *Hash {
	h := &Hash{sum: sha256.New()}
	return h.Reset(kind)
}

// Reset removes all parts and sets the kind, as NewHash does, without allocating.
func (h *Hash) Reset(kind string) *Hash {
	h.sum.Reset()
	return h.text(partKind, kind)
}

// String adds a string. It differs from the same bytes added by Bytes.
func (h *Hash) String(s string) *Hash { return h.text(partString, s) }

// Bytes adds bytes; nil and empty are the same.
func (h *Hash) Bytes(b []byte) *Hash {
	h.prefix(partBytes, len(b))
	h.sum.Write(h.scratch)
	h.sum.Write(b)
	return h
}

// Key adds another key.
func (h *Hash) Key(k Key) *Hash {
	h.prefix(partKey, len(k))
	h.scratch = append(h.scratch, k[:]...)
	h.sum.Write(h.scratch)
	return h
}

// Int adds a number.
func (h *Hash) Int(n int) *Hash {
	h.prefix(partInt, n)
	h.sum.Write(h.scratch)
	return h
}

// Sum returns the key of the parts so far.
func (h *Hash) Sum() Key {
	h.scratch = h.sum.Sum(h.scratch[:0])
	return Key(h.scratch)
}

func (h *Hash) text(part byte, s string) *Hash {
	h.prefix(part, len(s))
	h.scratch = append(h.scratch, s...)
	h.sum.Write(h.scratch)
	return h
}

// prefix sets scratch to what a part begins with.
func (h *Hash) prefix(part byte, n int) {
	h.scratch = append(h.scratch[:0], part)
	h.scratch = binary.BigEndian.AppendUint64(h.scratch, uint64(n))
}
