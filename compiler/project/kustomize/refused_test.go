package kustomize

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// refusedAs returns why a request is refused.
func refusedAs(t *testing.T, req Request, code diag.Code) *refusal.Error {
	t.Helper()
	objects, err := Render(req)
	var refused *refusal.Error
	switch {
	case err == nil:
		t.Fatalf("renders to %v", names(objects))
	case !errors.As(err, &refused):
		t.Fatalf("%T: %v", err, err)
	case refused.Code != code:
		t.Errorf("%s: %s, want %s", refused.Code, refused.Message, code)
	case refused.Hint == "" || strings.Contains(refused.Message, "\n") || strings.Contains(refused.Message, "/source"):
		t.Errorf("%q, hint %q", refused.Message, refused.Hint)
	}
	return refused
}

const configMap = "-- app/a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		tree string // with app/ as the folder to render
		code diag.Code
		want string
	}{
		{"two kustomizations", "-- app/kustomization.yaml --\n-- app/Kustomization --\n", diag.BadSource, "app has several kustomizations"},
		{"empty", "-- app/kustomization.yaml --\n", diag.Render, "app: kustomization.yaml is empty"},
		{"chart", "-- app/Chart.yaml --\napiVersion: v2\nname: a\nversion: 1.0.0\n-- app/templates/a.yaml --\na: {{ .Values }}\n", diag.BadSource, "the folder app is a Helm chart, and no manifests"},
		{"unknown field", "-- app/kustomization.yaml --\nresource: [a.yaml]\n", diag.Render, `app/kustomization.yaml: invalid Kustomization: json: unknown field "resource"`},
		{"wrong kind", "-- app/kustomization.yaml --\nkind: Deployment\nresources: [a.yaml]\n" + configMap, diag.Render, "kind should be Kustomization or Component"},
		{"syntax", "-- app/kustomization.yaml --\nresources: [\n", diag.Render, "app/kustomization.yaml: invalid Kustomization"},
		{"bomb of a kustomization", "-- app/kustomization.yaml --\n" + bomb(12), diag.Unbounded, "app/kustomization.yaml: the manifests are larger than 64 MiB"},
		{"bomb of a resource", "-- app/kustomization.yaml --\nresources: [bomb.yaml]\n-- app/bomb.yaml --\n" + bomb(12), diag.Unbounded, "app/bomb.yaml: the manifests are larger than 64 MiB"},
		{"bomb of a folder", "-- app/bomb.yaml --\n" + bomb(12), diag.Unbounded, "app/bomb.yaml: the manifests are larger than 64 MiB"},
		{"kustomization merged into itself", "-- app/kustomization.yaml --\ncommonLabels: &a\n  <<: *a\n", diag.Render, "app/kustomization.yaml: not YAML that Kubernetes reads: line 2: anchor a contains itself"},
		{"resource merged into itself", "-- app/kustomization.yaml --\nresources: [a.yaml]\n-- app/a.yaml --\na: &a\n  <<: *a\n", diag.Render, "app/a.yaml: not YAML that Kubernetes reads: line 2: anchor a contains itself"},
		{"patch merged into itself", "-- app/kustomization.yaml --\nresources: [a.yaml]\npatches: [{path: p.yaml}]\n-- app/p.yaml --\na: &a\n  <<: *a\n" + configMap, diag.Render, "app/p.yaml: not YAML that Kubernetes reads: line 2: anchor a contains itself"},
		{"bomb of a patch that is none", "-- app/kustomization.yaml --\nresources: [a.yaml]\npatches: [{path: p.yaml}]\n-- app/p.yaml --\nx: 1\nx: 2\n" + bomb(12) + configMap, diag.Unbounded, "app/p.yaml: the manifests are larger than 64 MiB"},
		{"resource is not there", "-- app/kustomization.yaml --\nresources: [b.yaml]\n" + configMap, diag.BadSource, "app/kustomization.yaml: resources[0]: b.yaml is not in the source"},
		{"resource is not YAML", "-- app/kustomization.yaml --\nresources: [b.yaml]\n-- app/b.yaml --\na: [\n", diag.Render, "app/b.yaml: not YAML that Kubernetes reads: line "},
		{"key is given twice", "-- app/kustomization.yaml --\nresources: [b.yaml]\n-- app/b.yaml --\na: 1\na: 2\n", diag.Render, "app/b.yaml: not YAML that Kustomize reads: line 2: mapping key \"a\" already defined at line 1"},
		{"key is a list", "-- app/b.yaml --\n[a]: 1\n", diag.Render, "app/b.yaml: not YAML that Kustomize reads: invalid map key"},
		{"resource is no manifest", "-- app/kustomization.yaml --\nresources: [b.yaml]\n-- app/b.yaml --\na: b\n", diag.Render, "b.yaml"},
		{"resource has no name", "-- app/kustomization.yaml --\nresources: [b.yaml]\n-- app/b.yaml --\napiVersion: v1\nkind: ConfigMap\n", diag.Render, "missing metadata.name"},
		{"base without kustomization", "-- app/kustomization.yaml --\nresources: [../base]\n-- base/a.yaml --\n", diag.BadSource, "resources[0]: ../base is a folder without a kustomization"},
		{"in a base", "-- app/kustomization.yaml --\nresources: [../base]\n-- base/kustomization.yml --\nresources: [gone]\n", diag.BadSource, "base/kustomization.yml: resources[0]: gone is not in the source"},
		{"in a component", "-- app/kustomization.yaml --\ncomponents: [c]\n-- app/c/kustomization.yml --\nkind: Component\nresources: [ssh://git@example.com/a/b]\n", diag.BadSource, "app/c/kustomization.yml: resources[0]: ssh://git@example.com/a/b is fetched from elsewhere"},
		{"circle", "-- app/kustomization.yaml --\nresources: [../base]\n-- base/kustomization.yaml --\nresources: [../app]\n", diag.Render, "cycle detected"},
		{"itself", "-- app/kustomization.yaml --\nresources: [.]\n", diag.Render, "cycle detected"},
		{"outside", "-- app/kustomization.yaml --\nresources: [../../base]\n", diag.BadSource, "resources[0]: ../../base leads out of the source"},
		{"absolute", "-- app/kustomization.yaml --\nresources: [/etc/hostname]\n", diag.BadSource, "resources[0]: /etc/hostname is no relative path"},
		{"backslash", "-- app/kustomization.yaml --\nresources: ['..\\base']\n", diag.BadSource, `resources[0]: ..\base is no relative path`},
		{"file of another folder", "-- app/kustomization.yaml --\nresources: [../base/a.yaml]\n-- base/a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", diag.Render, "is not in or below"},
		{"helmCharts", "-- app/kustomization.yaml --\nhelmCharts: [{name: app}]\n", diag.Render, "app/kustomization.yaml: helmCharts runs the helm command"},
		{"helmChartInflationGenerator", "-- app/kustomization.yaml --\nhelmChartInflationGenerator: [{chartName: app}]\n", diag.Render, "helmCharts runs the helm command"},
		{"inflation as a generator", "-- app/kustomization.yaml --\ngenerators: [g.yaml]\n-- app/g.yaml --\napiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\n", diag.Render, "app/g.yaml: HelmChartInflationGenerator runs the helm command"},
		{"merge with nothing", "-- app/kustomization.yaml --\nconfigMapGenerator:\n- {name: x, behavior: merge, literals: ['a={b: {}}: c']}\n", diag.Render, `app: merging from generator: id resid.ResId{Gvk:resid.Gvk{Group:"", Version:"v1", Kind:"ConfigMap"`},
		{"exec plugin", "-- app/kustomization.yaml --\ngenerators: [g.yaml]\n-- app/g.yaml --\napiVersion: example.com/v1\nkind: Make\nmetadata: {name: x}\n", diag.Render, "app/g.yaml: example.com/v1 Make is a plugin that runs a program"},
		{"function", "-- app/kustomization.yaml --\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: Make\n  metadata: {name: x, annotations: {config.kubernetes.io/function: 'container: {image: x}'}}\n", diag.Render, "app/kustomization.yaml: transformers[0]: config.kubernetes.io/function runs a program"},
		{"plugin of YAML 1.2", "-- app/kustomization.yaml --\ngenerators: [g.yaml]\n-- app/g.yaml --\napiVersion: x/v1\nkind: Y\nmetadata: {name: x}\n", diag.Render, "app/g.yaml: x/v1 Y is a plugin that runs a program"},
		{"plugin with a key that is no string", "-- app/kustomization.yaml --\ntransformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, 1: x, path: no}']\n", diag.BadSource, "app/kustomization.yaml: transformers[0].path: no is not in the source"},
		{"container", "-- app/kustomization.yaml --\nvalidators:\n- |-\n  apiVersion: v1\n  kind: Make\n  metadata: {name: x, annotations: {config.kubernetes.io/function: 'exec: {path: /bin/true}'}}\n", diag.Render, "v1 Make is a plugin that runs a program"},
		{"plugin in a list", "-- app/kustomization.yaml --\ngenerators: [g.yaml]\n-- app/g.yaml --\napiVersion: builtin\nkind: List\nitems: [{apiVersion: example.com/v1, kind: Make, metadata: {name: x}}]\n", diag.Render, "app/g.yaml: example.com/v1 Make is a plugin that runs a program"},
		{"address before a plugin", "-- app/kustomization.yaml --\ngenerators:\n- |-\n  git@example.com:a/b: x\n  apiVersion: builtin\n  kind: Make\n", diag.BadSource, "app/kustomization.yaml: generators[0] begins like an address"},
		{"plugins of a folder", "-- app/kustomization.yaml --\ntransformers: [../t]\n-- t/kustomization.yaml --\nresources: [a.yaml]\n", diag.Render, "app/kustomization.yaml: transformers[0]: ../t is a folder"},
		{"panic", "-- app/kustomization.yaml --\nresources: [a.yaml]\nopenapi: {path: s.json}\npatches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}'}]\n-- app/s.json --\n{\n" + configMap, diag.Render, "app: Kustomize panics: invalid schema file"},
		{"patch fails", "-- app/kustomization.yaml --\nresources: [a.yaml]\npatches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}'}]\n" + configMap, diag.Render, "no resource matches strategic merge patch"},
		{"not a manifest in a folder", configMap + "-- app/values.yaml --\nreplicas: 3\n", diag.NotRendered, "app/values.yaml: document 1 is no manifest of Kubernetes"},
		{"text in a folder", configMap + "-- app/notes.yml --\nhello\n", diag.NotRendered, "app/notes.yml: document 1 is no manifest"},
		{"broken file in a folder", configMap + "-- app/b.yaml --\na: [\n", diag.Render, "app/b.yaml: not YAML that Kubernetes reads"},
		{"nothing in a folder", "-- app/README.md --\n", diag.BadSource, "app has no manifests"},
		{"two of one name", configMap + strings.ReplaceAll(configMap, "a.yaml", "b.yaml"), diag.Render, "may not add resource with an already registered id: ConfigMap.v1.[noGrp]/a.[noNs]"},
		{"remote in a folder's overlay", configMap + "-- app/x/kustomization.yaml --\nresources: [https://example.com/x]\n", diag.BadSource, "app/x/kustomization.yaml: resources[0]: https://example.com/x is fetched"},
		{"label", "-- app/kustomization.yaml --\nresources: [a.yaml]\n-- app/a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {v: 1}}\n", diag.NotRendered, "app: metadata.labels.v of ConfigMap a is 1, which is no string: quote it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused := refusedAs(t, Request{Files: tree(txtar.Parse([]byte(c.tree)), ""), Path: "app"}, c.code)
			if !strings.Contains(refused.Message, c.want) {
				t.Errorf("%s\nwant %s", refused.Message, c.want)
			}
		})
	}
}

// No message shows a place in memory, which differs each time.
func TestMessagesAreTheSame(t *testing.T) {
	for _, field := range []string{"configMapGenerator", "secretGenerator"} {
		for _, options := range []string{"", ", options: {disableNameSuffixHash: true}"} {
			files := map[string][]byte{"kustomization.yaml": []byte(field + ": [{name: x, behavior: replace, literals: [a=b]" + options + "}]\n")}
			if refused := refusedAs(t, Request{Files: files}, diag.Render); strings.Contains(refused.Message, "0x") || !strings.Contains(refused.Message, "does not exist; cannot merge or replace") {
				t.Error(refused)
			}
		}
	}
	if got := local("a &{0x19928efddc70 [0xc000123456]}: 0xff"); got != "a &{0x… [0x…]}: 0xff" {
		t.Error(got)
	}
}

// bomb is a document where each of n levels is ten of the one before.
func bomb(n int) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\na0: &a0 x\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	return b.String()
}

// Every field whose address Kustomize would fetch refuses an address. The error names the
// field.
func TestRemote(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	for field, text := range map[string]string{
		"resources[1]":                         "resources: [a.yaml, URL]",
		"resources[0]":                         "bases: [URL]",
		"components[0]":                        "components: [URL]",
		"crds[0]":                              "crds: [URL]",
		"configurations[0]":                    "configurations: [URL]",
		"generators[0]":                        "generators: [URL]",
		"transformers[0]":                      "transformers: [URL]",
		"validators[0]":                        "validators: [URL]",
		"openapi.path":                         "openapi: {path: URL}",
		"replacements[0].path":                 "replacements: [{path: URL}]",
		"patches[0].path":                      "patches: [{path: URL}]",
		"patchesJson6902[0].path":              "patchesJson6902: [{path: URL, target: {kind: ConfigMap, version: v1, name: a}}]",
		"patchesStrategicMerge[0]":             "patchesStrategicMerge: [URL]",
		"configMapGenerator[0].files[1]":       "configMapGenerator: [{name: x, files: [a.yaml, key=URL]}]",
		"configMapGenerator[0].envs[0]":        "configMapGenerator: [{name: x, envs: [URL]}]",
		"secretGenerator[0].envs[0]":           "secretGenerator: [{name: x, env: URL}]",
		"secretGenerator[0].files[0]":          "secretGenerator: [{name: x, files: [URL]}]",
		"transformers[0].path":                 "transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, path: URL}']",
		"transformers[0].paths":                "transformers: ['{apiVersion: builtin, kind: PatchStrategicMergeTransformer, metadata: {name: x}, paths: [URL]}']",
		"transformers[0].targetFilePath":       "transformers: ['{apiVersion: builtin, kind: ValueAddTransformer, metadata: {name: x}, targetFilePath: \"URL\"}']",
		"transformers[0].Path":                 "transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, Path: \"URL\"}']",
		"validators[0].path":                   "validators: ['{apiVersion: builtin, kind: MyList, metadata: {name: x}, items: [{apiVersion: builtin, kind: PatchTransformer, metadata: {name: y}, path: \"URL\"}]}']",
		"generators[0].files":                  "generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: x}, files: [a=URL]}']",
		"generators[0].envs":                   "generators: ['{apiVersion: builtin, kind: SecretGenerator, metadata: {name: x}, envs: [URL]}']",
		"transformers[0].replacements[0].path": "transformers: ['{apiVersion: builtin, kind: ReplacementTransformer, metadata: {name: x}, replacements: [{path: URL}]}']",
	} {
		for _, url := range []string{server.URL + "/x.yaml", "https://github.com/a/b//c", "git@example.com:a/b.git"} {
			files := tree(txtar.Parse([]byte(configMap)), "")
			files["app/kustomization.yaml"] = []byte(strings.ReplaceAll(text, "URL", url))
			refused := refusedAs(t, Request{Files: files, Path: "app"}, diag.BadSource)
			if want := "app/kustomization.yaml: " + field + ": " + url + " is fetched from elsewhere"; !strings.HasPrefix(refused.Message, want) {
				t.Errorf("%s\nwant %s", refused.Message, want)
			}
		}
	}
	if asked {
		t.Error("it was fetched")
	}
}

// TestAddresses checks the many spellings of an address that Kustomize fetches, also if a
// folder has that very name.
func TestAddresses(t *testing.T) {
	for _, url := range []string{
		"https://example.com/a.yaml", "HTTP://example.com/a.yaml", "http:/example.com/a.yaml", "https://github.com/a/b//c?ref=main&timeout=1s", "github.com/a/b", "GitHub.com/a/b", "github.com:a/b", "git@github.com:a/b.git",
		"git::https://example.com/a/b", "Git::github.com/a/b", "ssh://git@example.com/a/b", "file:///tmp/a", "user@example.com:a/b", "user@example.com/a/b", "org-1@dev.example.com:v3/a/b", "git::git@example.com:a/b",
	} {
		if !remote(url) {
			t.Errorf("%s is no address", url)
		}
		files := map[string][]byte{"kustomization.yaml": []byte("resources: ['" + url + "']")}
		if name := strings.ReplaceAll(url, "//", "/"); !strings.ContainsAny(name, "?") {
			files[name+"/kustomization.yaml"] = []byte("resources: []")
		}
		refusedAs(t, Request{Files: files}, diag.BadSource)
	}
	for _, name := range []string{"a.yaml", "../base", "./x/y.yaml", "a@b.yaml", "example.com", "example.com/a", "my-github.com", "a b", "v1.2/x", "dir.git/x"} {
		if remote(name) {
			t.Errorf("%s is an address", name)
		}
	}
}

func TestChangesRefused(t *testing.T) {
	files := tree(txtar.Parse([]byte(configMap)), "")
	for _, c := range []struct {
		req  Request
		code diag.Code
		want string
	}{
		{Request{Patches: []model.KustomPatch{{Patch: "x", Target: map[string]string{"kinds": "x"}}}}, diag.Render, "patches[0]: target has no kinds"},
		{Request{Patches: []model.KustomPatch{{Patch: "[{"}}}, diag.Render, "unable to parse SM or JSON patch"},
		{Request{Patches: []model.KustomPatch{{Patch: "https://example.com/patch.yaml"}}}, diag.Render, "unable to parse SM or JSON patch"},
		{Request{Patches: []model.KustomPatch{{Patch: bomb(12)}}}, diag.Unbounded, "patches[0]: the manifests are larger"},
		{Request{NamePrefix: "Not A Name/"}, "", ""},
		{Request{Path: "../app"}, diag.BadSource, "path ../app leads out of the source"},
		{Request{Path: "/app"}, diag.BadSource, "path /app leads out of the source"},
		{Request{Path: "ap"}, diag.BadSource, "path ap is not in the source"},
		{Request{Path: "app/a.yaml"}, diag.BadSource, "path app/a.yaml is a file of the source"},
	} {
		c.req.Files = files
		if c.req.Path == "" {
			c.req.Path = "app"
		}
		if c.code == "" {
			if _, err := Render(c.req); err != nil {
				t.Error(err)
			}
			continue
		}
		if refused := refusedAs(t, c.req, c.code); !strings.Contains(refused.Message, c.want) {
			t.Errorf("%s\nwant %s", refused.Message, c.want)
		}
	}
}

// A refused file of a source stops only the overlays and folders that need it.
func TestRefusedContent(t *testing.T) {
	const overlay = "-- app/kustomization.yaml --\nresources: [a.yaml]\n" + configMap
	for _, c := range []struct {
		tree, refused string // the path that is
		want          string // may be ""
	}{
		{overlay, "app/b.yaml", ""},
		{overlay, "app/sub", ""},
		{configMap, "other/b.yaml", ""},
		{configMap, "app/README.md", ""},
		{configMap, "app/.hidden.yaml", ""},
		{configMap, "app/b.yaml", "app/b.yaml is a link"},
		{configMap, "app/sub/kustomization.yaml", "app/sub/kustomization.yaml is a link"},
		{"-- app/kustomization.yaml --\nresources: [b.yaml]\n", "app/b.yaml", "app/kustomization.yaml: resources[0]: b.yaml is not in the source: app/b.yaml is a link"},
		{"-- app/kustomization.yaml --\nresources: [../base/it]\n", "base", "resources[0]: ../base/it is not in the source: base is a link"},
		{"-- other/a.yaml --\n", "app", "path app is not in the source: app is a link"},
	} {
		req := Request{Files: tree(txtar.Parse([]byte(c.tree)), ""), Refused: map[string]string{c.refused: "is a link"}, Path: "app"}
		if c.want == "" {
			if _, err := Render(req); err != nil {
				t.Errorf("%s: %v", c.refused, err)
			}
			continue
		}
		if refused := refusedAs(t, req, diag.BadSource); !strings.Contains(refused.Message, c.want) {
			t.Errorf("%s\nwant %s", refused.Message, c.want)
		}
	}
}

func TestFileNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../a.yaml", "/a.yaml", "a//b.yaml", "a/../b.yaml", "./a.yaml", `a\b.yaml`, "a/", "\xff.yaml"} {
		refusedAs(t, Request{Files: map[string][]byte{name: []byte("a: b")}, Path: "."}, diag.BadSource)
	}
	refusedAs(t, Request{Files: map[string][]byte{"a": nil, "a/b.yaml": nil}, Path: "."}, diag.BadSource)
	refusedAs(t, Request{Path: "."}, diag.BadSource)
}

// FuzzScan checks that no kustomization makes the scan panic. An accepted kustomization
// names no address and nothing outside the source.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		"resources: [a.yaml, ../base, https://example.com]", "bases: [../../x]", "transformers: ['{apiVersion: builtin}']", "patches: [{path: a.yaml}]",
		"configMapGenerator: [{files: [a=b=c]}]", "helmCharts: [{}]", "openapi: {path: ''}", "replacements: [{path: .}]", "vars: [{}]", "a: &a [*a]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := newScan(map[string][]byte{"app/kustomization.yaml": text, "app/a.yaml": []byte("a: b"), "base/kustomization.yaml": []byte("namePrefix: x")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.overlay("app") != nil {
			return
		}
		k := s.parsed["app"]
		for _, refs := range [][]reference{folderFields(&k), fileFields(&k)} {
			for _, r := range refs {
				name, err := s.resolve("app/kustomization.yaml", r)
				if err != nil || strings.Contains(r.value, "://") || outside(name) || s.files[name] == nil && !s.folders[name] {
					t.Errorf("%s: %s: %v", r.field, r.value, err)
				}
			}
		}
	})
}
