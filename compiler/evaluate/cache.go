package evaluate

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// Cache remembers what was evaluated, by a digest of all that can change it. What
// Get returns is what Put was given with the key: implementations verify it. Put
// may forget, and its data must not be changed after. Both are called by several
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

// program identifies the program that evaluates: what it makes of the same
// sources, and how it is stored, is the same for the same program.
var program = sync.OnceValue(func() Key {
	h := sha256.New()
	fmt.Fprintln(h, model.Layout(result{}), model.Layout(profile{}))
	if info, ok := debug.ReadBuildInfo(); ok {
		fmt.Fprintln(h, info.String()) // with kalypso's version or revision, and CUE's
		if isDevelopment(info) {
			fmt.Fprintln(h, executable())
		}
	}
	err := fs.WalkDir(kalypso.Module, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := kalypso.Module.ReadFile(name)
		fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(data))
		return err
	})
	if err != nil {
		panic("evaluate: the embedded module cannot be read: " + err.Error())
	}
	return Key(h.Sum(nil))
})

// isDevelopment says whether a build has code that its version does not name.
func isDevelopment(info *debug.BuildInfo) bool {
	if info.Main.Version == "" || info.Main.Version == "(devel)" {
		return true
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.modified" && s.Value == "true" {
			return true
		}
	}
	return false
}

// executable tells builds of a developer apart.
func executable() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(name)
	if err != nil {
		return name
	}
	return fmt.Sprint(name, info.Size(), info.ModTime().UnixNano())
}

// keys are the keys of one package of a platform.
type keys struct {
	whole      Key // of the package in one piece
	shared     Key // of the parts
	components []Key
}

// part returns the key of a part.
func (k *keys) part(n int) Key {
	if n == sharedPart {
		return k.shared
	}
	return k.components[n]
}

// newKeys makes the keys of an environment, or of the base for "".
func newKeys(environment string, s *source.Sources, d *division) *keys {
	p := program()
	begin := func(kind string) hash.Hash {
		h := sha256.New()
		h.Write(p[:])
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
	h.Write(fmt.Appendf(nil, "without %q", d.twice))
	k.shared = Key(h.Sum(nil))
	for _, c := range d.components {
		h := begin("component")
		h.Write(shared[:])
		files(h, c.files)
		k.components = append(k.components, Key(h.Sum(nil)))
	}
	return k
}

// positionsOf is the key of where what is kept under another is written.
func positionsOf(key Key) Key {
	return sha256.Sum256(append([]byte("positions "), key[:]...))
}

// profileKey is the key of a file's profile.
func profileKey(f *source.File) Key {
	p := program()
	return sha256.Sum256(append(append([]byte("profile "), p[:]...), f.Content[:]...))
}
