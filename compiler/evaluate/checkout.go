package evaluate

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/module"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// build loads the package of a registration. CUE reads embedded files from a disk,
// so the files lie in a temporary folder while it does.
func (r *registered) build(ctx context.Context) (*loaded, []diag.Diagnostic, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	files, ds := r.content.Files()
	if r.absent = len(ds) > 0; r.absent {
		return nil, ds, nil
	}
	c, ds := newCheckout(r.registration, r.content.Revision, files)
	if len(ds) > 0 {
		return nil, ds, nil
	}
	tmp, err := os.MkdirTemp("", "kalypso-registration-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(tmp)
	if tmp, err = filepath.EvalSymlinks(tmp); err != nil {
		return nil, nil, err
	}
	return c.load(tmp)
}

// checkout is what of a repository is needed to load the package in one folder.
type checkout struct {
	registration *model.Registration
	prefix       string            // of positions: name@commit/
	files        map[string][]byte // by path from the repository's root
	module       string            // the folder of the module that the package is in
	dir          string            // the package's folder
	pkg          string            // its name
	cue, yaml    []string          // its files
}

// newCheckout finds the package that a registration means.
func newCheckout(r *model.Registration, revision string, files map[string][]byte) (*checkout, []diag.Diagnostic) {
	c := &checkout{registration: r, files: files, dir: path.Clean(r.Git.Path), pkg: registeredPackage}
	c.prefix = r.Name + "@" + revision[:min(12, len(revision))] + "/"
	there := false
	for _, name := range slices.Sorted(maps.Keys(files)) {
		there = there || c.dir == "." || strings.HasPrefix(name, c.dir+"/")
		if path.Dir(name) != c.dir || strings.HasPrefix(path.Base(name), ".") || strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		switch {
		case strings.HasSuffix(name, "_tool.cue"), strings.HasSuffix(name, "_test.cue"):
		case path.Ext(name) == ".cue":
			c.cue = append(c.cue, name)
		case path.Ext(name) == ".yaml", path.Ext(name) == ".yml":
			if bytes.Contains(files[name], []byte(schedulerGroup)) {
				c.yaml = append(c.yaml, name)
			}
		}
	}
	switch {
	case !there:
		return nil, []diag.Diagnostic{diag.New(diag.Registration, fmt.Sprintf("the repository of registration %s has no folder %s", r.Name, c.dir)).
			Hinting("correct git.path; kalypso.lock pins commit " + revision)}
	case len(c.cue) == 0 && len(c.yaml) == 0:
		return nil, []diag.Diagnostic{diag.New(diag.Registration, fmt.Sprintf("folder %s of the repository of registration %s brings nothing", c.dir, r.Name)).
			Hinting("it needs CUE files that declare workloads or configs, or YAML files with Workloads of " + schedulerGroup)}
	}
	c.module = c.dir
	for c.module != "." && files[path.Join(c.module, "cue.mod/module.cue")] == nil {
		c.module = path.Dir(c.module)
	}
	return c, c.findPackage()
}

// findPackage reads off the package's name: all CUE files of the folder are of it.
func (c *checkout) findPackage() []diag.Diagnostic {
	first := ""
	for _, name := range c.cue {
		f, err := parser.ParseFile(name, c.files[name], parser.PackageClauseOnly)
		if err != nil || f.PackageName() == "" {
			continue // loading reports it, or leaves it out
		}
		if first == "" {
			first, c.pkg = name, f.PackageName()
		} else if f.PackageName() != c.pkg {
			at := func(name string) model.Position { return model.Position{File: c.prefix + name, Line: 1, Column: 1} }
			return []diag.Diagnostic{diag.New(diag.Registration, fmt.Sprintf("the folder of registration %s has two packages, %s and %s", c.registration.Name, c.pkg, f.PackageName())).
				In(at(first), "").In(at(name), "").Hinting("keep what is registered in a folder of its own")}
		}
	}
	return nil
}

// load writes what CUE needs into a folder, and loads the package from there.
func (c *checkout) load(root string) (*loaded, []diag.Diagnostic, error) {
	root = filepath.Join(root, filepath.FromSlash(c.module))
	if err := c.write(root); err != nil {
		return nil, nil, err
	}
	rel, err := filepath.Rel(filepath.FromSlash(c.module), filepath.FromSlash(c.dir))
	if err != nil {
		return nil, nil, err
	}
	overlay, err := module.Overlay(root)
	if err != nil {
		return nil, []diag.Diagnostic{diag.New(diag.LanguageVersion, fmt.Sprintf("the module of registration %s cannot be used: %v", c.registration.Name, err)).
			In(model.Position{File: c.prefix + path.Join(c.module, "cue.mod/module.cue"), Line: 1, Column: 1}, "")}, nil
	}
	overlay[filepath.Join(root, rel, declarationsFile)] = load.FromString(c.declarations())
	var ds []diag.Diagnostic
	for i, name := range c.yaml {
		text, problems := c.workloads(name, filepath.Join(root, rel, path.Base(name)))
		ds = append(ds, problems...)
		if text != nil {
			overlay[filepath.Join(root, rel, fmt.Sprintf("kalypso_workloads_%d.cue", i))] = load.FromFile(text)
		}
	}
	if diag.Errors(ds) {
		return nil, ds, nil
	}
	prefix := c.prefix
	if c.module != "." {
		prefix += c.module + "/"
	}
	l, problems, err := loadFolder(root, rel, c.pkg, prefix, overlay)
	return l, append(ds, problems...), err
}

// write writes the module's files that CUE may read: its sources, and what they
// may embed.
func (c *checkout) write(root string) error {
	within := ""
	if c.module != "." {
		within = c.module + "/"
	}
	for name, data := range c.files {
		rel, inside := strings.CutPrefix(name, within)
		if !inside || len(data) > source.MostEmbedded || !filepath.IsLocal(filepath.FromSlash(rel)) {
			continue
		}
		file := filepath.Join(root, filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return err
		}
	}
	if c.files[within+"cue.mod/module.cue"] != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(root, "cue.mod"), 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf("module: %q\nlanguage: version: %q\n", "registration.kalypso.io/"+c.registration.Name+"@v0", cue.LanguageVersion())
	return os.WriteFile(filepath.Join(root, "cue.mod", "module.cue"), []byte(text), 0o600)
}

// declarationsFile holds what nobody wrote: it is no place to send a user to.
const declarationsFile = "kalypso_registration.cue"

// declarations gives the collections the schema's types, and the workloads their
// workspace.
func (c *checkout) declarations() string {
	text := "package " + c.pkg + "\n\nimport \"kalypso.io/schema\"\n\n"
	for _, of := range collections {
		text += of.name + ": schema." + of.definition + "\n"
	}
	if c.registration.Workspace != "" {
		text += fmt.Sprintf("workloads: [_]: workspace: *%q | _\n", c.registration.Workspace)
	}
	return text
}
