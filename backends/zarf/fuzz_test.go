package zarf_test

import (
	"encoding/json"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/zarf"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
	"github.com/kalypso-io/kalypso/internal/testing/zarftest"
)

// FuzzObjects packages any two objects, rendered and by reference. Zarf must accept every
// package that kalypso accepts.
func FuzzObjects(f *testing.F) {
	f.Add(widgets, widget, true)
	f.Add(deployment("app", "nginx"), `{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "a"}, "spec": {"url": "https://git.example.test/a", "ref": {"tag": "v1"}}}`, false)
	f.Add(`{"apiVersion": "argoproj.io/v1", "kind": "Application", "metadata": {"name": "a"}, "spec": {"sources": [{"repoURL": "oci://x/y", "targetRevision": "1"}, 2]}}`, `{"kind": "List", "items": [[]]}`, true)
	f.Fuzz(func(t *testing.T, first, second string, render bool) {
		p := &model.Projection{Revision: commit}
		for _, text := range []string{first, second} {
			var v model.Value
			if json.Unmarshal([]byte(text), &v) != nil {
				return
			}
			p.Objects = append(p.Objects, model.Projected{Value: v})
		}
		tree := bt.Build(t, zarf.New(), bt.Platform{Options: defaults, Targets: []bt.Target{{Name: "app/main", Manifests: bt.Git, Render: render, Projection: p}}})
		if len(tree.Folders) == 0 {
			return
		}
		if err := zarftest.Check(tree.Files); err != nil && tree.Files["zarf.yaml"] != nil {
			t.Errorf("%v\n%s", err, tree.Files["zarf.yaml"])
		}
	})
}

// FuzzShared reads any record of a folder. The definition that Index writes must be YAML.
func FuzzShared(f *testing.F) {
	f.Add([]byte(`{"name": "app-main", "description": "", "only": {"cluster": {}}, "manifests": [{"files": ["app-main/x"]}]}`))
	f.Add([]byte(`{"name": "app-main", "charts": [{"localPath": "app-main"}], "files": [{"source": "a://b"}]}`))
	clusterType := bt.Platform{Options: defaults}.ClusterType(f)
	f.Fuzz(func(t *testing.T, shared []byte) {
		files, ds := zarf.New().Index(clusterType,
			[]backends.Folder{{DeploymentTarget: "app-main", Backend: "zarf", Shared: shared}})
		if (len(files) == 0) != diag.Errors(ds) {
			t.Errorf("%d files and %+v", len(files), ds)
		}
		for _, file := range files {
			if file.Path == zarf.DefinitionFile && len(documents(t, file.Data)) != 1 {
				t.Errorf("got %s", file.Data)
			}
		}
	})
}
