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

// executableMark precedes the content of an executable file in maps of texts. No other file
// starts with it.
const executableMark = "\x00executable\n"

func fileOf(p, text string) backends.File {
	data, executable := strings.CutPrefix(text, executableMark)
	return backends.File{Path: p, Data: []byte(data), Executable: executable}
}

// scripted is a backend with an additional script in each folder and each cluster type. The
// script is the same everywhere, and executable in some places.
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

// TestSlowExecutableFilesInEveryWay edits random platforms with scripts in their folders, and
// builds them in every way. A file counts as changed even if only its mode changes. No other test
// may run at the same time.
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
