package zarftest_test

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/internal/testing/zarftest"
)

// TestPublished compiles the example with a site without a connection. It checks that Zarf
// accepts the package of each environment.
func TestPublished(t *testing.T) {
	b, err := compiler.Compile(t.Context(), compiler.Request{Dir: "../../../examples/everywhere"})
	if err != nil {
		t.Fatal(err)
	}
	if b.Failed() || len(b.Environments) != 2 {
		t.Fatalf("%d environments: %v", len(b.Environments), b.Diagnostics)
	}
	for _, e := range b.Environments {
		all, err := e.Tree.Files(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for _, f := range all {
			if name, ok := strings.CutPrefix(f.Path, "ship/"); ok {
				files[name] = f.Data
			}
		}
		if err := zarftest.Check(files); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
}
