package tree_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// hugeTree is a tree of 100,000 assignments on 300 cluster types. Each assignment has four files of
// 1 KB, and no two files are equal. Its content is made on request. version is in the files of the
// first assignment.
func hugeTree(version string) *tree.Tree {
	const types, perType = 300, 334
	t := &tree.Tree{}
	for c := range types {
		name := fmt.Sprintf("type-%03d", c)
		of := ""
		if c == 0 {
			of = version
		}
		t.ClusterTypes = append(t.ClusterTypes, tree.ClusterType{
			Name: name, Digest: model.DigestBytes([]byte(name + of)),
			Content: func(context.Context) (*tree.Content, error) {
				root := []backends.File{{Path: "README.md", Data: []byte(name)}}
				content := &tree.Content{Files: tree.FilesOf(root)}
				target := func(a int) string { return fmt.Sprintf("workload-%03d-target", a) }
				version := func(a int) string {
					if a > 0 {
						return ""
					}
					return of
				}
				for a := range perType {
					content.Folders = append(content.Folders, hugeFolder(name, target(a), version(a)))
				}
				content.Make = func(_ context.Context, folders []int) (made [][]backends.File, _ error) {
					for _, a := range folders {
						if a == tree.Root {
							made = append(made, root)
						} else {
							made = append(made, hugeFiles(name, target(a), version(a)))
						}
					}
					return made, nil
				}
				return content, nil
			},
		})
	}
	return t
}

func hugeFolder(clusterType, target, version string) tree.Folder {
	f := tree.Folder{Info: backends.Folder{DeploymentTarget: target, Workload: "workload", Backend: "flux"}, Values: "values"}
	for _, file := range hugeFiles(clusterType, target, version) {
		f.Files = append(f.Files, tree.FileOf(file))
	}
	return f
}

func hugeFiles(clusterType, target, version string) (files []backends.File) {
	for _, name := range []string{"kustomization.yaml", "namespace.yaml", "platform-config.yaml", "reconciler.yaml"} {
		data := fmt.Appendf(nil, "# %s/%s/%s %s\n", clusterType, target, name, version)
		for i := 0; len(data) < 1000; i++ {
			data = fmt.Appendf(data, "  setting-%d: value of %s\n", i, target)
		}
		files = append(files, backends.File{Path: name, Data: data})
	}
	return files
}

// BenchmarkCommit commits 100,000 assignments to a new branch (cold). It commits them again without
// changes (unchanged) and with one changed folder (one), and reads the record.
func BenchmarkCommit(b *testing.B) {
	commit := func(b *testing.B, repo string, t *tree.Tree, changed bool) {
		r, err := tree.OpenRepository(repo)
		must(b, err)
		branch, err := r.Branch("main")
		must(b, err)
		got, report, err := branch.Commit(context.Background(), []tree.Placement{{Folder: "dev", Tree: t, Options: dev}}, by)
		if err != nil || len(report) > 0 || (got.Commit != "") != changed {
			b.Fatal(got, report, err)
		}
		b.ReportMetric(float64(got.Objects), "objects")
		b.ReportMetric(float64(got.Bytes), "bytes")
		must(b, r.Close())
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			commit(b, newMirror(b, "").repo, hugeTree(""), true)
		}
	})
	m := newMirror(b, "")
	commit(b, m.repo, hugeTree(""), true)
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			commit(b, m.repo, hugeTree(""), false)
		}
	})
	n := 0
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			n++
			commit(b, m.repo, hugeTree(fmt.Sprint(n)), true)
		}
	})
	b.Run("record", func(b *testing.B) {
		for b.Loop() {
			branch := m.branch()
			record, report, err := branch.Record("dev")
			if err != nil || len(report) > 0 || len(record.ClusterTypes) != 300 {
				b.Fatal(record, report, err)
			}
		}
		packs, err := filepath.Glob(filepath.Join(m.repo, "objects/pack/*.pack"))
		must(b, err)
		b.ReportMetric(float64(len(packs)), "packs")
	})
}
