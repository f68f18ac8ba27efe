package incremental

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// Digests identify what the package was made of, once it is evaluated: the files of its
// own folder, and all others, with imports and embedded files.
func (e *Evaluation) Digests() (base, own model.Digest) {
	s, folder := e.sources, e.dir
	baseLines, ownLines := []string{fmt.Sprintf("cue.mod %x", s.Module)}, []string(nil)
	add := func(name string, digest source.Digest) {
		line := fmt.Sprintf("%s %x", name, digest)
		if folder != "." && strings.HasPrefix(name, folder+"/") {
			ownLines = append(ownLines, line)
		} else {
			baseLines = append(baseLines, line)
		}
	}
	for _, f := range s.Files {
		add(f.Name, f.Content)
		for name, digest := range f.Needs {
			add(name, digest)
		}
	}
	digest := func(lines []string) model.Digest {
		slices.Sort(lines)
		return model.DigestBytes([]byte(strings.Join(slices.Compact(lines), "\n")))
	}
	return digest(baseLines), digest(ownLines)
}
