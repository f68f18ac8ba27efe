package kubernetes

import (
	"testing"

	"github.com/kalypso-io/kalypso/backends"
)

func TestREADME(t *testing.T) {
	ct := &backends.ClusterType{Environment: "dev", Name: "large", Description: "Big clusters."}
	const head = "# large\n\nBig clusters.\n\nWhat kalypso assigns to the cluster type `large` in the environment `dev`.\n" +
		"This folder is generated: change the platform, not the files.\n\n"
	for _, test := range []struct {
		folders []backends.Folder
		want    string
	}{
		{nil, head + "There are no assignments.\n"},
		{
			[]backends.Folder{
				{DeploymentTarget: "hello-test", Workload: "hello", Version: "1.2.3-rc.1+b", Workspace: "app-team", Namespace: "dev-large-hello-test"},
				{DeploymentTarget: "observability-prometheus", Workload: "observability", Workspace: "platform-team", Namespace: "obs"},
			},
			head + `| deployment target | workload | version | workspace | namespace |
|---|---|---|---|---|
| [hello-test](hello-test) | hello | 1.2.3-rc.1+b | app-team | dev-large-hello-test |
| [observability-prometheus](observability-prometheus) | observability |  | platform-team | obs |
`,
		},
	} {
		f := README(ct, test.folders)
		if f.Path != "README.md" || string(f.Data) != test.want {
			t.Errorf("%s:\n%s\nwant:\n%s", f.Path, f.Data, test.want)
		}
	}
}

func TestKustomization(t *testing.T) {
	const head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	for _, test := range []struct {
		resources []string
		want      string
	}{
		{nil, head + "resources: []\n"},
		{[]string{"namespace.yaml", "hello-test"}, head + "resources:\n- namespace.yaml\n- hello-test\n"},
	} {
		f := Kustomization(test.resources)
		if f.Path != "kustomization.yaml" || string(f.Data) != test.want {
			t.Errorf("%v: %s\n%s", test.resources, f.Path, f.Data)
		}
	}
}
