package source

import (
	"os"
	"path/filepath"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/inject/embed"
	"cuelang.org/go/cue/token"
)

// EmbeddedFile is a file that an @embed attribute names, by file= or glob=.
type EmbeddedFile struct {
	Name string    // from the folder of the CUE file, as CUE calls it
	Path string    // that of the CUE file's folder and Name together
	Type string    // that the attribute gives it, or ""
	At   token.Pos // of the attribute
}

// Embeds returns the existing files that a parsed CUE file embeds. It reads the attributes
// as CUE does, so it finds the files that CUE will read. If CUE cannot read an attribute,
// building the package reports that. files is the platform's files; the CUE file may belong
// to another module.
func Embeds(f *ast.File, files *Files) []EmbeddedFile {
	dir := filepath.Dir(f.Filename)
	in := os.DirFS(dir)
	if name, ok := files.Name(dir); ok {
		in = folderFiles{files, name}
	}
	attributes, _ := embed.EmbeddedPaths(filepath.Base(f.Filename), f)
	var out []EmbeddedFile
	for _, a := range attributes {
		names, err := a.FindAll(in)
		if err != nil {
			continue
		}
		for _, name := range names {
			out = append(out,
				EmbeddedFile{name, filepath.Join(dir, filepath.FromSlash(name)), a.Type, a.Attribute.Pos})
		}
	}
	return out
}

// MaxEmbedded is the size, in bytes, of the largest file that can be embedded.
const MaxEmbedded = 16 << 20
