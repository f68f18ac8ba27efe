package agent

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/crdtest"
)

// API servers accept the manifests for one cluster and the manifests for all clusters of a type.
// They differ only in the cluster's name.
func TestManifests(t *testing.T) {
	for name, c := range map[string]struct {
		groups  []string
		objects int
	}{
		"Flux":    {[]string{"kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"}, 6},
		"Argo CD": {[]string{"argoproj.io"}, 4},
	} {
		o := Options{Hub: "https://hub.example.com/", Namespace: "gitops", Groups: c.groups, Image: "registry.example.com/kalypso:v1"}
		var all []string
		for _, o.Cluster = range []string{"store-17", ""} {
			text, ok := Manifests(o)
			if n, err := crdtest.Check(text); !ok || n != c.objects || err != nil {
				t.Errorf("%s, cluster %q: %t, %d objects, %v", name, o.Cluster, ok, n, err)
			}
			_, objects, _ := strings.Cut(string(text), "apiVersion:")
			all = append(all, objects)
		}
		of := strings.NewReplacer(
			"--cluster=store-17", "--cluster=$(CLUSTER)",
			"            - --every=1m\n", "            - --every=1m\n"+`          env:
            - name: CLUSTER
              valueFrom:
                secretKeyRef: {name: kalypso-hub, key: cluster}
`, "  eventMetadata: {cluster: \"store-17\"}\n", "")
		if got := of.Replace(all[0]); got != all[1] {
			t.Errorf("%s: for any cluster of a type there is\n%s\nand not\n%s", name, all[1], got)
		}
	}
	if _, ok := Manifests(Options{Groups: []string{"fleet.cattle.io"}}); ok {
		t.Error("something can be listed on clusters with Fleet, whose objects are elsewhere")
	}
}
