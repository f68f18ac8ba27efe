package compiler_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
)

// TestRememberedWarningsNameTheReconciler renames a reconciler that appears in a warning about a
// cluster type's index. The cached index must have the new name.
func TestRememberedWarningsNameTheReconciler(t *testing.T) {
	root := t.TempDir()
	platform, out, dir := filepath.Join(root, "platform"), filepath.Join(root, "out"), filepath.Join(root, "cache")
	if err := os.CopyFS(platform, os.DirFS("../testdata/platform")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hasty", "rash"} {
		writeFiles(t, platform, map[string]string{"extra.cue": fmt.Sprintf(`package platform

environments: dev: gitops: {repo: "https://git.example/gitops", branch: "main"}
reconcilers: %[1]q: flux: wait: false
clusterTypes: tiny: {labels: {region: "east", size: "tiny"}, reconciler: %[1]q}
workloads: shop: deploymentTargets: late: {
	environment: "dev"
	version:     "1.1.0"
	dependsOn: ["shop-test"]
	manifests: git: {repo: "https://git.example/shop", branch: "main", path: "./late"}
}
`, name)})
		want := cold(t, root, platform, outputFiles(t, out))
		c := openCache(t, cache.Options{Dir: dir})
		got := compileTo(t, compiler.Request{Dir: platform, Cache: c}, out)
		closeCache(t, c)
		if d := same(got, want); d != "" {
			t.Errorf("reconciler %s: %s", name, d)
		}
		if !strings.Contains(want.said["text"], "not until it is ready") {
			t.Errorf("reconciler %s: no warning, but %q", name, want.said["text"])
		}
	}
}
