// Package loader loads a CUE package, without a network and without reading forbidden files. It
// returns a diagnostic if the whole package is unreadable. For a loaded package, it maps values
// to positions in the user's files.
package loader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/yamlfile"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// Package is a built package, in a CUE context of its own.
type Package struct {
	Context  *cue.Context
	Value    cue.Value
	Instance *build.Instance
	*Places
}

// Platform loads and builds the package in a folder of the platform. without has the names of
// files to leave out, relative to the root. The package is nil if it is unreadable, and the
// diagnostics then have the reasons. CUE cannot be interrupted, so Platform checks ctx only
// before it starts.
func Platform(ctx context.Context, p *source.Platform, dir string, without []string) (*Package,
	[]diag.Diagnostic, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	overlay, err := cuemodule.Overlay(p.Root, p.Files().Over)
	if err != nil {
		var language *cuemodule.LanguageError
		if errors.As(err, &language) {
			return nil, []diag.Diagnostic{languageDiagnostic(language)}, nil
		}
		return nil, nil, fmt.Errorf("cannot prepare the module kalypso.io: %w", err)
	}
	if p.Module == "" {
		return nil, nil, nil // source.Open has reported the errors of the module
	}
	if model.IsDevice(path.Base(dir)) {
		return nil, []diag.Diagnostic{namedAsDevice(dir)}, nil
	}
	for _, name := range without {
		overlay[filepath.Join(p.Root, filepath.FromSlash(name))] = load.FromString("package " +
			source.Package + "\n")
	}
	for _, name := range p.Links() {
		overlay[filepath.Join(p.Root, filepath.FromSlash(name))] = load.FromString("")
	}
	return Folder(p.Files(), dir, source.Package, "", overlay)
}

// namedAsDevice reports an environment whose folder has a name that Windows reserves: CUE finds
// no package in it, on any system.
func namedAsDevice(dir string) diag.Diagnostic {
	d := diag.New(diag.Unportable, path.Base(dir)+" is the name of a device on Windows, and CUE "+
		"reads no package in a folder of that name").
		In(model.Position{File: dir, Line: 1, Column: 1},
			"").Hinting("give the environment and its folder another name")
	d.Severity = diag.Error
	return d
}

// Folder loads and builds a package of a module with the given files. The names of its files
// are relative to the module's root, after prefix. The overlay is for CUE, and includes the
// overlay of the files.
func Folder(files *source.Files, dir, name, prefix string,
	overlay map[string]load.Source) (l *Package, ds []diag.Diagnostic, err error) {
	if d, ok := finding.Guarded("the package in "+filepath.ToSlash(dir),
		func() { l, ds, err = buildFolder(files, dir, name, prefix, overlay) }); !ok {
		return nil, []diag.Diagnostic{d}, nil
	}
	return l, ds, err
}

func buildFolder(files *source.Files, dir, name, prefix string,
	overlay map[string]load.Source) (*Package, []diag.Diagnostic, error) {
	insts := load.Instances([]string{"./" + filepath.ToSlash(dir)}, &load.Config{
		Dir:        files.Root,
		ModuleRoot: files.Root,
		Package:    name,
		Overlay:    overlay,
		Env: append(slices.DeleteFunc(os.Environ(),
			func(v string) bool { return strings.HasPrefix(v, "CUE_REGISTRY=") }), "CUE_REGISTRY=none"),
	})
	inst := insts[0]
	places := NewPlaces(files, prefix, inst)
	if inst.Err != nil {
		if language := cuemodule.Language(files.Root, inst.Err); language != nil {
			return nil, []diag.Diagnostic{languageDiagnostic(language)}, nil
		}
		return nil, places.Errors(inst.Err, diag.Syntax), nil
	}
	if ds := places.checkEmbedded(inst); len(ds) > 0 {
		return nil, ds, nil // loading has read no embedded file, but building would
	}
	c := cuecontext.New()
	v := c.BuildInstance(inst)
	if inst.Err != nil {
		return nil, places.Errors(inst.Err, diag.Compile), nil
	}
	return &Package{Context: c, Value: v, Instance: inst, Places: places}, nil, nil
}

func languageDiagnostic(e *cuemodule.LanguageError) diag.Diagnostic {
	return diag.New(diag.LanguageVersion, e.Error()).In(model.Position{File: e.Position.Filename,
		Line: e.Position.Line, Column: e.Position.Column}, "").
		Hinting("take a newer kalypso, or lower language.version if nothing newer is used")
}

// packageFiles returns the parsed files of a package and of all its imports.
func packageFiles(inst *build.Instance) []*ast.File {
	files := slices.Clone(inst.Files)
	for _, dep := range inst.Dependencies() {
		files = append(files, dep.Files...)
	}
	return files
}

// checkEmbedded reports files that must not be embedded. The caller must then not build the
// package, because building reads the files. The author of the platform may not have permission
// to read other files of the machine, and reading a device or a pipe never ends.
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

// unreadable returns the reason why CUE must not read an embedded YAML file, a hint, and the
// position of the problem in the file. why is "" if CUE may read the file.
func (p *Places) unreadable(e source.EmbeddedFile) (why, hint string, at []model.Position) {
	if !isYAML(e) {
		return "", "", nil
	}
	name, within := p.files.Name(e.Path)
	if !within {
		return "", "", nil // forbids reports it
	}
	data, err := p.files.ReadFile(name)
	if err != nil {
		return "", "", nil // CUE leaves folders out of a glob, and reports unreadable files
	}
	_, problem := yamlfile.Read(p.relative(e.Path), e.Path, data)
	if problem == nil {
		return "", "", nil
	}
	return problem.Message, problem.Hint, []model.Position{problem.Sites[0].Position}
}

// isYAML reports whether CUE reads an embedded file as YAML, either because of its type or, if
// the type has no encoding, because of its name.
func isYAML(e source.EmbeddedFile) bool {
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

// forbids returns the reason why a file must not be embedded, and a hint. why is "" if it may
// be embedded.
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
		return "", "" // CUE leaves it out of a glob, and otherwise rejects it
	case !info.Mode().IsRegular():
		return "it is " + shape.Article(kindOf(info.Mode())), "embed a regular file"
	}
	return tooLarge(info.Size())
}

// tooLarge returns the reason why a file of a size must not be embedded, and a hint. why is ""
// if it may be embedded.
func tooLarge(size int64) (why, hint string) {
	if size <= source.MaxEmbedded {
		return "", ""
	}
	return fmt.Sprintf("it has more than %d MiB", source.MaxEmbedded>>20),
		"embed what the platform needs of it"
}

// kindOf returns the name of the kind of an irregular file.
func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}
