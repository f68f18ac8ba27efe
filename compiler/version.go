package compiler

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"runtime/debug"
	"sync"

	"github.com/kalypso-io/kalypso"
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
