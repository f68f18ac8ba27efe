package compiler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// executableMark is before the content of an executable file where files are held
// as texts. No other file begins like that.
const executableMark = "\x00executable\n"

func fileOf(p, text string) backends.File {
	data, executable := strings.CutPrefix(text, executableMark)
	return backends.File{Path: p, Data: []byte(data), Executable: executable}
}

// scripted is a backend whose folders and cluster types have a script, too, which is
// the same everywhere and executable in some of them.
type scripted struct{ backends.Backend }

func (s scripted) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	out, ds := s.Backend.Emit(a)
	out.Files = withScript(out.Files, model.DigestBytes(a.Values.AppendJSON(nil))[0])
	return out, ds
}

func (s scripted) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File, []diag.Diagnostic) {
	out, ds := s.Backend.Index(ct, folders)
	return withScript(out, byte(len(folders))), ds
}

func withScript(files []backends.File, any byte) []backends.File {
	files = append(slices.Clone(files), backends.File{Path: "check.sh", Data: []byte("#!/bin/sh\n"), Executable: any%2 == 0})
	slices.SortFunc(files, func(a, b backends.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// TestSlowExecutableFilesInEveryWay edits random platforms whose folders have scripts,
// and builds them in every way: a file whose mode alone changes is a file that
// changes. No other test may run meanwhile.
func TestSlowExecutableFilesInEveryWay(t *testing.T) {
	isolated.Slow(t, "it builds histories of platforms in six ways")
	defer compiler.WrapBackends(func(b backends.Backend) backends.Backend { return scripted{b} })()
	shared := openCache(t, cache.Options{Dir: t.TempDir()})
	defer closeCache(t, shared)
	for seed := range howMany(t, 2, 4, 20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := history{seed: uint64(5000 + seed)}
			for i := range howMany(t, 6, 12, 40) {
				h.edits = append(h.edits, i+1)
			}
			holds(t, h, []variant{incremental, cached, damaged, committed(shared), affected(shared), shardedTogether(shared)})
		})
	}
}
