// Package memo stores results of evaluations in a cache that its callers provide.
package memo

import (
	"crypto/sha256"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Cache stores results of evaluations, by a digest of all sources and environment variables
// that can change them. The digest does not cover kalypso itself: implementations separate the
// results of different versions. Implementations verify that Get returns the data that Put got
// with the key. Put may drop data. The caller does not change data after either call. Several
// goroutines may call both methods.
type Cache interface {
	Get(key [32]byte) ([]byte, bool)
	Put(key [32]byte, data []byte)
}

// Recall decodes the data that the cache has for a key. It is a miss if the data cannot be
// decoded. The cache may be nil.
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

// Key is a digest of everything that a result depends on.
type Key [sha256.Size]byte
