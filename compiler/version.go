package compiler

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Version identifies the compiler. It has kalypso's own version, or "devel" for a development
// build, the version of CUE, and a digest of the schema and the standard library.
var Version = sync.OnceValue(func() tree.Compiler {
	v := tree.Compiler{Version: "devel", Schema: moduleDigest()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, dep := range info.Deps {
		if dep.Path == "cuelang.org/go" {
			v.CUE = dep.Version
		}
	}
	return v
})

func moduleDigest() string {
	h := sha256.New()
	err := fs.WalkDir(kalypso.Module, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := kalypso.Module.ReadFile(name)
		fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(data))
		return err
	})
	if err != nil {
		panic("compiler: the embedded module cannot be read: " + err.Error())
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// identity distinguishes this compiler, in the keys of the cache, from any other that may give
// different results for the same input.
var identity = sync.OnceValue(func() cache.Key {
	return cache.NewHash("kalypso").String(describe()).Sum()
})

// NewMeter returns the meter of this compiler's work with a cache, which may be nil.
func NewMeter(c *cache.Cache) *engine.Meter { return engine.NewMeter(c, identity()) }

// describe describes the compiler. For a release it returns the version. The version of a
// development build does not identify its source, so describe adds the identity of the binary.
func describe() string {
	v := Version()
	id := strings.Join([]string{v.Version, v.CUE, v.Schema, runtime.Version(),
		os.Getenv("CUE_EXPERIMENT"), os.Getenv("CUE_DEBUG")}, "\n")
	if v.Version != "devel" && !strings.HasSuffix(v.Version, "+dirty") {
		return id
	}
	binary, err := os.Executable()
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(binary); err == nil {
			return fmt.Sprintf("%s\n%s %d %d", id, binary, info.Size(), info.ModTime().UnixNano())
		}
	}
	// the binary is not known, so nothing is reused
	return fmt.Sprintf("%s\n%d", id, time.Now().UnixNano())
}
