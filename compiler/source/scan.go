package source

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// Digest is a SHA-256.
type Digest [sha256.Size]byte

// Sources is everything in a platform that can change one of its packages. It has the
// content that CUE reads, but Sources does not interpret it. If the Sources of two packages
// have the same digest, the packages are the same to CUE, given the same CUE and the same
// kalypso. If it is uncertain whether CUE reads something, Sources covers it:
//
//   - Files are the files in the folder and the folders above it, up to the root, that
//     are of package platform, have no package clause, or cannot be parsed.
//   - An import may be of the platform itself, or lie in cue.mod/pkg, cue.mod/gen
//     or cue.mod/usr. All of these folders count if they exist, each with the files of
//     the same package above it. Their imports are followed in turn.
//   - An embedded file counts with its name, the targets of its links, and its content;
//     a glob counts with the files that it finds.
//   - Other modules count as cue.mod names them: their versions fix their content.
//     Folders that cue.mod/local-module.cue puts in their place are read whole.
//   - The module kalypso.io belongs to the binary. The caller accounts for it.
type Sources struct {
	// Files are the files of the package, sorted by name.
	Files []File
	// Module is the digest of the module's files in cue.mod.
	Module Digest
	// Imported reports whether an import leads to a file of the package itself.
	Imported bool
}

// File is a file of a package.
type File struct {
	// Name is relative to the platform's root, with slashes.
	Name string
	Data []byte
	// Content is the digest of Data.
	Content Digest
	// Needs are the digests of all files that this file imports or embeds, directly or
	// through others, by their names from the root. If an embedded file is a link, the
	// target of the link follows the name.
	Needs map[string]Digest
}

// Digest identifies the file with everything that it needs.
func (s *Sources) Digest() Digest {
	h := sha256.New()
	h.Write(s.Module[:])
	for _, f := range s.Files {
		d := f.Digest()
		h.Write(d[:])
	}
	return Digest(h.Sum(nil))
}

// Digest identifies the file with its name and everything that it needs.
func (f *File) Digest() Digest {
	h := sha256.New()
	fmt.Fprintf(h, "%q %x\n", f.Name, f.Content)
	for _, name := range slices.Sorted(maps.Keys(f.Needs)) {
		fmt.Fprintf(h, "%q %x\n", name, f.Needs[name])
	}
	return Digest(h.Sum(nil))
}

// Sources reads the files of the package of an environment, or of the base for "". It reads
// each file once. It returns an error if a file cannot be read. found may be nil. Otherwise
// it is called with the names of the package's own files and their digest, before any of
// them is parsed beyond its imports. It may end the scan with an error.
func (p *Platform) Sources(environment string,
	found func(names []string, of Digest) error) (*Sources, error) {
	dir := "."
	if environment != "" {
		dir = p.Dir(environment)
	}
	base, _, _ := strings.Cut(p.Module, "@")
	s := &scanner{Files: p.files, module: base, read: map[string]*scannedFile{},
		folders: map[string][]string{}}
	out := &Sources{}
	var err error
	if out.Module, err = s.moduleDigest(); err != nil {
		return nil, err
	}
	files, err := s.packageFiles(".", dir, []string{Package, ""})
	if err != nil {
		return nil, err
	}
	of, h := map[string]bool{}, sha256.New()
	var names []string
	for _, f := range files {
		of[f.name], names = true, append(names, f.name)
		fmt.Fprintf(h, "%q %x\n", f.name, f.content)
	}
	if found != nil {
		if err := found(names, Digest(h.Sum(nil))); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		needs := map[string]Digest{}
		if err := s.follow(f, needs, map[string]bool{}); err != nil {
			return nil, err
		}
		for name := range needs {
			out.Imported = out.Imported || of[name]
		}
		out.Files = append(out.Files, File{f.name, f.data, f.content, needs})
	}
	slices.SortFunc(out.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	// Remember the digests of the package's files, and of the files that they need.
	for _, f := range out.Files {
		p.note(f.Name, f.Content)
		for name, content := range f.Needs {
			name, _, _ = strings.Cut(name, " -> ")
			p.note(name, content)
		}
	}
	return out, nil
}

// scanner reads files once.
type scanner struct {
	*Files
	module  string
	read    map[string]*scannedFile
	folders map[string][]string // the CUE files of a folder
}

// scannedFile is a CUE file that has been read.
type scannedFile struct {
	name    string
	data    []byte
	content Digest
	parses  bool // as far as its imports
	pkg     string
	imports []string
}

// file reads a CUE file.
func (s *scanner) file(name string) (*scannedFile, error) {
	if f, done := s.read[name]; done {
		return f, nil
	}
	data, err := s.ReadFile(name)
	if info, _ := s.Stat(name); err != nil && (info == nil || !info.Mode().IsRegular()) {
		return nil, &NoFileError{name, info != nil}
	}
	if err != nil {
		return nil, err
	}
	f := &scannedFile{name: name, data: data, content: sha256.Sum256(data)}
	s.read[name] = f
	text := toUTF8(data)
	syntax, err := parser.ParseFile(s.Path(name), text, parser.ImportsOnly)
	if err != nil || syntax == nil {
		return f, nil
	}
	f.parses, f.pkg = true, syntax.PackageName()
	for spec := range syntax.ImportSpecs() {
		if of, err := literal.Unquote(spec.Path.Value); err == nil {
			f.imports = append(f.imports, of)
		}
	}
	return f, nil
}

// embeds returns the files that a CUE file embeds. Loading the file reports its errors.
func (s *scanner) embeds(f *scannedFile) []EmbeddedFile {
	text := toUTF8(f.data)
	if !f.parses || !bytes.Contains(text, []byte("@embed(")) {
		return nil
	}
	syntax, err := parser.ParseFile(s.Path(f.name), text)
	if err != nil {
		return nil
	}
	return Embeds(syntax, s.Files)
}

// folder returns the names of a folder's CUE files, from the root. It returns nil if the
// folder does not exist.
func (s *scanner) folder(dir string) ([]string, error) {
	if names, done := s.folders[dir]; done {
		return names, nil
	}
	entries, err := s.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !s.isNoFolder(dir) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !isSource(e.Name()) {
			continue
		}
		if info, err := s.Stat(path.Join(dir, e.Name())); err == nil && info.IsDir() {
			continue
		}
		names = append(names, path.Join(dir, e.Name()))
	}
	s.folders[dir] = names
	return names, nil
}

// isNoFolder reports whether a name is not the name of an existing folder.
func (s *scanner) isNoFolder(name string) bool {
	info, err := s.Stat(name)
	return err != nil || !info.IsDir()
}

// packageFiles returns the files of a folder and of the folders above it, up to top, that
// may belong to one of the packages.
func (s *scanner) packageFiles(top, dir string, packages []string) ([]*scannedFile, error) {
	var out []*scannedFile
	for {
		names, err := s.folder(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			f, err := s.file(name)
			if err != nil {
				return nil, err
			}
			if !f.parses || slices.Contains(packages, f.pkg) {
				out = append(out, f)
			}
		}
		if dir == top || dir == "." {
			return out, nil
		}
		dir = path.Dir(dir)
	}
}

// follow adds the files and modules that a file imports and embeds to needs.
func (s *scanner) follow(f *scannedFile, needs map[string]Digest, followed map[string]bool) error {
	for _, e := range s.embeds(f) {
		s.embedded(f, e, needs)
	}
	for _, of := range f.imports {
		if followed[of] {
			continue
		}
		followed[of] = true
		files, err := s.resolve(of, needs)
		if err != nil {
			return err
		}
		for _, f := range files {
			if _, done := needs[f.name]; done {
				continue
			}
			needs[f.name] = f.content
			if err := s.follow(f, needs, followed); err != nil {
				return err
			}
		}
	}
	return nil
}

// embedded adds a file that another embeds. Loading refuses files that must not be
// embedded, so they are not read here either.
func (s *scanner) embedded(by *scannedFile, e EmbeddedFile, needs map[string]Digest) {
	name := path.Join(path.Dir(by.name), e.Name)
	if data, over := s.overlay(name); over {
		needs[name] = sha256.Sum256(data)
		return
	}
	target, err := filepath.EvalSymlinks(e.Path)
	within, _ := filepath.Rel(s.Root, target)
	if err != nil || !filepath.IsLocal(within) {
		needs[name+" -> nowhere"] = Digest{}
		return
	}
	what := name
	if within = filepath.ToSlash(within); within != name {
		what += " -> " + within
	}
	info, err := os.Stat(target)
	if err == nil && info.Mode().IsRegular() && info.Size() <= MaxEmbedded {
		if data, err := regular.ReadFile(target); err == nil {
			needs[what] = sha256.Sum256(data)
			return
		}
	}
	needs[what] = Digest{} // it is refused, or left out of a glob
}

// resolve returns the files that an import may lead to, except the files of other modules.
// It adds to needs the modules that begin on the way, because CUE finds no package of this
// module in them.
func (s *scanner) resolve(of string, needs map[string]Digest) ([]*scannedFile, error) {
	parts := ast.ParseImportPath(of)
	folders := []struct{ top, dir string }{}
	if below, ok := strings.CutPrefix(parts.Path, s.module); ok && s.module != "" &&
		(below == "" || below[0] == '/') {
		folders = append(folders,
			struct{ top, dir string }{".", path.Join(".", strings.TrimPrefix(below, "/"))})
	}
	written, _, _ := strings.Cut(of, ":")
	for _, kind := range []string{"pkg", "gen", "usr"} {
		top := path.Join("cue.mod", kind)
		for _, p := range slices.Compact([]string{parts.Path, written}) {
			folders = append(folders, struct{ top, dir string }{top, path.Join(top, p)})
		}
	}
	var out []*scannedFile
	for _, f := range folders {
		if !filepath.IsLocal(filepath.FromSlash(f.dir)) {
			continue
		}
		packages, err := s.packagesOf(f.dir, parts.Qualifier)
		if err != nil {
			return nil, err
		}
		files, err := s.packageFiles(f.top, f.dir, packages)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
		for dir := f.dir; dir != f.top && dir != "."; dir = path.Dir(dir) {
			if data, err := s.ReadFile(path.Join(dir, moduleFile)); err == nil {
				needs[path.Join(dir, moduleFile)] = sha256.Sum256(data)
			}
		}
	}
	return out, nil
}

// packagesOf returns the packages of a folder that an import may mean: the named package,
// or else all.
func (s *scanner) packagesOf(dir, named string) ([]string, error) {
	names, err := s.folder(dir)
	if err != nil {
		return nil, err
	}
	packages := []string{named}
	for _, name := range names {
		f, err := s.file(name)
		if err != nil {
			return nil, err
		}
		packages = append(packages, f.pkg)
	}
	if named != "" && slices.Contains(packages[1:], named) {
		return packages[:1], nil
	}
	return packages, nil
}
