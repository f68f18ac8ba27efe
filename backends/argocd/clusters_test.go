package argocd_test

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/argocd"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

const each = `{"namespace": "argocd", "clusters": "inventory", ` + automationOption + `}`

func cluster(t testing.TB, name, values string) model.Cluster {
	c := model.Cluster{Name: name, ClusterType: "large"}
	if values != "" {
		v := bt.Value(t, values)
		c.Values = &v
	}
	return c
}

// expand does the work of Argo CD's ApplicationSet controller for a list generator. It reads every
// string of the template as a template of its own, leaves out keys that are null, and merges the
// patch.
func expand(t testing.TB, o bt.Object) [][]byte {
	t.Helper()
	var set struct {
		Spec struct {
			GoTemplate        bool
			GoTemplateOptions []string
			Generators        []struct {
				List struct{ Elements []map[string]any }
			}
			Template      map[string]any
			TemplatePatch string
		}
	}
	if err := yaml.Unmarshal(o.Text, &set); err != nil {
		t.Fatal(err)
	}
	if !set.Spec.GoTemplate || !slices.Contains(set.Spec.GoTemplateOptions, "missingkey=error") || len(set.Spec.Generators) != 1 {
		t.Errorf("%s reads a missing parameter as nothing:\n%s", o.Metadata.Name, o.Text)
	}
	var out [][]byte
	for _, e := range set.Spec.Generators[0].List.Elements {
		render := func(text string) string {
			parsed, err := template.New("").Funcs(sprig.TxtFuncMap()).Option(set.Spec.GoTemplateOptions...).Parse(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			var b bytes.Buffer
			if err := parsed.Execute(&b, e); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			return b.String()
		}
		app := rendered(clone(set.Spec.Template), render).(map[string]any)
		var patch map[string]any
		if err := yaml.Unmarshal([]byte(render(set.Spec.TemplatePatch)), &patch); err != nil {
			t.Fatal(err)
		}
		app = merged(app, patch).(map[string]any)
		app["apiVersion"], app["kind"] = "argoproj.io/v1alpha1", "Application"
		app["metadata"].(map[string]any)["namespace"] = o.Metadata.Namespace
		text, err := yaml.Marshal(app)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	return out
}

// rendered replaces each string of a value.
func rendered(v any, render func(string) string) any {
	switch v := v.(type) {
	case string:
		return render(v)
	case []any:
		for i := range v {
			v[i] = rendered(v[i], render)
		}
	case map[string]any:
		for key := range v {
			if v[key] = rendered(v[key], render); v[key] == nil {
				delete(v, key)
			}
		}
	}
	return v
}

// clone is a copy, so that a template can be rendered again.
func clone(v any) any {
	text, err := yaml.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := yaml.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

func merged(base, over any) any {
	b, ok := base.(map[string]any)
	o, also := over.(map[string]any)
	if !ok || !also {
		return over
	}
	out := maps.Clone(b)
	for key, v := range o {
		if out[key] = merged(out[key], v); v == nil {
			delete(out, key)
		}
	}
	return out
}

// Each cluster gets its own Applications, which Argo CD accepts, with its own values.
func TestClusters(t *testing.T) {
	app := bt.Value(t, `{"greeting": "{{ .Release.Name }}", "n": 1, "platform": {}}`)
	chart := model.Manifests{Helm: &model.Helm{OCI: "oci://registry.example.test/app", Version: "1.2.3", Values: &app, PlatformValues: "platform.own"}}
	plain := []model.Cluster{cluster(t, "edge-1", ""), cluster(t, "edge-2", "")}
	differ := []model.Cluster{cluster(t, "edge-1", `{"REGION": "se", "db": {"port": 5432}}`), cluster(t, "edge-2", ""), cluster(t, "edge-3", `{"REPLICAS": 3}`)}
	targets := []bt.Target{
		{Name: "app/main", Manifests: chart}, {Name: "raw/main", Manifests: bt.Git, DependsOn: []string{"app-main"}, Wave: 1},
		{Name: "rendered/main", Manifests: bt.Chart, Render: true, Projection: bt.Projected(t, bt.Rendered...)},
	}
	long := strings.Repeat("w", 63)
	for name, p := range map[string]bt.Platform{
		"clusters":          {Options: each, GitOps: bt.GitOps, Clusters: plain, Targets: []bt.Target{targets[2], {Name: "raw/main", Manifests: bt.Git}}},
		"clusters-values":   {Options: each, GitOps: bt.GitOps, Clusters: differ, Targets: targets},
		"clusters-registry": {Options: each, GitOps: bt.Registered, Clusters: differ, Targets: targets[:1]},
		"clusters-long":     {Options: each, GitOps: bt.GitOps, Clusters: []model.Cluster{cluster(t, long, "")}, Targets: []bt.Target{{Name: long + "/a", Manifests: bt.Git}}},
		"clusters-braces": {Options: strings.Replace(each, "{", `{"ignoreDifferences": [{"kind": "Secret", "jqPathExpressions": [".x | {{a}}"]}], `, 1),
			GitOps: bt.GitOps, Clusters: plain, Targets: []bt.Target{{Name: "raw/main", Manifests: bt.Git}}},
		"clusters-none": {Options: each, GitOps: bt.GitOps, Clusters: plain},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, argocd.New(), p)
			tree.Check(t)
			checkArgoCD(t, tree)
			tree.Golden(t)
		})
	}
}

// Each cluster gets its own values, with their types. Text that looks like a template to Argo CD
// stays as it is.
func TestClustersValues(t *testing.T) {
	app := bt.Value(t, `{"greeting": "{{ .Release.Name }}", "n": 1}`)
	chart := model.Manifests{Helm: &model.Helm{OCI: "oci://registry.example.test/app", Version: "1.2.3", Values: &app, PlatformValues: "platform"}}
	tree := bt.Build(t, argocd.New(), bt.Platform{Options: each, GitOps: bt.GitOps,
		Clusters: []model.Cluster{cluster(t, "edge-1", `{"REGION": "no", "ON": true, "db": {"port": 5432}, "note": "{{ x }}"}`), cluster(t, "edge-2", ""), cluster(t, "edge-3", `{"REGION": null, "db": {"host": null}}`)},
		Targets:  []bt.Target{{Name: "app/main", Manifests: chart}}})
	apps := parse(t, backends.File{Data: tree.Files["app-main/reconciler.yaml"]}).applications
	if len(apps) != 6 {
		t.Fatalf("got %v", slices.Sorted(maps.Keys(apps)))
	}
	for name, want := range map[string]string{
		"dev-large-app-main-edge-1": `{"greeting": "{{ .Release.Name }}", "n": 1, "platform": {"REGION": "no", "REPLICAS": 3, "ON": true, "db": {"host": "db.example.test", "port": 5432}, "note": "{{ x }}"}}`,
		"dev-large-app-main-edge-2": `{"greeting": "{{ .Release.Name }}", "n": 1, "platform": {"REGION": "no", "REPLICAS": 3, "db": {"host": "db.example.test"}}}`,
		// As in Helm, null removes a default of the chart. As text, Argo CD keeps it.
		"dev-large-app-main-edge-3": `{"greeting": "{{ .Release.Name }}", "n": 1, "platform": {"REGION": null, "REPLICAS": 3, "db": {"host": null}}}`,
	} {
		var values any
		read(t, []byte(want), &values)
		got, _ := yaml.Marshal(apps[name].values(t))
		if want, _ := yaml.Marshal(values); !bytes.Equal(got, want) {
			t.Errorf("%s gets\n%s\nwant\n%s", name, got, want)
		}
	}
	patches := apps["dev-large-app-main-assignment-edge-1"].Spec.Source.Kustomize.Patches
	if len(patches) != 1 {
		t.Fatalf("got %v", patches)
	}
	var patch struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Data     map[string]string
	}
	read(t, []byte(patches[0].Patch), &patch)
	want := map[string]string{"ON": "true", "db": `{"host":"db.example.test","port":5432}`, "note": "{{ x }}"}
	if patch.Metadata.Name != "platform-config" || patch.Metadata.Namespace != "dev-large-app-main" || !maps.Equal(patch.Data, want) {
		t.Errorf("got %+v, want only what differs", patch)
	}
	patches = apps["dev-large-app-main-assignment-edge-3"].Spec.Source.Kustomize.Patches
	if len(patches) != 1 || !strings.HasSuffix(patches[0].Patch, "data:\n  REGION: null\n  db: null\n") {
		t.Errorf("got %v", patches)
	}
	if patches := apps["dev-large-app-main-assignment-edge-2"].Spec.Source.Kustomize.Patches; len(patches) > 0 {
		t.Errorf("got %v", patches)
	}
}

// Argo CD loses a null in valuesObject. Values with a null are therefore text, wherever the null
// comes from. Text in them that looks like a template stays as it is.
func TestNullInChartValues(t *testing.T) {
	chart := func(values string) model.Manifests {
		v := bt.Value(t, values)
		return model.Manifests{Helm: &model.Helm{OCI: "oci://registry.example.test/app", Version: "1.2.3", Values: &v, PlatformValues: "platform"}}
	}
	const platform = `, "platform": {"REGION": "no", "REPLICAS": 3, "db": {"host": "db.example.test"}}}`
	edge := []model.Cluster{cluster(t, "edge-1", ""), cluster(t, "edge-2", "")}
	for _, values := range []string{`{"probe": {"httpGet": null, "port": "0x10"}`, `{"list": [1, null]`, `{"list": [{"a": null}], "n": 1e3, "note": "{{ .x }}\n${ y } '\""`} {
		var want any
		read(t, []byte(values+platform), &want)
		for name, p := range map[string]bt.Platform{"Application": {Options: defaults}, "ApplicationSet": {Options: each, Clusters: edge}} {
			p.GitOps, p.Targets = bt.GitOps, []bt.Target{{Name: "app/main", Manifests: chart(values + "}")}}
			tree := bt.Build(t, argocd.New(), p)
			tree.Check(t)
			checkArgoCD(t, tree)
			for _, app := range parse(t, backends.File{Data: tree.Files["app-main/reconciler.yaml"]}).applications {
				if !strings.HasPrefix(app.Spec.Source.RepoURL, "oci:") {
					continue // it delivers the folder
				}
				if got := app.values(t); app.Spec.Source.Helm.Values == "" || !reflect.DeepEqual(got, want) {
					t.Errorf("%s gets %v, want %v", name, got, want)
				}
			}
		}
	}
}

func TestClustersRefusals(t *testing.T) {
	one := []model.Cluster{cluster(t, "edge-1", `{"A": 1}`)}
	chart := model.Manifests{Helm: &model.Helm{OCI: "oci://x/y", Version: "1.2.3", PlatformValues: "platform"}}
	target := func(m model.Manifests) []bt.Target { return []bt.Target{{Name: "app/main", Manifests: m}} }
	for name, c := range map[string]struct {
		platform bt.Platform
		want     []diag.Code
		message  string
	}{
		"no clusters": {bt.Platform{Options: each, GitOps: bt.GitOps, Targets: target(bt.Git)}, []diag.Code{diag.BadSpec}, "has no cluster that"},
		"no gitops":   {bt.Platform{Options: each, Clusters: one, Targets: target(bt.Git)}, []diag.Code{diag.NeedsGitOps, diag.NeedsGitOps}, "needs the repository"},
		"unreached":   {bt.Platform{Options: defaults, GitOps: bt.GitOps, Clusters: one, Targets: target(bt.Git)}, []diag.Code{diag.ClusterValues}, "cluster edge-1 reach nothing"},
		"both": {bt.Platform{Options: `{"clusters": "inventory", "destination": {"name": "x"}}`, GitOps: bt.GitOps, Clusters: one, Targets: target(bt.Git)},
			[]diag.Code{diag.BadSpec, diag.BadSpec, diag.BadSpec}, "either to a destination or to clusters"},
		"key": {bt.Platform{Options: each, GitOps: bt.GitOps, Clusters: []model.Cluster{cluster(t, "edge-1", `{"a b": 1}`)}, Targets: target(bt.Git)}, []diag.Code{diag.BadConfigKey}, "a b"},
		"rendered": {bt.Platform{Options: each, GitOps: bt.GitOps, Clusters: one, Targets: []bt.Target{{Name: "app/main", Manifests: chart, Render: true, Projection: bt.Projected(t)}}},
			[]diag.Code{diag.NoEffect}, "the same on all clusters"},
		"order": {bt.Platform{Options: each, GitOps: bt.GitOps, Clusters: one, Targets: []bt.Target{
			{Name: "app/main", Manifests: bt.Git, DependsOn: []string{"db-main"}, Wave: 1}, {Name: "db/main", Manifests: bt.Git}}}, []diag.Code{diag.NotWaitedFor}, "without waiting for db-main"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, argocd.New(), c.platform)
			if got := bt.Codes(tree.Diagnostics); !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v: %+v", got, c.want, tree.Diagnostics)
			}
			if d := tree.Diagnostics[0]; !strings.Contains(d.Message, c.message) || len(d.Sites) == 0 {
				t.Errorf("got %+v, want a message with %q and a site", d, c.message)
			}
		})
	}
}

// The named Applications are the ones that the sets make, each with its cluster, however long their
// names are.
func TestApplications(t *testing.T) {
	long := strings.Repeat("w", 63)
	clusters := []model.Cluster{cluster(t, "edge-1", ""), cluster(t, long, "")}
	targets := []bt.Target{{Name: "raw/main", Manifests: bt.Git}, {Name: long + "/a", Manifests: bt.Git}}
	tree := bt.Build(t, argocd.New(), bt.Platform{Options: each, GitOps: bt.GitOps, Clusters: clusters, Targets: targets})
	for _, f := range tree.Folders {
		made := parse(t, backends.File{Data: tree.Files[f.DeploymentTarget+"/reconciler.yaml"]}).applications
		named := argocd.New().Reconciled("dev", "large", f).Objects
		if len(named) != len(clusters) {
			t.Errorf("got %v", named)
		}
		for name, cluster := range named {
			if app, there := made[name]; !there || app.Spec.Destination.Name != cluster {
				t.Errorf("%s on %s is not among %v", name, cluster, made)
			}
		}
		f.Shared = nil
		if named := argocd.New().Reconciled("dev", "large", f).Objects; named != nil {
			t.Errorf("one Application is named by backends.AssignmentName: got %v", named)
		}
	}
}
