package cue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/cue"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

const nomad = `{
	"files": {
		"app.nomad.hcl": {"text": "job \"app\" {}\r\n", "mode": "0644"},
		"deploy.sh": {"text": "#!/bin/sh\nnomad job run app.nomad.hcl\n", "mode": "0755"},
		"vars/app.json": {"json": {"region": "no", "count": 3}},
		"vars/app.yaml": {"yaml": {"region": "no", "count": 3}}
	}`

// All kinds of file, with and without an index, and the files of a namespace service.
func TestFiles(t *testing.T) {
	target := []bt.Target{{Name: "app/main", Manifests: bt.Git}}
	for name, p := range map[string]bt.Platform{
		"plain":  {Options: nomad + `}`, Targets: target},
		"gitops": {Options: nomad + `}`, Targets: target, GitOps: bt.GitOps},
		"index":  {Options: nomad + `, "index": {"run.sh": {"text": "for job in */*.hcl; do nomad job run \"$job\"; done\n", "mode": "0755"}, "README.md": {"text": "# Ours\n"}}}`, Targets: target},
		"empty":  {Options: `{}`},
		"service-files": {Options: nomad + `}`, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git,
			Service: `{"name": "default", "files": {"acl/policy.hcl": {"text": "namespace \"app\" {}\n"}}}`}}},
		"objects": {Options: `{"files": {"all.yaml": {"documents": [
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": "apps"}, "data": {"a": "no"}},
			{"kind": "Settings", "name": "not Kubernetes"}]}}}`, Targets: target},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, cue.New(), p)
			if name == "objects" {
				if want := []backends.Object{{Kind: "ConfigMap", Namespace: "apps", Name: "app"}}; !slices.Equal(tree.Objects["app-main"], want) {
					t.Errorf("got %v, want %v", tree.Objects, want)
				}
			}
			tree.Golden(t)
		})
	}
}

func TestModes(t *testing.T) {
	p := bt.Platform{Options: nomad + `}`}
	e, ds := cue.New().Emit(p.Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Git}))
	for _, f := range e.Files {
		if f.Executable != strings.HasSuffix(f.Path, ".sh") {
			t.Errorf("%s: executable is %v", f.Path, f.Executable)
		}
	}
	if len(ds) > 0 || len(e.Files) != 4 {
		t.Errorf("got %v, %v", e.Files, ds)
	}
}

// A file that cannot be written fails the assignment, or the cluster type's files.
func TestRefusals(t *testing.T) {
	one := func(options string) bt.Platform {
		return bt.Platform{Options: options, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git}}}
	}
	cm := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}`
	for name, c := range map[string]struct {
		platform bt.Platform
		code     diag.Code
		message  string
	}{
		"no-file":      {one(`{"files": {}}`), diag.BadFile, "no file"},
		"outside":      {one(`{"files": {"../x": {"text": ""}}}`), diag.BadFile, "has a path that is none"},
		"git":          {one(`{"files": {".git/hooks/x": {"text": ""}}}`), diag.BadFile, "has a path that is none"},
		"two-contents": {one(`{"files": {"x": {"text": "", "yaml": 1}}}`), diag.BadFile, "exactly one"},
		"object-twice": {one(`{"files": {"a.yaml": {"yaml": ` + cm + `}, "b.json": {"json": ` + cm + `}}}`), diag.BadFile, "twice"},
		"bad-object":   {one(`{"files": {"a.yaml": {"yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": false}}}}}`), diag.BadFile, "quote it"},
		"index-folder": {one(`{"files": {"x": {"text": ""}}, "index": {"App-main/x": {"text": ""}}}`), diag.BadFile, "in the place of the folder of app-main"},
		"index-path":   {one(`{"files": {"x": {"text": ""}}, "index": {"a/../b": {"text": ""}}}`), diag.BadFile, "has a path that is none"},
		"rendered-package": {bt.Platform{Options: `{"files": {"x": {"text": ""}}}`, Targets: []bt.Target{{Name: "app/main", Manifests: model.Manifests{Package: &model.Package{}}, Render: true}}},
			diag.UnsupportedManifests, "nothing to render"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, cue.New(), c.platform)
			d := tree.Diagnostics[0]
			if d.Code != c.code || !strings.Contains(d.Message, c.message) || len(d.Sites) == 0 || len(d.Assignments) == 0 && !strings.HasPrefix(name, "index-path") {
				t.Errorf("got %+v, want %s with %q, a site and the assignment", d, c.code, c.message)
			}
		})
	}
}

// The backend delivers every kind of manifests, referenced or rendered: the function decides how to
// use them. It adds the files of a playbook.
func TestSupport(t *testing.T) {
	for _, kind := range model.SourceKinds {
		if s := cue.New().Support(kind); (s.Referenced == "") != (kind != model.HelmPathSource) || (s.Rendered == "") != (kind != model.PackageSource) {
			t.Errorf("%s: %+v", kind, s)
		}
	}
	p := bt.Platform{Options: nomad + `}`}
	playbook := func(path string) *backends.Assignment {
		return p.Assignment(t, bt.Target{Name: "app/main", Render: true, Manifests: model.Manifests{Ansible: &model.Playbook{Git: bt.Git.Git, Playbook: "site.yml"}},
			Projection: &model.Projection{Files: []model.ProjectedFile{{Path: path, Data: []byte("- hosts: all\n")}}}})
	}
	e, ds := cue.New().Emit(playbook(".config/My site.yml"))
	if len(ds) > 0 || !slices.ContainsFunc(e.Files, func(f backends.File) bool { return f.Path == "manifests/.config/My site.yml" }) {
		t.Errorf("got %v, %v", e.Files, ds)
	}
	for _, path := range []string{"../x", "/x", ".git/config", "a/.GIT./x", "a\\b", "a:b", "nul", "x. "} {
		if _, ds := cue.New().Emit(playbook(path)); !slices.Equal(bt.Codes(ds), []diag.Code{diag.BadFile}) {
			t.Errorf("%q: got %v", path, ds)
		}
	}
}

// The platform team knows how the folder is pulled. Bootstrap reports this, and the place of
// the folder.
func TestBootstrap(t *testing.T) {
	for _, g := range []*model.GitOps{nil, bt.GitOps} {
		p := bt.Platform{Options: `{}`, GitOps: g}
		out, ds := cue.New().Bootstrap(p.ClusterType(t), nil)
		if len(out) > 0 || !slices.Equal(bt.Codes(ds), []diag.Code{diag.NoBootstrap}) || (g != nil) != strings.Contains(ds[0].Hint, "fleet/large of branch dev of https://git.example.test/platform/gitops") {
			t.Errorf("got %s, %v", out, ds)
		}
	}
}
