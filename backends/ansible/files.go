package ansible

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// machineFile is a file of the machine: one of the folder, or what a URL has.
type machineFile struct {
	Path     string `yaml:"path"`
	Source   string `yaml:"source,omitempty"`
	URL      string `yaml:"url,omitempty"`
	Checksum string `yaml:"checksum,omitempty"`
	Owner    string `yaml:"owner"`
	Group    string `yaml:"group"`
	Mode     string `yaml:"mode"`
}

// machineFiles adds the files of a package.
func (f *folder) machineFiles(files map[string]model.MachineFile) {
	for _, name := range sortedKeys(files) {
		file, ref := files[name], f.manifest("package.files."+model.Label(name))
		out := machineFile{
			Path: name, URL: file.URL, Checksum: file.Digest, Mode: file.Mode,
			Owner: orRoot(file.Owner), Group: orRoot(file.Group),
		}
		switch {
		case !machinePath.MatchString(name):
			f.report(diag.BadSpec, ref, "%q is no absolute path of plain names", name)
			continue
		case strings.HasPrefix(name+"/", f.options.StateDirectory+"/"):
			f.report(diag.BadSpec, ref, "%s is in the folder in which kalypso keeps its records",
				name).hint("give it another path")
			continue
		case systemDirectory(name) && strings.Count(name, "/") > 1:
			f.report(diag.BadSpec, ref, "%s is a directory of the system", name).hint("give the file's path, with its name")
			continue
		case !fileMode.MatchString(file.Mode) || !userName.MatchString(out.Owner) || !userName.MatchString(out.Group):
			f.report(diag.BadSpec, ref, "%s has the mode %q, the owner %q and the group %q, which cannot be",
				name, file.Mode, out.Owner, out.Group)
			continue
		case (file.Content == nil) == (file.URL == ""):
			f.report(diag.BadSpec, ref, "%s has neither a content nor a url, or both", name)
			continue
		case !f.fits(name, ref) || !f.fetchable(file.URL, file.Digest, ref):
			continue
		}
		if file.Content != nil {
			if !f.placeable(name, ref) {
				continue
			}
			out.Source = source(name)
			f.write(out.Source, []byte(*file.Content), false)
		}
		f.file(out, ref)
	}
}

// placeable says whether the path of a file on the machine can be one in the
// folder: git has names of its own.
func (f *folder) placeable(name string, ref model.Ref) bool {
	for e := range strings.SplitSeq(name, "/") {
		e, _, _ = strings.Cut(strings.ToLower(e), ":")
		if e = strings.TrimRight(e, ". "); e == ".git" || strings.HasPrefix(e, ".kalypso") {
			f.report(diag.BadFile, ref, "a repository cannot hold %s", name).hint("fetch the file by url, " +
				"or bring it with a package")
			return false
		}
	}
	return true
}

func (f *folder) file(file machineFile, ref model.Ref) {
	f.thing(fileThing, file.Path, ref)
	f.wanted.Files = append(f.wanted.Files, file)
}

// text adds a file that kalypso itself writes for root.
func (f *folder) text(name, content string, ref model.Ref) {
	f.write(source(name), []byte(content), false)
	f.file(machineFile{Path: name, Source: source(name), Owner: "root", Group: "root", Mode: "0644"}, ref)
}

// source returns where the folder holds what goes to a path of the machine.
func source(name string) string { return path.Join("files", name) }

func orRoot(name string) string {
	if name == "" {
		return "root"
	}
	return name
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
