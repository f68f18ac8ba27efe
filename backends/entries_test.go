package backends_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// TestEntries checks that the entry of each cluster builds with kustomize in an environment's tree,
// beside the folder of its class. It does so with and without values of the cluster's own. A
// backend without entries gives the reason. Entries of one class differ only if the clusters
// differ.
func TestEntries(t *testing.T) {
	one, two := bt.Value(t, `{"REGION": "west", "EMPTY": "no"}`), bt.Value(t, `{"REGION": "east", "EMPTY": ""}`)
	refused := []string{"fleet", "gotemplate", "cue"}
	for _, b := range all {
		for name, clusters := range map[string][]model.Cluster{
			"alike":  {{Name: "edge-1"}, {Name: "edge-2"}},
			"values": {{Name: "edge-1", Values: &one}, {Name: "edge-2", Values: &two}},
		} {
			t.Run(b.Name()+"/"+name, func(t *testing.T) {
				if name == "values" && !b.Traits().PerCluster {
					return
				}
				p := bt.Platform{Options: b.options, GitOps: bt.GitOps, Targets: deliverable(t, b), Clusters: clusters}
				if name == "values" && b.Name() == "argocd" {
					p.Options = `{"namespace": "argocd", "clusters": "inventory"}`
				}
				ct := p.ClusterType(t)
				ct.Folder, ct.Entries = "large.config_cameras", true
				entry, ds := b.Entries(ct)
				if slices.Contains(refused, b.Name()) || name == "values" && b.Name() == "argocd" {
					if len(ds) != 1 || ds[0].Code != diag.NoEntries || entry != nil || ds[0].Hint == "" {
						t.Errorf("got %+v, and want one %s", ds, diag.NoEntries)
					}
					return
				}
				if len(ds) > 0 {
					t.Fatal(ds)
				}
				tree := bt.Build(t, b, p)
				checkEntries(t, ct, tree, entry, name == "alike")
			})
		}
	}
}

func checkEntries(t *testing.T, ct *backends.ClusterType, tree bt.Tree, entry func(*model.Cluster) []backends.File, alike bool) {
	t.Helper()
	files := map[string][]byte{}
	for name, data := range tree.Files {
		files[ct.Dir()+"/"+name] = data
	}
	var texts []string
	for i := range ct.Clusters {
		c := &ct.Clusters[i]
		made := entry(c)
		if !slices.IsSortedFunc(made, func(f, g backends.File) int { return strings.Compare(f.Path, g.Path) }) || len(made) == 0 {
			t.Errorf("the files are not sorted, or there are none: %v", made)
		}
		var text strings.Builder
		for _, f := range made {
			files[backends.EntryDir(c.Name)+"/"+f.Path] = f.Data
			text.WriteString(f.Path + "\n" + strings.ReplaceAll(string(f.Data), c.Name, "X"))
		}
		if !strings.Contains(text.String(), "../../../"+ct.Dir()) {
			t.Errorf("the entry does not name %s:\n%s", ct.Dir(), text.String())
		}
		texts = append(texts, text.String())
	}
	if alike != (texts[0] == texts[1]) {
		t.Errorf("entries of one class that are alike: %v, want %v:\n%s", !alike, alike, strings.Join(texts, "\n---\n"))
	}
	bt.CheckKustomizations(t, files)
}
