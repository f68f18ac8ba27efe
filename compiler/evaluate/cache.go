package evaluate

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"os"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
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

// recall decodes what the cache has of a key. What cannot be decoded is as good as
// not there.
func recall[T any](c Cache, key Key) (*T, bool) {
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

func remember[T any](c Cache, key Key, what *T) {
	if c != nil {
		c.Put(key, model.Encode(*what))
	}
}

// keys are the keys of one package of a platform.
type keys struct {
	whole  Key // of the package in one piece
	shared Key // of the parts
	units  []Key
}

// part returns the key of a part.
func (k *keys) unit(n int) Key {
	if n == sharedUnit {
		return k.shared
	}
	return k.units[n]
}

// newKeys makes the keys of an environment, or of the base for "".
func newKeys(environment string, s *source.Sources, d *partition) *keys {
	begin := func(kind string) hash.Hash {
		h := sha256.New()
		fmt.Fprintf(h, "%s %q %q %q %x\n", kind, environment, os.Getenv("CUE_EXPERIMENT"), os.Getenv("CUE_DEBUG"), s.Module)
		return h
	}
	files := func(h hash.Hash, numbers []int) {
		for _, i := range numbers {
			of := s.Files[i].Digest()
			h.Write(of[:])
		}
	}
	k := &keys{}
	h, all := begin("whole"), s.Digest()
	h.Write(all[:])
	k.whole = Key(h.Sum(nil))
	if d.whole != "" {
		return k
	}
	h = begin("shared")
	files(h, d.shared)
	shared := Key(h.Sum(nil))
	h.Write(fmt.Appendf(nil, "without %q %q", d.twice, d.made))
	k.shared = Key(h.Sum(nil))
	for _, c := range d.units {
		h := begin("component")
		h.Write(shared[:])
		files(h, c.files)
		k.units = append(k.units, Key(h.Sum(nil)))
	}
	return k
}

// positionsOf is the key of where what is kept under another is written.
func positionsOf(key Key) Key {
	return sha256.Sum256(append([]byte("positions "), key[:]...))
}

// profileKey is the key of a file's profile.
func profileKey(f *source.File) Key {
	return sha256.Sum256(append([]byte("profile "), f.Content[:]...))
}
