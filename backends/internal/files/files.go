// Package files writes the files that a platform describes itself, as #File of the schema. They are
// the files of a reconciler that is a function of the assignment. They are also the files that a
// namespace service adds to the folder of any reconciler.
//
// The input is values that the schema has checked, and the package checks them again. The output is
// files whose paths stay inside their folder on every file system, with the identities of the
// Kubernetes objects in them. Each problem is a diagnostic that points to the file. All functions
// are pure.
package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The limits of one folder.
const (
	MaxSize  = 4 << 20 // bytes of one file
	maxFiles = 1000
)

// Files are the files of a folder, or some of them.
type Files struct {
	// Files are sorted by path.
	Files []backends.File
	// Objects are the Kubernetes objects in Files.
	Objects []backends.Object
	// Resources are the paths of the YAML files with only Kubernetes objects, sorted. A
	// kustomization can list them.
	Resources []string
}

// Describe returns the files of a struct with a #File for each path. ref refers to the
// struct. The Kubernetes objects among their documents get kalypso's label and annotation. a
// is nil for files of a cluster type. Describe does not change the objects in those.
func Describe(a *backends.Assignment, described model.Value, ref model.Ref) (Files,
	[]diag.Diagnostic) {
	var out Files
	ds := checkPaths(described, ref)
	if diag.Errors(ds) {
		return out, ds
	}
	for _, f := range described.Fields() {
		w := writer{assignment: a, path: f.Name}
		file, err := w.write(f.Value)
		if err != nil {
			ds = append(ds, Bad(ref.At(model.Label(f.Name)), f.Name+" "+err.Error()))
			continue
		}
		at := ref.At(model.Label(f.Name))
		for _, d := range w.encrypted {
			ds = append(ds, d.On(at.String()).At(at, ""))
		}
		if len(w.plaintext) > 0 {
			ds = append(ds,
				kubernetes.Plaintext(f.Name, w.plaintext).On(at.String()).At(at, "").Hinting(InsteadOfSecret))
		}
		out.Add(file, w.objects, w.only)
	}
	return out, ds
}

// OfService adds the files of the assignment's namespace service to a folder. It returns an
// error for a file that would replace another one.
func (fs *Files) OfService(a *backends.Assignment) []diag.Diagnostic {
	described, _ := a.NamespaceService.Value.Lookup("files")
	if len(described.Fields()) == 0 {
		return nil
	}
	ref := a.NamespaceService.Ref.At("files")
	added, ds := Describe(a, described, ref)
	for _, f := range added.Files {
		if err := fs.Collides(f.Path); err != nil {
			ds = append(ds,
				Bad(ref.At(model.Label(f.Path)), f.Path+" of the namespace service "+err.Error()).
					Hinting("give the file another path: the reconciler has this one"))
		}
	}
	fs.Files = append(fs.Files, added.Files...)
	fs.Objects = append(fs.Objects, added.Objects...)
	fs.Resources = append(fs.Resources, added.Resources...)
	fs.sort()
	for i := range ds {
		ds[i] = ds[i].For(a.ID())
	}
	return ds
}

// Add adds a file with the objects in it. resource says that the file contains nothing else.
func (fs *Files) Add(f backends.File, objects []backends.Object, resource bool) {
	fs.Files = append(fs.Files, f)
	fs.Objects = append(fs.Objects, objects...)
	if resource {
		fs.Resources = append(fs.Resources, f.Path)
	}
	fs.sort()
}

// Collides returns an error if a file with a path cannot be in the same folder as the other
// files.
func (fs *Files) Collides(path string) error {
	all := newPaths()
	for _, f := range fs.Files {
		_ = all.add(f.Path)
	}
	return all.add(path)
}

func (fs *Files) sort() {
	slices.SortFunc(fs.Files, func(f, g backends.File) int { return strings.Compare(f.Path, g.Path) })
	slices.Sort(fs.Resources)
}

// Twice returns an error for each object that is there twice: it cannot be
// applied, and kustomize refuses a folder that has it.
func (fs *Files) Twice(ref model.Ref) []diag.Diagnostic {
	var ds []diag.Diagnostic
	seen := map[backends.Object]bool{}
	for _, o := range fs.Objects {
		if seen[o] {
			ds = append(ds, Bad(ref, fmt.Sprintf("%s %s is in the folder's files twice", o.Kind, o.Name)).
				Hinting("leave one of them out, or give it another name or namespace"))
		}
		seen[o] = true
	}
	return ds
}

// Bad returns the diagnostic that a file, described at ref, cannot be written.
func Bad(ref model.Ref, message string) diag.Diagnostic {
	return diag.New(diag.BadFile, message).On(ref.String()).At(ref, "")
}

// InsteadOfSecret is a hint for a Secret with data: the object to write in its place.
const InsteadOfSecret = "write what fetches it from a secret store, such as an ExternalSecret, " +
	"for a config's reference by schema.#Secret"

// writer writes one file.
type writer struct {
	assignment *backends.Assignment
	path       string
	objects    []backends.Object
	only       bool // it is YAML with only objects
	plaintext  []string
	encrypted  []diag.Diagnostic
}

func (w *writer) write(described model.Value) (backends.File, error) {
	out := backends.File{Path: w.path}
	switch mode, _ := described.Lookup("mode"); mode.Text() {
	case "0644", "null":
	case "0755":
		out.Executable = true
	default:
		return out, fmt.Errorf("has the mode %s, and git knows 0644 and 0755 alone", mode)
	}
	var kinds []string
	var err error
	for _, kind := range [...]string{"text", "yaml", "documents", "json"} {
		if content, given := described.Lookup(kind); given {
			kinds = append(kinds, kind)
			out.Data, err = w.content(kind, content)
		}
	}
	switch {
	case len(kinds) != 1:
		return out, fmt.Errorf("has %s, and needs exactly one of text, yaml, documents and json",
			orNothing(kinds))
	case err == nil && len(out.Data) > MaxSize:
		err = fmt.Errorf("has %d bytes, and a file may have %d MiB", len(out.Data), MaxSize>>20)
	}
	return out, err
}

func orNothing(kinds []string) string {
	if len(kinds) == 0 {
		return "no content"
	}
	return strings.Join(kinds, " and ")
}

func (w *writer) content(kind string, v model.Value) ([]byte, error) {
	switch kind {
	case "text":
		if v.Kind() != model.String {
			return nil, fmt.Errorf("has a text that is a %s", v.Kind())
		}
		if ext := path.Ext(w.path); strings.TrimSpace(v.Text()) == "" &&
			(ext == ".yaml" || ext == ".yml" || ext == ".json") {
			return nil, errors.New("has a text without anything in it, which is no document")
		}
		return []byte(v.Text()), nil
	case "json":
		// Write one document, with its keys sorted. The objects of a list stay in it.
		t, err := w.trace(v)
		if err != nil {
			return nil, fmt.Errorf("cannot be written: %w", err)
		}
		w.objects = t.Objects
		return JSON(t.Value)
	case "yaml":
		return w.yaml(v)
	}
	if v.Kind() != model.List {
		return nil, fmt.Errorf("has documents that are a %s, and must be a list", v.Kind())
	}
	return w.yaml(v.Elems()...)
}

// yaml writes a stream of documents.
func (w *writer) yaml(values ...model.Value) ([]byte, error) {
	var docs []any
	w.only = true
	for _, v := range values {
		if v.Kind() == model.Null {
			return nil, fmt.Errorf("has an empty document")
		}
		t, err := w.trace(v)
		if err != nil {
			return nil, fmt.Errorf("cannot be written: %w", err)
		}
		docs = append(docs, t.Docs...)
		w.objects = append(w.objects, t.Objects...)
		w.only = w.only && t.Objects != nil
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("has no document")
	}
	return yaml.Marshal(docs...)
}

func (w *writer) trace(v model.Value) (kubernetes.TracedDocument, error) {
	w.plaintext = append(w.plaintext, kubernetes.PlainSecrets(v)...)
	w.encrypted = append(w.encrypted, kubernetes.Encrypted(w.assignment, v)...)
	if w.assignment == nil {
		return kubernetes.TracedDocument{Docs: []any{v}, Value: v}, nil
	}
	return kubernetes.Trace(w.assignment, v)
}

// JSON returns a value as a document for people: indented, its keys sorted, with
// a newline at the end.
func JSON(v model.Value) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Indent(&out, v.AppendJSON(nil), "", "  "); err != nil {
		return nil, fmt.Errorf("cannot be written: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
