package ansible

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/internal/files"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The files of an assignment's folder that the role looks for.
const (
	assignmentFile = "assignment.yml"
	secretsFile    = "secrets.yml"
)

// wanted is assignment.yml: what the role brings about on a host. Folders that
// are kept were written by older versions of kalypso, so fields may be added, and
// never change their meaning.
type wanted struct {
	ID          string         `yaml:"id"`
	Version     string         `yaml:"version"` // "" for none
	Digest      string         `yaml:"digest"`  // of the platform's values, as kalypso.io/values has it on Kubernetes
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
	// Things are all that is there because of the assignment, in the order of
	// their making, as kind:name.
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
	directoryThing = "directory" // with all that is in it
	parentThing    = "parent"    // a folder that goes once it is empty
	packageThing   = "package"
	fileThing      = "file"
)

// folder collects what an assignment's folder holds.
type folder struct {
	assignment *backends.Assignment
	options    options
	service    service
	wanted     wanted
	files      []backends.File
	objects    []backends.Object
	things     map[string]bool
	ds         []diag.Diagnostic
}

func newFolder(a *backends.Assignment) *folder {
	o, ds := optionsOf(a.Reconciler)
	f := &folder{assignment: a, options: o, ds: ds, things: map[string]bool{}}
	if err := a.NamespaceService.Decode(&f.service); err != nil {
		f.misfit("", "the namespace service cannot be read: %v", err)
	}
	f.wanted.ID, f.wanted.Version = a.Origin(), a.Version
	f.wanted.Digest = string(a.Digest)
	f.wanted.Deletion = f.service.Deletion
	return f
}

// emission returns the folder, or none beside an error.
func (f *folder) emission() (backends.Emission, []diag.Diagnostic) {
	if !diag.Errors(f.ds) {
		f.write(assignmentFile, ansibleYAML(f.wanted), false)
	}
	for i := range f.ds {
		f.ds[i] = f.ds[i].For(f.assignment.ID())
		f.ds[i].Environment = f.assignment.Environment
	}
	if diag.Errors(f.ds) {
		return backends.Emission{}, f.ds
	}
	return backends.Emission{Files: delivery.Sorted(f.files), Objects: f.objects}, f.ds
}

// write adds a file to the folder.
func (f *folder) write(path string, data []byte, executable bool) {
	f.fits(path, f.assignment.Ref)
	f.files = append(f.files, backends.File{Path: path, Data: data, Executable: executable})
}

// fits says whether a file system holds a path, on the machine or in the folder.
func (f *folder) fits(path string, ref model.Ref) bool {
	err := files.Fits(path)
	if err != nil {
		f.report(diag.BadFile, ref, "%s %v", path, err).hint("give it a shorter name")
	}
	return err == nil
}

// thing adds what is on the machine because of the assignment. ref is who asks
// for it; two things of one name are a diagnostic.
func (f *folder) thing(kind, name string, ref model.Ref) {
	if f.things[name] || f.things[kind+":"+name] {
		f.report(diag.NameCollision, ref, "%s is on the machine twice", name).
			hint("give one of them another path")
		return
	}
	f.things[kind+":"+name] = true
	if kind == fileThing || kind == directoryThing {
		f.things[name] = true
		f.parents(name)
	}
	f.wanted.Things = append(f.wanted.Things, kind+":"+name)
	if kind != groupThing {
		f.objects = append(f.objects, backends.Object{Group: "machine", Kind: kind, Name: name})
	}
}

// parents adds the folders above a path that no system is sure to have.
func (f *folder) parents(name string) {
	var missing []string
	for dir := path.Dir(name); !systemDirectory(dir) && !f.things[dir]; dir = path.Dir(dir) {
		missing = append(missing, dir)
	}
	for _, dir := range slices.Backward(missing) {
		if !f.things[parentThing+":"+dir] && !strings.HasPrefix(dir+"/", f.options.StateDirectory+"/") {
			f.things[parentThing+":"+dir] = true
			f.wanted.Things = append(f.wanted.Things, parentThing+":"+dir)
		}
	}
}

// reported lets a hint follow what was reported.
type reported struct{ d *diag.Diagnostic }

func (r reported) hint(hint string) { *r.d = r.d.Hinting(hint) }

// report reports something about what stands at a reference.
func (f *folder) report(code diag.Code, ref model.Ref, format string, args ...any) reported {
	f.ds = append(f.ds, diag.New(code, fmt.Sprintf(format, args...)).On(ref.String()).At(ref, ""))
	return reported{&f.ds[len(f.ds)-1]}
}

// misfit reports a field of the namespace service.
func (f *folder) misfit(field, format string, args ...any) reported {
	return f.report(diag.BadSpec, f.assignment.NamespaceService.Ref.At(field), format, args...)
}

// manifest refers to a field of the deployment target's manifests.
func (f *folder) manifest(field string) model.Ref {
	return f.assignment.Ref.At(model.JoinPath("manifests", field))
}
