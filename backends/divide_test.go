package backends_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

type dividing interface {
	Divide(path string, data []byte, own bool) map[string][]byte
}

// TestDivide checks that Divide loses nothing: if any line of a file changes, a part changes too. A
// value of one cluster is only in the part of that cluster.
func TestDivide(t *testing.T) {
	values := func(a string) []model.Cluster {
		one, two := bt.Value(t, `{"REGION": "`+a+`"}`), bt.Value(t, `{"REGION": "1.50"}`)
		return []model.Cluster{{Name: "edge-1", Values: &one}, {Name: "edge-2", Values: &two}}
	}
	for _, b := range all {
		if !b.Traits().PerCluster {
			continue
		}
		t.Run(b.Name(), func(t *testing.T) {
			p := bt.Platform{Options: b.options, GitOps: bt.GitOps, Targets: deliverable(t, b), Clusters: values("west")}
			if b.Name() == "argocd" {
				p.Options = `{"namespace": "argocd", "clusters": "inventory", "syncPolicy": {"automated": {"prune": true, "selfHeal": true}}}`
			}
			before := bt.Build(t, b, p)
			p.Clusters = values("east")
			after := bt.Build(t, b, p)
			divide := func(path string, data []byte) map[string][]byte {
				folder, within, _ := strings.Cut(path, "/")
				for _, f := range before.Folders {
					if f.DeploymentTarget == folder {
						return b.Backend.(dividing).Divide(within, data, false)
					}
				}
				return b.Backend.(dividing).Divide(path, data, true)
			}
			equal := func(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
			divided, differing := 0, 0
			for path, data := range before.Files {
				parts := divide(path, data)
				if parts == nil {
					continue
				}
				divided++
				lines := strings.Split(string(data), "\n")
				for i, line := range lines {
					if strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#") || line == "---" {
						continue
					}
					other := slices.Clone(lines)
					other[i] += "x"
					if now := divide(path, []byte(strings.Join(other, "\n"))); now != nil && equal(now, parts) {
						t.Errorf("%s: no part has line %q", path, line)
					}
				}
				now := divide(path, after.Files[path])
				if !bytes.Equal(now["edge-2"], parts["edge-2"]) || !bytes.Equal(now[""], parts[""]) {
					t.Errorf("%s: a value of edge-1 is in another part", path)
				}
				if !bytes.Equal(now["edge-1"], parts["edge-1"]) {
					differing++
				}
			}
			if divided == 0 || differing == 0 {
				t.Errorf("%d files are divided, and %d differ", divided, differing)
			}
		})
	}
}
