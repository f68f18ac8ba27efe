package flux_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/envsubst"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/flux"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
	"github.com/kalypso-io/kalypso/internal/testing/crdtest"
)

// clusters returns clusters with values, in order. A cluster has no values if its text is "".
func clusters(t testing.TB, values ...string) []model.Cluster {
	var out []model.Cluster
	for i, text := range values {
		c := model.Cluster{Name: fmt.Sprintf("edge-%d", i+1), ClusterType: "large"}
		if text != "" {
			v := bt.Value(t, text)
			c.Values = &v
		}
		out = append(out, c)
	}
	return out
}

// reconcile does the work of kustomize-controller for a folder of the tree. It builds the
// folder with kustomize, and replaces variables object by object, with Flux's own library. A
// variable that the ConfigMap does not have is an error.
func reconcile(t testing.TB, tree bt.Tree, folder string, variables map[string]string) map[string]map[string]any {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	for name, data := range tree.Files {
		if err := fs.WriteFile("/large/"+name, data); err != nil {
			t.Fatal(err)
		}
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, path.Join("/large", folder))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if replaced := string(text); variables != nil && r.GetAnnotations()["kustomize.toolkit.fluxcd.io/substitute"] != "disabled" {
			replaced, err = envsubst.Eval(replaced, func(name string) (string, bool) {
				value, there := variables[name]
				if !there {
					t.Errorf("%s %s asks for %s, which the cluster does not have", r.GetKind(), r.GetName(), name)
				}
				return strings.ReplaceAll(value, "\n", ""), true // as the controller does
			})
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			text = []byte(replaced)
		}
		var object map[string]any
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		out[r.GetKind()+" "+r.GetName()] = object
	}
	return out
}

// variablesOn returns the variables in a cluster's own folder.
func variablesOn(t testing.TB, tree bt.Tree, cluster string) map[string]string {
	t.Helper()
	objects := reconcile(t, tree, "clusters/"+cluster, nil)
	config := objects["ConfigMap kalypso-dev-large-cluster"]
	if config == nil {
		t.Fatalf("the folder of %s has %v", cluster, objects)
	}
	out := map[string]string{}
	for name, value := range config["data"].(map[string]any) {
		out[name] = value.(string)
	}
	return out
}

// Clusters get their own values, with their types, in the platform config and in the chart's
// values. Everything else is the same for all clusters, including dollar signs.
func TestClusterValues(t *testing.T) {
	app := bt.Value(t, `{"script": "echo ${HOME} $$ $${X} $", "${key}": "${value}", "list": ["${A}", 1]}`)
	chart := model.Manifests{Helm: &model.Helm{OCI: "oci://registry.example.test/app", Version: "1.2.3", Values: &app, PlatformValues: "platform"}}
	plain := model.Manifests{Helm: &model.Helm{OCI: "oci://registry.example.test/app", Version: "1.2.3", Values: &app}}
	p := bt.Platform{Options: defaults, GitOps: bt.GitOps, Clusters: clusters(t,
		`{"REGION": "no", "REPLICAS": 3, "ON": true, "RATIO": 1.0, "TEXT": "a\n\"b\" ${X} $$ 'c': [#"}`,
		`{"REGION": "on", "REPLICAS": 0, "ON": false, "RATIO": 0.5, "TEXT": ""}`),
		Targets: []bt.Target{
			{Name: "app/main", Manifests: chart}, {Name: "plain/main", Manifests: plain},
			{Name: "raw/main", Manifests: bt.Overlay},
			{Name: "rendered/main", Manifests: bt.Git, Render: true, Projection: bt.Projected(t, bt.Rendered...)},
		}}
	tree := bt.Build(t, flux.New(), p)
	tree.Check(t)
	t.Run("cluster-values", tree.Golden)
	platforms := []string{
		`{"REGION": "no", "REPLICAS": 3, "ON": true, "RATIO": 1.0, "TEXT": "a\n\"b\" ${X} $$ 'c': [#", "db": {"host": "db.example.test"}}`,
		`{"REGION": "on", "REPLICAS": 0, "ON": false, "RATIO": 0.5, "TEXT": "", "db": {"host": "db.example.test"}}`,
	}
	texts := []map[string]string{
		{"REGION": "no", "REPLICAS": "3", "ON": "true", "RATIO": "1.0", "TEXT": "a\n\"b\" ${X} $$ 'c': [#"},
		{"REGION": "on", "REPLICAS": "0", "ON": "false", "RATIO": "0.5", "TEXT": ""},
	}
	for i, c := range p.Clusters {
		variables := variablesOn(t, tree, c.Name)
		for _, f := range tree.Folders {
			objects := reconcile(t, tree, f.DeploymentTarget, variables)
			data := objects["ConfigMap platform-config"]["data"].(map[string]any)
			for name, want := range texts[i] {
				if data[name] != want {
					t.Errorf("%s on %s: %s is %#v, want %q", f.DeploymentTarget, c.Name, name, data[name], want)
				}
			}
			if data["db"] != `{"host":"db.example.test"}` {
				t.Errorf("%s on %s: db is %#v", f.DeploymentTarget, c.Name, data["db"])
			}
		}
		release := reconcile(t, tree, "app-main", variables)["HelmRelease app-main"]["spec"].(map[string]any)["values"]
		want := strings.TrimSuffix(app.String(), "}") + `, "platform": ` + platforms[i] + "}"
		if got, want := string(must(t, release)), string(must(t, object(t, want))); got != want {
			t.Errorf("the chart on %s gets\n%s\nwant\n%s", c.Name, got, want)
		}
		for folder, name := range map[string]string{"plain-main": "HelmRelease plain-main", "raw-main": "Kustomization raw-main", "rendered-main": "ConfigMap app"} {
			got, want := reconcile(t, tree, folder, variables)[name], reconcile(t, tree, folder, nil)[name]
			if string(must(t, got)) != string(must(t, want)) {
				t.Errorf("%s is changed on %s:\n%s", name, c.Name, must(t, got))
			}
		}
	}
}

func object(t testing.TB, text string) (v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func must(t testing.TB, v any) []byte {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// FuzzClusterValue checks that any text reaches a cluster unchanged, as a value of its own
// and as a value of all clusters.
//
// Slow: each input builds and reconciles a whole folder.
func FuzzClusterValue(f *testing.F) {
	for _, text := range []string{"no", "${X}", "$$", "$", "a: [b]\n", "\t'\"\\", "", "0x10", "$${", "é\u2028", "---\n", "- ~"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !isText(text) {
			return
		}
		own := model.StructOf(model.Field{Name: "OWN", Value: model.StringOf(text)})
		app := model.StructOf(model.Field{Name: "app", Value: model.StringOf(text)})
		p := bt.Platform{Options: defaults, GitOps: bt.GitOps, Clusters: []model.Cluster{{Name: "edge", Values: &own}}, Targets: []bt.Target{{Name: "app/main",
			Manifests: model.Manifests{Helm: &model.Helm{OCI: "oci://registry.example.test/app", Version: "1.2.3", Values: &app, PlatformValues: "platform"}}}}}
		tree := bt.Build(t, flux.New(), p)
		if len(tree.Folders) == 0 {
			t.Fatal(tree.Diagnostics)
		}
		objects := reconcile(t, tree, "app-main", variablesOn(t, tree, "edge"))
		values := objects["HelmRelease app-main"]["spec"].(map[string]any)["values"].(map[string]any)
		for where, got := range map[string]any{
			"platform config": objects["ConfigMap platform-config"]["data"].(map[string]any)["OWN"],
			"chart":           values["app"],
			"chart, platform": values["platform"].(map[string]any)["OWN"],
		} {
			if got != text {
				t.Errorf("%s has %q, want %q", where, got, text)
			}
		}
	})
}

// isText reports whether YAML can contain a string at all.
func isText(s string) bool {
	var back string
	text, err := yaml.Marshal(s)
	return err == nil && yaml.Unmarshal(text, &back) == nil && back == s && !strings.ContainsRune(s, '\uFFFD')
}

func TestClusterValuesRefusals(t *testing.T) {
	with := func(values ...string) bt.Platform {
		return bt.Platform{Options: defaults, GitOps: bt.GitOps, Clusters: clusters(t, values...), Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git}}}
	}
	alone := with(`{"A": 1}`)
	alone.GitOps = nil
	rendered := with(`{"A": 1}`)
	rendered.Targets = []bt.Target{{Name: "app/main", Render: true, Projection: bt.Projected(t, bt.Rendered...),
		Manifests: model.Manifests{Helm: &model.Helm{OCI: "oci://x/y", Version: "1.2.3", PlatformValues: "platform"}}}}
	for name, c := range map[string]struct {
		platform bt.Platform
		want     []diag.Code // of Emit, Index and Bootstrap
		message  string
	}{
		"none":     {with("", ""), nil, ""},
		"empty":    {with("{}", ""), nil, ""},
		"struct":   {with(`{"db": {"host": "x"}}`), []diag.Code{diag.ClusterValues, diag.ClusterValues, diag.ClusterValues}, "cannot give clusters a struct, as db of cluster edge-1 is"},
		"structs":  {with(`{"db": {"host": "x"}}`, `{"db": {"host": "y"}}`), []diag.Code{diag.ClusterValues, diag.ClusterValues, diag.ClusterValues}, "as db of cluster edge-1 and 1 more is"},
		"null":     {with(`{"A": null}`), []diag.Code{diag.ClusterValues, diag.ClusterValues, diag.ClusterValues}, "cannot take A away on cluster edge-1 alone"},
		"list":     {with(`{"a": [1]}`), []diag.Code{diag.ClusterValues, diag.ClusterValues, diag.ClusterValues}, "a list"},
		"name":     {with(`{"db.host": "x"}`), []diag.Code{diag.ClusterValues, diag.ClusterValues, diag.ClusterValues}, `a value named "db.host"`},
		"uneven":   {with(`{"A": 1, "B": 2}`, `{"A": 1}`), []diag.Code{diag.ClusterValues, diag.ClusterValues, diag.ClusterValues}, "B has no value on cluster edge-2"},
		"absent":   {with(`{"A": 1}`, ""), []diag.Code{diag.ClusterValues, diag.ClusterValues, diag.ClusterValues}, "A has no value on cluster edge-2"},
		"alone":    {alone, []diag.Code{diag.NeedsGitOps, diag.NeedsGitOps}, "values to single clusters"},
		"rendered": {rendered, []diag.Code{diag.NoEffect, diag.ClusterValues}, "the same on all clusters"},
		"no name":  {with(`{"A": 1}`), []diag.Code{diag.ClusterValues}, "pulls a folder of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, flux.New(), c.platform)
			if got := bt.Codes(tree.Diagnostics); !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v: %+v", got, c.want, tree.Diagnostics)
			}
			if len(c.want) == 0 {
				return
			}
			if d := tree.Diagnostics[0]; !strings.Contains(d.Message, c.message) || len(d.Sites) == 0 || d.Hint == "" {
				t.Errorf("got %+v, want a message with %q", d, c.message)
			}
		})
	}
	a := with(`{"A": 1}`).Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Git})
	a.ConfigFormat = model.Env
	if _, ds := flux.New().Emit(a); !slices.Equal(bt.Codes(ds), []diag.Code{diag.ClusterValues}) || !strings.Contains(ds[0].Message, "of the format env") {
		t.Errorf("got %+v", ds)
	}
}

// A cluster's root is its own folder.
func TestClusterBootstrap(t *testing.T) {
	p := bt.Platform{Options: defaults, GitOps: bt.GitOps, Clusters: clusters(t, `{"A": 1}`, `{"A": 2}`)}
	ct := p.ClusterType(t)
	ct.Cluster = "edge-2"
	text, ds := flux.New().Bootstrap(ct, nil)
	if len(ds) > 0 || !strings.Contains(string(text), "path: ./fleet/large/clusters/edge-2\n") {
		t.Errorf("got %v\n%s", ds, text)
	}
}

// Flux does not replace variables in a folder that was kept from before clusters had values.
// A folder that needs missing values is an error, and does not get empty ones.
func TestClusterValuesOfKeptFolders(t *testing.T) {
	p := bt.Platform{Options: defaults, GitOps: bt.GitOps, Clusters: clusters(t, `{"A": 1}`)}
	index := func(shared string) (string, []diag.Diagnostic) {
		files, ds := flux.New().Index(p.ClusterType(t), []backends.Folder{{DeploymentTarget: "app-main", Namespace: "x", Backend: "flux", Shared: []byte(shared)}})
		for _, f := range files {
			if f.Path == backends.AssignmentsFile {
				return string(f.Data), ds
			}
		}
		return "", ds
	}
	if text, ds := index(`{}`); len(ds) > 0 || strings.Contains(text, "postBuild") {
		t.Errorf("got %v\n%s", ds, text)
	}
	if text, ds := index(`{"variables": ["A"]}`); len(ds) > 0 || !strings.Contains(text, "postBuild") {
		t.Errorf("got %v\n%s", ds, text)
	}
	if _, ds := index(`{"variables": ["A", "B"]}`); !slices.Equal(bt.Codes(ds), []diag.Code{diag.ClusterValues}) || len(ds[0].Assignments) != 1 {
		t.Errorf("got %+v", ds)
	}
}

// A cluster with an entry fetches its entry, the folder of its cluster type, and the folders of the
// type's classes. The test applies the rules with the library that Flux uses. Without an entry, a
// cluster fetches everything.
func TestClusterFetches(t *testing.T) {
	for _, gitops := range []model.GitOps{
		*bt.GitOps, *bt.Registered,
		{Repo: bt.GitOps.Repo, Branch: "dev"},
		{Repo: bt.GitOps.Repo, Branch: "dev", Path: "of all/[a]*!/x"},
	} {
		p := bt.Platform{Options: defaults, GitOps: &gitops, Clusters: clusters(t, "", "")}
		ct := p.ClusterType(t)
		ct.Folder, ct.Entries, ct.Cluster = "large.cameras", true, "edge-2"
		text, ds := flux.New().Bootstrap(ct, nil)
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		if n, err := crdtest.Check(text); n != 2 || err != nil {
			t.Errorf("%d objects, %v", n, err)
		}
		var source struct{ Spec struct{ Ignore string } }
		if err := yaml.Unmarshal(bt.Objects(t, text)[0].Text, &source); err != nil {
			t.Fatal(err)
		}
		var patterns []gitignore.Pattern
		for rule := range strings.Lines(source.Spec.Ignore) {
			patterns = append(patterns, gitignore.ParsePattern(strings.TrimSuffix(rule, "\n"), nil))
		}
		entry := backends.EntryDir("edge-2")
		for file, fetched := range map[string]bool{
			entry + "/kustomization.yaml":                 true,
			"large/assignments.yaml":                      true,
			"large/app-main/namespace.yaml":               true,
			"large.cameras/app-main/namespace.yaml":       true,
			"large.a.b/kustomization.yaml":                true,
			backends.EntryDir("edge-1") + "/a.yaml":       false,
			path.Dir(entry) + "/another/a.yaml":           false,
			"larger/kustomization.yaml":                   false,
			"small/large/app-main/namespace.yaml":         false,
			".kalypso/provenance.json":                    false,
			"../" + entry + "/kustomization.yaml":         gitops.Path == "",
			"../large/app-main/namespace.yaml":            gitops.Path == "",
			"small/" + entry + "/kustomization.yaml":      false,
			"small.cameras/app-main/platform-config.yaml": false,
		} {
			parts := strings.Split(strings.TrimPrefix(path.Join("/", gitops.Path, file), "/"), "/")
			if got := !gitignore.NewMatcher(patterns).Match(parts, false); got != fetched {
				t.Errorf("%s is fetched: %v, want %v by\n%s", strings.Join(parts, "/"), got, fetched, source.Spec.Ignore)
			}
		}
	}
	p := bt.Platform{Options: defaults, GitOps: bt.GitOps}
	if text, ds := flux.New().Bootstrap(p.ClusterType(t), nil); len(ds) > 0 || strings.Contains(string(text), "ignore") {
		t.Errorf("got %v\n%s", ds, text)
	}
}
