package gotemplate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/gotemplate"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// templates returns #GoTemplate as JSON: for each field "path type mode" -> text.
func templates(t testing.TB, fields map[string]map[string]string) string {
	t.Helper()
	out := map[string]any{}
	for field, all := range fields {
		of := map[string]any{}
		for head, text := range all {
			words := append(strings.Fields(head), "yaml", "0644")
			if len(words) == 4 { // the path and the type
				words = []string{words[0], words[1], "0644"}
			}
			of[words[0]] = map[string]string{"template": text, "contentType": words[1], "mode": words[2]}
		}
		out[field] = of
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The templates of a team that uses the original Kalypso, without changes.
const (
	fetch = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: {{ .Environment }}-{{ .Workspace }}-{{ .DeploymentTargetName }}
  namespace: flux-system
spec:
  interval: 30s
  url: {{ .Manifests.repo }}
  ref:
    branch: {{ .Manifests.branch }}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: {{ .Environment }}-{{ .Workspace }}-{{ .DeploymentTargetName }}
  namespace: flux-system
  labels:
    workload: {{ .Workload }}
spec:
  interval: 30s
  targetNamespace: {{ .Namespace }}
  sourceRef:
    kind: GitRepository
    name: {{ .Environment }}-{{ .Workspace }}-{{ .DeploymentTargetName }}
  path: {{ .Manifests.path }}
  prune: true
`
	namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Namespace }}\n  labels:\n    {{ toYaml .Labels | nindent 4 }}\n"
	config    = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: platform-config\n  namespace: {{ .Namespace }}\ndata:\n{{ stringify .ConfigData | indent 2 }}\n"
	script    = "#!/bin/sh\nset -eu\n{{ range $k, $v := .ConfigData }}{{ if kindIs \"map\" $v }}{{ else }}export {{ $k }}={{ $v | squote }}\n{{ end }}{{ end }}ansible-pull -U {{ .Manifests.repo }} -C {{ .Manifests.branch }}\n"
)

func TestClusterType(t *testing.T) {
	kubernetes := templates(t, map[string]map[string]string{"reconciler": {"reconciler.yaml": fetch}})
	machine := templates(t, map[string]map[string]string{
		"reconciler": {"pull.sh sh 0755": script, "skipped.yaml": "# {{ .Workload }} needs none\n---\n"},
		"namespace":  {"user.json json": `{"user": {{ .Namespace | trunc 32 | quote }}}`},
		"config":     {"config/values.yaml": "{{ toYaml .ConfigData }}", "notes.txt text": "{{ .Workload }}\r\n"},
	})
	pod := model.Projected{Value: bt.Value(t, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "app"}}`)}
	test := model.Projected{Value: bt.Value(t, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "test"}}`), Hooks: []string{"test"}}
	one := []bt.Target{{Name: "app/main", Manifests: bt.Git}}
	for name, p := range map[string]bt.Platform{
		"kubernetes":    {Options: kubernetes, Targets: one},
		"original":      {Options: templates(t, map[string]map[string]string{"reconciler": {"reconciler.yaml": fetch}, "namespace": {"workspace.yaml": namespace}, "config": {"config.yaml": config}}), Targets: one},
		"machine":       {Options: machine, Targets: one, GitOps: bt.GitOps},
		"several":       {Options: kubernetes, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git}, {Name: "db/main", Manifests: bt.Git}}},
		"empty":         {Options: kubernetes},
		"empty-machine": {Options: machine},
		"rendered": {Options: `{}`, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Chart, Render: true,
			Projection: &model.Projection{Objects: []model.Projected{pod, test}}}}},
		"rendered-seen": {Options: templates(t, map[string]map[string]string{"reconciler": {"list.txt text": "{{ range .Rendered }}{{ .kind }}/{{ .metadata.name }}\n{{ end }}"}}),
			Targets: []bt.Target{{Name: "app/main", Manifests: bt.Chart, Render: true, Projection: &model.Projection{Objects: []model.Projected{pod}}}}},
		"own-kustomization": {Options: templates(t, map[string]map[string]string{"reconciler": {"reconciler.yaml": fetch,
			"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [reconciler.yaml, namespace.yaml, platform-config.yaml]\nnamePrefix: us-\n"}}), Targets: one},
		"depends-on": {Options: kubernetes, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git, DependsOn: []string{"db-main"}, Wave: 1}}},
		"service-files": {Options: kubernetes, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git,
			Service: `{"name": "default", "files": {"dashboard.json": {"json": {"title": "app"}}}}`}}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, gotemplate.New(), p)
			tree.Golden(t)
			for file, data := range tree.Files {
				if strings.HasSuffix(file, "/reconciler.yaml") && len(bt.Objects(t, data)) != 2 {
					t.Errorf("%s: %s", file, data)
				}
			}
			for target, objects := range tree.Objects {
				if want := strings.Count(text(tree, target), "kalypso.io/assignment: dev/large/"+target+"\n"); len(objects) != want {
					t.Errorf("%s lists %d objects, and %d are traced to it: %v", target, len(objects), want, objects)
				}
			}
		})
	}
}

// text returns the text of all files in the folder of a target.
func text(tree bt.Tree, target string) string {
	var b strings.Builder
	for name, data := range tree.Files {
		if strings.HasPrefix(name, target+"/") {
			b.Write(data)
		}
	}
	return b.String()
}

func TestModes(t *testing.T) {
	p := bt.Platform{Options: templates(t, map[string]map[string]string{"reconciler": {"a.sh sh 0755": "x", "b.sh sh 0644": "x"}})}
	e, ds := gotemplate.New().Emit(p.Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Git}))
	executable := map[string]bool{}
	for _, f := range e.Files {
		executable[f.Path] = f.Executable
	}
	if len(ds) > 0 || !executable["a.sh"] || executable["b.sh"] || executable["namespace.yaml"] {
		t.Errorf("got %v, %v", executable, ds)
	}
}

// A folder that cannot be written fails its assignment, and the diagnostic names the file.
func TestRefusals(t *testing.T) {
	reconciler := func(all map[string]string) string {
		return templates(t, map[string]map[string]string{"reconciler": all})
	}
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	for name, c := range map[string]struct {
		options string
		secrets bool
		code    diag.Code
		message string
	}{
		"no-reconciler": {`{}`, false, diag.BadSpec, "no template of the reconciler brings the manifests of app-main"},
		"missing-key":   {reconciler(map[string]string{"a.yaml": "a: 1\nb: {{ .Manifests.tag }}"}), false, diag.Template, `a.yaml fails in line 2, at .Manifests.tag: there is no key "tag"`},
		"path":          {reconciler(map[string]string{"../a.yaml": "a: 1"}), false, diag.BadFile, "has a path that is none"},
		"own-file":      {reconciler(map[string]string{"namespace.yaml": "a: 1"}), false, diag.BadFile, "namespace.yaml is there twice"},
		"two-fields":    {templates(t, map[string]map[string]string{"reconciler": {"a.yaml": "a: 1"}, "config": {"A.yaml": "a: 1"}}), false, diag.BadFile, "in case alone"},
		"object-twice":  {reconciler(map[string]string{"a.yaml": object, "b.yaml": object}), false, diag.BadFile, "ConfigMap x is in the folder's files twice"},
		"no-yaml":       {reconciler(map[string]string{"a.yaml": "a: [\n"}), false, diag.Template, "no YAML"},
		"secrets": {templates(t, map[string]map[string]string{"reconciler": {"a.yaml": "a: 1"}, "namespace": {"n.yaml": "b: 1"}}), true,
			diag.UndeliverableSecret, "DB_PASSWORD is a secret, and no template delivers it"},
	} {
		t.Run(name, func(t *testing.T) {
			p := bt.Platform{Options: c.options}
			a := p.Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Git})
			if c.secrets {
				a.Secrets = []backends.Secret{{Name: "DB_PASSWORD", Store: "vault", Key: "db"}}
			}
			e, ds := gotemplate.New().Emit(a)
			if len(ds) != 1 || ds[0].Code != c.code || !strings.Contains(ds[0].Message, c.message) || len(ds[0].Sites) == 0 || ds[0].Hint == "" || !slices.Equal(ds[0].Assignments, []string{"dev/large/app-main"}) {
				t.Errorf("got %+v, want %s: %s", ds, c.code, c.message)
			}
			if len(e.Files) > 0 {
				t.Error("there are files beside an error")
			}
		})
	}
}

// A template that looks at secrets is trusted to deliver them, by reference.
func TestSecrets(t *testing.T) {
	p := bt.Platform{Options: templates(t, map[string]map[string]string{
		"reconciler": {"a.yaml": "a: 1"}, "namespace": {"n.yaml": "secrets:\n{{ range .Secrets }}  {{ .name }}: {{ .store }}/{{ .key }}\n{{ end }}"},
	})}
	a := p.Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Git})
	a.Secrets = []backends.Secret{{Name: "DB_PASSWORD", Store: "vault", Key: "db"}}
	e, ds := gotemplate.New().Emit(a)
	if len(ds) > 0 || !slices.ContainsFunc(e.Files, func(f backends.File) bool { return string(f.Data) == "secrets:\n  DB_PASSWORD: vault/db\n" }) {
		t.Errorf("got %v, %v", e.Files, ds)
	}
}

func TestSupport(t *testing.T) {
	for _, kind := range model.SourceKinds {
		if s := gotemplate.New().Support(kind); (s.Referenced == "") != (kind != model.HelmPathSource) || (s.Rendered == "") != (kind != model.PackageSource) {
			t.Errorf("%s: %+v", kind, s)
		}
	}
}

// The list has no folder of another backend, and no folder without a kustomization.
func TestForeignFolder(t *testing.T) {
	p := bt.Platform{Options: `{}`}
	files, ds := gotemplate.New().Index(p.ClusterType(t), []backends.Folder{
		{DeploymentTarget: "a", Backend: "gotemplate", Shared: []byte(`{"kustomization": true}`)},
		{DeploymentTarget: "b", Backend: "gotemplate"},
		{DeploymentTarget: "c", Backend: "flux", Shared: []byte(`{"kustomization": true}`)},
	})
	if len(ds) > 0 || len(files) != 2 || !strings.HasSuffix(string(files[1].Data), "resources:\n- a\n") {
		t.Errorf("got %v, %s", ds, files[1].Data)
	}
}
