package fleet_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/fleet"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

const (
	defaults = `{"namespace": "fleet-default", "pollingInterval": "1m", "correctDrift": true}`
	all      = `{"namespace": "edge", "clusterSelector": {"tier": "large", "stage": "dev"}, "pollingInterval": "5m30s",
		"secretRef": "gitops-auth",
		"credentials": {"charts.example.test": {"secretRef": "charts"}, "registry.example.test": {"secretRef": "registry"}}, "correctDrift": false, "serviceAccount": "deployer"}`
)

var long = strings.Repeat("w", 63)

// manifests are all kinds of source that Fleet fetches.
func manifests(t *testing.T) map[string]model.Manifests {
	values := bt.Value(t, `{"replicas": 2, "command": "echo ${HOME} {{ .x }}", "global": {"zone": "no", "port": "8080"}}`)
	git := func(g model.Git) model.Manifests {
		g.Repo = "https://git.example.test/app"
		return model.Manifests{Git: &g}
	}
	return map[string]model.Manifests{
		"git-branch": bt.Git,
		"git-tag":    git(model.Git{Tag: "v1.2.3", SecretRef: "own", Path: "."}),
		"git-commit": git(model.Git{Commit: strings.Repeat("0b", 20), Path: "a/b/"}),
		"git-ssh":    {Git: &model.Git{Repo: "git@git.example.test:team/app.git", Branch: "1.x"}},
		"helm-repo":  bt.Chart,
		"helm-repo-values": {Helm: &model.Helm{Repo: "https://charts.example.test", Chart: "app", Version: "1.2", Values: &values,
			ReleaseName: "release", PlatformValues: "global.platform", SecretRef: "own"}},
		"helm-oci":       bt.Registry,
		"helm-oci-range": {Helm: &model.Helm{OCI: "oci://registry.example.test/charts", Chart: "app", Version: ">=1.2 <2", PlatformValues: "platform"}},
	}
}

// TestManifests builds every kind of source with the default options and with
// all options, with and without gitops.
func TestManifests(t *testing.T) {
	for kind, m := range manifests(t) {
		target := []bt.Target{{Name: "app/main", Manifests: m}}
		for options, p := range map[string]bt.Platform{
			"defaults": {Options: defaults, Targets: target},
			"options":  {Options: all, GitOps: bt.GitOps, Targets: target},
		} {
			t.Run(kind+"/"+options, func(t *testing.T) { golden(t, p) })
		}
	}
}

// golden builds a platform, checks the tree, and compares it with its golden file.
func golden(t *testing.T, p bt.Platform) {
	t.Helper()
	tree := bt.Build(t, fleet.New(), p)
	check(t, p, tree)
	tree.Golden(t)
}

// clusters returns three clusters. The last one has no values of its own, and the second one
// has only values that do not differ.
func clusters(t *testing.T) []model.Cluster {
	one, two := bt.Value(t, `{"REGION": "west", "db": {"port": 5432}, "SITE": "one"}`), bt.Value(t, `{"REPLICAS": 3}`)
	return []model.Cluster{{Name: "edge-1", Values: &one}, {Name: "edge-2", Values: &two}, {Name: "edge-3"}}
}

func TestClusterType(t *testing.T) {
	several := []bt.Target{
		{Name: "app/main", Manifests: bt.Git}, {Name: "app/test", Manifests: bt.Registry},
		{Name: "db/main", Workspace: "data", Manifests: bt.Chart},
		{Name: "web/main", Manifests: bt.Chart, Render: true, Projection: projection(t, deployment, `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}`)},
	}
	chain := []bt.Target{
		{Name: "app/main", Manifests: bt.Registry, DependsOn: []string{"db-main", "web-main"}, Wave: 2},
		{Name: "db/main", Manifests: bt.Git, Wave: 1},
		{Name: "web/main", Manifests: bt.OCI, Render: true, Projection: projection(t, deployment), DependsOn: []string{"bare-main", "db-main"}, Wave: 1},
		{Name: "bare/main", Manifests: bt.Git, Render: true, Projection: &model.Projection{}},
	}
	service := `{"name": "x", "deletion": "orphan", "quota": {"requests.cpu": "4"}, "manifests": [
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "team"}}]}`
	platform := model.Manifests{Helm: &model.Helm{OCI: "oci://registry.example.test/charts/app", Version: "1.2.3", PlatformValues: "global.platform"}}
	for name, p := range map[string]bt.Platform{
		"empty":          {Options: defaults},
		"empty-gitops":   {Options: defaults, GitOps: bt.GitOps},
		"several":        {Options: defaults, Targets: several},
		"several-gitops": {Options: all, GitOps: bt.GitOps, Targets: several},
		"depends-on":     {Options: defaults, GitOps: bt.GitOps, Targets: chain},
		"clusters":       {Options: defaults, GitOps: bt.GitOps, Clusters: clusters(t), Targets: []bt.Target{{Name: "app/main", Manifests: platform}, {Name: "app/test", Manifests: bt.Git}}},
		"management":     {Options: `{"namespace": "fleet-local", "pollingInterval": "1m", "correctDrift": true}`, GitOps: bt.GitOps, Targets: several[:1]},
		"long-names":     {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: long + "/a", Manifests: bt.Registry, Workspace: long}, {Name: long + "/b", Manifests: bt.Git}}},
		"root-path":      {Options: defaults, GitOps: &model.GitOps{Repo: "git@git.example.test:platform/gitops", Branch: "1.x", Path: "."}, Targets: several[:1]},
		"service":        {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git, Service: service}}},
		"parts":          {Options: defaults, GitOps: bt.GitOps, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Chart}, {Name: "app/main-workload", Manifests: bt.Chart}, {Name: "app/main-workspace", Manifests: bt.Git}}},
	} {
		t.Run(name, func(t *testing.T) { golden(t, p) })
	}
}

// A cluster's values replace the assignment's values, and nothing else changes.
func TestClusterValues(t *testing.T) {
	none := bt.Value(t, `{"REGION": null, "db": {"host": null}}`)
	p := bt.Platform{Options: defaults, Clusters: append(clusters(t), model.Cluster{Name: "edge-4", Values: &none}),
		Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git}}}
	tree := bt.Build(t, fleet.New(), p)
	for file := range tree.Files {
		if strings.Contains(file, "overlays/edge-2/") || strings.Contains(file, "overlays/edge-3/") {
			t.Errorf("%s is there for a cluster that changes nothing", file)
		}
	}
	workspace := read(t, tree.Files, "app-main")
	for cluster, want := range map[string]map[string]string{
		"edge-1": {"REGION": "west", "REPLICAS": "3", "SITE": "one", "db": `{"host":"db.example.test","port":5432}`},
		"edge-2": {"REGION": "no", "REPLICAS": "3", "db": `{"host":"db.example.test"}`},
		"edge-3": {"REGION": "no", "REPLICAS": "3", "db": `{"host":"db.example.test"}`},
		"edge-4": {"REPLICAS": "3"},
	} {
		var config struct{ Data map[string]string }
		objects := workspace.on(t, cluster)
		i := slices.IndexFunc(objects, func(o bt.Object) bool { return o.Kind == "ConfigMap" })
		if err := yaml.Unmarshal(objects[i].Text, &config); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(config.Data, want) {
			t.Errorf("%s has %v, want %v", cluster, config.Data, want)
		}
	}
}

// chartOptions are the helm fields of a HelmOp, or of one of its targets.
type chartOptions struct {
	Values            map[string]any
	TemplateValues    map[string]string
	DisablePreProcess bool
}

// installed returns the values that the chart of a HelmOp gets on a cluster, as packages options
// and target in internal/cmd/controller of Fleet 0.15 make them.
func installed(t *testing.T, text []byte, cluster string) map[string]any {
	t.Helper()
	var op struct {
		Spec struct {
			Helm    chartOptions
			Targets []struct {
				ClusterName string
				Helm        chartOptions
			}
		}
	}
	if err := yaml.Unmarshal(text, &op); err != nil {
		t.Fatal(err)
	}
	h := op.Spec.Helm
	for _, target := range op.Spec.Targets {
		if target.ClusterName != cluster {
			continue
		}
		if target.Helm.Values != nil {
			merged := model.Merge(bt.Value(t, jsonOf(t, h.Values)), bt.Value(t, jsonOf(t, target.Helm.Values)))
			if err := yaml.Unmarshal([]byte(merged.String()), &h.Values); err != nil {
				t.Fatal(err)
			}
		}
		maps.Copy(h.TemplateValues, target.Helm.TemplateValues)
	}
	if h.Values != nil && strings.Contains(jsonOf(t, h.Values), "null") {
		t.Errorf("a merge patch loses a null of %v", h.Values)
	}
	if h.DisablePreProcess {
		return h.Values
	}
	if len(h.Values) > 0 {
		t.Error("Fleet reads templates in the values")
	}
	out := map[string]any{}
	for key, text := range h.TemplateValues {
		parsed, err := template.New("").Delims("${", "}").Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		var b bytes.Buffer
		if err := parsed.Execute(&b, nil); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		var v any
		if err := yaml.Unmarshal(b.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out[key] = v
	}
	return out
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Fleet's agent may change a HelmOp with a merge patch, to which null means "no such key".
// Values with a null are therefore texts, without templates.
func TestNullInChartValues(t *testing.T) {
	const plain, own = `{"n": 1, "text": "${ x }"}`, `"n": 1, "text": "${ x } {{ y }}\n$${}", "no": "no", "list": [{"a": "${"}]`
	taken := bt.Value(t, `{"REGION": null, "db": {"host": "other"}}`)
	edge := []model.Cluster{{Name: "edge-1", Values: &taken}, {Name: "edge-2"}}
	const composed, there = `{"REGION": "no", "REPLICAS": 3, "db": {"host": "db.example.test"}}`, `{"REGION": null, "REPLICAS": 3, "db": {"host": "other"}}`
	with := func(values, platform string) string {
		return strings.TrimSuffix(values, "}") + `, "global": {"a": null, "platform": ` + platform + `}}`
	}
	for _, c := range []struct {
		values   string
		clusters []model.Cluster
		want     map[string]string
	}{
		{`{"probe": {"httpGet": null}, "top": null, ` + own + `, "global": {"a": null}}`, nil, map[string]string{"edge-2": with(`{"probe": {"httpGet": null}, "top": null, `+own+`}`, composed)}},
		{`{` + own + `, "global": {"a": null}}`, edge, map[string]string{"edge-1": with(`{`+own+`}`, there), "edge-2": with(`{`+own+`}`, composed)}},
		{plain, edge, map[string]string{"edge-1": strings.Replace(with(plain, there), `"a": null, `, "", 1), "edge-2": strings.Replace(with(plain, composed), `"a": null, `, "", 1)}},
	} {
		values := bt.Value(t, c.values)
		m := model.Manifests{Helm: &model.Helm{OCI: "oci://x/y", Version: "1.2.3", Values: &values, PlatformValues: "global.platform"}}
		p := bt.Platform{Options: defaults, GitOps: bt.GitOps, Clusters: c.clusters, Targets: []bt.Target{{Name: "app/main", Manifests: m}}}
		tree := bt.Build(t, fleet.New(), p)
		check(t, p, tree)
		for cluster, want := range c.want {
			got := bt.Value(t, jsonOf(t, installed(t, tree.Files["app-main/reconciler.yaml"], cluster)))
			if want := bt.Value(t, want); !got.Same(want) {
				t.Errorf("%s: %s gets\n%s\nwant\n%s", c.values, cluster, got, want)
			}
		}
	}
}

// TestRefusals checks requests that Fleet cannot fulfill, or would fulfill wrongly.
func TestRefusals(t *testing.T) {
	one := func(m model.Manifests) bt.Platform {
		return bt.Platform{Options: defaults, Targets: []bt.Target{{Name: "app/main", Manifests: m}}}
	}
	git := func(g model.Git) bt.Platform { return one(model.Manifests{Git: &g}) }
	chart := func(h model.Helm) bt.Platform { return one(model.Manifests{Helm: &h}) }
	values := func(text string) bt.Platform {
		v := bt.Value(t, text)
		return chart(model.Helm{Repo: "https://x", Chart: "x", Version: "1.2.3", Values: &v})
	}
	with := func(p bt.Platform, change func(*bt.Platform)) bt.Platform { change(&p); return p }
	bad, labelled := bt.Value(t, `{"a b": 1}`), bt.Value(t, `{"X": "global.fleet.clusterLabels.x"}`)
	onEdge := func(v model.Value) func(*bt.Platform) {
		return func(p *bt.Platform) { p.Clusters = []model.Cluster{{Name: "edge-1", Values: &v}} }
	}
	platform := model.Helm{OCI: "oci://x/y", Version: "1.2.3", PlatformValues: "platform"}
	ranged := platform
	ranged.Version = "1.x"
	unsupported := []diag.Code{diag.UnsupportedManifests}
	spec := []diag.Code{diag.BadSpec, diag.BadSpec}
	for name, c := range map[string]struct {
		platform bt.Platform
		want     []diag.Code
		message  string
	}{
		"oci":           {one(bt.OCI), unsupported, "no other OCI artifacts"},
		"kustomize":     {one(model.Manifests{Kustomize: &model.Kustomize{Git: bt.Git.Git, Path: "x"}}), unsupported, "without the bases"},
		"package":       {one(model.Manifests{Package: &model.Package{}}), unsupported, "for machines"},
		"ansible":       {one(model.Manifests{Ansible: &model.Playbook{}}), unsupported, "for machines"},
		"git-semver":    {git(model.Git{Repo: "https://x/y", Semver: "1.x"}), unsupported, "follows a branch"},
		"git-verify":    {git(model.Git{Repo: "https://x/y", Tag: "v1", Verify: &model.GitVerify{Mode: "Tag", SecretRef: "keys"}}), unsupported, "verifies no signatures"},
		"git-file":      {git(model.Git{Repo: "file:///srv/app", Branch: "main"}), unsupported, "of its own pods"},
		"git-pattern":   {git(model.Git{Repo: "https://x/y", Branch: "main", Path: "apps/*"}), unsupported, "pattern"},
		"git-order":     {with(git(*bt.Git.Git), func(p *bt.Platform) { p.Targets[0].DependsOn = []string{"db-main"} }), unsupported, "no dependsOn"},
		"chart-build":   {chart(model.Helm{OCI: "oci://x/y", Version: "1.2.3+build.5"}), unsupported, "plus sign"},
		"chart-archive": {chart(model.Helm{Repo: "https://x", Chart: "app.TGZ", Version: "1.2.3"}), unsupported, "archive"},
		"chart-no-name": {chart(model.Helm{Repo: "https://x", Version: "1.2.3"}), unsupported, "many charts"},
		"label-value":   {values(`{"a": {"b": [{"c": "global.fleet.clusterLabels.x"}]}}`), unsupported, "at a.b.c: it would replace"},
		"deep-value":    {values(strings.Repeat(`{"a": `, 60) + "1" + strings.Repeat("}", 60)), unsupported, "nested more than 50 deep"},
		"cluster-label": {with(chart(platform), onEdge(labelled)), unsupported, "at platform.X: it would replace"},
		"cluster-range": {with(chart(ranged), onEdge(labelled)), []diag.Code{diag.UnsupportedManifests, diag.UnsupportedManifests}, "at platform.X"},
		"null-label":    {with(values(`{"a": null}`), func(p *bt.Platform) { p.Options = `{"namespace": "x", "clusterSelector": {"rke.cattle.io/tier": "1"}}` }), unsupported, "no labels but Rancher's"},
		"cluster-key":   {with(one(bt.Git), onEdge(bad)), []diag.Code{diag.BadConfigKey}, "cannot be a key"},
		"all-clusters":  {with(one(bt.Git), func(p *bt.Platform) { p.Options = `{"namespace": "x", "clusterSelector": {}}` }), append(spec, spec...)[:3], "every cluster"},
		"unreadable":    {with(one(bt.Git), func(p *bt.Platform) { p.Options = `{"namespace": 1}` }), append(spec, spec...)[:3], "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := bt.Build(t, fleet.New(), c.platform)
			got := slices.DeleteFunc(bt.Codes(tree.Diagnostics), func(code diag.Code) bool { return code == diag.NeedsGitOps })
			if !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v: %+v", got, c.want, tree.Diagnostics)
			}
			if d := tree.Diagnostics[0]; !strings.Contains(d.Message, c.message) || len(d.Sites) == 0 || len(d.Assignments) == 0 {
				t.Errorf("got %+v, want a message with %q, a site and an assignment", d, c.message)
			}
			if len(tree.Folders) > 0 {
				t.Errorf("the assignment is emitted all the same")
			}
		})
	}
}

// A range of versions is not followed by clusters with values of their own.
func TestRangeOnClusters(t *testing.T) {
	m := model.Manifests{Helm: &model.Helm{OCI: "oci://x/y", Version: "1.x", PlatformValues: "platform"}}
	tree := bt.Build(t, fleet.New(), bt.Platform{Options: defaults, Clusters: clusters(t), Targets: []bt.Target{{Name: "app/main", Manifests: m}}})
	if d := tree.Diagnostics[0]; d.Code != diag.UnsupportedManifests || !strings.Contains(d.Message, "do not follow a range") || len(d.Sites) != 2 {
		t.Errorf("got %+v", d)
	}
}

func TestBootstrapRefusals(t *testing.T) {
	for field, g := range map[string]*model.GitOps{
		"repo": {Repo: "file:///srv/gitops", Branch: "main"}, "path": {Repo: "https://x/y", Branch: "main", Path: "a/[b]"}, "": nil,
	} {
		p := bt.Platform{Options: defaults, GitOps: g}
		printed, ds := fleet.New().Bootstrap(p.ClusterType(t), nil)
		want := diag.BadSpec
		if g == nil {
			want = diag.NeedsGitOps
		}
		if len(printed) > 0 || len(ds) != 1 || ds[0].Code != want || len(ds[0].Sites) == 0 {
			t.Errorf("%s: got %+v\n%s", field, ds, printed)
		}
	}
}

// One Fleet may serve several cluster types, whose names can run together.
func TestCentral(t *testing.T) {
	p := bt.Platform{Options: defaults}
	ct := p.ClusterType(t)
	ct.Name = "large"
	first := fleet.New().Central(ct, []string{"app-main-x", "db-main"})
	ct.Name = "large-app"
	second := fleet.New().Central(ct, []string{"main-x"})
	if want := (backends.Object{Group: "fleet.cattle.io", Kind: "Bundle", Namespace: "fleet-default", Name: "dev-large-app-main-x-workspace"}); first[0] != want || second[0] != want {
		t.Errorf("got %v and %v, want %v", first, second, want)
	}
	if len(first) != 2 || first[1].Name != "dev-large-db-main-workspace" {
		t.Errorf("got %v", first)
	}
}

// Fleet deletes an object that leaves the tree. The tree must therefore not contain any trace of an
// assignment that goes.
func TestRemoval(t *testing.T) {
	targets := []bt.Target{{Name: "app/main", Manifests: bt.Git}, {Name: "db/main", Manifests: bt.Chart}, {Name: "web/main", Manifests: bt.Git, Render: true, Projection: projection(t, deployment)}}
	for i, gone := range targets {
		p := bt.Platform{Options: defaults, GitOps: bt.GitOps, Targets: slices.Delete(slices.Clone(targets), i, i+1)}
		tree := bt.Build(t, fleet.New(), p)
		check(t, p, tree)
		checkRemoval(t, tree, strings.ReplaceAll(gone.Name, "/", "-"))
	}
}

// Index does not list the folder of another backend, or a folder with a damaged record.
func TestKeptFolders(t *testing.T) {
	p := bt.Platform{Options: defaults, GitOps: bt.GitOps}
	files, ds := fleet.New().Index(p.ClusterType(t), []backends.Folder{
		{DeploymentTarget: "damaged-main", Backend: "fleet", Shared: []byte(`{"reconciler":"tr`)},
		{DeploymentTarget: "flux-main", Backend: "flux", Shared: []byte(`{"reconciler":true}`)},
		{DeploymentTarget: "helm-main", Backend: "fleet", Shared: []byte(`{"reconciler":true}`)},
		{DeploymentTarget: "rendered-main", Backend: "fleet"},
	})
	i := slices.IndexFunc(files, func(f backends.File) bool { return f.Path == "kustomization.yaml" })
	if text := string(files[i].Data); len(ds) > 0 || !strings.HasSuffix(text, "resources:\n- helm-main/reconciler.yaml\n") {
		t.Errorf("%v\n%s", ds, text)
	}
}

// The values' order in the input, and the maps that emit it, do not show.
func TestDeterminism(t *testing.T) {
	p := bt.Platform{Options: all, GitOps: bt.GitOps, Clusters: clusters(t), Targets: []bt.Target{{Name: "app/main", Manifests: bt.Registry}, {Name: "db/main", Manifests: bt.Git}}}
	first := bt.Build(t, fleet.New(), p)
	slices.Reverse(p.Targets)
	second := bt.Build(t, fleet.New(), p)
	if !maps.EqualFunc(first.Files, second.Files, slices.Equal) || !slices.Equal(first.Bootstrap, second.Bootstrap) {
		t.Error("the order of assignments shows")
	}
}
