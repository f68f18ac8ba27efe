package compiler_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/internal/testing/randplatform"
)

// TestFleetEditsEqualFromScratch is TestEditsEqualFromScratch with platforms that have
// inventories, classes and entries. Its edits change rows and selectors of clusters.
func TestFleetEditsEqualFromScratch(t *testing.T) { fleetEditsEqualFromScratch(t) }

func TestSlowFleetEditsEqualFromScratch(t *testing.T) {
	isolated.Slow(t, "it builds more random platforms")
	fleetEditsEqualFromScratch(t)
}

func fleetEditsEqualFromScratch(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	shared := openCache(t, cache.Options{Dir: t.TempDir()})
	ways := [][]variant{{incremental, cached}, {damaged, sharing(shared)}, {shardedTogether(shared)}, {committed(shared)}, {affected(shared)}}
	edits := []int{1, 2, 3, 4, 5, 6, 7, 8}
	t.Run("seeds", func(t *testing.T) {
		for seed := range howMany(t, 2, 5, 30) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				holds(t, history{seed: uint64(4000 + seed), edits: edits[:howMany(t, 2, 8, 8)], fleet: true}, ways[seed%len(ways)])
			})
		}
	})
	closeCache(t, shared)
}

// leaves reports whether entries stay for clusters that are no longer listed. Then the output
// does not depend only on the platform.
func (o outcome) leaves() bool {
	return slices.ContainsFunc(o.all, func(d diag.Diagnostic) bool { return d.Code == diag.LeftCluster })
}

// hasEntries reports whether clusters have entries.
func (o outcome) hasEntries() bool {
	for name := range o.files {
		if strings.Contains(name, "/clusters/") {
			return true
		}
	}
	return false
}

// entriesGone describes an entry that disappeared although its cluster was not removed by name.
// It returns "" if there is no such entry.
func entriesGone(before, after map[string]string, p *randplatform.Platform) string {
	for name := range before {
		parts := strings.Split(name, "/")
		if len(parts) != 5 || parts[1] != "clusters" {
			continue
		}
		if _, there := after[name]; !there && !p.Removed(parts[0], parts[3]) && entryOf(after, parts[0], parts[3]) == "" {
			return fmt.Sprintf("the entry of cluster %s of %s is gone", parts[3], parts[0])
		}
	}
	return ""
}

// TestClassesEqualATypePerCluster compares the applied objects of each cluster in two platforms.
// In the second one, the cluster has a cluster type to itself, and there are no selectors of
// clusters.
func TestClassesEqualATypePerCluster(t *testing.T) { classesEqualATypePerCluster(t) }

func TestSlowClassesEqualATypePerCluster(t *testing.T) {
	isolated.Slow(t, "it builds more random platforms")
	classesEqualATypePerCluster(t)
}

func classesEqualATypePerCluster(t *testing.T) {
	shared := openCache(t, cache.Options{Dir: t.TempDir()})
	compared, classes := 0, 0
	for seed := range uint64(howMany(t, 1, 3, 3)) {
		p, r := randplatform.NewFleet(5000+seed), rand.New(rand.NewPCG(seed, 7))
		did, named := []string{fmt.Sprintf("seed %d", 5000+seed)}, map[string]string{}
		for range howMany(t, 2, 5, 5) {
			o := buildAt(t, p, shared)
			for environment, m := range o.models {
				for _, ct := range m.ClusterTypes {
					if ct.Class != "" {
						classes++
					}
					if d := misnamed(&ct, named); d != "" {
						t.Fatalf("%s\n%s", d, strings.Join(did, "\n"))
					}
				}
				if !o.clean() || o.leaves() {
					continue
				}
				for _, c := range some(r, m.Clusters) {
					alone, ok := p.Alone(environment, c.Name)
					if !ok || c.Folder == "" || entryOf(o.files, environment, c.Name) == "" {
						continue
					}
					d, ok := compareAlone(t, environment, c, o, buildAt(t, alone, shared))
					if d != "" {
						t.Fatalf("cluster %s of %s, in %s: %s\n%s", c.Name, environment, c.Folder, d, strings.Join(did, "\n"))
					}
					if ok {
						compared++
					}
				}
			}
			did = append(did, p.Edit(r))
		}
	}
	closeCache(t, shared)
	if compared == 0 || classes == 0 {
		t.Errorf("%d clusters are compared, and there are %d classes", compared, classes)
	}
	t.Logf("%d clusters are compared", compared)
}

// some returns up to three of the clusters, at random.
func some(r *rand.Rand, clusters []model.Cluster) []model.Cluster {
	out := slices.Clone(clusters)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(3, len(out))]
}

func buildAt(t *testing.T, p *randplatform.Platform, c *cache.Cache) outcome {
	dir := t.TempDir()
	defer removeAll(t, dir)
	if err := p.Write(filepath.Join(dir, "platform")); err != nil {
		t.Fatal(err)
	}
	return compileTo(t, compiler.Request{Dir: filepath.Join(dir, "platform"), Cache: c}, filepath.Join(dir, "out"))
}

// misnamed describes a folder whose name does not depend only on the selectors of its class. It
// returns "" for a correct name. It remembers the names in named.
func misnamed(ct *model.ClusterType, named map[string]string) string {
	if ct.Entries != model.ClusterEntries {
		if ct.Class != "" {
			return fmt.Sprintf("cluster type %s has a class without entries", ct.Name)
		}
		return ""
	}
	id := ct.TypeName() + ": " + strings.Join(ct.SelectedBy, " ")
	if !slices.IsSorted(ct.SelectedBy) {
		return "selectors of a class are not sorted: " + id
	}
	want := strings.TrimSuffix(ct.TypeName()+"."+strings.Join(ct.SelectedBy, "."), ".")
	if was := named[id]; was != "" && was != ct.Name || len(want) < 60 && want != ct.Name {
		return fmt.Sprintf("the folder of %s is called %s", id, ct.Name)
	}
	if other := named[ct.Name]; other != "" && other != id {
		return fmt.Sprintf("%s is the folder of %s and of %s", ct.Name, id, other)
	}
	named[id], named[ct.Name] = ct.Name, id
	return ""
}

func entryOf(files map[string]string, environment, cluster string) string {
	for name := range files {
		if parts := strings.Split(name, "/"); len(parts) == 5 && parts[0] == environment && parts[1] == "clusters" && parts[3] == cluster {
			return path.Dir(name)
		}
	}
	return ""
}

// compareAlone compares the applied objects of a cluster with those of the cluster on its own. ok
// is false if errors prevent that build.
func compareAlone(t *testing.T, environment string, c model.Cluster, got, want outcome) (difference string, ok bool) {
	own := environment + "/" + c.ClusterType + "/"
	for _, d := range want.errors {
		if len(d.Assignments) == 0 || slices.ContainsFunc(d.Assignments, func(id string) bool { return strings.HasPrefix(id, own) }) {
			return "", false
		}
	}
	if want.said["error"] != "" || entryOf(want.files, environment, c.Name) == "" {
		return "", false
	}
	a, b := applied(t, environment, c.Name, c.Folder, c.ClusterType, got.files), applied(t, environment, c.Name, c.ClusterType, c.ClusterType, want.files)
	return differs(a, b), true
}

// applied returns the result of a Kustomize build of a cluster's entry, and the folders that the
// entry refers to. In both, the folder of the cluster's class has the name of the cluster type.
func applied(t *testing.T, environment, cluster, folder, clusterType string, files map[string]string) map[string]string {
	out, fsys := map[string]string{}, filesys.MakeFsInMemory()
	rename := strings.NewReplacer("/"+folder+"/", "/"+clusterType+"/", " "+folder+"/", " "+clusterType+"/")
	for name, text := range files {
		if err := fsys.WriteFile("/"+name, fileOf(name, text).Data); err != nil {
			t.Fatal(err)
		}
		if at, within := strings.CutPrefix(name, environment+"/"+folder+"/"); within {
			out[at] = rename.Replace(text)
		}
	}
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, "/"+entryOf(files, environment, cluster))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := m.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	out["what is applied"] = rename.Replace(string(objects))
	return out
}
