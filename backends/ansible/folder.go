package ansible

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/files"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The files of an assignment's folder that the role looks for.
const (
	assignmentFile = "assignment.yml"
	secretsFile    = "secrets.yml"
)

// assignmentSpec is assignment.yml, the desired state of a host. Older versions of kalypso
// wrote the folders that a build keeps. Fields may therefore be added, but their meaning
// must not change.
type assignmentSpec struct {
	ID      string `yaml:"id"`
	Version string `yaml:"version"` // "" if the assignment has no version
	// of the platform's values, as kalypso.io/values has it on Kubernetes
	Digest      string         `yaml:"digest"`
	Deletion    string         `yaml:"deletion"`
	User        string         `yaml:"user"`
	Home        string         `yaml:"home"`
	Groups      []string       `yaml:"groups"`
	Directories []directory    `yaml:"directories"`
	Config      document       `yaml:"config"`
	Secrets     *document      `yaml:"secrets,omitempty"`
	Pins        *document      `yaml:"pins,omitempty"`
	Packages    []debPackage   `yaml:"packages"`
	Files       []machineFile  `yaml:"files"`
	Units       []unit         `yaml:"units"`
	Playbook    *playbookToRun `yaml:"playbook,omitempty"`
	// Things are all the things on the machine that belong to the assignment, in the order of their
	// creation, as kind:name.
	Things []string `yaml:"things"`
}

// directory is a directory of the user.
type directory struct {
	Path string `yaml:"path"`
	Mode string `yaml:"mode"`
}

// document is a file that the role has its own way with.
type document struct {
	Path   string `yaml:"path"`
	Source string `yaml:"source,omitempty"` // in the folder
	Format string `yaml:"format,omitempty"`
}

// The kinds of things.
const (
	userThing      = "user"
	groupThing     = "group"
	directoryThing = "directory" // with everything in it
	parentThing    = "parent"    // a folder that goes once it is empty
	packageThing   = "package"
	fileThing      = "file"
)

// folder collects the content of an assignment's folder.
type folder struct {
	assignment *backends.Assignment
	options    options
	service    service
	spec       assignmentSpec
	files      []backends.File
	objects    []backends.Object
	things     map[string]bool
	ds         []diag.Diagnostic
}

// write adds a file to the folder.
func (f *folder) write(path string, data []byte, executable bool) {
	f.fits(path, f.assignment.Ref)
	f.files = append(f.files, backends.File{Path: path, Data: data, Executable: executable})
}

// fits reports whether a path is short enough for a file system, on the machine or in the
// folder.
func (f *folder) fits(path string, ref model.Ref) bool {
	err := files.Fits(path)
	if err != nil {
		f.report(diag.BadFile, ref, "%s %v", path, err).hint("give it a shorter name")
	}
	return err == nil
}

// thing adds a thing on the machine that belongs to the assignment. ref is the part of the platform
// that asks for it. Two things with the same name are a diagnostic.
func (f *folder) thing(kind, name string, ref model.Ref) {
	if f.things[name] || f.things[kind+":"+name] {
		f.report(diag.NameCollision, ref, "%s is on the machine twice", name).
			hint("give one of them another path")
		return
	}
	f.things[kind+":"+name] = true
	if kind == fileThing || kind == directoryThing {
		f.things[name] = true
		// Add the folders above a path that no system is sure to have.
		var missing []string
		for dir := path.Dir(name); !systemDirectory(dir) && !f.things[dir]; dir = path.Dir(dir) {
			missing = append(missing, dir)
		}
		for _, dir := range slices.Backward(missing) {
			if !f.things[parentThing+":"+dir] && !strings.HasPrefix(dir+"/", f.options.StateDirectory+"/") {
				f.things[parentThing+":"+dir] = true
				f.spec.Things = append(f.spec.Things, parentThing+":"+dir)
			}
		}
	}
	f.spec.Things = append(f.spec.Things, kind+":"+name)
	if kind != groupThing {
		f.objects = append(f.objects, backends.Object{Group: "machine", Kind: kind, Name: name})
	}
}

// finding is a reported diagnostic that can still get a hint.
type finding struct{ d *diag.Diagnostic }

func (r finding) hint(hint string) { *r.d = r.d.Hinting(hint) }

// report reports a diagnostic about the value at a reference.
func (f *folder) report(code diag.Code, ref model.Ref, format string, args ...any) finding {
	f.ds = append(f.ds, diag.New(code, fmt.Sprintf(format, args...)).On(ref.String()).At(ref, ""))
	return finding{&f.ds[len(f.ds)-1]}
}

// misfit reports a field of the namespace service.
func (f *folder) misfit(field, format string, args ...any) finding {
	return f.report(diag.BadSpec, f.assignment.NamespaceService.Ref.At(field), format, args...)
}

// manifest refers to a field of the deployment target's manifests.
func (f *folder) manifest(field string) model.Ref {
	return f.assignment.Ref.At(model.JoinPath("manifests", field))
}

// ansibleYAML returns a document in the style of ansible-lint, with names and texts of
// users, which may be long. The document consists of types of this package, and of values
// that unsafe has checked. Such values can always be written. Anything else is a mistake in
// this package.
func ansibleYAML(v any) []byte {
	data, err := yaml.MarshalIndented(v)
	if err != nil {
		panic(fmt.Sprintf("ansible: writing a %T: %v", v, err))
	}
	return append([]byte("---\n# yamllint disable rule:line-length\n"), data...)
}

// unsafe returns a value in which Ansible does not read any string as a template.
func unsafe(v model.Value) any {
	switch v.Kind() {
	case model.String:
		if templated(v.Text()) {
			return yaml.TaggedString{Tag: "!unsafe", Text: v.Text()}
		}
	case model.List:
		out := []any{}
		for _, e := range v.Elems() {
			out = append(out, unsafe(e))
		}
		return out
	case model.Struct:
		out := yaml.Mapping{}
		for _, f := range v.Fields() {
			out = append(out, yaml.Entry{Key: f.Name, Value: unsafe(f.Value)})
		}
		return out
	}
	return v
}
