// Package memo keeps what was evaluated in a cache that others provide.
package memo

import (
	"crypto/sha256"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Cache keeps what was evaluated, by a digest of all sources and environment variables
// that can change it. The digest does not cover kalypso itself: implementations
// separate what different versions of it put. What Get
// returns is what Put was given with the key: implementations verify it. Put may
// drop data, and the caller does not change them afterwards. Both are called by several
// goroutines.
type Cache interface {
	Get(key [32]byte) ([]byte, bool)
	Put(key [32]byte, data []byte)
}

// Recall decodes what the cache has of a key. What cannot be decoded is a miss. The cache
// may be nil.
func Recall[T any](c Cache, key Key) (*T, bool) {
	if c == nil {
		return nil, false
	}
	data, ok := c.Get(key)
	if !ok {
		return nil, false
	}
	into := new(T)
	return into, model.Decode(data, into) == nil
}

// Remember encodes a value and puts it into the cache, which may be nil.
func Remember[T any](c Cache, key Key, what *T) {
	if c != nil {
		c.Put(key, model.Encode(*what))
	}
}

// Key is a digest of all that something evaluated depends on.
type Key [sha256.Size]byte
