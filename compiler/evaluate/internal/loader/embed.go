package loader

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/yamlfile"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// packageFiles returns the parsed files of a package and of all that it imports.
func packageFiles(inst *build.Instance) []*ast.File {
	files := slices.Clone(inst.Files)
	for _, dep := range inst.Dependencies() {
		files = append(files, dep.Files...)
	}
	return files
}

// checkEmbedded reports files that must not be embedded. The package must then
// not be built, since that reads them: the author of the platform need not be
// allowed to read other files of the machine, and a device or pipe never ends.
func (p *Places) checkEmbedded(inst *build.Instance) []diag.Diagnostic {
	var ds []diag.Diagnostic
	for _, f := range packageFiles(inst) {
		for _, e := range source.Embeds(f, p.files) {
			why, hint := p.forbids(e.Path)
			var inFile []model.Position
			if why == "" {
				why, hint, inFile = p.unreadable(e)
			}
			if why == "" {
				continue
			}
			d := diag.New(diag.Compile, fmt.Sprintf("%s cannot be embedded: %s", e.Name, why)).Hinting(hint)
			d = d.InEach(append(inFile, p.All([]token.Pos{e.At})...)...)
			ds = append(ds, d)
		}
	}
	return ds
}

// unreadable says why CUE must not be given an embedded file of YAML, where in it,
// and the way out; "" where it may.
func (p *Places) unreadable(e source.Embedded) (why, hint string, at []model.Position) {
	if !isYAML(e) {
		return "", "", nil
	}
	name, within := p.files.Name(e.Path)
	if !within {
		return "", "", nil // it is forbidden
	}
	data, err := p.files.ReadFile(name)
	if err != nil {
		return "", "", nil // CUE leaves folders out of a glob, and says what it cannot read
	}
	_, problem := yamlfile.Read(p.relative(e.Path), e.Path, data)
	if problem == nil {
		return "", "", nil
	}
	return problem.Message, problem.Hint, []model.Position{problem.Sites[0].Position}
}

// isYAML says whether CUE reads an embedded file as YAML: its type says so, or its
// name where the type says nothing of how it is written.
func isYAML(e source.Embedded) bool {
	for encoding := range strings.SplitSeq(e.Type, "+") {
		switch encoding {
		case "yaml":
			return true
		case "json", "text", "binary", "toml", "xml":
			return false
		}
	}
	ext := filepath.Ext(e.Name)
	return ext == ".yaml" || ext == ".yml"
}

// forbids says why a file must not be embedded, and the way out; "" where it may.
func (p *Places) forbids(path string) (why, hint string) {
	const ofPlatform = "put the file itself into the platform, in place of a link to it"
	if name, _ := p.files.Name(path); p.files.Over[name] != nil {
		return tooLarge(int64(len(p.files.Over[name])))
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "its link cannot be followed", ofPlatform
	}
	if rel, err := filepath.Rel(p.files.Root, target); err != nil || !filepath.IsLocal(rel) {
		return "it is a link to a file outside of the platform", ofPlatform
	}
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return "it cannot be read", "let kalypso read the file, or remove the attribute"
	case info.IsDir():
		return "", "" // CUE leaves it out of a glob, and refuses it otherwise
	case !info.Mode().IsRegular():
		return "it is " + shape.Article(kindOf(info.Mode())), "embed a regular file"
	}
	return tooLarge(info.Size())
}

// tooLarge says why a file of a size must not be embedded, and the way out; "" where it may.
func tooLarge(size int64) (why, hint string) {
	if size <= source.MostEmbedded {
		return "", ""
	}
	return fmt.Sprintf("it has more than %d MiB", source.MostEmbedded>>20), "embed what the platform needs of it"
}

// kindOf names what a file is that is not a regular one.
func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}
