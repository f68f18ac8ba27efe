package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/crdtest"
)

// Tree is the output of a backend for a platform.
type Tree struct {
	// Files of the cluster type's folder, by path in it.
	Files map[string][]byte
	// Bootstrap is the output of Bootstrap.
	Bootstrap []byte
	// Diagnostics of all calls.
	Diagnostics []diag.Diagnostic
	// Folders as Index got them.
	Folders []backends.Folder
	// Objects of each assignment's emission, by deployment target.
	Objects map[string][]backends.Object
	// Digests of each assignment's values, by deployment target.
	Digests map[string]model.Digest
}

// Build runs the backend over the platform.
func Build(t testing.TB, b backends.Backend, p Platform) Tree {
	t.Helper()
	tree := Tree{Files: map[string][]byte{}, Objects: map[string][]backends.Object{}, Digests: map[string]model.Digest{}}
	for _, target := range p.Targets {
		a := p.Assignment(t, target)
		if refused := backends.Refuse(b, a); len(refused) > 0 {
			tree.Diagnostics = append(tree.Diagnostics, refused...)
			continue
		}
		emission, ds := b.Emit(a)
		if again, _ := b.Emit(p.Assignment(t, target)); !reflect.DeepEqual(emission, again) {
			t.Errorf("%s: two runs differ", a.ID())
		}
		tree.Diagnostics = append(tree.Diagnostics, ds...)
		if diag.Errors(ds) {
			if len(emission.Files) > 0 {
				t.Errorf("%s: files beside an error", a.ID())
			}
			continue
		}
		tree.Objects[a.DeploymentTarget], tree.Digests[a.DeploymentTarget] = emission.Objects, a.Digest
		tree.add(t, a.DeploymentTarget, emission.Files)
		tree.Folders = append(tree.Folders, backends.Folder{
			DeploymentTarget: a.DeploymentTarget, Workspace: a.Workspace, Workload: a.Workload, Namespace: a.Namespace,
			DependsOn: a.DependsOn, Wave: a.Wave, Backend: b.Name(), Shared: emission.Shared,
		})
	}
	slices.SortFunc(tree.Folders,
		func(f, g backends.Folder) int { return strings.Compare(f.DeploymentTarget, g.DeploymentTarget) })
	ct := p.ClusterType(t)
	files, ds := b.Index(ct, tree.Folders)
	if again, _ := b.Index(p.ClusterType(t), tree.Folders); !reflect.DeepEqual(files, again) {
		t.Error("two runs of Index differ")
	}
	if !diag.Errors(ds) {
		checkRemoval(t, b, ct, tree.Folders)
	}
	tree.Diagnostics = append(tree.Diagnostics, ds...)
	tree.add(t, "", files)
	CheckKustomizations(t, tree.Files)
	tree.Bootstrap, ds = b.Bootstrap(ct, tree.Folders)
	tree.Diagnostics = append(tree.Diagnostics, ds...)
	return tree
}

func (tree *Tree) add(t testing.TB, folder string, files []backends.File) {
	if !slices.IsSortedFunc(files, func(f, g backends.File) int { return strings.Compare(f.Path, g.Path) }) {
		t.Errorf("%s: the files are not sorted", folder)
	}
	for _, f := range files {
		checkFile(t, folder, f)
		tree.Files[path.Join(folder, f.Path)] = f.Data
	}
}

// Check checks the conditions for the whole tree, for a backend whose reconciler uses Kubernetes:
//
//   - The CRD of each reconciler's object accepts the object.
//   - kustomize finds all files that it needs, and no file is unused.
//   - The emission lists all objects.
func (tree Tree) Check(t testing.TB) {
	t.Helper()
	tree.Conforms(t)
	used := map[string]bool{}
	for name, data := range tree.Files {
		switch path.Base(name) {
		case "reconciler.yaml", "assignments.yaml":
			accepted(t, name, data)
		case "kustomization.yaml":
			used[name] = true
			for _, resource := range resources(t, name, data) {
				file := path.Join(path.Dir(name), resource)
				if _, isFolder := tree.Files[path.Join(file, "kustomization.yaml")]; tree.Files[file] == nil && !isFolder {
					t.Errorf("%s lists %s, which is not there", name, resource)
				}
				used[file] = true
			}
		}
	}
	for name := range tree.Files {
		if strings.HasSuffix(name, ".yaml") && !used[name] {
			t.Errorf("no kustomization lists %s", name)
		}
	}
	if len(tree.Bootstrap) > 0 {
		accepted(t, "bootstrap", tree.Bootstrap)
	}
	for target, objects := range tree.Objects {
		tree.checkObjects(t, target, objects)
	}
}

func accepted(t testing.TB, name string, data []byte) {
	t.Helper()
	if n, err := crdtest.Check(data); n == 0 || err != nil {
		t.Errorf("%s: %d objects, %v", name, n, err)
	}
}

func resources(t testing.TB, name string, data []byte) []string {
	t.Helper()
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(data, &k); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return k.Resources
}

// Object is an object of the tree, as far as checks look at it.
type Object struct {
	APIVersion string
	Kind       string
	Metadata   struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Text []byte `json:"-"`
}

// ID returns the object's identity.
func (o Object) ID() backends.Object {
	group, _, ok := strings.Cut(o.APIVersion, "/")
	if !ok {
		group = ""
	}
	return backends.Object{Group: group, Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
}

// Objects returns the objects of a YAML stream.
func Objects(t testing.TB, stream []byte) []Object {
	t.Helper()
	docs, err := crdtest.Split(stream)
	if err != nil {
		t.Fatal(err)
	}
	var out []Object
	for _, doc := range docs {
		o := Object{Text: doc}
		if err := yaml.Unmarshal(doc, &o); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		out = append(out, o)
	}
	return out
}

func (tree Tree) checkObjects(t testing.TB, target string, listed []backends.Object) {
	var written []backends.Object
	for _, file := range []string{"namespace.yaml", "platform-config.yaml", "manifests.yaml", "reconciler.yaml"} {
		for _, o := range Objects(t, tree.Files[path.Join(target, file)]) {
			written = append(written, o.ID())
		}
	}
	compare := func(a, b backends.Object) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	slices.SortFunc(written, compare)
	if listed = slices.SortedFunc(slices.Values(listed), compare); !slices.Equal(written, listed) {
		t.Errorf("%s: the emission lists %v, and the files hold %v", target, listed, written)
	}
}

// Golden compares the tree, without the files that package kubernetes makes, to
// testdata/<test>.txtar, or writes that file if KALYPSO_UPDATE is 1. The content of a file
// depends on its first line, which an update keeps:
//
//   - "as NAME" means the differences from testdata/NAME.txtar, a tree in full. These are the files that only
//     one of the trees has, and the differing lines of the others. If the tree in full changes too, it takes
//     two runs to write both.
//   - "about REGEXP" means the lines that the case is about, and a digest of the tree in full.
//   - Any other line means the tree in full.
func (tree Tree) Golden(t *testing.T) {
	t.Helper()
	archive := &txtar.Archive{Comment: []byte(describe(tree.Diagnostics))}
	for _, name := range slices.Sorted(maps.Keys(tree.Files)) {
		if base := path.Base(name); base != "namespace.yaml" && base != "platform-config.yaml" && base != "README.md" {
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: tree.Files[name]})
		}
	}
	if len(tree.Bootstrap) > 0 {
		archive.Files = append(archive.Files, txtar.File{Name: "(bootstrap)", Data: tree.Bootstrap})
	}
	_, name, _ := strings.Cut(t.Name(), "/")
	file := filepath.Join("testdata", strings.ReplaceAll(name, "/", "-")+".txtar")
	want, err := os.ReadFile(file)
	if err != nil && os.Getenv("KALYPSO_UPDATE") != "1" {
		t.Fatalf("%v (KALYPSO_UPDATE=1 writes it)", err)
	}
	first, _, _ := bytes.Cut(want, []byte("\n"))
	if base, is := strings.CutPrefix(string(first), "as "); is {
		full, err := txtar.ParseFile(filepath.Join("testdata", base+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		archive = differing(base, full, archive)
	} else if about, is := strings.CutPrefix(string(first), "about "); is {
		archive = matching(t, about, archive)
	}
	got := txtar.Format(archive)
	if os.Getenv("KALYPSO_UPDATE") == "1" {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(got, want) {
		t.Errorf("%s differs (KALYPSO_UPDATE=1 accepts); got:\n%s", file, got)
	}
}

// differing returns the differences between an archive and another one, full, with a name. They
// are the names of missing files, files that full lacks, and hunks of the others, without the
// numbers of their lines.
func differing(name string, full, archive *txtar.Archive) *txtar.Archive {
	had := map[string][]byte{}
	for _, f := range full.Files {
		had[f.Name] = f.Data
	}
	out := &txtar.Archive{}
	for _, f := range archive.Files {
		if before, there := had[f.Name]; there {
			delete(had, f.Name)
			if f.Data = hunks(before, f.Data); f.Data == nil {
				continue
			}
			f.Name += " (differs)"
		}
		out.Files = append(out.Files, f)
	}
	out.Comment = fmt.Appendf(nil, "as %s\n", name)
	for _, gone := range slices.Sorted(maps.Keys(had)) {
		out.Comment = fmt.Appendf(out.Comment, "without %s\n", gone)
	}
	out.Comment = append(out.Comment, archive.Comment...)
	return out
}

// matching returns the lines of an archive that match a regular expression, by files, with a digest of the archive.
func matching(t testing.TB, about string, archive *txtar.Archive) *txtar.Archive {
	t.Helper()
	is, err := regexp.Compile(about)
	if err != nil {
		t.Fatal(err)
	}
	out := &txtar.Archive{Comment: fmt.Appendf(nil, "about %s\n%s%s\n", about, archive.Comment,
		model.DigestBytes(txtar.Format(archive)))}
	for _, f := range archive.Files {
		var lines []byte
		for line := range bytes.Lines(f.Data) {
			if is.Match(line) {
				lines = append(lines, line...)
			}
		}
		if lines != nil {
			out.Files = append(out.Files, txtar.File{Name: f.Name, Data: lines})
		}
	}
	if out.Files == nil {
		t.Errorf("%s: no line is about %s", t.Name(), about)
	}
	return out
}

// hunks returns the differences between two texts, without context, or nil.
func hunks(before, after []byte) []byte {
	var out []byte
	for line := range bytes.Lines(diff.Diff("before", before, "after", after)) {
		switch line[0] {
		case '@':
			out = append(out, "@@\n"...)
		case '+', '-':
			if !bytes.HasPrefix(line, []byte("--- before")) && !bytes.HasPrefix(line, []byte("+++ after")) {
				out = append(out, line...)
			}
		}
	}
	return out
}

// describe returns the diagnostics as text, with their sites, subjects and hints.
func describe(ds []diag.Diagnostic) string {
	var b strings.Builder
	for _, d := range ds {
		fmt.Fprintf(&b, "%s[%s]: %s\n", d.Severity, d.Code, d.Message)
		for _, site := range d.Sites {
			fmt.Fprintf(&b, "  %s %s\n", site.Ref, site.Note)
		}
		for _, id := range d.Assignments {
			fmt.Fprintf(&b, "  for %s\n", id)
		}
		if d.Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", d.Hint)
		}
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

// Codes returns the codes of diagnostics, in their order.
func Codes(ds []diag.Diagnostic) []diag.Code {
	var out []diag.Code
	for _, d := range ds {
		out = append(out, d.Code)
	}
	return out
}
