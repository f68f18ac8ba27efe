package compiler_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/internal/testing/randplatform"
)

// affected compares the platform after each edit with its former state: a former revision, or a
// former output. A build on top of that state must change exactly what the comparison reports for
// each cluster.
func affected(shared *cache.Cache) variant {
	return func(t *testing.T, root string) follower {
		a := &affectedSet{t: t, shared: shared, root: root}
		return follower{name: "affected", step: a.step}
	}
}

type affectedSet struct {
	t      *testing.T
	shared *cache.Cache
	root   string
	before outcome // the outcome of a build into an empty folder
}

func (a *affectedSet) step(s *step) (broken string) {
	repository := filepath.Dir(s.platformDir)
	if s.number == 0 {
		git(a.t, repository, "init", "--quiet", ".")
	}
	if s.number > 0 {
		before := compiler.Side{Revision: "HEAD"}
		if s.r.IntN(2) == 0 && len(a.before.files) > 0 {
			before = compiler.Side{Output: filepath.Join(a.root, "previous")}
		}
		previous := filepath.Join(a.root, "previous")
		writeFiles(a.t, previous, a.before.files)
		_, broken = onClusters(a.t, compiler.Request{Dir: s.platformDir, Cache: a.shared}, previous, before, a.before)
		if removeAll(a.t, previous); broken != "" {
			return fmt.Sprintf("since %+v: %s", before, broken)
		}
	}
	out := filepath.Join(a.root, fmt.Sprint("empty", s.number))
	a.before = compileTo(a.t, compiler.Request{Dir: s.platformDir, Cache: a.shared}, out)
	removeAll(a.t, out)
	git(a.t, repository, "add", "--all")
	git(a.t, repository, "commit", "--quiet", "--allow-empty", "--message", "edit")
	return ""
}

// onClusters builds on top of the outcome in a folder. broken describes the first difference
// between the comparison and the build; it is "" if they agree.
func onClusters(t *testing.T, r compiler.Request, previous string, before compiler.Side, was outcome) (is outcome, broken string) {
	d, err := compiler.Compare(t.Context(), r, before, compiler.Side{}, compiler.Output{})
	if err != nil {
		return is, err.Error()
	}
	is = compileTo(t, r, previous)
	unknown := func(environment string) bool {
		return before.Output == "" && (was.failed[environment] || slices.Contains(was.uncertain, environment) || is.failed[environment])
	}
	hidden := func(p pulled) bool {
		environment, _, _ := strings.Cut(p.id, "/")
		return unknown(environment) || before.Output == "" && was.failed[p.id]
	}
	did, said := changeOf(t, was.files, is.files, hidden), map[string]map[string]bool{}
	for kind, entries := range map[string][]compare.Entry{"added": d.Report.Added, "removed": d.Report.Removed, "changed": d.Report.Changed} {
		said[kind] = map[string]bool{}
		for i := range entries {
			e := &entries[i]
			if unknown(e.Environment) {
				continue
			}
			for _, name := range e.Names() {
				said[kind][e.Environment+"/"+e.DeploymentTarget+"@"+name] = true
			}
			if len(e.Names()) == 0 {
				said[kind][e.ID()] = true
			}
		}
	}
	for key := range did["added"] { // a cluster that lacks its planned entry pulls nothing
		id, cluster, _ := strings.Cut(key, "@")
		environment, _, _ := strings.Cut(id, "/")
		if m := is.models[environment]; m != nil && m.Cluster(cluster) != nil && entryOf(is.files, environment, cluster) == "" &&
			slices.ContainsFunc(m.ClusterTypes, func(ct model.ClusterType) bool {
				return ct.Name == m.Cluster(cluster).Folder && ct.Entries == model.ClusterEntries
			}) {
			delete(did["added"], key)
		}
	}
	own := ownValues(t, was.files, is.files)
	for key := range said["changed"] { // the change is only in the cluster's own values
		if _, cluster, _ := strings.Cut(key, "@"); !did["changed"][key] && own[cluster] {
			delete(said["changed"], key)
		}
	}
	for _, kind := range []string{"removed", "added", "changed"} {
		if !maps.Equal(said[kind], did[kind]) {
			return is, fmt.Sprintf("%s are said to be %q, and are %q", kind, slices.Sorted(maps.Keys(said[kind])), slices.Sorted(maps.Keys(did[kind])))
		}
	}
	if n := len(did["removed"]); before.Output != "" && n > 0 && d.Report.Total.Removed != n {
		return is, fmt.Sprintf("%d are said to be removed, and %d are", d.Report.Total.Removed, n)
	}
	return is, unbounded(t, was, is, d, before)
}

// unbounded describes removals that exceed the bounds and are not refused. It returns "" if there
// are no such removals.
func unbounded(t *testing.T, was, is outcome, d *compiler.Difference, before compiler.Side) string {
	for environment, m := range is.models {
		if is.failed[environment] || before.Output == "" && (was.failed[environment] || len(was.errors) > 0) || m.MaxRemovals != "" {
			continue
		}
		had, has := bothPull(t, was.files, is.files, environment)
		on, gone, left := map[string]bool{}, 0, map[string]bool{}
		targets := map[string]bool{}
		for key, p := range had {
			if _, stays := has[key]; stays {
				left[p.on] = true
				continue
			}
			if strings.Contains(key, "@") && m.Cluster(p.on) == nil { // leaving clusters are counted separately
				continue
			}
			gone++
			on[p.on], targets[p.target] = true, true
		}
		emptied := 0
		for key, p := range has {
			left[p.on] = left[p.on] || had[key].on == ""
		}
		for name := range on {
			if !left[name] && is.models[environment].Cluster(name) != nil && entryOf(is.files, environment, name) != "" {
				emptied++
			}
		}
		tooMany := gone > len(had)/4 && max(len(on), len(targets)) > 3 || len(has) == 0 && gone > 0 || emptied > 0
		refused := slices.ContainsFunc(d.After.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == diag.TooManyRemovals && d.Environment == environment })
		if tooMany && !refused {
			return fmt.Sprintf("%d of %d assignments go from %d clusters of %s, %d of which are left empty, and that is not refused", gone, len(had), len(on), environment, emptied)
		}
	}
	return ""
}

// pulled is a deployment target that a cluster pulls, or one in the folder of a cluster type that
// lists no clusters.
type pulled struct {
	id     string // <environment>/<folder>/<deployment target>
	target string // the deployment target with its cluster type
	on     string // the cluster; the id if the cluster type lists none
	files  map[string]string
}

// bothPull returns the deployment targets that the clusters of an environment pull before and
// after. Some cluster types list their clusters on one side only. Their clusters pull the folder
// of the type on the other side, unless they come from another folder. In that case unlisted
// clusters stay in the type.
func bothPull(t *testing.T, was, is map[string]string, environment string) (had, has map[string]pulled) {
	before, after := followsOf(t, was, environment), followsOf(t, is, environment)
	stay, there := map[string]bool{}, map[string]bool{}
	for id := range folders(was) {
		if parts := strings.Split(id, "/"); parts[0] == environment {
			there[parts[1]] = true
		}
	}
	for _, folder := range after {
		clusterType := model.TypeOfFolder(folder)
		stay[clusterType] = there[clusterType]
	}
	for cluster, folder := range after {
		if before[cluster] == "" || entryOf(is, environment, cluster) != "" {
			delete(stay, model.TypeOfFolder(folder))
		}
	}
	for _, folder := range before {
		delete(stay, model.TypeOfFolder(folder))
	}
	return pullsOf(t, was, is, environment, true, stay), pullsOf(t, is, was, environment, false, stay)
}

// pullsOf returns one side of bothPull.
func pullsOf(t *testing.T, files, other map[string]string, environment string, isBefore bool, stay map[string]bool) map[string]pulled {
	all := folders(files)
	follows, elsewhere := followsOf(t, files, environment), followsOf(t, other, environment)
	listed := map[string]bool{}
	for _, folder := range follows {
		listed[model.TypeOfFolder(folder)] = true
	}
	for cluster, folder := range elsewhere { // a cluster with an entry pulled only that
		if clusterType := model.TypeOfFolder(folder); !listed[clusterType] && follows[cluster] == "" && (isBefore || entryOf(other, environment, cluster) == "") && strings.Contains(strings.Join(slices.Sorted(maps.Keys(roots(files))), " ")+" ", environment+"/"+clusterType+" ") {
			follows[cluster] = clusterType
		}
	}
	for _, folder := range follows {
		listed[model.TypeOfFolder(folder)] = true
	}
	for cluster, folder := range elsewhere { // types whose clusters are known, wherever they have gone, or pull entries
		clusterType := model.TypeOfFolder(folder)
		listed[clusterType] = listed[clusterType] || !isBefore || entryOf(other, environment, cluster) != ""
	}
	out := map[string]pulled{}
	for id, texts := range all {
		parts := strings.SplitN(id, "/", 3)
		if clusterType := model.TypeOfFolder(parts[1]); parts[0] == environment && (!listed[clusterType] || stay[clusterType]) && parts[1] == clusterType {
			out[id] = pulled{id, clusterType + "/" + parts[2], id, texts}
		}
		for cluster, folder := range follows {
			if parts[0] == environment && parts[1] == folder {
				out[environment+"/"+parts[2]+"@"+cluster] = pulled{id, model.TypeOfFolder(folder) + "/" + parts[2], cluster, texts}
			}
		}
	}
	return out
}

// followsOf returns the folders that the clusters of an environment follow, from the entries and
// the records.
func followsOf(t *testing.T, files map[string]string, environment string) map[string]string {
	follows := map[string]string{}
	for name, text := range files {
		if !strings.HasPrefix(name, environment+"/.kalypso/cluster-types/") {
			continue
		}
		var r struct {
			Name     string
			Clusters []string
			Entries  []struct{ Cluster, Folder string }
		}
		if err := json.Unmarshal(fileOf(name, text).Data, &r); err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Entries {
			follows[e.Cluster] = e.Folder
		}
		for _, cluster := range r.Clusters {
			if follows[cluster] == "" && entryOf(files, environment, cluster) == "" && !hasEntries(files, environment, model.TypeOfFolder(r.Name)) {
				follows[cluster] = r.Name
			}
		}
	}
	return follows
}

// hasEntries reports whether clusters of a type have entries.
func hasEntries(files map[string]string, environment, clusterType string) bool {
	for name, text := range files {
		if strings.HasPrefix(name, environment+"/clusters/") && (strings.Contains(text, "/"+clusterType+"\n") || strings.Contains(text, "/"+clusterType+".")) {
			return true
		}
	}
	return false
}

// changeOf returns the added, removed and changed pairs between two outputs, except hidden pairs.
func changeOf(t *testing.T, was, is map[string]string, hidden func(pulled) bool) map[string]map[string]bool {
	out := map[string]map[string]bool{"added": {}, "removed": {}, "changed": {}}
	environments := map[string]bool{}
	for _, files := range []map[string]string{was, is} {
		for name := range files {
			environment, _, _ := strings.Cut(name, "/")
			environments[environment] = true
		}
	}
	for environment := range environments {
		had, has := bothPull(t, was, is, environment)
		for key, p := range has {
			switch old, there := had[key]; {
			case hidden(p) || there && hidden(old):
			case !there:
				out["added"][key] = true
			case !maps.Equal(old.files, p.files):
				out["changed"][key] = true
			}
		}
		for key, p := range had {
			if _, stays := has[key]; !stays && !hidden(p) {
				out["removed"][key] = true
			}
		}
	}
	return out
}

// ownValues returns the clusters with different entries, or with different files in their types.
func ownValues(t *testing.T, was, is map[string]string) map[string]bool {
	out := map[string]bool{}
	for _, files := range []map[string]string{was, is} {
		for name := range files {
			if parts := strings.Split(name, "/"); len(parts) == 5 && (parts[1] == "clusters" || parts[2] == "clusters") && was[name] != is[name] {
				out[parts[3]] = true
			}
		}
	}
	return out
}

// TestTheChangeOnClustersIsWhatABuildDoes checks comparisons against builds. For each cluster,
// the comparison and the bounds must match the changes that a build makes. The platforms have
// classes, and the edits change rows and selectors of clusters.
func TestTheChangeOnClustersIsWhatABuildDoes(t *testing.T) { theChangeOnClusters(t) }

func TestSlowTheChangeOnClustersIsWhatABuildDoes(t *testing.T) {
	isolated.Slow(t, "it builds more random platforms")
	theChangeOnClusters(t)
}

func theChangeOnClusters(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	shared := openCache(t, cache.Options{Dir: t.TempDir()})
	edits := uint64(25) // of each platform, each on top of the last one
	if isolated.IsSlow(t) {
		edits = 10
	}
	seeds, removals := uint64(howMany(t, 300, 300, 10000)), 0
	for first := uint64(0); first < seeds; first += edits {
		root := t.TempDir()
		p, r := randplatform.NewFleet(7000+first), rand.New(rand.NewPCG(first, 11))
		dir, previous := filepath.Join(root, "platform"), filepath.Join(root, "previous")
		request := compiler.Request{Dir: dir, Cache: shared}
		if err := p.Write(dir); err != nil {
			t.Fatal(err)
		}
		was := compileTo(t, request, previous)
		for seed := first; seed < first+edits; seed++ {
			var did []string
			rows := !isolated.IsSlow(t) && r.IntN(12) < 11 // CUE evaluates little after such edits
			for range 1 + r.IntN(3) {
				if rows {
					did = append(did, p.EditRow(r))
				} else {
					did = append(did, p.Edit(r))
				}
			}
			if err := p.Write(dir); err != nil {
				t.Fatal(err)
			}
			if len(was.files) == 0 {
				was = compileTo(t, request, previous)
				continue
			}
			is, broken := onClusters(t, request, previous, compiler.Side{Output: previous}, was)
			if broken != "" {
				t.Fatalf("seed %d: %s\n%s", seed, broken, strings.Join(did, "\n"))
			}
			for _, c := range is.changes {
				removals += len(c.Assignments.Removed)
			}
			was = is
		}
		removeAll(t, root)
	}
	closeCache(t, shared)
	if removals == 0 {
		t.Error("nothing was removed")
	}
}
