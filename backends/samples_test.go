package backends_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	list "github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/backends/ansible"
	"github.com/kalypso-io/kalypso/backends/argocd"
	"github.com/kalypso-io/kalypso/backends/cue"
	"github.com/kalypso-io/kalypso/backends/fleet"
	"github.com/kalypso-io/kalypso/backends/flux"
	"github.com/kalypso-io/kalypso/backends/gotemplate"
	"github.com/kalypso-io/kalypso/backends/zarf"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// sample is a backend with a reconciler of it as the schema completes it, and a
// namespace service that delivers secrets.
type sample struct {
	backends.Backend
	options, service string
}

const (
	external = `{"name": "default", "deletion": "delete", "secrets": {"externalSecret": {"storeKind": "ClusterSecretStore", "refreshInterval": "1h"}}}`
	lookup   = `{"name": "default", "deletion": "delete", "secrets": {"lookup": {"plugin": "ansible.builtin.file", "terms": ["$(key)"]}}}`
)

// all are the backends, in the order of the schema.
var all = []sample{
	{flux.New(), `{"interval": "10m", "namespace": "flux-system", "prune": true, "wait": true}`, external},
	{argocd.New(), `{"namespace": "argocd", "syncPolicy": {"automated": {"prune": true, "selfHeal": true}}}`, external},
	{zarf.New(), `{"architecture": "amd64", "required": true}`, external},
	{ansible.New(), `{"interval": "15m", "maxFailPercentage": 0, "python": "/usr/bin/python3", "stateDirectory": "/var/lib/kalypso"}`, lookup},
	{fleet.New(), `{"namespace": "fleet-default", "pollingInterval": "1m", "correctDrift": true}`, external},
	{gotemplate.New(), `{"reconciler": {"settings.yaml": {"contentType": "yaml", "mode": "0644", "template": ` + bt.JSON(settings) + `}}}`, external},
	{cue.New(), `{"files": {"run.json": {"mode": "0644", "json": {"DB_PASSWORD": {"store": "vault", "key": "team/database-credentials"}}}}}`, external},
}

const settings = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: {{ .Namespace }}
  labels: {app.kubernetes.io/managed-by: kalypso}
  annotations: {kalypso.io/assignment: "{{ .Environment }}/{{ .ClusterType }}/{{ .DeploymentTargetName }}"}
data: {}
`

// The tests cover every backend in the schema.
func TestAll(t *testing.T) {
	text, err := os.ReadFile("../schema/reconciler.cue")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`#Reconciler: \{\s+@oneOf\((.+)\)`).FindSubmatch(text)
	if m == nil {
		t.Fatal("#Reconciler has no @oneOf")
	}
	var names []string
	for _, b := range all {
		names = append(names, b.Name())
		if !strings.Contains(string(text), "\n\t"+b.Name()+"?: #") {
			t.Errorf("#Reconciler has no field %s", b.Name())
		}
	}
	if want := strings.Split(string(m[1]), ", "); !slices.Equal(names, want) {
		t.Errorf("tested are %v, and the schema has %v", names, want)
	}
	var listed []string
	for _, b := range list.List() {
		listed = append(listed, b.Name())
	}
	slices.Sort(names)
	if slices.Sort(listed); !slices.Equal(names, listed) {
		t.Errorf("tested are %v, and backends/all lists %v", names, listed)
	}
}

// TestFiles checks that each backend has golden files, a page, and a row on the page of all.
func TestFiles(t *testing.T) {
	const pages = "../docs/reconcilers/"
	index, err := os.ReadFile(pages + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if golden, err := os.ReadDir(b.Name() + "/testdata"); err != nil || len(golden) == 0 {
			t.Errorf("backends/%s has no golden files: %v", b.Name(), err)
		}
		if _, err := os.Stat(pages + b.Name() + ".md"); err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(index), "\n| [`"+b.Name()+"`]("+b.Name()+".md) | ") {
			t.Errorf("the first table of %sREADME.md has no row for %s", pages, b.Name())
		}
	}
}

// target returns a plain deployment target with manifests of a kind, and with the result of
// rendering them.
func target(t testing.TB, kind model.SourceKind, render bool) bt.Target {
	t.Helper()
	script := "#!/bin/sh\nexec app\n"
	git := model.Git{Repo: "https://git.example.test/app", Commit: strings.Repeat("0b", 20)}
	name := strings.NewReplacer("helm.git", "monorepo", "helm.path", "local").Replace(string(kind))
	out := bt.Target{Name: name + "/plain", Render: render, Manifests: map[model.SourceKind]model.Manifests{
		model.GitSource:       bt.Git,
		model.OCISource:       bt.OCI,
		model.HelmSource:      bt.Chart,
		model.HelmGitSource:   {Helm: &model.Helm{Git: &model.Git{Repo: "https://git.example.test/app", Branch: "main", Path: "charts/app"}, PlatformValues: "platform"}},
		model.HelmPathSource:  {Helm: &model.Helm{Path: "charts/app"}},
		model.KustomizeSource: {Kustomize: &model.Kustomize{Git: &git, Path: "overlays/dev"}},
		model.PackageSource:   {Package: &model.Package{Files: map[string]model.MachineFile{"/opt/app/run.sh": {Content: &script, Mode: "0600"}}}},
		model.AnsibleSource:   {Ansible: &model.Playbook{Git: &git, Playbook: "site.yml"}},
	}[kind]}
	if out.Manifests.Kind() != kind {
		t.Fatalf("there is no sample of %s", kind)
	}
	if render {
		out.Name = name + "/rendered"
	}
	switch kind {
	case model.PackageSource:
	case model.AnsibleSource:
		out.Projection = &model.Projection{Revision: git.Commit, Files: []model.ProjectedFile{{Path: "site.yml", Data: []byte("---\n- hosts: all\n")}}}
	default:
		out.Projection = bt.Projected(t, workload)
		if kind != model.HelmSource && kind != model.HelmPathSource {
			out.Projection.Revision = git.Commit
		}
	}
	return out
}

// workload is a Deployment without a namespace.
const workload = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "app"}, "spec": {"selector": {"matchLabels": {"app": "app"}},
	"template": {"metadata": {"labels": {"app": "app"}}, "spec": {"containers": [{"name": "app", "image": "registry.example.test/app:1.2.3"}]}}}}`

// reason returns why a backend does not deliver manifests of a kind. It returns "" if the backend
// delivers them.
func reason(b backends.Backend, kind model.SourceKind, render bool) string {
	s := b.Support(kind)
	if render {
		return s.Rendered
	}
	return s.Referenced
}

// ways are the two ways to deliver manifests: by reference, and rendered.
var ways = []bool{false, true}

func wayName(render bool) string {
	if render {
		return "rendered"
	}
	return "referenced"
}
