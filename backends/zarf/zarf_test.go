package zarf_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/zarf"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
	"github.com/kalypso-io/kalypso/internal/testing/zarftest"
)

const (
	defaults = `{"architecture": "amd64", "required": true}`
	all      = `{"architecture": "arm64", "version": "1.2.3-rc.1+build.5", "required": false, "default": true,
		"images": ["operator/sidecar:2"],
		"only": {"localOS": "linux", "cluster": {"architecture": "arm64", "distros": ["k3s", "rke2"]}}}`
)

var (
	digest = "sha256:" + strings.Repeat("0a", 32)
	commit = strings.Repeat("0b", 20)
)

// deployment is a Deployment of an image, as JSON.
func deployment(name, image string) string {
	return fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": %q}, "spec": {
		"selector": {"matchLabels": {"app": %[1]q}}, "template": {"metadata": {"labels": {"app": %[1]q}}, "spec": {"containers": [{"name": "main", "image": %q}]}}}}`, name, image)
}

const (
	widgets = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.test"},
		"spec": {"group": "example.test", "scope": "Cluster", "names": {"kind": "Widget", "plural": "widgets"}, "versions": []}}`
	widget = `{"apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": "app"}, "spec": {"text": "one\n---\ntwo\n"}}`
)

// pinned is an image with a digest.
var pinned = "registry.example.test/app:1.2.3@" + digest

// projected returns a projection of objects. If an object is a hook, its hooks and a space
// come before it.
func projected(t testing.TB, revision string, objects ...string) *model.Projection {
	t.Helper()
	p := &model.Projection{Revision: revision}
	for _, o := range objects {
		hooks, object, isHook := strings.Cut(o, " {")
		var events []string
		if isHook && !strings.HasPrefix(o, "{") {
			o, events = "{"+object, strings.Split(hooks, ",")
		}
		p.Objects = append(p.Objects, model.Projected{Value: bt.Value(t, o), Hooks: events})
	}
	return p
}

// targets returns targets with all kinds of manifests that a package can contain.
func targets(t testing.TB) map[string]bt.Target {
	values := bt.Value(t, `{"replicas": 2, "text": "{{ .Values.x }}", "global": {"zone": "no", "port": "8080"}}`)
	script := "#!/bin/sh\nexec agent\n"
	one := projected(t, commit, deployment("app", pinned))
	chart := projected(t, "1.2.3", deployment("app", pinned), "test "+deployment("check", "never/pulled"), "pre-install "+deployment("migrate", "migrate:1"))
	overlay := func(git model.Git, path string) model.Manifests {
		return model.Manifests{Kustomize: &model.Kustomize{Git: &git, Path: path}}
	}
	return map[string]bt.Target{
		"git":        {Manifests: bt.Git, Projection: one},
		"git-root":   {Manifests: model.Manifests{Git: &model.Git{Repo: "git@git.example.test:team/app.git", Tag: "v1", Path: "./"}}, Projection: one},
		"git-inside": {Manifests: model.Manifests{Git: &model.Git{Repo: "https://git.example.test/app/", Branch: "main", Path: "../../etc"}}, Projection: one},
		"kustomize":  {Manifests: overlay(model.Git{Repo: "ssh://git@git.example.test/app", Tag: "v1", SecretRef: "own"}, "./overlays/dev"), Projection: one},
		"helm-oci":   {Manifests: bt.Registry, Projection: chart},
		"helm-repo": {Manifests: model.Manifests{Helm: &model.Helm{Repo: "https://charts.example.test", Chart: "app", Version: ">=1.2 <2", Values: &values,
			ReleaseName: "release", PlatformValues: "global.platform"}}, Projection: chart},
		"helm-v":             {Manifests: bt.Chart, Projection: projected(t, "v1.16.1", deployment("app", pinned))},
		"rendered":           {Manifests: bt.Registry, Render: true, Projection: chart},
		"rendered-oci":       {Manifests: bt.OCI, Render: true, Projection: one},
		"rendered-kinds":     {Manifests: bt.Git, Render: true, Projection: projected(t, commit, widgets, widget, deployment("app", pinned))},
		"rendered-kind-only": {Manifests: bt.Git, Render: true, Projection: projected(t, commit, widgets)},
		"rendered-nothing":   {Manifests: bt.Git, Render: true, Projection: projected(t, commit)},
		"rendered-patched": {Manifests: model.Manifests{Kustomize: &model.Kustomize{OCI: bt.OCI.OCI, Path: "x", NamePrefix: "x-"}},
			Render: true, Projection: one},
		"package": {Manifests: model.Manifests{Package: &model.Package{Files: map[string]model.MachineFile{
			"/usr/local/bin/agent":  {URL: "https://files.example.test/agent", Digest: "sha256:" + strings.Repeat("1", 64), Mode: "0700"},
			"/usr/local/bin/start":  {Content: &script, Mode: "0755"},
			"/etc/agent/agent.conf": {Content: new(string), Mode: "0644"},
			"/etc/agent/e9":         {URL: "https://files.example.test/e9", Mode: "0600"},
		}}}},
		"namespace-service": {Manifests: bt.Git, Projection: one, Service: `{"name": "x", "deletion": "orphan", "quota": {"requests.cpu": "4"},
			"manifests": [` + deployment("proxy", "proxy:1") + `]}`},
		"flux": {Manifests: bt.Git, Render: true, Projection: projected(t, commit,
			`{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "a"}, "spec": {"interval": "1m", "url": "https://git.example.test/a", "ref": {"tag": "v1"}}}`,
			`{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": {"name": "b"}, "spec": {"interval": "1m", "url": "oci://registry.example.test/b", "ref": {"digest": "`+digest+`"}}}`)},
	}
}

// TestManifests builds every kind of manifests with the default options and with
// all options.
func TestManifests(t *testing.T) {
	for kind, target := range targets(t) {
		target.Name = "app/main"
		for name, options := range map[string]string{"defaults": defaults, "options": all} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				tree := bt.Build(t, zarf.New(), bt.Platform{Options: options, Targets: []bt.Target{target}})
				check(t, tree)
				tree.Golden(t)
			})
		}
	}
}

func TestClusterType(t *testing.T) {
	long := strings.Repeat("w", 63)
	one := projected(t, commit, deployment("app", pinned))
	chart := projected(t, "1.2.3", deployment("app", pinned))
	for name, p := range map[string]bt.Platform{
		"empty": {Options: defaults},
		"depends-on": {Options: defaults, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Git, Projection: one, DependsOn: []string{"db-main", "queue-main", "elsewhere-main"}, Wave: 2},
			{Name: "db/main", Manifests: bt.Registry, Projection: chart, DependsOn: []string{"queue-main"}, Wave: 1},
			{Name: "queue/main", Manifests: bt.Git, Projection: one},
			{Name: "alone/main", Manifests: bt.Git, Projection: one},
		}},
		"depends-on-optional": {Options: `{"architecture": "amd64", "required": false}`, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Git, Projection: one, DependsOn: []string{"db-main"}, Wave: 1},
			{Name: "db/main", Manifests: bt.Git, Projection: one},
		}},
		"long-names": {Options: defaults, Targets: []bt.Target{
			{Name: long + "/a", Manifests: bt.Registry, Projection: chart}, {Name: long + "/b", Manifests: bt.Git, Projection: one, DependsOn: []string{long + "-a"}, Wave: 1},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, zarf.New(), p)
			check(t, tree)
			tree.Golden(t)
		})
	}
}

// check checks the rules for all trees: Zarf accepts the definition, the definition lists the
// content of every folder, and the emissions list all objects.
func check(t testing.TB, tree bt.Tree) {
	t.Helper()
	if _, ok := tree.Files["zarf.yaml"]; ok || len(tree.Folders) > 0 {
		if err := zarftest.Check(tree.Files); err != nil && !strings.Contains(err.Error(), "no shasum") {
			t.Errorf("%v\n%s", err, tree.Files["zarf.yaml"])
		}
	}
	for target, listed := range tree.Objects {
		var written []backends.Object
		for _, file := range resources(t, tree, target) {
			data, ok := tree.Files[path.Join(target, file)]
			if !ok {
				t.Errorf("%s lists %s, which is not there", target, file)
			}
			for _, o := range bt.Objects(t, data) {
				written = append(written, o.ID())
				if id := o.Metadata.Annotations["kalypso.io/assignment"]; id != "dev/large/"+target {
					t.Errorf("%s %s is of assignment %q", o.Kind, o.Metadata.Name, id)
				}
			}
		}
		compare := func(a, b backends.Object) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
		slices.SortFunc(written, compare)
		if listed = slices.SortedFunc(slices.Values(listed), compare); !slices.Equal(written, listed) {
			t.Errorf("%s: the emission lists %v, and the files hold %v", target, listed, written)
		}
	}
}

func resources(t testing.TB, tree bt.Tree, target string) []string {
	t.Helper()
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(tree.Files[path.Join(target, "kustomization.yaml")], &k); err != nil || len(k.Resources) == 0 {
		t.Errorf("%s: %v", target, err)
	}
	return k.Resources
}

// Index makes a definition from only the data that Emit shares, because a kept folder has no other
// data.
func TestKept(t *testing.T) {
	p := bt.Platform{Options: defaults, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Registry, Projection: projected(t, "1.2.3", deployment("app", pinned))}}}
	tree := bt.Build(t, zarf.New(), p)
	p.Targets = nil
	files, ds := zarf.New().Index(p.ClusterType(t), tree.Folders)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	for _, f := range files {
		if string(f.Data) != string(tree.Files[f.Path]) {
			t.Errorf("%s differs:\n%s", f.Path, f.Data)
		}
	}
}

// Two runs of one platform give the same bytes, whatever the order of its targets.
func TestOrder(t *testing.T) {
	var all []bt.Target
	for name, target := range targets(t) {
		if name == "rendered-kind-only" {
			continue // of two targets with one definition, one has it
		}
		target.Name = name + "/main"
		all = append(all, target)
	}
	first := bt.Build(t, zarf.New(), bt.Platform{Options: defaults, Targets: all})
	slices.Reverse(all)
	second := bt.Build(t, zarf.New(), bt.Platform{Options: defaults, Targets: all})
	if !maps.EqualFunc(first.Files, second.Files, slices.Equal[[]byte]) {
		t.Error("the files differ")
	}
	check(t, first)
}
