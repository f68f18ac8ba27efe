// Package memo keeps what was evaluated in a cache that others provide.
package memo

import (
	"crypto/sha256"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Cache remembers what was evaluated, by a digest of all sources that can change
// it and of what the environment tells CUE. Of kalypso itself the digest says
// nothing: implementations keep what one version of it put from others. What Get
// returns is what Put was given with the key: implementations verify it. Put may
// forget, and its data must not be changed after. Both are called by several
// goroutines.
type Cache interface {
	Get(key [32]byte) ([]byte, bool)
	Put(key [32]byte, data []byte)
}

// Recall decodes what the cache has of a key. What cannot be decoded is as good as
// not there.
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

func Remember[T any](c Cache, key Key, what *T) {
	if c != nil {
		c.Put(key, model.Encode(*what))
	}
}

// Key identifies something that has been evaluated by all that can change it.
type Key [sha256.Size]byte
