package kubernetes

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/internal/testing/crdtest"
)

// invented are kinds that only the tests use, and that API servers do not know.
var invented = map[string]bool{"v1 A": true, "v1 B": true, "example.com/v1 Widget": true}

// checkObjects checks that an API server would accept the objects of the files. It also
// checks their identities, in order, and that each object names its owner.
func checkObjects(t *testing.T, files []backends.File, identities []backends.Object) {
	t.Helper()
	var found []backends.Object
	for _, f := range files {
		docs, err := crdtest.Split(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range docs {
			var o struct {
				APIVersion string   `json:"apiVersion"`
				Kind       string   `json:"kind"`
				Metadata   Metadata `json:"metadata"`
			}
			if err := yaml.Unmarshal(doc, &o); err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			found = append(found, Object{APIVersion: o.APIVersion, Kind: o.Kind, Metadata: o.Metadata}.Identity())
			if o.Metadata.Labels[managedByLabel] != "kalypso" || o.Metadata.Annotations[assignmentAnnotation] == "" {
				t.Errorf("%s %s does not say whose it is", o.Kind, o.Metadata.Name)
			}
			if invented[o.APIVersion+" "+o.Kind] {
				continue
			}
			if n, err := crdtest.Check(doc); n != 1 || err != nil {
				t.Errorf("%d objects, %v", n, err)
			}
		}
	}
	if fmt.Sprint(found) != fmt.Sprint(identities) {
		t.Errorf("the files hold %v\nthe identities are %v", found, identities)
	}
}
