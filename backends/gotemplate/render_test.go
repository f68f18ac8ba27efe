package gotemplate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// assignment is one with something of everything that a template sees.
func assignment(t testing.TB) *backends.Assignment {
	p := bt.Platform{Options: "{}"}
	a := p.Assignment(t, bt.Target{Name: "app/main", Manifests: bt.Git, DependsOn: []string{"db-main"}, Wave: 1})
	a.Labels = map[string]string{"use-case": "test"}
	a.ClusterTypeLabels = map[string]string{"region": "east"}
	a.Version = "1.2.3"
	a.Values = bt.Value(t, `{"REGION": "no", "REPLICAS": 3, "RATIO": 1.0, "BIG": 123456789012345678901234567890, "NONE": null, "ON": true,
		"db": {"host": "db.example.test", "ports": [1, 2]}, "LINES": "a\nb\n"}`)
	a.Secrets = []backends.Secret{{Name: "DB_PASSWORD", Store: "vault", Key: "db"}}
	return a
}

// render makes a file of the content type contentType, or text by default.
func render(t testing.TB, a *backends.Assignment, text, contentType string) (string, []diag.Diagnostic) {
	t.Helper()
	e := &emission{assignment: a, mentioned: map[string]bool{}}
	e.add(source{path: "out", text: text, contentType: contentType, ref: model.Ref{Collection: "reconcilers", Name: "main", Path: `gotemplate.reconciler.out`}})
	if len(e.ds) > 0 || len(e.folder.Files) == 0 {
		return "", e.ds
	}
	return string(e.folder.Files[0].Data), nil
}

// Fields that templates of the original Kalypso used still have the same meaning.
func TestWhatTemplatesSee(t *testing.T) {
	a := assignment(t)
	for text, want := range map[string]string{
		`{{ .DeploymentTargetName }} {{ .Namespace }} {{ .Environment }} {{ .Workspace }} {{ .Workload }} {{ .ClusterType }}`: "app-main dev-large-app-main dev team app large",
		`{{ .Manifests.repo }} {{ .Manifests.branch }} {{ .Manifests.path }} {{ .Manifests.kind }}`:                           "https://git.example.test/app main ./deploy git",
		`{{ .Application }} {{ .Version }} {{ .ConfigFormat }} {{ .Wave }} {{ .DependsOn | join "," }}`:                       "app 1.2.3 configmap 1 db-main",
		`{{ index .Labels "use-case" }} {{ .Labels.workspace }} {{ get .Labels "none" }}{{ hasKey .Labels "none" }}`:          "test team false",
		`{{ .ClusterTypeLabels.region }} {{ hasKey .ClusterTypeLabels "use-case" }} {{ hasKey .Labels "region" }}`:            "east false false",
		`{{ range .Secrets }}{{ .name }} {{ .store }} {{ .key }}{{ end }}`:                                                    "DB_PASSWORD vault db",
		`{{ range $k, $v := .ConfigData.db }}{{ $k }}={{ $v }};{{ end }}`:                                                     "host=db.example.test;ports=[1 2];",
		`{{ .ConfigData.REPLICAS | add 1 }} {{ .ConfigData.BIG }} {{ .ConfigData.ON }} {{ .ConfigData.REGION }}`:              "4 123456789012345678901234567890 true no",
		`{{ range until .ConfigData.REPLICAS }}{{ . }}{{ end }}{{ range 2 }}{{ . }}{{ end }}`:                                 "01201",
		`{{ toYaml .ConfigData }}`:                    "BIG: 123456789012345678901234567890\nLINES: |\n  a\n  b\nNONE: null\n\"ON\": true\nRATIO: 1.0\nREGION: \"no\"\nREPLICAS: 3\ndb:\n  host: db.example.test\n  ports:\n  - 1\n  - 2",
		`{{ stringify .ConfigData }}`:                 "BIG: \"123456789012345678901234567890\"\nLINES: |\n  a\n  b\nNONE: \"\"\n\"ON\": \"true\"\nRATIO: \"1.0\"\nREGION: \"no\"\nREPLICAS: \"3\"\ndb: |\n  host: db.example.test\n  ports:\n  - 1\n  - 2",
		`{{ stringify 3 }}{{ stringify (list 1) }}`:   "3- 1\n",
		`{{ toYaml "no" }} {{ toYaml (list 1 "1") }}`: "\"no\" - 1\n- \"1\"",
		`{{ hash "app" }} {{ hash "app" | trunc 4 }}`: "15626571620140684718 1562",
		`{{ hash .ConfigData.db | eq (hash .ConfigData.db) }} {{ hash .Labels | eq (hash .ConfigData) }}`: "true false",
		`{{ unquote " '\"x y\"' " }}|`:                                                                      "x y|",
		`{{ keys (dict "b" 1 "a" 2) }}{{ values (dict "b" 1 "a" 2) }}`:                                      "[a b][2 1]",
		"{{ (fromJson `{\"a\": 1}`).a }} {{ toJson .ConfigData.db }}":                                       `1 {"host":"db.example.test","ports":[1,2]}`,
		`{{ print 1 2 }} {{ printf "%03d|%5s" 7 "x" }} {{ html "<" }}`:                                      `1 2 007|    x &lt;`,
		`{{ (semver "1.2.3").Major }} {{ semverCompare "^1.0" .Version }}`:                                  "1 true",
		`{{ eq .Workload "app" }} {{ .Workload | ne "x" }} {{ lt 1 .Wave | not }} {{ and .Wave .Version }}`: "true true true 1.2.3",
		`{{ define "x" }}[{{ . }}]{{ end }}{{ template "x" .Wave }}{{ template "x" 2 }}`:                    "[1][2]",
		`{{ with .ConfigData.db }}{{ .host }}{{ end }}{{ if .ConfigData.NONE }}x{{ else }}y{{ end }}`:       "db.example.testy",
		`{{ $d := dict "a" 1 }}{{ $_ := set $d "b" $d.a }}{{ $d }}`:                                         "map[a:1 b:1]",
		`{{ "{{ .Workload }}" }}`: "{{ .Workload }}", // never a template again
		`{{- /* nothing */ -}}`:   "",
		"a\r\nb\x00":              "a\r\nb\x00",
	} {
		got, ds := render(t, a, text, "text")
		if len(ds) > 0 || got != want {
			t.Errorf("%s\ngot  %q %v\nwant %q", text, got, ds, want)
		}
	}
}

// The source, whatever it is, has its fields at one level.
func TestManifests(t *testing.T) {
	values := bt.Value(t, `{"a": 1}`)
	attributes := bt.Value(t, `{"storage": "git", "type": "kustomize", "kind": "mine", "repo": "mine"}`)
	git := model.Git{Repo: "https://git.example.test/app", Tag: "v1"}
	for want, m := range map[string]model.Manifests{
		`{"kind":"oci","path":"./","tag":"1.2.3","url":"oci://registry.example.test/app"}`:                   bt.OCI,
		`{"chart":"app","kind":"helm","repo":"https://charts.example.test","version":"1.2.3"}`:               bt.Chart,
		`{"kind":"helm","oci":"oci://x/y","values":{"a":1},"version":"1"}`:                                   {Helm: &model.Helm{OCI: "oci://x/y", Version: "1", Values: &values}},
		`{"kind":"kustomize","path":"overlays/x","repo":"https://git.example.test/app","tag":"v1"}`:          {Kustomize: &model.Kustomize{Git: &git, Path: "overlays/x"}},
		`{"kind":"kustomize","path":"x","url":"oci://x/y"}`:                                                  {Kustomize: &model.Kustomize{OCI: &model.OCI{URL: "oci://x/y"}, Path: "x"}},
		`{"kind":"ansible","playbook":"site.yml","repo":"https://git.example.test/app","tag":"v1"}`:          {Ansible: &model.Playbook{Git: &git, Playbook: "site.yml"}},
		`{"kind":"git","repo":"https://git.example.test/app","storage":"git","tag":"v1","type":"kustomize"}`: {Git: &git, Attributes: &attributes},
		`{"deb":{"app":{"version":"1"}},"kind":"package"}`:                                                   {Package: &model.Package{Deb: map[string]model.Deb{"app": {Version: "1"}}}},
	} {
		if got, err := json.Marshal(manifestsOf(m)); err != nil || string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// An error names the template, its line, and the assignment.
func TestFailures(t *testing.T) {
	a := assignment(t)
	for text, want := range map[string]string{
		"a\nb\n{{ .Manifests.tag }}":                  `out fails in line 3, at .Manifests.tag: there is no key "tag"`,
		"\n{{ .Deployment }}":                         `out fails in line 2, at .Deployment: there is no key "Deployment"`,
		`{{ index .Labels "useCase" }}`:               `out fails in line 1, at index .Labels "useCase": `,
		`{{ index .DependsOn 5 }}`:                    "there is no element 5 of 1",
		`{{ .ConfigData.NONE }}`:                      "the value is null",
		`{{ eq .Workload (len .Labels) }}`:            "at eq .Workload (len .Labels): error calling eq: incompatible types for comparison",
		`{{ if .Labels | lt .Workload }}{{ end }}`:    "at lt .Workload: error calling lt: ",
		`{{ range .Workload }}{{ end }}`:              "line 1: range can't iterate over app",
		`{{ .Workload.name }}`:                        "can't evaluate field name",
		`{{ if .Nothing }}{{ end }}`:                  `there is no key "Nothing"`,
		`{{ fail "no\nway" }}`:                        "no way",
		`{{ div 1 0 }}`:                               "divide by zero",
		`{{ template "none" }}`:                       `"none" not defined`,
		"{{ range .Labels }}":                         "out fails in line 1",
		"\n\n{{ nothing }}":                           `out fails in line 3: function "nothing" not defined`,
		`{{ toYaml (semver "1.2.3") }}`:               "has no YAML",
		"{{ .Workload }}\n{{ env \"HOME\" }}":         "calls env in line 2, which reads the environment variables of whoever builds",
		`{{ if false }}{{ now }}{{ end }}`:            "calls now in line 1, which depends on the clock",
		`{{ dict "a" (list (uuidv4)) }}`:              "calls uuidv4 in line 1, which gives something else each time",
		`{{ "x" | getHostByName }}`:                   "calls getHostByName in line 1, which asks the network",
		`{{ block "b" . }}{{ genCA "x" 1 }}{{ end }}`: "calls genCA",
		`{{ kalypsoMark 0 }}`:                         "kalypso's own",
	} {
		_, ds := render(t, a, text, "text")
		if len(ds) == 0 {
			t.Errorf("%s: no error", text)
			continue
		}
		if d := ds[0]; d.Code != diag.Template || !strings.Contains(d.Message, want) || len(d.Sites) == 0 || strings.Contains(d.Message, "\n") || strings.Contains(d.Message, "kalypsoW") {
			t.Errorf("%s\ngot  %+v\nwant %s", text, d, want)
		}
	}
	if _, ds := render(t, a, "{{ .Deploymenttargetname }}", "text"); ds[0].Hint != "did you mean DeploymentTargetName?" {
		t.Errorf("got %q", ds[0].Hint)
	}
}

// Templates that loop, recurse or grow are stopped, at once and with a reason.
func TestBounds(t *testing.T) {
	a := assignment(t)
	deep := strings.Repeat("{{ range until 50 }}", 8) + strings.Repeat("{{ end }}", 8)
	for name, text := range map[string]string{
		"until":            `{{ range until 1000000000000 }}x{{ end }}`,
		"until-negative":   `{{ until -1000000000000 }}`,
		"until-step":       `{{ untilStep 0 9223372036854775807 1 }}`,
		"until-step-wrap":  `{{ untilStep 9223372036854775000 9223372036854775807 9223372036854775807 }}{{ untilStep -9223372036854775807 9223372036854775807 1 }}`,
		"seq":              `{{ seq 1 1000000000 }}`,
		"seq-step":         `{{ seq 1 2 1000000000 }}`,
		"range-int":        `{{ range 1000000000000 }}{{ end }}`,
		"range-nested":     deep,
		"range-assign":     `{{ $x := 0 }}{{ range 1000000000000 }}{{ $x = . }}{{ end }}`,
		"range-maps":       `{{ $m := dict }}{{ range until 100000 }}{{ range $.ConfigData }}{{ break }}{{ end }}{{ end }}` + strings.Repeat(`{{ range until 10000 }}{{ range $.ConfigData }}{{ end }}{{ end }}`, 20),
		"repeat":           `{{ repeat 1000000000 "xxxx" }}`,
		"repeat-doubling":  `{{ $x := "xxxxxxxx" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}{{ $x }}`,
		"indent":           `{{ indent 1000000000 "x" }}`,
		"nindent":          `{{ nindent 100000000 "x" }}`,
		"replace":          `{{ $x := repeat 100000 "x" }}{{ replace "x" $x $x }}`,
		"replace-empty":    `{{ $x := repeat 100000 "x" }}{{ replace "" $x $x }}`,
		"wrap-with":        `{{ $x := repeat 100000 "x" }}{{ wrapWith 1 $x $x }}`,
		"printf-width":     `{{ printf "%999999d%999999d%999999d%999999d%999999d%999999d%999999d%999999d%999999d" 1 1 1 1 1 1 1 1 1 }}`,
		"printf-gibibyte":  `{{ printf "` + strings.Repeat("%1000000d", 1074) + `" }}`,
		"join":             `{{ $x := repeat 100000 "x" }}{{ join $x (until 100000) }}`,
		"printf-star":      `{{ printf (repeat 100 "%[1]*[1]d") 999999 }}`,
		"printf-many":      `{{ printf (repeat 100000 "%[1]v") (repeat 1000 "x") }}`,
		"output":           `{{ $x := repeat 1000000 "x" }}{{ range until 100 }}{{ $x }}{{ end }}`,
		"regex":            `{{ $x := repeat 100000 "a" }}{{ regexFindAll "a.*b|a" $x -1 }}`,
		"regex-program":    `{{ regexMatch (repeat 1000 "(a{10}){10}") (repeat 10000 "a") }}`,
		"regex-replace":    `{{ $x := repeat 10000 "a" }}{{ regexReplaceAll "a" $x $x }}`,
		"regex-split":      `{{ $x := repeat 100000 "a" }}{{ regexSplit "a.*b|a" $x -1 }}`,
		"uniq":             `{{ uniq (untilStep 0 200000 1) }}`,
		"bomb":             `{{ $x := dict "a" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ $x }}`,
		"bomb-yaml":        `{{ $x := dict "a" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toYaml $x }}`,
		"bomb-compared":    `{{ $x := dict "a" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ deepEqual $x $x }}`,
		"cycle":            `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $x }}`,
		"cycle-yaml":       `{{ $x := dict }}{{ $_ := set $x "x" (list $x) }}{{ toYaml $x }}`,
		"cycle-json":       `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toJson $x }}`,
		"cycle-hash":       `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ hash $x }}`,
		"cycle-copy":       `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ deepCopy $x }}`,
		"cycle-merge":      `{{ $x := dict }}{{ $_ := merge $x (dict "x" $x) }}{{ toYaml $x }}`,
		"cycle-default":    `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ default $x "" }}`,
		"compare":          `{{ $x := repeat 4000000 "x" }}{{ $y := repeat 4000000 "x" }}{{ range 10000000 }}{{ $z := eq $x $y }}{{ end }}`,
		"compare-piped":    `{{ $x := repeat 4000000 "x" }}{{ $y := repeat 4000000 "x" }}{{ range 10000000 }}{{ $z := $x | eq $y }}{{ end }}`,
		"compare-inside":   `{{ $x := repeat 4000000 "x" }}{{ $y := repeat 4000000 "x" }}{{ if not (or ` + strings.Repeat("(ne $x $y) ", 100) + `) }}{{ end }}`,
		"range-keys":       `{{ $m := dict }}{{ range until 30000 }}{{ $_ := set $m (toString .) 1 }}{{ end }}{{ range 1000000 }}{{ range $m }}{{ break }}{{ end }}{{ end }}`,
		"recursion":        `{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}`,
		"recursion-binary": `{{ define "r" }}{{ if . }}{{ template "r" (rest .) }}{{ template "r" (rest .) }}{{ end }}{{ end }}{{ template "r" (until 40) }}`,
		"recursion-output": `{{ define "r" }}xxxxxxxx{{ range until 3 }}{{ template "r" . }}{{ end }}{{ end }}{{ template "r" . }}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, ds := render(t, a, text, "text")
			if len(ds) != 1 || ds[0].Code != diag.Template {
				t.Fatalf("got %v", ds)
			}
			if _, again := render(t, a, text, "text"); len(again) != 1 || again[0].Message != ds[0].Message {
				t.Errorf("got %v, and again %v", ds, again)
			}
			if d := ds[0]; len(d.Message) > 300 || !strings.Contains(d.Message, "in line 1") {
				t.Errorf("got %s", d.Message)
			}
		})
	}
}

// A bound is named with the line that exceeds it, and so is a value that cannot be written.
func TestLineOfBound(t *testing.T) {
	for text, want := range map[string]string{
		"a\n{{ range 10000000 }}\n{{ end }}":                                         "is stopped in line 2: it goes on for too long",
		"a\n{{ define \"r\" }}\n\n{{ template \"r\" }}{{ end }}{{ template \"r\" }}": "is stopped in line 2: templates are in templates more than 200 times",
		"{{ $x := \"a\" }}{{ range 40 }}\n\n{{ $x = print $x $x }}{{ end }}":         "is stopped in line 3: a value is larger than 4 MiB",
		"a\n\n{{ repeat 1000000000 \"xx\" }}":                                        "is stopped in line 3: repeat makes more than 4 MiB",
		"{{ $x := repeat 4000000 \"x\" }}\n{{ $x }}\n{{ $x }}":                       "is stopped in line 3: it makes more than 4 MiB",
		"a\n\n{{ .ConfigData.NONE }}":                                                "fails in line 3: the value is null, and cannot be written",
	} {
		if _, ds := render(t, assignment(t), text, "text"); len(ds) != 1 || !strings.Contains(ds[0].Message, "out "+want) {
			t.Errorf("%q\ngot  %+v\nwant %s", text, ds, want)
		}
	}
}

// A template's changes of its data are not visible to other templates.
func TestTemplatesAreApart(t *testing.T) {
	a := assignment(t)
	for range 2 {
		got, ds := render(t, a, `{{ $_ := set .ConfigData "REGION" "changed" }}{{ $_ = set . "Workload" "x" }}{{ .Workload }}`, "text")
		if got != "x" || len(ds) > 0 {
			t.Errorf("got %q, %v", got, ds)
		}
	}
	if got, ds := render(t, a, `{{ .ConfigData.REGION }}{{ .Workload }}`, "text"); got != "noapp" {
		t.Errorf("got %q, %v", got, ds)
	}
}
