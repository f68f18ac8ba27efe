package tree_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// generated returns a tree of assignments, a hundred on each cluster type, with four files each.
// Its content is made on request. version is in the files of the changed assignment.
func generated(assignments, changed int, version string) *tree.Tree {
	t := &tree.Tree{}
	for first := 0; first < assignments; first += 100 {
		name := fmt.Sprintf("type-%04d", first/100)
		digest := name
		if first <= changed && changed < first+100 {
			digest += version
		}
		t.ClusterTypes = append(t.ClusterTypes, tree.ClusterType{
			Name: name, Digest: model.DigestBytes([]byte(digest)),
			Content: func(context.Context) (*tree.Content, error) {
				root := []backends.File{{Path: "README.md", Data: []byte(name)}}
				c := &tree.Content{Files: tree.FilesOf(root)}
				text := func(a int) string {
					if a == changed {
						return fmt.Sprintf("assignment: %d\n%s", a, version)
					}
					return fmt.Sprintf("assignment: %d\n", a)
				}
				for a := first; a < first+100; a++ {
					c.Folders = append(c.Folders, generatedFolder(a, text(a)))
				}
				c.Make = func(_ context.Context, folders []int) (made [][]backends.File, _ error) {
					for _, i := range folders {
						if i == tree.Root {
							made = append(made, root)
						} else {
							made = append(made, generatedFiles(text(first+i)))
						}
					}
					return made, nil
				}
				return c, nil
			},
		})
	}
	return t
}

var filler = strings.Repeat("key: value\n", 80)

func generatedFiles(text string) (files []backends.File) {
	for _, name := range []string{"kustomization.yaml", "namespace.yaml", "platform-config.yaml", "reconciler.yaml"} {
		files = append(files, backends.File{Path: name, Data: []byte(text + name + filler)})
	}
	return files
}

func generatedFolder(a int, text string) tree.Folder {
	f := tree.Folder{
		Info: backends.Folder{
			DeploymentTarget: fmt.Sprintf("workload-%06d-target", a), Workload: "workload", Workspace: "team",
			Namespace: fmt.Sprintf("dev-workload-%06d-target", a), Backend: "flux",
		},
		Values: model.DigestBytes([]byte(text)),
	}
	for _, file := range generatedFiles(text) {
		f.Files = append(f.Files, tree.FileOf(file))
	}
	return f
}

// writeGenerated writes a tree, and returns the changes.
func writeGenerated(tb testing.TB, dir string, t *tree.Tree) *tree.Changes {
	tb.Helper()
	d, err := tree.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	c, report, err := d.Write(context.Background(), t, dev)
	if err != nil || len(report) > 0 {
		tb.Fatal(err, report)
	}
	if err := d.Close(); err != nil {
		tb.Fatal(err)
	}
	return c
}

// BenchmarkWrite writes assignments into a folder that does not exist (new). It writes them again
// without changes (unchanged), and with one changed folder (one). git measures `git status` in that
// folder after a commit of everything. The time of new depends on the file system: see
// internal/testing/bench for the conditions of the numbers.
func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{5_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if testing.Short() && n > 5_000 {
				b.Skip("takes minutes")
			}
			benchmarkWrite(b, n)
		})
	}
}

func benchmarkWrite(b *testing.B, n int) {
	dir := filepath.Join(b.TempDir(), "dev")
	first := generated(n, -1, "")
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			if err := os.RemoveAll(dir); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if c := writeGenerated(b, dir, first); len(c.Written) != 4*n+n/100 {
				b.Fatalf("%d files written", len(c.Written))
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		writeGenerated(b, dir, first)
		writeGenerated(b, dir, first)
		for b.Loop() {
			if !writeGenerated(b, dir, first).Empty() {
				b.Fatal("something changed")
			}
		}
	})
	b.Run("one", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i++
			if c := writeGenerated(b, dir, generated(n, 42, fmt.Sprint("v", i))); len(c.Written) != 4 {
				b.Fatalf("%d files written", len(c.Written))
			}
		}
	})
	b.Run("git", func(b *testing.B) {
		git := func(args ...string) {
			cmd := exec.Command("git", args...)
			cmd.Dir = dir
			cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/local/bin", "HOME=" + b.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("git %s: %v\n%s", args[0], err, out)
			}
		}
		git("init", "--quiet")
		git("add", "--all")
		git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=all")
		git("status", "--porcelain")
		for b.Loop() {
			git("status", "--porcelain")
		}
	})
}

// BenchmarkRecord encodes and parses the record of a cluster type with 1,000 assignments.
func BenchmarkRecord(b *testing.B) {
	c := &tree.ClusterTypeRecord{APIVersion: apiVersion, Kind: clusterTypeKind, Name: "large", Files: map[string]tree.Blob{}}
	for a := range 1000 {
		f := generatedFolder(a, "")
		files := map[string]tree.Blob{}
		for _, file := range f.Files {
			files[file.Path] = file.Blob()
		}
		c.Assignments = append(c.Assignments, tree.AssignmentRecord{Folder: f.Info, Tree: tree.TreeID(files), Values: f.Values, Files: files})
	}
	encoded, err := c.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Encode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := tree.ParseClusterTypeRecord(encoded); err != nil {
				b.Fatal(err)
			}
		}
	})
}
