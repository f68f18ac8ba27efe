package effect

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// shape is the content of a record: assignments of folders, each as target=tree or
// target@namespace=tree, the clusters that folders list, and the folders that entries name.
type shape struct {
	folders map[string]string
	lists   map[string]string
	entries map[string]string // by cluster
}

// record returns the record of a shape, and notes in read the folders whose records are
// read.
func (s shape) record(t *testing.T, read *[]string) *tree.Record {
	t.Helper()
	files := func(text string) map[string]tree.Blob {
		return map[string]tree.Blob{"kustomization.yaml": {ID: tree.BlobID([]byte(text))}}
	}
	parts := map[string]*tree.ClusterTypeRecord{}
	for name, list := range s.folders {
		ct := &tree.ClusterTypeRecord{Name: name, Clusters: strings.Fields(s.lists[name]), Assignments: []tree.AssignmentRecord{}}
		for _, text := range strings.Fields(list) {
			target, content, _ := strings.Cut(text, "=")
			target, namespace, found := strings.Cut(target, "@")
			if !found {
				namespace = target
			}
			a := tree.AssignmentRecord{Folder: backends.Folder{DeploymentTarget: target, Workload: "w", Namespace: namespace, Backend: "flux"}, Files: files(content)}
			a.Tree = tree.TreeID(a.Files)
			ct.Assignments = append(ct.Assignments, a)
		}
		slices.SortFunc(ct.Assignments, func(a, b tree.AssignmentRecord) int { return strings.Compare(a.DeploymentTarget, b.DeploymentTarget) })
		parts[name] = ct
	}
	for _, cluster := range slices.Sorted(maps.Keys(s.entries)) {
		name := tree.ShardName(cluster)
		if parts[name] == nil {
			parts[name] = &tree.ClusterTypeRecord{Name: name, Assignments: []tree.AssignmentRecord{}}
		}
		parts[name].Entries = append(parts[name].Entries, tree.EntryRecord{Cluster: cluster, Folder: s.entries[cluster], Files: files(s.entries[cluster])})
	}
	record := &tree.Record{APIVersion: "kalypso.io/v1alpha1", Kind: "Provenance", Platform: "p", Environment: "dev", Tree: tree.TreeID(nil)}
	encoded := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		parts[name].APIVersion, parts[name].Kind = record.APIVersion, "ClusterTypeProvenance"
		data, err := parts[name].Encode()
		if err != nil {
			t.Fatal(err)
		}
		encoded[name] = data
		record.ClusterTypes = append(record.ClusterTypes, tree.ClusterTypeEntry{Name: name, Tree: tree.TreeID(nil), Assignments: len(parts[name].Assignments), Record: tree.BlobID(data)})
	}
	parsed, err := tree.ParseRecord(record.Encode(), func(name string) ([]byte, error) {
		*read = append(*read, name)
		if encoded[name] == nil {
			return nil, errors.New("no such folder")
		}
		return encoded[name], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// side returns the same as a record of the shape that is read completely.
func (s shape) side() *Side {
	var folders, clusters []string
	hasEntries := map[string]bool{}
	for cluster, folder := range s.entries {
		clusters = append(clusters, cluster+" "+folder+"!")
		hasEntries[model.TypeOfFolder(folder)] = true
	}
	for name, list := range s.folders {
		folders = append(folders, name+": "+list)
		for _, cluster := range strings.Fields(s.lists[name]) {
			if !hasEntries[model.TypeOfFolder(name)] {
				clusters = append(clusters, cluster+" "+name)
			}
		}
	}
	slices.Sort(clusters)
	return sideOf(folders, clusters...)
}

// stores has a cluster type with entries and classes, and one that lists its clusters.
var stores = shape{
	folders: map[string]string{"store": "cart=1 till=1", "store.none": "", "store.no": "cart=1", "bank": "desk=1"},
	lists:   map[string]string{"bank": "b1 b2"},
	entries: map[string]string{"s1": "store", "s2": "store", "s3": "store"},
}

func (s shape) with(change func(*shape)) shape {
	s = shape{maps.Clone(s.folders), maps.Clone(s.lists), maps.Clone(s.entries)}
	change(&s)
	return s
}

func TestCompareRecords(t *testing.T) {
	for name, c := range map[string]struct {
		after *shape // nil for no record
		want  string
		read  string // folders whose records are read, beside the folders of entries
	}{
		"nothing": {new(stores), "0 removed, 0 added, 0 changed", ""},
		"a class takes one away": {new(stores.with(func(s *shape) { s.entries["s1"] = "store.no" })),
			"- store/till on s1\n1 removed, 0 added, 0 changed", "store store.no"},
		"a cluster is left empty": {new(stores.with(func(s *shape) { s.entries["s1"] = "store.none" })),
			"- store/cart on s1\n- store/till on s1\n2 removed, 0 added, 0 changed; 1 cluster left empty", "store store.none"},
		"a folder changes": {new(stores.with(func(s *shape) { s.folders["store"] = "cart=2 till=1" })),
			"~ store/cart on s1,s2,s3\n0 removed, 0 added, 3 changed", "store"},
		"a cluster is listed": {new(stores.with(func(s *shape) { s.lists["bank"] = "b1 b2 b3" })),
			"+ bank/desk on b3\n0 removed, 1 added, 0 changed", "bank"},
		"a cluster gets an entry": {new(stores.with(func(s *shape) { s.entries["s4"] = "store" })),
			"+ store/cart on s4\n+ store/till on s4\n0 removed, 2 added, 0 changed", "store"},
		"the clusters get entries": {new(stores.with(func(s *shape) { s.entries["b1"], s.entries["b2"] = "bank", "bank" })),
			"0 removed, 0 added, 0 changed", "bank"},
		"a class of nobody": {new(stores.with(func(s *shape) { s.folders["store.x"] = "cart=1" })), "0 removed, 0 added, 0 changed", ""},
		"all goes":          {nil, "- bank/desk on b1,b2\n- store/cart on s1,s2,s3\n- store/till on s1,s2,s3\n8 removed, 0 added, 0 changed", "bank store"},
	} {
		t.Run(name, func(t *testing.T) {
			var read []string
			var after *tree.Record
			if c.after != nil {
				after = c.after.record(t, &read)
			}
			e, err := CompareRecords(stores.record(t, &read), after)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(text(e), "\n")
			lines = slices.DeleteFunc(lines[:len(lines)-1], func(l string) bool { return strings.HasPrefix(l, "empty") })
			if got := strings.Join(append(lines, e.Counts().String()), "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			slices.Sort(read)
			read = slices.DeleteFunc(slices.Compact(read), tree.IsShard)
			if got := strings.Join(read, " "); got != c.read {
				t.Errorf("read %q, want %q", got, c.read)
			}
		})
	}
}

// TestReaderReadsRecordsOnce checks that a reader of successive records reads each record
// of a folder once, after it has announced it, and forgets the removed ones.
func TestReaderReadsRecordsOnce(t *testing.T) {
	announced := map[tree.ID]bool{}
	r := &Reader{Prefetch: func(ids []tree.ID) error {
		for _, id := range ids {
			announced[id] = true
		}
		return nil
	}}
	var before *tree.Record
	var reads []string
	for i := range 5 {
		var read []string
		after := stores.with(func(s *shape) { s.entries["s1"] = []string{"store", "store.no"}[i%2] }).record(t, &read)
		if _, err := r.Compare(before, after); err != nil {
			t.Fatal(err)
		}
		for _, name := range read {
			at := slices.IndexFunc(after.ClusterTypes, func(e tree.ClusterTypeEntry) bool { return e.Name == name })
			if !announced[after.ClusterTypes[at].Record] {
				t.Errorf("%s is read and was not announced", name)
			}
		}
		reads = append(reads, fmt.Sprint(len(read)))
		if len(r.known) > len(after.ClusterTypes)+2 {
			t.Errorf("%d records are known, beside %d", len(r.known), len(after.ClusterTypes))
		}
		before = after
	}
	if got := strings.Join(reads, " "); got != "5 2 0 0 0" {
		t.Errorf("read %s records", got)
	}
	failed := errors.New("no answer")
	r.Prefetch = func([]tree.ID) error { return failed }
	var read []string
	if _, err := r.Compare(before, stores.with(func(s *shape) { s.folders["store"] = "" }).record(t, &read)); !errors.Is(err, failed) {
		t.Error(err)
	}
}

func TestCompareRecordsFailsWhereOneCannotBeRead(t *testing.T) {
	var read []string
	a, b := stores.record(t, &read), stores.with(func(s *shape) { s.folders["store"] = "cart=2" }).record(t, &read)
	for i := range b.ClusterTypes {
		if b.ClusterTypes[i].Name == "store" {
			b.ClusterTypes[i].Record = tree.BlobID([]byte("other bytes"))
		}
	}
	if _, err := CompareRecords(a, b); !errors.As(err, new(*tree.RecordError)) || !strings.Contains(err.Error(), "the record of store: ") {
		t.Error(err)
	}
}

// TestCompareRecordsIsOfSides checks that the records that CompareRecords does not read make no
// difference.
func TestCompareRecordsIsOfSides(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 33))
		var read []string
		base := randomShape(rnd)
		edited := base.with(func(s *shape) { s.edit(rnd) })
		got, err := CompareRecords(base.record(t, &read), edited.record(t, &read))
		if err != nil {
			t.Fatal(err)
		}
		want, err := Compare(base.side(), edited.side(), nil)
		if err != nil {
			t.Fatal(err)
		}
		pairs := func(e *Effect) string { s := text(e); return s[:strings.LastIndex("\n"+s, "\n")] }
		if pairs(got) != pairs(want) || got.Counts() != want.Counts() || got.RemovedFrom() != want.RemovedFrom() {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, text(got), text(want))
		}
	}
}

// randomShape returns up to three cluster types with classes, half of them with entries.
func randomShape(rnd *rand.Rand) shape {
	s := shape{map[string]string{}, map[string]string{}, map[string]string{}}
	for n, name := range []string{"a", "b", "c"} {
		s.folders[name] = randomList(rnd)
		if rnd.IntN(2) == 0 {
			s.lists[name] = strings.Join(numbered(name, rnd.IntN(4)), " ")
			continue
		}
		s.folders[name+".x"], s.folders[name+".y"] = randomList(rnd), randomList(rnd)
		for _, cluster := range numbered(name, n+rnd.IntN(4)) {
			s.entries[cluster] = name + []string{"", ".x", ".y"}[rnd.IntN(3)]
		}
	}
	return s
}

func numbered(name string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d", name, i))
	}
	return out
}

func randomList(rnd *rand.Rand) string {
	var out []string
	for _, target := range []string{"p-1", "q-1", "r-1"} {
		if rnd.IntN(3) > 0 {
			out = append(out, fmt.Sprintf("%s=%d", target, rnd.IntN(2)))
		}
	}
	return strings.Join(out, " ")
}

// edit changes a few things of the shape.
func (s *shape) edit(rnd *rand.Rand) {
	for range rnd.IntN(4) {
		name := slices.Sorted(maps.Keys(s.folders))[rnd.IntN(len(s.folders))]
		clusterType := model.TypeOfFolder(name)
		switch rnd.IntN(6) {
		case 0:
			s.folders[name] = randomList(rnd)
		case 1:
			s.entries[clusterType+"0"] = name
		case 2:
			delete(s.entries, clusterType+fmt.Sprint(rnd.IntN(3)))
		case 3:
			s.lists[clusterType] = strings.Join(numbered(clusterType, rnd.IntN(4)), " ")
		case 4:
			s.folders[clusterType+".z"] = randomList(rnd)
		case 5:
			for cluster, folder := range s.entries {
				if model.TypeOfFolder(folder) == clusterType {
					s.entries[cluster] = name
				}
			}
		}
	}
}
