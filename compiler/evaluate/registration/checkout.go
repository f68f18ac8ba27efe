package registration

import (
	"bytes"
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

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/address"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// checkout is a local folder with the files of a repository that are needed to load the package
// in one of its folders. It is plain data.
type checkout struct {
	Root   string // the folder of the repository's root
	Prefix string // of positions: name@commit/
	// Module is the folder of the package's module, and Dir is the folder of the package. They
	// are relative to the root, with slashes.
	Module, Dir string
	Package     string   // its name
	YAML        []string // files in its folder that may declare workloads
}

// newCheckout finds the package of a registration among the files of a commit.
func newCheckout(r *model.Registration, revision string, tree *archive.Tree) (*checkout,
	[]diag.Diagnostic) {
	files := tree.Data()
	c := &checkout{Dir: path.Clean(r.Git.Path), Module: ModuleOf(r, tree),
		Prefix: r.Name + "@" + revision[:min(12, len(revision))] + "/", Package: defaultPackage}
	// Without a file that CUE reads, the entities of the folder are unknown.
	unread := map[string]string{}
	maps.Copy(unread, tree.Refused)
	there := false
	var cueFiles []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		there = there || c.Dir == "." || strings.HasPrefix(name, c.Dir+"/")
		declares := c.declares(name)
		switch {
		case declares == "yaml" && !bytes.Contains(files[name], []byte(schedulerGroup)):
			continue
		case declares == "yaml":
			c.YAML = append(c.YAML, name)
		case declares == "cue":
			cueFiles = append(cueFiles, name)
		}
		if len(files[name]) > source.MaxEmbedded {
			unread[name] = fmt.Sprintf("has more than %d MiB", source.MaxEmbedded>>20)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		if c.declares(name) != "" || path.Ext(name) == ".cue" && strings.HasPrefix(name, c.namePrefix()) {
			return nil, []diag.Diagnostic{diag.New(diag.Registration,
				fmt.Sprintf("%s of the repository of registration %s %s", name, r.Name, unread[name])).
				Hinting("keep it as a smaller file of the repository itself; kalypso.lock pins commit " +
					revision)}
		}
	}
	switch {
	case !there:
		return nil, []diag.Diagnostic{diag.New(diag.Registration,
			fmt.Sprintf("the repository of registration %s has no folder %s", r.Name, c.Dir)).
			Hinting("correct git.path; kalypso.lock pins commit " + revision)}
	case len(cueFiles) == 0 && len(c.YAML) == 0:
		return nil, []diag.Diagnostic{diag.New(diag.Registration,
			fmt.Sprintf("folder %s of the repository of registration %s brings nothing", c.Dir, r.Name)).
			Hinting("it needs CUE files that declare workloads or configs, or YAML files with Workloads " +
				"of " + schedulerGroup)}
	}
	return c, c.findPackage(r.Name, cueFiles, files)
}

// ModuleOf returns the folder of the module of a registration's files, relative to the root and
// with slashes. It is the nearest folder with a module file, or the root if no folder has one.
func ModuleOf(r *model.Registration, tree *archive.Tree) string {
	dir := path.Clean(r.Git.Path)
	for dir != "." && tree.Files[path.Join(dir, cuemodule.File)].Data == nil {
		dir = path.Dir(dir)
	}
	return dir
}

// declares returns the language in which a file may declare entities: cue or yaml. It returns
// "" for files of other folders and of other kinds.
func (c *checkout) declares(name string) string {
	base := path.Base(name)
	if path.Dir(name) != c.Dir || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") ||
		strings.HasSuffix(base, "_tool.cue") || strings.HasSuffix(base, "_test.cue") {
		return ""
	}
	switch path.Ext(base) {
	case ".cue":
		return "cue"
	case ".yaml", ".yml":
		return "yaml"
	}
	return ""
}

// namePrefix returns the common prefix of the names of all files of the module.
func (c *checkout) namePrefix() string {
	if c.Module == "." {
		return ""
	}
	return c.Module + "/"
}

// findPackage finds the package's name. All CUE files of the folder must belong to the package.
func (c *checkout) findPackage(registration string, cueFiles []string,
	files map[string][]byte) []diag.Diagnostic {
	first := ""
	for _, name := range cueFiles {
		f, err := parser.ParseFile(name, files[name], parser.PackageClauseOnly)
		if err != nil || f.PackageName() == "" {
			continue // loading reports it, or leaves it out
		}
		if first == "" {
			first, c.Package = name, f.PackageName()
		} else if f.PackageName() != c.Package {
			at := func(name string) model.Position {
				return model.Position{File: c.Prefix + name, Line: 1,
					Column: 1}
			}
			return []diag.Diagnostic{diag.New(diag.Registration,
				fmt.Sprintf("the folder of registration %s has two packages, %s and %s", registration,
					c.Package, f.PackageName())).
				In(at(first), "").In(at(name), "").Hinting("keep what is registered in a folder of its own")}
		}
	}
	return nil
}

// write writes the module's files that CUE may read: its sources, and files that they may
// embed.
func (c *checkout) write(root string, files map[string][]byte, registration string) error {
	c.Root = root
	within := c.namePrefix()
	write := func(name string, data []byte) error {
		file := c.path(name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o600)
	}
	for name, data := range files {
		if !strings.HasPrefix(name, within) || len(data) > source.MaxEmbedded ||
			!filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		if err := write(name, data); err != nil {
			return err
		}
	}
	if files[within+cuemodule.File] != nil {
		return nil
	}
	return write(within+cuemodule.File, fmt.Appendf(nil, "module: %q\nlanguage: version: %q\n",
		"registration.kalypso.io/"+registration+"@v0", cue.LanguageVersion()))
}

// path returns the local path of a file of the repository.
func (c *checkout) path(
	name string) string {
	return filepath.Join(c.Root, filepath.FromSlash(name))
}

// checkedOut is the loaded package of a checkout.
type checkedOut struct {
	*loader.Package
	failures  []failure       // errors in YAML
	published map[string]bool // the workloads that come from Workloads of the Kalypso scheduler
}

// load loads the package.
func (c *checkout) load(r *model.Registration) (*checkedOut, []diag.Diagnostic, error) {
	root := c.path(c.Module)
	rel, err := filepath.Rel(filepath.FromSlash(c.Module), filepath.FromSlash(c.Dir))
	if err != nil {
		return nil, nil, err
	}
	overlay, err := cuemodule.Overlay(root, nil)
	if err != nil {
		return nil, []diag.Diagnostic{diag.New(diag.LanguageVersion,
			fmt.Sprintf("the module of registration %s cannot be used: %v", r.Name, err)).
			In(model.Position{File: c.Prefix + path.Join(c.Module, cuemodule.File), Line: 1, Column: 1},
				"")}, nil
	}
	overlay[filepath.Join(root, rel, loader.DeclarationsFile)] = load.FromString(c.declarations(r))
	var ds []diag.Diagnostic
	var failures []failure
	published := map[string]bool{}
	for i, name := range c.YAML {
		data, err := os.ReadFile(c.path(name))
		if err != nil {
			return nil, nil, err
		}
		s := c.workloads(name, data)
		ds = append(ds, s.ds...)
		failures = append(failures, s.failures...)
		for _, name := range s.workloads {
			published[name] = true
		}
		for n, f := range s.files {
			overlay[filepath.Join(root, rel,
				fmt.Sprintf("kalypso_workloads_%d_%d.cue", i, n))] = load.FromFile(f)
		}
	}
	if diag.Errors(ds) {
		for _, f := range failures {
			ds = append(ds, f.d)
		}
		return nil, ds, nil
	}
	l, problems, err := loader.Folder(source.NewFiles(root, nil), rel, c.Package,
		c.Prefix+c.namePrefix(),
		overlay)
	if l == nil {
		return nil, append(ds, problems...), err
	}
	return &checkedOut{l, failures, published}, append(ds, problems...), err
}

// declarations returns CUE that adds the schema's types to the collections, and their workspace
// to the workloads.
func (c *checkout) declarations(r *model.Registration) string {
	text := "package " + c.Package + "\n\nimport \"kalypso.io/schema\"\n\n"
	for _, name := range model.CollectionNames {
		text += name + ": schema." + shape.Definition(name) + "\n"
	}
	if r.Workspace != "" {
		text += fmt.Sprintf("workloads: [_]: workspace: *%q | _\n", r.Workspace)
	}
	return text
}

// checkSources reports workloads with sources on the machine that locks the platform, or in its
// own network. Otherwise `kalypso lock` would read files for a team that only the platform's
// own people may read. The registered repository and its host are allowed, because the platform
// has named them itself.
func (x *limitedExporter) checkSources(workloads []model.Workload) []model.Workload {
	r := x.registration
	return slices.DeleteFunc(workloads, func(w model.Workload) bool {
		before := len(x.Diagnostics)
		for _, t := range w.Targets {
			if h := t.Manifests.Helm; h != nil && h.Path != "" {
				ref := w.TargetRef(t.Name).At("manifests.helm.path")
				x.Fail(ref, diag.New(diag.Registration,
					"path is for a chart in the platform's own folder, and registration "+r.Name+
						" brings the workload").
					Hinting(fmt.Sprintf("name the registered repository: manifests: helm: git: {repo: %q, "+
						"path: ...} with a branch, a tag or a commit", r.Git.Repo)))
				continue
			}
			source, ok := dependency.SourceOf(t.Manifests)
			if !ok || source.URL == r.Git.Repo {
				continue
			}
			where := localPlace(source.URL)
			if where == "" || where != localFiles && where == localPlace(r.Git.Repo) {
				continue
			}
			ref := model.Ref{Collection: "workloads", Name: w.Name}.At("deploymentTargets." +
				model.Label(t.Name) + ".manifests." + string(t.Manifests.Kind()))
			x.Fail(ref, diag.New(diag.Registration,
				fmt.Sprintf("%s is on %s, and registration %s cannot reach what is there", source.URL, where,
					r.Name)).
				Hinting("keep the manifests in the registered repository or on a server, or declare the "+
					"workload in the platform"))
		}
		return len(x.Diagnostics) > before
	})
}

// localFiles describes the place of a file:// URL.
const localFiles = "the machine's own files"

// localPlace returns the place of a URL if it is this machine or its own link: local files, or
// a host with its port. It returns "" for any other place.
func localPlace(source string) string {
	a, ok := address.Parse(source)
	if !ok || a.Scheme == "file" {
		return localFiles
	}
	if address.IsLocal(a.Host) {
		return a.Authority
	}
	return ""
}
