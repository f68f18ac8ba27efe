package project

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/helm"
	"github.com/kalypso-io/kalypso/compiler/project/kustomize"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
)

// The test binary is its own worker.
const workerArgument = "serve-as-a-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		if err := worker.Serve(os.Stdin, os.Stdout, map[string]worker.Handler{HandlerName: Handler()}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	commandtest.Main(m)
}

// chartJob is a job with a chart of one template, which is named t.
func chartJob(t testing.TB, template string) *Job {
	t.Helper()
	text := "-- Chart.yaml --\napiVersion: v2\nname: app\nversion: 1.0.0\n-- templates/t.yaml --\n" + template + "\n"
	return &Job{Helm: &helm.Request{Chart: commandtest.Chart(t, txtar.Parse([]byte(text)), ""), ReleaseName: "demo", Namespace: "apps"}}
}

// good is a job that renders to one object with value.
func good(t testing.TB, value string) *Job {
	return chartJob(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good, annotations: {helm.sh/hook: pre-install}}\ndata: {value: "+value+"}")
}

func withValues(t testing.TB, job *Job, values string) *Job {
	t.Helper()
	if err := job.Helm.Values.UnmarshalJSON([]byte(values)); err != nil {
		t.Fatal(err)
	}
	return job
}

func folderJob(files map[string]string) *Job {
	req := &kustomize.Request{Files: map[string][]byte{}, Path: "."}
	for name, text := range files {
		req.Files[name] = []byte(text)
	}
	return &Job{Kustomize: req}
}

func render1(t *testing.T, r Renderer, job *Job) Outcome {
	t.Helper()
	outcome, err := r.Render(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func wantGood(t *testing.T, r Renderer, value string) {
	t.Helper()
	outcome := render1(t, r, good(t, value))
	if len(outcome.Diagnostics) > 0 || len(outcome.Objects) != 1 {
		t.Fatalf("%+v", outcome)
	}
	data, _ := outcome.Objects[0].Value.Lookup("data")
	if v, _ := data.Lookup("value"); v.Text() != value || len(outcome.Objects[0].Hooks) != 1 {
		t.Errorf("%+v", outcome.Objects[0])
	}
}

// wantRefused checks an outcome's diagnostic.
func wantRefused(t *testing.T, outcome Outcome, code diag.Code, want string) {
	t.Helper()
	if len(outcome.Objects) > 0 || len(outcome.Diagnostics) != 1 {
		t.Fatalf("%d objects, %v", len(outcome.Objects), outcome.Diagnostics)
	}
	d := outcome.Diagnostics[0]
	if d.Code != code || d.Severity != diag.Error || !strings.Contains(d.Message, want) || d.Hint == "" || len(d.Sites) > 0 {
		t.Errorf("%+v\nwant %s %s", d, code, want)
	}
}

// Every outcome is the same in process and in a worker.
func TestSameInWorkers(t *testing.T) {
	_, w := workers(t, 1)
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"é\\u2028\\t<>&\", n: 1.0}\nx: [1e3, 0.5, -0.0, 123456789012345678901, null, true, {}, []]\n"
	versioned := good(t, "{{ .Capabilities.KubeVersion.Version }}")
	versioned.Helm.KubernetesVersion, versioned.Helm.APIVersions = "1.34.2", []string{"example.com/v1"}
	values := withValues(t, good(t, "{{ .Values.a.b | quote }}"), `{"a": {"b": 1000000}, "c": null}`)
	changed := folderJob(map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": config})
	changed.Kustomize.NamePrefix = "p-"
	changed.Kustomize.Patches = []model.KustomPatch{{Patch: "- {op: add, path: /data/z, value: z}", Target: map[string]string{"kind": "ConfigMap"}}}
	for name, job := range map[string]*Job{
		"chart": good(t, "x"), "version": versioned, "values": values, "folder": folderJob(map[string]string{"a.yaml": config}), "changed": changed,
		"no version": good(t, "{{ .Capabilities.KubeVersion }}"), "unstable": good(t, "{{ now }}"), "fails": good(t, `{{ fail "no" }}`), "no chart": {Helm: &helm.Request{}},
		"file name":   folderJob(map[string]string{"a.yaml": config, "\xff.txt": ""}),
		"no manifest": chartJob(t, "a: b"), "remote": folderJob(map[string]string{"kustomization.yaml": "resources: [https://example.com/]"}),
	} {
		t.Run(name, func(t *testing.T) {
			inside := render1(t, NewRenderer(nil), job)
			outside := render1(t, w, job)
			// Two JSON texts are equal if all visible fields are equal.
			a, errA := json.Marshal(inside)
			b, errB := json.Marshal(outside)
			if errA != nil || errB != nil || string(a) != string(b) || len(inside.Objects)+len(inside.Diagnostics) == 0 {
				t.Errorf("%s\nin a worker\n%s", a, b)
			}
			for i, o := range inside.Objects {
				if !o.Value.Equal(outside.Objects[i].Value) {
					t.Errorf("%s\nin a worker\n%s", o.Value, outside.Objects[i].Value)
				}
			}
		})
	}
}

func TestNoJob(t *testing.T) {
	_, w := workers(t, 1)
	for _, r := range []Renderer{NewRenderer(nil), w} {
		for _, job := range []*Job{{}, {Helm: &helm.Request{}, Kustomize: &kustomize.Request{}}} {
			if _, err := r.Render(context.Background(), job); err == nil {
				t.Errorf("%T renders %+v", r, job)
			}
		}
	}
}
