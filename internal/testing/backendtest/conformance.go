package backendtest

import (
	"bytes"
	"path"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/internal/testing/crdtest"
)

// Conforms checks the conditions that a tree of every backend must meet:
//
//   - No document is empty.
//   - Names are within Kubernetes' limits.
//   - Each object of a folder names its assignment.
//   - No object carries a secret.
//   - If only the values change, only the platform config changes. A machine's config has no place for
//     annotations. There, assignment.yml has the digest.
//
// Build has already checked that runs are equal, that paths stay in their folder, that every
// kustomization.yaml builds, and that an assignment leaves nothing behind.
func (tree Tree) Conforms(t testing.TB) {
	t.Helper()
	for name, data := range tree.Files {
		if path.Ext(name) != ".yaml" || path.Base(path.Dir(name)) == "templates" { // a chart's templates
			continue
		}
		checkDocuments(t, name, data)
		for _, o := range kubernetesObjects(data) {
			checkObject(t, name, o)
			tree.checkTraceable(t, name, o)
		}
	}
	for _, o := range kubernetesObjects(tree.Bootstrap) {
		checkObject(t, "bootstrap", o)
	}
	tree.checkDigests(t)
}

// checkFile checks that a tree accepts a file: its path is relative and clean, and a YAML file is
// not empty.
func checkFile(t testing.TB, folder string, f backends.File) {
	t.Helper()
	clean := f.Path == path.Clean(f.Path) && !path.IsAbs(f.Path) && f.Path != "." &&
		!strings.ContainsAny(f.Path, "\\:\x00")
	for _, part := range strings.Split(f.Path, "/") {
		clean = clean && part != ".." && !strings.EqualFold(part, ".git")
	}
	if !clean {
		t.Errorf("%s: %q is no path in the folder", folder, f.Path)
	}
	if path.Ext(f.Path) == ".yaml" && len(bytes.TrimSpace(f.Data)) == 0 { // a machine's own file may be
		t.Errorf("%s: %s is empty", folder, f.Path)
	}
}

// checkRemoval searches the root files of the tree without an assignment for its name and its
// namespace. Neither may occur.
func checkRemoval(t testing.TB, b backends.Backend, ct *backends.ClusterType, folders []backends.Folder) {
	t.Helper()
	for i, gone := range folders {
		var rest []backends.Folder
		for j, f := range folders {
			if i == j {
				continue
			}
			// Whatever depended on it was changed before it could go.
			f.DependsOn = nil
			rest = append(rest, f)
		}
		trace := regexp.MustCompile(`(^|[^a-z0-9-])(` + regexp.QuoteMeta(gone.DeploymentTarget) + `|` +
			regexp.QuoteMeta(gone.Namespace) + `)($|[^a-z0-9-])`)
		files, _ := b.Index(ct, rest)
		for _, f := range files {
			if at := trace.Find(f.Data); at != nil {
				t.Errorf("%s still names %s, which is gone: %q", f.Path, gone.DeploymentTarget, at)
			}
		}
	}
}

// checkDocuments finds empty documents of a YAML stream. kustomize ignores them, and kubectl and
// others do not.
func checkDocuments(t testing.TB, name string, data []byte) {
	t.Helper()
	for _, doc := range regexp.MustCompile(`(?m)^---$`).Split(strings.TrimPrefix(string(data), "---\n"), -1) {
		var v any
		if err := yaml.Unmarshal([]byte(doc), &v); err != nil || v == nil {
			t.Errorf("%s has a document that holds nothing (%v):\n%s", name, err, doc)
		}
	}
}

// kubernetesObjects returns the documents of a stream that are objects for a cluster. It leaves
// out files of other tools.
func kubernetesObjects(stream []byte) []Object {
	docs, err := crdtest.Split(stream)
	if err != nil {
		return nil
	}
	var out []Object
	for _, doc := range docs {
		o := Object{Text: doc}
		if yaml.Unmarshal(doc, &o) != nil || o.Kind == "" || o.Metadata.Name == "" {
			continue
		}
		if group := o.ID().Group; group != "zarf.dev" && group != "kustomize.config.k8s.io" {
			out = append(out, o)
		}
	}
	return out
}

// checkObject compares an object with the limits of names, and against secrets in plain
// text.
func checkObject(t testing.TB, file string, o Object) {
	t.Helper()
	if len(o.Metadata.Name) > validation.DNS1123SubdomainMaxLength ||
		len(o.Metadata.Namespace) > validation.DNS1123LabelMaxLength {
		t.Errorf("%s: %s %s/%s has too long a name", file, o.Kind, o.Metadata.Namespace, o.Metadata.Name)
	}
	for key, value := range o.Metadata.Labels {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			t.Errorf("%s: label %s=%s of %s %s: %v", file, key, value, o.Kind, o.Metadata.Name, problems)
		}
	}
	for key := range o.Metadata.Annotations {
		if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
			t.Errorf("%s: annotation %s of %s %s: %v", file, key, o.Kind, o.Metadata.Name, problems)
		}
	}
	// The objects of a rendered chart belong to the application. Emit warns about its secrets.
	if o.Kind == "Secret" && path.Base(file) != "manifests.yaml" &&
		regexp.MustCompile(`(?m)^(data|stringData):`).Match(o.Text) {
		t.Errorf("%s: Secret %s holds its data", file, o.Metadata.Name)
	}
}

// checkTraceable checks that an object names kalypso as its maker, and its assignment. An object
// at the cluster type's root may be for several.
func (tree Tree) checkTraceable(t testing.TB, file string, o Object) {
	t.Helper()
	if o.Metadata.Labels["app.kubernetes.io/managed-by"] != "kalypso" {
		t.Errorf("%s: %s %s does not say that kalypso made it", file, o.Kind, o.Metadata.Name)
	}
	target, _, _ := strings.Cut(file, "/")
	_, inFolder := tree.Objects[target]
	assignment := o.Metadata.Annotations["kalypso.io/assignment"]
	if inFolder && assignment != "dev/large/"+target {
		t.Errorf("%s: %s %s is for assignment %q", file, o.Kind, o.Metadata.Name, assignment)
	}
	if _, there := tree.Objects[strings.TrimPrefix(assignment, "dev/large/")]; assignment != "" && !there {
		t.Errorf("%s: %s %s is for %s, which is no assignment", file, o.Kind, o.Metadata.Name, assignment)
	}
}

// checkDigests looks for the digests of values. A platform config may hold its own,
// once: anything else that did would change with every value.
func (tree Tree) checkDigests(t testing.TB) {
	t.Helper()
	for name, data := range tree.Files {
		for target, digest := range tree.Digests {
			n := bytes.Count(data, []byte(digest))
			if n > 1 || n == 1 && !strings.HasPrefix(path.Base(name), "platform-config") && path.Base(name) != "assignment.yml" {
				t.Errorf("%s holds the digest of the values of %s", name, target)
			}
		}
	}
}
