package compiler_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/engine"
)

// functionsOfAssignments has a function of the assignment of each kind.
const functionsOfAssignments = `package platform

import "kalypso.io/schema"

namespaceServices: default: {
	#assignment: schema.#Assignment
	pattern: "\(#assignment.environment)-\(#assignment.deploymentTarget)-of-\(#assignment.clusterType)"
	labels: "example.com/workload": #assignment.workload
}
configs: self: {
	#assignment: schema.#Assignment
	match: {}
	values: SELF: #assignment.deploymentTarget
}
`

// TestNothingIsComputedTwice builds each platform twice with one cache. The second build must not
// add anything to the cache, and must give the same result.
func TestNothingIsComputedTwice(t *testing.T) {
	for _, dir := range platforms(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			platform, folder := t.TempDir(), t.TempDir()
			if err := os.CopyFS(platform, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if filepath.Base(dir) == "platform" {
				if err := os.WriteFile(filepath.Join(platform, "environments", "dev", "functions.cue"), []byte(functionsOfAssignments), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			again := func() (map[cache.Level]cache.Stats, engine.Stats, map[string]string) {
				c, err := cache.Open(cache.Options{Dir: folder})
				if err != nil {
					t.Fatal(err)
				}
				out := t.TempDir()
				b, _, err := compiler.Write(t.Context(), compiler.Request{Dir: platform, Cache: c, Environments: sound(dir)}, compiler.Output{Dir: out})
				if err != nil {
					t.Fatal(err)
				}
				if b.Failed() {
					t.Fatal(b.Diagnostics)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				return c.Stats(), b.Stats, files(t, out)
			}
			_, first, want := again()
			stored, second, got := again()
			sameOutput(t, got, want)
			for _, l := range second.Levels {
				if l.Level == cache.Projection {
					continue // nothing is rendered if assignments are reused
				}
				if l.Computed > 0 || l.Reused == 0 || stored[l.Level].Computed > 0 {
					t.Errorf("the second build has %+v, and stores %+v", l, stored[l.Level])
				}
			}
			for _, l := range first.Levels {
				if l.Computed == 0 && l.Level != cache.Projection {
					t.Errorf("the first build computes nothing of %s", l.Level)
				}
			}
		})
	}
}
