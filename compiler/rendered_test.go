package compiler_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	filetree "github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
)

// renderedPlatform has a chart and an overlay that kalypso renders, and manifests that it does
// not render.
const renderedPlatform = `package platform

import "kalypso.io/schema"

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
clusters:           schema.#Clusters
workloads:          schema.#Workloads
registrations:      schema.#Registrations
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
reconcilers:        schema.#Reconcilers

environments: dev: gitops: {repo: "https://git.example.com/out", branch: "main"}
reconcilers: flux: flux: {}
reconcilers: argocd: argocd: {}
clusterTypes: edge: {reconciler: "flux", kubernetesVersion: "1.33.1", apiVersions: ["a.example.com/v1"]}
clusterTypes: core: {reconciler: "argocd", kubernetesVersion: "1.33.1"}
clusters: one: {clusterType: "edge", values: SITE: "north"}
workloads: shop: {
	workspace: "team"
	manifests: helm: {values: tag: "1.2.3", defaults: replicas: 2}
	deploymentTargets: {
		chart: {environment: "dev", render: true, manifests: helm: {repo: "https://charts.example.com", chart: "shop", version: "1.x", platformValues: "platform"}}
		overlay: {environment: "dev", render: true, manifests: kustomize: {git: {repo: "https://git.example.com/apps", branch: "main"}, path: "./deploy", namePrefix: "a-"}}
		plain: {environment: "dev", render: false, manifests: git: {repo: "https://git.example.com/apps", branch: "main", path: "./deploy"}}
	}
}
schedulingPolicies: all: {deploymentTargets: {}, clusterTypes: {}}
configs: all: {match: {}, values: REGION: "east"}
registrations: team: {workspace: "team", provides: ["configs"], git: {repo: "https://git.example.com/team", branch: "main"}}
`

// contents are the pinned contents of the platform's sources, as texts that a test can change.
var contents = map[string]string{
	"apps":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: one}\n",
	"team":      "package team\nconfigs: team: {match: {}, values: TEAM: \"a\"}\n",
	"nobody's":  "one",
	"revision":  strings.Repeat("1", 40),
	"withdrawn": "", // the content that the vendor folder lacks
	"unpinned":  "", // the entry that the lock lacks
}

// chartTemplate uses all inputs of a chart.
const chartTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  replicas: {{ .Values.replicas | quote }}
  tag: {{ .Values.tag | quote }}
  region: {{ .Values.platform.REGION | quote }}
  version: {{ .Capabilities.KubeVersion.Version | quote }}
  has: {{ .Capabilities.APIVersions.Has "a.example.com/v1" | quote }}
`

func packChart(t *testing.T) []byte {
	t.Helper()
	chart := commandtest.Archive(t, map[string][]byte{
		"Chart.yaml":              []byte("apiVersion: v2\nname: shop\nversion: 1.2.3\n"),
		"templates/settings.yaml": []byte(chartTemplate),
	})
	return chart
}

// renderedFiles returns the platform's files with changes.
func renderedFiles(t *testing.T, chart []byte, change *strings.Replacer, c map[string]string) map[string]string {
	t.Helper()
	tree := func(path, text string) []byte {
		return filetree.Pack(&filetree.Tree{Files: map[string]filetree.File{path: {Data: []byte(text)}}})
	}
	git := func(url string) dependency.Source {
		return dependency.Source{Kind: dependency.Git, URL: url, Branch: "main"}
	}
	files := map[string]string{
		"cue.mod/module.cue": "module: \"rendered.example/platform@v0\"\nlanguage: version: \"v0.15.0\"\n",
		"platform.cue":       change.Replace(renderedPlatform),
	}
	entries := []dependency.Entry{}
	for name, of := range map[string]struct {
		source   dependency.Source
		revision string
		data     []byte
	}{
		"chart":    {dependency.Source{Kind: dependency.Chart, URL: "https://charts.example.com", Chart: "shop", Version: "1.x"}, "1.2.3", chart},
		"apps":     {git("https://git.example.com/apps"), c["revision"], tree("deploy/settings.yaml", c["apps"])},
		"team":     {git("https://git.example.com/team"), c["revision"], tree("team.cue", c["team"])},
		"nobody's": {git("https://git.example.com/nobody"), c["revision"], tree("a", c["nobody's"])},
	} {
		digest := dependency.DigestOf(of.data)
		if name != c["unpinned"] {
			entries = append(entries, dependency.Entry{Source: of.source, Revision: of.revision, Content: digest, Size: int64(len(of.data))})
		}
		if digits := strings.TrimPrefix(string(digest), "sha256:"); name != c["withdrawn"] {
			files["vendor/sha256/"+digits[:2]+"/"+digits] = string(of.data)
		}
	}
	dir := t.TempDir()
	if err := dependency.NewLock(entries).Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, dependency.FileName))
	if err != nil {
		t.Fatal(err)
	}
	files[dependency.FileName] = string(text)
	return files
}

// TestWhatIsRenderedIsKnownByItsParts changes the inputs of rendered and registered content, one
// at a time. With a cache that has everything else, the result must equal the result of a cold
// build. Only the assignments that the input can affect may be computed.
func TestWhatIsRenderedIsKnownByItsParts(t *testing.T) {
	root := t.TempDir()
	platform, out := filepath.Join(root, "platform"), filepath.Join(root, "out")
	c := openCache(t, cache.Options{Dir: filepath.Join(root, "cache")})
	chart := packChart(t) // once, because another archive of it may have other times
	asIs := renderedFiles(t, chart, strings.NewReplacer(), contents)
	step := func(t *testing.T, files map[string]string) outcome {
		removeAll(t, platform)
		writeFiles(t, platform, files)
		want := cold(t, root, platform, outputFiles(t, out))
		got := compileTo(t, compiler.Request{Dir: platform, Cache: c}, out)
		if d := same(got, want); d != "" {
			t.Error(d)
		}
		return got
	}
	first := step(t, asIs)
	if !first.clean() {
		t.Fatalf("the platform has errors: %s", first.said["text"])
	}
	// There are 6 assignments, of 3 targets on 2 cluster types.
	for _, change := range []struct {
		name                   string
		text                   []string          // replaced in the platform
		content                map[string]string // of sources
		projected, assignments int
		fails                  bool
	}{
		{name: "a value of a chart", text: []string{`tag: "1.2.3"`, `tag: "1.2.4"`}, projected: 2, assignments: 2},
		{name: "a default of a chart", text: []string{"replicas: 2", "replicas: 3"}, projected: 2, assignments: 2},
		{name: "the platform's values", text: []string{`REGION: "east"`, `REGION: "west"`}, projected: 2, assignments: 6},
		{name: "the path of the platform's values", text: []string{`platformValues: "platform"`, `platformValues: "other"`}, projected: 2, assignments: 2, fails: true},
		{name: "kubernetesVersion", text: []string{`"flux", kubernetesVersion: "1.33.1"`, `"flux", kubernetesVersion: "1.34.0"`}, projected: 1, assignments: 1},
		{name: "apiVersions", text: []string{"a.example.com/v1", "b.example.com/v1"}, projected: 1, assignments: 1},
		{name: "a value of a cluster", text: []string{"north", "south"}, assignments: 3},
		{name: "the name of a value of a cluster", text: []string{"SITE", "PLACE"}, assignments: 3},
		{name: "a prefix of an overlay", text: []string{`"a-"`, `"b-"`}, projected: 1, assignments: 2},
		{name: "rendered no longer", text: []string{`overlay: {environment: "dev", render: true`, `overlay: {environment: "dev", render: false`}, assignments: 2},
		{name: "rendered now", text: []string{"render: false", "render: true"}, projected: 1, assignments: 2},
		{name: "the content of an overlay", content: map[string]string{"apps": strings.Replace(contents["apps"], "one", "two", 1)}, projected: 1, assignments: 2},
		{name: "the revision of sources", content: map[string]string{"revision": strings.Repeat("2", 40)}, assignments: 2},
		{name: "the content of a registration", content: map[string]string{"team": strings.Replace(contents["team"], `"a"`, `"b"`, 1)}, projected: 2, assignments: 6},
		{name: "an entry that nobody uses", content: map[string]string{"nobody's": "two"}},
		{name: "broken content of an overlay", content: map[string]string{"apps": "kind: ["}, projected: 1, assignments: 2, fails: true},
		{name: "no content of an overlay", content: map[string]string{"withdrawn": "apps"}, fails: true},
		{name: "no content of a registration", content: map[string]string{"withdrawn": "team"}, fails: true},
		{name: "no entry of an overlay", content: map[string]string{"unpinned": "apps"}, fails: true},
		{name: "no content that somebody uses is missing", content: map[string]string{"withdrawn": "nobody's"}},
	} {
		t.Run(change.name, func(t *testing.T) {
			of := map[string]string{}
			for name, text := range contents {
				of[name] = text
			}
			for name, text := range change.content {
				of[name] = text
			}
			files := renderedFiles(t, chart, strings.NewReplacer(change.text...), of)
			changed := step(t, files)
			if changed.clean() == change.fails {
				t.Errorf("that it fails is %t: %s", !change.fails, changed.said["text"])
			}
			for level, want := range map[cache.Level]int{cache.Projection: change.projected, cache.Assignment: change.assignments} {
				if got := changed.computed(level); got != want {
					t.Errorf("%d of level %s are computed, want %d", got, level, want)
				}
			}
			back := step(t, asIs)
			if !back.clean() || differs(folderTexts(back.files), folderTexts(first.files)) != "" {
				t.Errorf("undone, the output is another: %s", differs(folderTexts(back.files), folderTexts(first.files)))
			}
			for _, level := range []cache.Level{cache.Tuple, cache.Projection, cache.Assignment} {
				if n := back.computed(level); n > 0 {
					t.Errorf("%d of level %s are computed once more", n, level)
				}
			}
		})
	}
	closeCache(t, c)
}

// folderTexts returns the files outside of .kalypso.
func folderTexts(files map[string]string) map[string]string {
	return without(files, func(p string) bool { return strings.Contains(p, "/.kalypso/") })
}

// TestTamperedContentIsNoticed changes a file of the vendor folder. The output of the sound
// content must stay. The build must not use the changed content, even if the cache has all
// results for it.
func TestTamperedContentIsNoticed(t *testing.T) {
	root := t.TempDir()
	platform := filepath.Join(root, "platform")
	files := renderedFiles(t, packChart(t), strings.NewReplacer(), contents)
	writeFiles(t, platform, files)
	c := openCache(t, cache.Options{Dir: filepath.Join(root, "cache")})
	sound := compileTo(t, compiler.Request{Dir: platform, Cache: c}, filepath.Join(root, "out"))
	if !sound.clean() {
		t.Fatal(sound.errors)
	}
	for p, text := range files {
		if strings.HasPrefix(p, "vendor/") {
			files[p] = text + "!"
		}
	}
	writeFiles(t, platform, files)
	for name, r := range map[string]compiler.Request{"cached": {Dir: platform, Cache: c}, "cold": {Dir: platform}} {
		tampered := compileTo(t, r, filepath.Join(root, "out"))
		damaged := func(d diag.Diagnostic) bool { return d.Code == diag.DamagedContent }
		if !slices.ContainsFunc(tampered.errors, damaged) || differs(folderTexts(tampered.files), folderTexts(sound.files)) != "" {
			t.Errorf("%s: folders of what is tampered with are not kept", name)
		}
	}
	closeCache(t, c)
}
