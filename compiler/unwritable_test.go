package compiler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// misled is a backend that returns additional files, in one assignment's folder or at the root of
// each cluster type.
type misled struct {
	backends.Backend
	target string // "" for the root
	paths  []string
}

func (m misled) files() []backends.File {
	var out []backends.File
	for _, p := range m.paths {
		out = append(out, backends.File{Path: p, Data: []byte("a: b\n")})
	}
	return out
}

func (m misled) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	out, ds := m.Backend.Emit(a)
	if a.DeploymentTarget == m.target {
		out.Files = append(slices.Clip(out.Files), m.files()...)
	}
	return out, ds
}

func (m misled) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File, []diag.Diagnostic) {
	out, ds := m.Backend.Index(ct, folders)
	if m.target == "" {
		out = append(slices.Clip(out), m.files()...)
	}
	return out, ds
}

// A file that cannot be written is an error of its assignment or cluster type. The build reports
// the error before it writes anything, and names the backend.
func TestUnwritableFiles(t *testing.T) {
	const target = "hello-world-functional-test"
	for _, test := range []struct {
		paths []string
		root  bool
		want  string
	}{
		{paths: []string{"../other/namespace.yaml"}, want: `path "../other/namespace.yaml" is not a relative path`},
		{paths: []string{"/etc/passwd"}, want: "is not a relative path"},
		{paths: []string{"a//b"}, want: "is not a relative path"},
		{paths: []string{""}, want: "is not a relative path"},
		{paths: []string{"x/.git/config"}, want: "is git's own"},
		{paths: []string{"a\\b"}, want: "has a backslash"},
		{paths: []string{"a", "a/b"}, want: `path "a" is a file and the folder of "a/b"`},
		{paths: []string{"namespace.yaml"}, want: `path "namespace.yaml" is given twice`},
		{root: true, paths: []string{"../drone"}, want: "is not a relative path"},
		{root: true, paths: []string{"README.md"}, want: `path "README.md" is given twice`},
		{root: true, paths: []string{target + "/more.yaml"}, want: "is in the place of an assignment's folder"},
	} {
		t.Run(strings.Join(test.paths, " "), func(t *testing.T) {
			wrapped := misled{paths: test.paths, target: target}
			if test.root {
				wrapped.target = ""
			}
			defer compiler.WrapBackends(func(b backends.Backend) backends.Backend {
				m := wrapped
				m.Backend = b
				return m
			})()
			b, err := compiler.Compile(t.Context(), compiler.Request{Dir: "../examples/hello-world", Environments: []string{"dev"}})
			if err != nil {
				t.Fatal(err)
			}
			var found []diag.Diagnostic
			for _, d := range b.Diagnostics {
				if d.Code == diag.BadFile && strings.Contains(d.Message, test.want) && strings.Contains(d.Message, "backend flux") {
					found = append(found, d)
				}
			}
			if len(found) == 0 || !test.root && (len(found) > 1 || !slices.Equal(found[0].Assignments, []string{"dev/drone/" + target})) {
				t.Fatalf("got %v, want %q", b.Diagnostics, test.want)
			}
			if s := b.Environments[0].Counts; !test.root && s.Assignments != 4 {
				t.Errorf("%d assignments are built, and one of five fails", s.Assignments)
			}
			if _, err := b.Environments[0].Tree.Files(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
