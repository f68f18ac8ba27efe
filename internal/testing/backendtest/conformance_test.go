package backendtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// recorder is a test that keeps its failures for itself.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// careless is a backend that writes one file into each folder, and one that names
// the folders that it has ever seen.
type careless struct {
	backends.Backend
	file backends.File
	seen map[string]bool
}

func (careless) Name() string { return "careless" }

func (careless) Support(model.SourceKind) backends.Support { return backends.Support{} }

func (c careless) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	f := c.file
	f.Data = []byte(strings.ReplaceAll(string(f.Data), "DIGEST", string(a.Digest)))
	return backends.Emission{Files: []backends.File{f}}, nil
}

func (c careless) Index(_ *backends.ClusterType, folders []backends.Folder) ([]backends.File, []diag.Diagnostic) {
	text := "folders:"
	for _, f := range folders {
		c.seen[f.DeploymentTarget] = true
	}
	for name := range c.seen {
		text += " " + name
	}
	return []backends.File{{Path: "README.md", Data: []byte(text)}}, nil
}

func (careless) Bootstrap(*backends.ClusterType, []backends.Folder) ([]byte, []diag.Diagnostic) {
	return nil, nil
}

// Each check finds the mistake that it looks for.
func TestConformsFinds(t *testing.T) {
	object := func(metadata, rest string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n" + metadata + rest
	}
	traced := "  labels: {app.kubernetes.io/managed-by: kalypso}\n  annotations: {kalypso.io/assignment: dev/large/app-main}\n"
	for name, c := range map[string]struct{ path, data, want string }{
		"nothing":         {"x.yaml", object(traced, ""), ""},
		"parent":          {"../x.yaml", object(traced, ""), "no path in the folder"},
		"inner parent":    {"a/../x.yaml", object(traced, ""), "no path in the folder"},
		"absolute":        {"/x.yaml", object(traced, ""), "no path in the folder"},
		"git":             {".Git/config", "x", "no path in the folder"},
		"empty file":      {"x.yaml", " \n", "is empty"},
		"empty document":  {"x.yaml", object(traced, "---\n# nothing\n"), "holds nothing"},
		"untraced":        {"x.yaml", object("  labels: {app.kubernetes.io/managed-by: kalypso}\n", ""), "is for assignment \"\""},
		"unmanaged":       {"x.yaml", object("  annotations: {kalypso.io/assignment: dev/large/app-main}\n", ""), "does not say that kalypso made it"},
		"someone else":    {"x.yaml", object(strings.ReplaceAll(traced, "app-main", "db-main"), ""), "is for assignment \"dev/large/db-main\""},
		"long namespace":  {"x.yaml", object(traced+"  namespace: "+strings.Repeat("x", 64)+"\n", ""), "too long a name"},
		"long label":      {"x.yaml", object(strings.ReplaceAll(traced, "kalypso}", "kalypso, a: "+strings.Repeat("x", 64)+"}"), ""), "label a="},
		"secret":          {"x.yaml", object(traced, "stringData: {password: hunter2}\n"), "holds its data"},
		"digest":          {"x.yaml", object(traced, "type: DIGEST\n"), "holds the digest"},
		"digest twice":    {"platform-config.yaml", object(traced, "a: DIGEST\nb: DIGEST\n"), "holds the digest"},
		"digest in place": {"platform-config.yaml", object(traced, "a: DIGEST\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			b := careless{file: backends.File{Path: c.path, Data: []byte(c.data)}, seen: map[string]bool{}}
			tree := Build(r, b, Platform{Options: "{}", Targets: []Target{{Name: "app/main", Manifests: Git}}})
			tree.Conforms(r)
			var found bool
			for _, failure := range r.failures {
				found = found || c.want != "" && strings.Contains(failure, c.want)
			}
			if found != (c.want != "") {
				t.Errorf("got %q, want %q", r.failures, c.want)
			}
			if !strings.Contains(strings.Join(r.failures, "\n"), "README.md still names app-main") {
				t.Errorf("got %q, and nothing about what is left behind", r.failures)
			}
		})
	}
}
