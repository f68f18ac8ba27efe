package tree

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// largeTree is a tree of 5,000 assignments on 50 cluster types.
func largeTree() *plainTree {
	content := []byte(strings.Repeat("key: value\n", 80))
	t := &plainTree{}
	for c := range 50 {
		ct := plainType{Name: fmt.Sprintf("type-%03d", c)}
		for a := range 100 {
			f := plainFolder{
				Info:   backends.Folder{DeploymentTarget: fmt.Sprintf("workload-%03d-target", a), Workload: "workload", Backend: "flux"},
				Values: model.DigestBytes(content),
			}
			for _, name := range []string{"kustomization.yaml", "namespace.yaml", "platform-config.yaml", "reconciler.yaml"} {
				f.Files = append(f.Files, backends.File{Path: name, Data: content})
			}
			ct.Folders = append(ct.Folders, f)
		}
		t.ClusterTypes = append(t.ClusterTypes, ct)
	}
	return t
}

// BenchmarkWrite writes 5,000 assignments into a folder that is not there (new),
// and once more (unchanged). What new takes is up to the file system: see
// compiler/internal/bench for what the numbers depend on.
func BenchmarkWrite(b *testing.B) {
	t := largeTree()
	into := func(b *testing.B, dir string) *Changes {
		d, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		c, report, err := d.Write(t.tree(), dev)
		if err != nil || len(report) > 0 {
			b.Fatal(err, report)
		}
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
		return c
	}
	b.Run("new", func(b *testing.B) {
		dir, n := b.TempDir(), 0
		for b.Loop() {
			n++
			if c := into(b, filepath.Join(dir, fmt.Sprint(n))); len(c.Written) != 20_000 {
				b.Fatalf("%d files written", len(c.Written))
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		dir := filepath.Join(b.TempDir(), "dev")
		into(b, dir)
		for b.Loop() {
			if !into(b, dir).Empty() {
				b.Fatal("something changed")
			}
		}
	})
}
