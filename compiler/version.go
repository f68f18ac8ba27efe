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
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Version says what compiles: kalypso's own version, "devel" for a development
// build, that of CUE, and a digest of the schema and standard library.
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

// identity tells this compiler from any other that may give other results for the
// same input, in the keys of the cache.
var identity = sync.OnceValue(func() cache.Key {
	return cache.NewHash("kalypso").String(describe()).Sum()
})

// describe says what compiles: the version of a release; of a development build,
// whose version says nothing of its source, also which binary it is.
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
	return fmt.Sprintf("%s\n%d", id, time.Now().UnixNano()) // nothing is known: nothing is reused
}
