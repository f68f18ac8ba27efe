package kubernetes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sigs "sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const allKinds = `{"S": "text", "YES": "yes", "N": 3, "F": 2.50, "T": true, "X": null, "L": [1, "a"], "M": {"b": "no", "a": {"c": 1.0}}, "E": "", "LINES": "a\nb\n"}`

func TestPlatformConfig(t *testing.T) {
	const head = `apiVersion: v1
kind: ConfigMap
metadata:
  name: platform-config
  namespace: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
`
	for _, test := range []struct {
		name   string
		format model.ConfigFormat
		values string
		want   string
	}{
		{"no values", model.ConfigMap, `{}`, ""},
		{"no values in a document", model.JSON, `{}`, "data:\n  platform-config.json: |\n    {}\n"},
		{"no values in an environment", model.Env, `{}`, "data:\n  platform-config.env: \"\"\n"},
		{"configmap", model.ConfigMap, allKinds, `data:
  E: ""
  F: "2.50"
  L: '[1,"a"]'
  LINES: |
    a
    b
  M: '{"a":{"c":1.0},"b":"no"}'
  "N": "3"
  S: text
  T: "true"
  X: ""
  "YES": "yes"
`},
		{"env", model.Env, allKinds, `data:
  platform-config.env: |
    E=""
    F="2.50"
    L="[1,\"a\"]"
    LINES="a
    b
    "
    M="{\"a\":{\"c\":1.0},\"b\":\"no\"}"
    N="3"
    S="text"
    T="true"
    X=""
    YES="yes"
`},
		{"sh", model.Sh, allKinds, `data:
  platform-config.sh: |
    export E=''
    export F='2.50'
    export L='[1,"a"]'
    export LINES='a
    b
    '
    export M='{"a":{"c":1.0},"b":"no"}'
    export N='3'
    export S='text'
    export T='true'
    export X=''
    export YES='yes'
`},
		{"json", model.JSON, `{"b": [1, {"c": null}], "a.b": "<3>", "n": 2.50}`, `data:
  platform-config.json: |
    {
      "a.b": "<3>",
      "b": [
        1,
        {
          "c": null
        }
      ],
      "n": 2.50
    }
`},
		{"yaml", model.YAML, `{"b": [1, {"c": null}], "a.b": "3", "n": 2.50}`, `data:
  platform-config.yaml: |
    a.b: "3"
    b:
    - 1
    - c: null
    "n": 2.50
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := assignment(t, plainService)
			a.ConfigFormat, a.Values = test.format, value(t, test.values)
			files, objects, ds := Workspace(a)
			if len(ds) > 0 {
				t.Fatal(ds)
			}
			if got := string(files[1].Data); got != head+test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, head+test.want)
			}
			checkObjects(t, files, objects)
		})
	}
}

func TestDocumentsKeepTypes(t *testing.T) {
	values := value(t, allKinds)
	for _, format := range []model.ConfigFormat{model.JSON, model.YAML} {
		text, ds := ConfigText(format, values)
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		asJSON, err := sigs.YAMLToJSON(text)
		if format == model.JSON {
			asJSON, err = text, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(asJSON, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(values.AppendJSON(nil), &want); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s: got %#v, want %#v", format, got, want)
		}
	}
}

func TestBadConfigKeys(t *testing.T) {
	for _, test := range []struct {
		format  model.ConfigFormat
		values  string
		path    string
		message string
	}{
		{model.ConfigMap, `{"a b": 1}`, `"a b"`, `the value "a b" cannot be a key of a ConfigMap`},
		{model.ConfigMap, `{"..": 1}`, `".."`, "ConfigMap"},
		{model.ConfigMap, `{"": 1}`, `""`, "ConfigMap"},
		{model.ConfigMap, `{"` + strings.Repeat("a", 254) + `": 1}`, strings.Repeat("a", 254), "ConfigMap"},
		{model.Env, `{"a.b": 1}`, `"a.b"`, "environment variable"},
		{model.Sh, `{"a-b": {"c": 1}}`, `"a-b"`, "environment variable"},
		{model.Sh, `{"1a": 1}`, `"1a"`, "environment variable"},
		{model.Sh, `{"é": 1}`, `"é"`, "environment variable"},
		{model.Env, `{"UID": 1}`, `UID`, "shells"},
		{model.Env, `{"A": "a\u0000b"}`, `A`, "NUL"},
		{model.Sh, `{"A": "\u0000"}`, `A`, "NUL"},
	} {
		a := assignment(t, plainService)
		a.ConfigFormat, a.Values = test.format, value(t, test.values)
		_, _, ds := Workspace(a)
		if len(ds) != 1 || ds[0].Code != diag.BadConfigKey || ds[0].Path != test.path || !strings.Contains(ds[0].Message, test.message) {
			t.Errorf("%s %s: got %+v", test.format, test.values, ds)
		}
	}
	if _, ds := ConfigText("ini", model.StructOf()); len(ds) != 1 {
		t.Errorf("an unknown format: got %v", ds)
	}
}

// hostile are values that break out of careless quoting.
var hostile = []string{
	"", " ", "plain", "it's", "''", "'", `"`, `\`, `\\`, `\'`, `\"`, "`id`", "$(id)", "$HOME", "${HOME}", "$", "$$", "$'x'", "a\\\nb",
	"!", "!!", "!$", "a!b", "\n", "\n\n", "a\nb", "a\n", "\na", "\t", "\r", "\r\n", "a;id", "a&b", "a|b", "a>b", "*", "?", "~", "~root",
	"#c", " # c", "a=b", "-n", "-e", `\n`, `\0`, `\c`, `%s%d`, "{a,b}", "[a]", "é", "日本", "😀", "\u0085", "\u2028", "\ufeff", "\x01\x7f",
	"'; exit 1; '", `"; exit 1; "`, "EOF", "\\`$\"'!\n",
}

// TestShellReadsBack sources files in env and sh with the real sh.
func TestShellReadsBack(t *testing.T) {
	values := slices.Clone(hostile)
	alphabet := []string{"'", `"`, `\`, "$", "`", "!", "\n", " ", "a", "(", ")", "{", "}", "#", "\r", "\t", "é", "%", "=", "H", "OME", ";"}
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var s strings.Builder
		for range 1 + random.IntN(10) {
			s.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		values = append(values, s.String())
	}
	for format, set := range map[model.ConfigFormat]string{model.Env: "set -a; ", model.Sh: ""} {
		for batch := range slices.Chunk(values, 400) {
			readBack(t, format, set, batch)
		}
	}
}

func readBack(t *testing.T, format model.ConfigFormat, set string, values []string) {
	t.Helper()
	var fields []model.Field
	for i, v := range values {
		fields = append(fields, model.Field{Name: fmt.Sprintf("KALYPSO_%d", i), Value: model.StringOf(v)})
	}
	text, ds := ConfigText(format, model.StructOf(fields...))
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	file := filepath.Join(t.TempDir(), "platform-config")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", set+`. "$0" && exec env -0`, file)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/home/nobody"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", format, err, out)
	}
	got := map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		got[name] = value
	}
	for i, want := range values {
		if value, ok := got[fmt.Sprintf("KALYPSO_%d", i)]; !ok || value != want {
			t.Errorf("%s: sh reads %q back as %q (%v)", format, want, value, ok)
		}
	}
}

// Only the platform config has the digest of the values, and no other object of the
// workspace has it.
func TestValuesDigest(t *testing.T) {
	a := assignment(t, `{"name": "default", "deletion": "delete"}`)
	a.Digest = model.DigestOf("values")
	files, _, ds := Workspace(a)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	for _, f := range files {
		want := 0
		if f.Path == PlatformConfigFile {
			want = 1
		}
		if got := strings.Count(string(f.Data), "kalypso.io/values: "+string(a.Digest)); got != want {
			t.Errorf("%s has the digest %d times, want %d:\n%s", f.Path, got, want, f.Data)
		}
	}
}
