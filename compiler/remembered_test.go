package compiler_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// everyPart adds all inputs that can affect an assignment to the test platform, by file.
// Functions of the assignment are in files of their own, because the text of the file identifies
// them.
var everyPart = map[string]string{
	"functions.cue": `package platform

namespaceServices: default: {
	pattern: "\(#assignment.deploymentTarget)-\(#assignment.labels.zone)"
	#assignment: _
}
configs: where: {match: size: "large", #assignment: _, values: WHERE: "\(#assignment.labels.zone)"}
`,
	"environment.cue": `package platform

environments: dev: gitops: {repo: "https://git.example/gitops", branch: "main", path: "out"}
`,
	"services.cue": `package platform

namespaceServices: plain: {quota: pods: 20, secrets: externalSecret: refreshInterval: "1h"}
`,
	"reconcilers.cue": `package platform

reconcilers: {
	flux: flux: interval: "5m"
	hasty: flux: {wait: false, prune: false}
	argocd: argocd: syncPolicy: automated: prune: true
}
`,
	"workloads.cue": `package platform

workloads: shop: {
	requires: {LEVEL: *1 | int, ...}
	deploymentTargets: {
		one: {environment: "dev", manifests: helm: {repo: "https://charts.example", chart: "one", version: "1.0.0"}}
		two: {environment: "dev", dependsOn: ["shop-one"], manifests: git: {repo: "https://git.example/shop", tag: "v2"}}
		three: {environment: "dev", dependsOn: ["shop-two"], manifests: git: {repo: "https://git.example/shop", tag: "v3"}}
		four: {environment: "dev", dependsOn: ["shop-one"], manifests: git: {repo: "https://git.example/shop", tag: "v4"}}
	}
}
`,
	"configs.cue": `package platform

import "kalypso.io/schema"

configs: {
	tags: {match: {}, values: {TAGS: ["a", "b"], API_TOKEN: "open"}, plain: ["API_TOKEN"]}
	more: {match: {}, layer: 1, values: TAGS: ["b"], defaults: LOG_LEVEL: "warn"}
	vault: {match: size: "tiny", values: CREDENTIAL: schema.#Secret & {store: "vault", key: "db"}}
}
`,
	"schemas.cue": `package platform

configSchemas: {
	lists: {match: {}, lists: TAGS: "append"}
	advice: {match: {}, enforce: "advise", schema: {MISSING: string, ...}}
}
`,
	"own.cue": `package platform

namespaceServices: filed: {
	#assignment: _
	files: "notes/wave": text: "\(#assignment.wave) of \(#assignment.workload)"
}
configs: wave: {match: kind: "own", #assignment: _, values: WAVE: #assignment.wave}
reconcilers: text: gotemplate: reconciler: "run.sh": {
	contentType: "sh"
	template: """
		# {{ .Namespace }} {{ .Version }} {{ .Wave }} {{ .DependsOn | join "," }} {{ .Labels.shape }}
		run {{ .Manifests | toJson | squote }} {{ .ConfigData | toJson | squote }}
		"""
}
workloads: shop: labels: shape: "round"
reconcilers: own: {
	#assignment: _
	cue: {
		index: "where": text: #assignment.clusterType
		files: "facts.json": json: {
			dependsOn: #assignment.dependsOn
			manifests: #assignment.manifests
			format: #assignment.configFormat
			values: #assignment.values
			if #assignment.gitops != _|_ {
				gitops: #assignment.gitops
			}
		}
	}
}
`,
	"environments/dev/types.cue": `package platform

clusterTypes: {
	small: labels: zone: "a"
	large: {labels: zone: "a", description: "Large ones."}
	text: {labels: {zone: "a", region: "east"}, reconciler: "text"}
	own: {labels: {zone: "a", region: "east", kind: "own"}, reconciler: "own", namespaceService: "filed"}
	tiny: {labels: {zone: "a", region: "east", size: "tiny"}, reconciler: "hasty", namespaceService: "plain"}
}
`,
	"environments/dev/policies.cue": `package platform

schedulingPolicies: ahead: {deploymentTargets: name: "test", clusterTypes: {}, pin: version: "9.1.0"}
`,
}

// TestSlowAllThatIsRememberedIsKnownByItsParts changes the inputs of assignments, one at a time.
// With a cache that has everything else, the result must equal the result of a cold build. The
// same is true after the change is undone. Then nothing is computed again.
func TestSlowAllThatIsRememberedIsKnownByItsParts(t *testing.T) {
	isolated.Slow(t, "it changes a platform a hundred times")
	root := t.TempDir()
	platform, out := filepath.Join(root, "platform"), filepath.Join(root, "out")
	if err := os.CopyFS(platform, os.DirFS("../testdata/platform")); err != nil {
		t.Fatal(err)
	}
	removeAll(t, filepath.Join(platform, "environments", "prod"))
	c := openCache(t, cache.Options{Dir: filepath.Join(root, "cache")})
	step := func(t *testing.T, change *strings.Replacer) outcome {
		files := map[string]string{}
		for p, text := range everyPart {
			files[p] = change.Replace(text)
		}
		writeFiles(t, platform, files)
		want := cold(t, root, platform, outputFiles(t, out))
		got := compileTo(t, compiler.Request{Dir: platform, Cache: c}, out)
		if d := same(got, want); d != "" {
			t.Error(d)
		}
		return got
	}
	none := strings.NewReplacer()
	first := step(t, none)
	if !first.clean() {
		t.Fatalf("the platform has errors: %s", first.said["text"])
	}
	for _, change := range []struct{ name, from, to string }{
		{"a label that a namespace is named by", `small: labels: zone: "a"`, `small: labels: zone: "b"`},
		{"a label that a config uses", `zone: "a", description`, `zone: "b", description`},
		{"version", "9.1.0", "9.2.0"},
		{"wave", `two: {environment: "dev", dependsOn: ["shop-one"], `, `two: {environment: "dev", `},
		{"dependsOn", `["shop-two"]`, `["shop-four"]`},
		{"strategy of a list", `"append"`, `"unique"`},
		{"key of a secret", `key: "db"`, `key: "other"`},
		{"a secret that is a struct", `schema.#Secret & {store: "vault", key: "db"}`, `{store: "vault", key: "db"}`},
		{"how secrets are delivered", `"1h"`, `"2h"`},
		{"no gitops", `environments: dev: gitops: {repo: "https://git.example/gitops", branch: "main", path: "out"}`, ""},
		{"path of gitops", `path: "out"`, `path: "in"`},
		{"namespace service", "pods: 20", "pods: 21"},
		{"options of a reconciler", `"5m"`, `"6m"`},
		{"what folders share of a reconciler", "wait: false", "wait: true"},
		{"a warning of a backend", ", prune: false", ""},
		{"reconciler", `reconciler: "hasty"`, `reconciler: "argocd"`},
		{"configFormat", `reconciler: "hasty"`, `reconciler: "hasty", configFormat: "json"`},
		{"description", "Large ones.", "The large ones."},
		{"contract", "*1 | int", "*2 | int"},
		{"advice", "MISSING: string", "MISSING: int"},
		{"enforce", `enforce: "advise"`, `enforce: "block"`},
		{"layer", "layer: 1", "layer: 0"},
		{"plain", `, plain: ["API_TOKEN"]`, ""},
		{"manifests", `tag: "v3"`, `tag: "v5"`},
		{"match of a config", "more: {match: {}", `more: {match: region: "east"`},
		{"a file of a namespace service", `"notes/wave"`, `"notes/wave.txt"`},
		{"a file of a reconciler", `"facts.json": json`, `"facts.yaml": yaml`},
		{"a file of an index", `index: "where"`, `index: "where/to"`},
		{"a template", "# {{", "#{{"},
		{"a label that a template uses", `"round"`, `"square"`},
		{"a template that fails", ".Labels.shape", ".Labels.colour"},
		{"a fact of a function", `dependsOn: #assignment`, `after: #assignment`},
		{"configFormat that a function uses", `namespaceService: "filed"`, `namespaceService: "filed", configFormat: "sh"`},
		{"conflict", `LOG_LEVEL: "warn"`, `LOG_LEVEL: 5`},
	} {
		t.Run(change.name, func(t *testing.T) {
			changed := step(t, strings.NewReplacer(change.from, change.to))
			if first.said["text"] == changed.said["text"] && differs(changed.files, first.files) == "" {
				t.Error("the change makes no difference")
			}
			back := step(t, none)
			for _, level := range []cache.Level{cache.Model, cache.Tuple, cache.Assignment} {
				if n := back.computed(level); n > 0 {
					t.Errorf("%d of level %s are computed once more", n, level)
				}
			}
		})
	}
	closeCache(t, c)
}
