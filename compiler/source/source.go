// Package source finds a platform's bytes: the folder that is its root, the
// environments with files, and the files that have no effect although they look as if
// they had.
//
// For example, Open("examples/hello-world/environments/dev") returns a [Platform] with the Module
// "hello-world.example/platform@v0" and the Folders ["dev", "stage"]. Its Root ends with
// examples/hello-world. Sources("dev") of this platform returns [Sources] with six Files:
// configs.cue, platform.cue and workloads.cue of the base, and cluster-types.cue, configs.cue and
// policies.cue of environments/dev.
package source

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/mod/modfile"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// Package is the name of the package that a platform's files are in.
const Package = "platform"

// Environments is the folder whose folders are the environments.
const Environments = "environments"

// Platform is a platform in a directory.
type Platform struct {
	// Root is the absolute path of the folder with cue.mod.
	Root string
	// Module is the platform's module path, such as "sample.example/platform@v0".
	// It identifies the platform.
	Module string
	// Folders are the folders of environments that have files of the platform,
	// sorted.
	Folders []string

	files   *Files
	first   map[string]string // environment -> its first file; "" for the base
	embeds  []string          // files that may embed others, or name files of inventories
	yaml    []string          // YAML files beside the platform's files
	imports bool              // a file imports the schema
	hidden  map[string]bool   // environments that lack a file; "" for the base
	barred  map[string]bool   // environments that CUE must not load; "" for the base
	links   []string          // that lead nowhere, or to a folder that is named like a file
	hasBase bool
	// borrows has, for each environment, the environments whose helper packages it imports.
	// The key of the base is "".
	borrows map[string][]string

	reading sync.Mutex
	read    map[string]Digest // the content of files as read, by name, for quoting them
}

// NotAPlatformError reports a folder that is not in a CUE module.
type NotAPlatformError struct{ Dir string }

// Error describes the missing file, and a remedy.
func (e *NotAPlatformError) Error() string {
	return fmt.Sprintf("%s is not in a platform: no cue.mod/module.cue there or in a folder above; "+
		"run kalypso in the platform, name it with -C, or let kalypso init write one", e.Dir)
}

// Open finds the platform that dir is in, and checks its files. The diagnostics are about
// files without effect, and about files whose package is unknown. The error is about
// folders and files that cannot be read.
func Open(dir string) (*Platform, []diag.Diagnostic, error) { return OpenOver(dir, nil) }

// OpenOver is as Open, with an overlay, which may be nil, over the platform's files.
func OpenOver(dir string, over Overlay) (*Platform, []diag.Diagnostic, error) {
	root, err := Root(dir)
	if err != nil {
		return nil, nil, err
	}
	p := &Platform{Root: root, files: NewFiles(root, over), first: map[string]string{},
		hidden: map[string]bool{}, barred: map[string]bool{}, borrows: map[string][]string{}}
	var ds []diag.Diagnostic
	if p.Module, ds, err = readModule(p.files); err != nil {
		return nil, nil, err
	}
	p.barred[""] = diag.Errors(ds) && p.Module != ""
	more, err := p.scan()
	return p, append(ds, more...), err
}

// Files returns the platform's files, with the overlay over them.
func (p *Platform) Files() *Files { return p.files }

// Folder returns the files in and below a folder of the platform, named from its root, as they are
// on the disk. A link may lead to another place of the same folder only.
func (p *Platform) Folder(name string) (*archive.Tree, error) {
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	folder, err := root.OpenRoot(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return archive.ReadFolder(folder, func(in string) bool { return path.Base(in) != ".git" })
}

// HasBase reports whether there are files that all environments share.
func (p *Platform) HasBase() bool { return p.hasBase }

// HasFolder reports whether the environment has a folder with files.
func (p *Platform) HasFolder(environment string) bool {
	return slices.Contains(p.Folders, environment)
}

// Hides reports whether CUE does not load a file that should be a part of the environment.
// Then it is unknown what the environment has. The diagnostics of Open name the file.
func (p *Platform) Hides(environment string) bool { return p.hidden[""] || p.hidden[environment] }

// Loadable reports whether CUE may load the environment, or the base for "". It may not if
// the platform needs a newer schema. It may not either if loading would never end, because
// CUE reads every data file of a folder. The diagnostics of Open show the reason.
func (p *Platform) Loadable(environment string) bool {
	return !p.barred[""] && !p.barred[environment]
}

// Bar forbids CUE to load anything else of the platform: its base is too costly.
func (p *Platform) Bar() { p.barred[""] = true }

// FirstFile returns the beginning of the first file of the environment, or of the base for
// "", in the order of their names.
func (p *Platform) FirstFile(environment string) model.Position {
	return model.Position{File: p.first[environment], Line: 1, Column: 1}
}

// Dir returns the folder, relative to the root, of the environment's package. This is its
// own folder, or the root if it has none.
func (p *Platform) Dir(environment string) string {
	if p.HasFolder(environment) {
		return path.Join(Environments, environment)
	}
	return "."
}

// Root returns the absolute path, without links, of the folder of the platform
// that dir is in.
func Root(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(abs); err != nil {
		return "", err
	} else if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	root, err := findRoot(abs)
	if err != nil {
		return "", err
	}
	// The platform's own name may be a link, in which nothing would be found.
	return filepath.EvalSymlinks(root)
}

func findRoot(dir string) (string, error) {
	for d := dir; ; d = filepath.Dir(d) {
		_, err := os.Stat(filepath.Join(d, "cue.mod", "module.cue"))
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if d == filepath.Dir(d) {
			return "", &NotAPlatformError{dir}
		}
	}
}

func readModule(files *Files) (module string, ds []diag.Diagnostic, err error) {
	data, err := files.ReadFile(moduleFile)
	if err != nil {
		return "", nil, err
	}
	f, err := modfile.ParseNonStrict(data, moduleFile)
	if cuemodule.Language(files.Root, err) != nil {
		return "", nil, nil // loading the module reports it
	}
	switch {
	case err != nil:
		return "", moduleErrors(err), nil
	case f.QualifiedModule() == "":
		return "", []diag.Diagnostic{badModule("it has no module path")}, nil
	}
	if pin, _ := cuemodule.PinOf(moduleFile, data); pin.Newer() {
		at := model.Position{File: pin.At.Filename, Line: pin.At.Line, Column: pin.At.Column}
		ds = append(ds, diag.New(diag.LanguageVersion,
			fmt.Sprintf("the platform needs %s %s, and this kalypso has %s", kalypso.ModulePath, pin.Version,
				kalypso.ModuleVersion)).In(at, "").
			Hinting("take a newer kalypso, or lower the version if nothing newer is used"))
	}
	return f.QualifiedModule(), ds, nil
}

// moduleErrors returns the errors of a module file. If several alternatives do not fit, CUE
// first reports their number; moduleErrors omits that message.
func moduleErrors(err error) []diag.Diagnostic {
	var ds []diag.Diagnostic
	for _, e := range cueerrors.Errors(err) {
		message := strings.TrimPrefix(e.Error(), "invalid module file syntax: ")
		if strings.Contains(message, "errors in empty disjunction") || len(ds) > 0 {
			continue
		}
		d := badModule(strings.TrimSuffix(message, " in module.cue"))
		for _, at := range cueerrors.Positions(e) {
			if at.IsValid() && at.Filename() == moduleFile {
				d.Sites = []diag.Site{{Position: model.Position{File: moduleFile, Line: at.Line(),
					Column: at.Column()}}}
				break
			}
		}
		ds = append(ds, d)
	}
	return ds
}

// moduleFile is the file that describes a CUE module.
const moduleFile = "cue.mod/module.cue"

func badModule(why string) diag.Diagnostic {
	return diag.New(diag.Module, "the module file cannot be used: "+why).
		In(model.Position{File: moduleFile, Line: 1, Column: 1}, "").
		Hinting("a platform's cue.mod/module.cue has a module path and a language version; `cue mod " +
			"init` writes one")
}

// scan checks every CUE file of the module.
func (p *Platform) scan() ([]diag.Diagnostic, error) {
	ds, err := p.walk(".")
	if err == nil {
		ds = slices.Concat(ds, p.lookBeside(), p.lookForPin())
	}
	// Keep CUE from loading what imports packages of environments that it must not load.
	for more := true; more; {
		more = false
		for importer, all := range p.borrows {
			if !p.barred[importer] &&
				slices.ContainsFunc(all, func(of string) bool { return p.barred[of] }) {
				p.hidden[importer], p.barred[importer], more = true, true, true
			}
		}
	}
	slices.Sort(p.Folders)
	p.Folders = slices.Compact(p.Folders)
	return ds, err
}

// noteImports notes the packages of the module kalypso.io, and of environments, that a file
// imports.
func (p *Platform) noteImports(rel string, data []byte) {
	schema, _, _ := strings.Cut(kalypso.ModulePath, "@")
	own, _, _ := strings.Cut(p.Module, "@")
	environments := own + "/" + Environments + "/"
	if !bytes.Contains(data, []byte(schema+"/")) && !bytes.Contains(data, []byte(environments)) {
		return // most files need not be parsed for it
	}
	f, err := parser.ParseFile("", data, parser.ImportsOnly)
	if err != nil {
		return // loading the file reports the error
	}
	importer, _ := environmentOf(path.Dir(rel))
	for spec := range f.ImportSpecs() {
		imported, err := literal.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		p.imports = p.imports || strings.HasPrefix(imported, schema+"/")
		if below, is := strings.CutPrefix(imported, environments); is {
			of, _, _ := strings.Cut(below, "/")
			p.borrows[importer] = append(p.borrows[importer], of)
		}
	}
}

// lookForPin warns if files import the schema and plain cue cannot find it. If the module
// file cannot be used, it reports that instead.
func (p *Platform) lookForPin() []diag.Diagnostic {
	if !p.imports || p.Module == "" || p.Module == kalypso.ModulePath ||
		!cuemodule.Unpinned(p.Root, p.files.Over) {
		return nil
	}
	return []diag.Diagnostic{diag.New(diag.UnpinnedSchema,
		fmt.Sprintf("the module does not pin %s, so cue and editors cannot find the schema",
			kalypso.ModulePath)).
		In(model.Position{File: moduleFile, Line: 1, Column: 1}, "").
		Hinting(fmt.Sprintf("add this line: deps: %q: v: %q", kalypso.ModulePath, kalypso.ModuleVersion))}
}

// walk checks the files of a folder, named from the root, and below it. Links to files
// count, as for CUE. Links to folders count only if the folder can be an environment,
// because CUE loads only environments by their names.
func (p *Platform) walk(dir string) ([]diag.Diagnostic, error) {
	entries, err := p.files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ds []diag.Diagnostic
	names := map[string]string{} // in lower case -> as the platform has it
	for _, entry := range entries {
		rel := path.Join(dir, entry.Name())
		isDir := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 && IsEnvironmentFolder(rel) {
			info, err := p.files.Stat(rel)
			isDir = err == nil && info.IsDir()
		}
		var found []diag.Diagnostic
		entered := isDir && p.enters(rel)
		if entered || !isDir && isSource(entry.Name()) {
			ds = append(ds, unportable(rel, names)...)
		}
		switch {
		case entered:
			found, err = p.walk(rel)
		case !isDir && isSource(entry.Name()) && !p.isFile(rel, entry):
			found = p.lookNoFile(rel)
		case !isDir && isSource(entry.Name()):
			found, err = p.look(rel)
		case !isDir && entry.Type().IsRegular() && isPassedOver(entry.Name()):
			found, err = p.lookPassedOver(rel)
		case !isDir && !entry.Type().IsRegular():
			found = p.lookAside(rel)
		case !isDir && isBeside(rel):
			p.yaml = append(p.yaml, rel)
		}
		if err != nil {
			return nil, err
		}
		ds = append(ds, found...)
	}
	return ds, nil
}

// isFile reports whether an entry of a folder is a file, or a link to one.
func (p *Platform) isFile(rel string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	info, err := p.files.Stat(rel)
	return err == nil && info.Mode().IsRegular()
}

// enters reports whether CUE looks into a folder: not into hidden ones, and not into
// other modules.
func (p *Platform) enters(rel string) bool {
	base := path.Base(rel)
	if rel == "cue.mod" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return false
	}
	_, err := p.files.Stat(path.Join(rel, "cue.mod"))
	return err != nil
}

// isSource reports whether CUE would load a file of that name: no hidden ones, no
// scripts of the cue command, no tests.
func isSource(name string) bool {
	if !strings.HasSuffix(name, ".cue") || strings.HasPrefix(name, ".") ||
		strings.HasPrefix(name, "_") {
		return false
	}
	return !strings.HasSuffix(name, "_tool.cue") && !strings.HasSuffix(name, "_test.cue")
}

// look compares a file's package with its folder's kind.
func (p *Platform) look(rel string) ([]diag.Diagnostic, error) {
	data, err := p.files.ReadFile(rel)
	if err != nil {
		return nil, err
	}
	p.note(rel, sha256.Sum256(data))
	p.noteImports(rel, data)
	if bytes.Contains(data, []byte("@embed")) || bytes.Contains(data, []byte("inventories")) {
		p.embeds = append(p.embeds, rel)
	}
	dir := path.Dir(rel)
	environment, deeper := environmentOf(dir)
	isEnvironment := environment != "" && deeper == ""
	f, err := parser.ParseFile(rel, data, parser.PackageClauseOnly)
	pkg, at := packageOf(f, rel)
	if isEnvironment {
		if _, seen := p.first[environment]; !seen {
			p.first[environment] = rel
		}
		if err != nil || pkg == Package {
			p.Folders = append(p.Folders, environment)
		}
	}
	if dir == "." && (err != nil || pkg == Package) {
		if p.hasBase = true; p.first[""] == "" {
			p.first[""] = rel
		}
	}
	if err != nil {
		return nil, nil // loading the file reports the error
	}
	d, ok := misplaced(dir, pkg, dir == "." || isEnvironment, at)
	if !ok {
		d, ok = notUTF8(data, rel)
	}
	if !ok {
		return nil, nil
	}
	p.hidden[environment] = true
	return []diag.Diagnostic{d}, nil
}

// environmentOf returns the environment of a folder, or "" for the base. deeper is the
// folder's path below the environment's own folder.
func environmentOf(dir string) (environment, deeper string) {
	if below, ok := strings.CutPrefix(dir, Environments+"/"); ok {
		environment, deeper, _ = strings.Cut(below, "/")
	}
	return environment, deeper
}

// misplaced returns a diagnostic about a file that has no effect, or not the one that it
// seems to have. It returns false if the file is at its right place.
func misplaced(dir, pkg string, loaded bool, at model.Position) (diag.Diagnostic, bool) {
	switch {
	case dir == Environments && pkg == Package:
		return diag.New(diag.StrayFile,
			"package "+Package+" is not loaded from "+Environments+" for every environment").In(at, "").
			Hinting("move the file to the platform's root, which all environments share, or to " +
				"environments/<name>"), true
	case loaded && pkg == "":
		return diag.New(diag.OtherPackage,
			"the file has no package clause, so it is not part of the platform").In(at, "").
			Hinting("begin the file with: package " + Package), true
	case loaded && pkg != Package:
		return diag.New(diag.OtherPackage,
				fmt.Sprintf("the file is of package %s, so it is not part of the platform", pkg)).In(at, "").
				Hinting(fmt.Sprintf("write package %s, or move the file into a folder of its own", Package)),
			true
	case !loaded && pkg == Package:
		return diag.New(diag.StrayFile,
			fmt.Sprintf("package %s is never loaded from %s", Package, dir)).In(at, "").
			Hinting("move the file to the platform's root or to environments/<name>, or give a helper " +
				"package a name of its own"), true
	}
	return diag.Diagnostic{}, false
}

func packageOf(f *ast.File, rel string) (string, model.Position) {
	at := model.Position{File: rel, Line: 1, Column: 1}
	if f == nil {
		return "", at
	}
	for _, d := range f.Decls {
		if p, ok := d.(*ast.Package); ok {
			if pos := p.Name.Pos(); pos.IsValid() {
				at = model.Position{File: rel, Line: pos.Line(), Column: pos.Column()}
			}
			if p.Name.Name == "_" {
				return "", at
			}
			return p.Name.Name, at
		}
	}
	return "", at
}
