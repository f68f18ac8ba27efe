package tree_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/testing/fieldtest"
)

// The hand-written encoder writes the same JSON as encoding/json, for all combinations of fields.
func TestAssignmentsAreEncodedAsJSON(t *testing.T) {
	encoded := func(a *tree.AssignmentRecord) string {
		var want strings.Builder
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		must(t, enc.Encode(a))
		record, err := (&tree.ClusterTypeRecord{Assignments: []tree.AssignmentRecord{*a}}).Encode()
		must(t, err)
		_, got, _ := strings.Cut(string(record), "\"assignments\": [\n    ")
		if got = strings.TrimSuffix(got, "\n  ]\n}\n"); got != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("%+v is\n%s\nwant\n%s", a, got, want.String())
		}
		return got
	}
	full := func() *tree.AssignmentRecord {
		return &tree.AssignmentRecord{
			Folder: backends.Folder{
				DeploymentTarget: "a", Workspace: "b", Workload: "c \"quoted\" \\ \n \u2028 <&>", Namespace: "ä", Version: "1",
				Orphan: true, DependsOn: []string{"x", "y\t"}, Wave: 3, Backend: "flux", Retained: []string{"PersistentVolumeClaim a", "Secret \"b\""}, Shared: json.RawMessage(`{"a":["<"]}`),
			},
			Tree: emptyTree, Values: "v", Files: map[string]tree.Blob{"b/c": {ID: "1"}, "a": {ID: "2", Executable: true}},
			Kept: &tree.Retention{Reason: "<K>", Compiler: tree.Compiler{"1", "2", "3"}, Source: tree.Source{"4", "5"}},
		}
	}
	made := map[string]string{"made": "they are Files"}
	fieldtest.Check(t, full, encoded, made)
	fieldtest.Check(t, func() *tree.AssignmentRecord { return &tree.AssignmentRecord{Files: map[string]tree.Blob{}} }, encoded, made)
}

// Encode writes every field of a record, and ParseRecord reads it again.
func TestRecordsAreEncodedAsJSON(t *testing.T) {
	read := func(data []byte, into any) string {
		must(t, json.Unmarshal(data, into))
		again, err := json.Marshal(into)
		must(t, err)
		return string(again)
	}
	fieldtest.Check(t, func() *tree.ClusterTypeRecord { return &tree.ClusterTypeRecord{} }, func(c *tree.ClusterTypeRecord) string {
		data, err := c.Encode()
		must(t, err)
		return read(data, &tree.ClusterTypeRecord{})
	}, map[string]string{"Assignments.made": "they are Files", "Facts.Values": "none and null are the same"})
	fieldtest.Check(t, func() *tree.Record { return &tree.Record{} }, func(r *tree.Record) string {
		return read(r.Encode(), &tree.Record{})
	}, map[string]string{
		"load": "it reads parts", "bytes": "as load", "parse": "as load", "mu": "as load", "loaded": "as load", "split": "as load",
		"ClusterTypes.corrected": "it is for the write that finds it",
	})
}

func TestFactsOfAClusterAreEmpty(t *testing.T) {
	fieldtest.Check(t, func() *tree.ClusterFacts { return &tree.ClusterFacts{} }, func(f *tree.ClusterFacts) string {
		if f.IsEmpty() {
			return ""
		}
		text, err := f.Encode()
		must(t, err)
		return string(text)
	}, map[string]string{"Cluster": "it is whose facts they are"})
}

// A cluster type with anything kept has no digest, so that the next build compares it.
func TestKeptHasNoDigest(t *testing.T) {
	for name, c := range map[string]struct {
		content tree.Content
		want    model.Digest
	}{
		"nothing":  {tree.Content{Facts: []tree.ClusterFacts{{Cluster: "c"}}}, "d"},
		"facts":    {tree.Content{Facts: []tree.ClusterFacts{{Cluster: "b"}, {Cluster: "c", Kept: true}}}, ""},
		"files":    {tree.Content{Kept: "K3003"}, ""},
		"a folder": {tree.Content{Folders: []tree.Folder{{Info: backends.Folder{DeploymentTarget: "a"}, Kept: &tree.Retention{}}}}, ""},
	} {
		ct := tree.ClusterType{Name: "large", Digest: "d", Content: func(context.Context) (*tree.Content, error) { return &c.content, nil }}
		e, err := ct.Entry(t.Context(), &tree.ClusterTypeRecord{Name: "large", Assignments: []tree.AssignmentRecord{{Folder: backends.Folder{DeploymentTarget: "a"}}}}, &tree.Record{})
		if must(t, err); e.Digest != c.want {
			t.Errorf("with %s kept the digest is %q, want %q", name, e.Digest, c.want)
		}
	}
}

// damages are possible defects of a cluster type's record.
var damages = map[string]func(t *testing.T, file string){
	"gone": func(t *testing.T, file string) { must(t, os.Remove(file)) },
	"cut off": func(t *testing.T, file string) {
		data, err := os.ReadFile(file)
		must(t, err)
		must(t, os.WriteFile(file, data[:len(data)/2], 0o644))
	},
	"another's": func(t *testing.T, file string) {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(file), "small.json"))
		must(t, err)
		must(t, os.WriteFile(file, data, 0o644))
	},
	"one character": func(t *testing.T, file string) {
		data, err := os.ReadFile(file)
		must(t, err)
		must(t, os.WriteFile(file, []byte(strings.Replace(string(data), "flux", "argo", 1)), 0o644))
	},
	"a link": func(t *testing.T, file string) {
		must(t, os.Rename(file, file+".real"))
		must(t, os.Symlink(file+".real", file))
	},
	"a folder": func(t *testing.T, file string) {
		must(t, os.Remove(file))
		must(t, os.Mkdir(file, 0o755))
	},
}

// If a cluster type's record does not match the environment's record, kalypso reports the path of
// the file, even if it does not need the record. --adopt continues without it.
func TestDamagedClusterTypeRecords(t *testing.T) {
	for name, damage := range damages {
		for what, next := range map[string]files{"unchanged": small, "changed": changed(files{"large/app/a.yaml": "a2", "large/app/b.sh": ""})} {
			t.Run(name+", "+what, func(t *testing.T) {
				dir := indexed(t)
				p := tree.ClusterTypeRecordPath("large")
				damage(t, filepath.Join(dir, p))

				d, err := tree.Open(dir)
				must(t, err)
				r, report, err := d.Record()
				must(t, err)
				var bad *tree.RecordError
				if _, err := r.ClusterType("large"); len(report) > 0 || !errors.As(err, &bad) || bad.Path != p || bad.Diagnostic().Code != diag.BadRecord {
					t.Errorf("the record has the error %v, %v", err, report)
				}
				if small, err := r.ClusterType("small"); err != nil || len(small.Assignments) != 1 {
					t.Errorf("the other record is %v %v", small, err)
				}
				must(t, d.Close())

				_, report = tryWrite(t, dir, treeOf(next), dev)
				points(t, report, diag.BadRecord, dir, p)
				equal(t, "refused", read(t, dir), small)
				if name == "a folder" {
					return // the user must move it away by hand
				}
				_, report = tryWrite(t, dir, treeOf(next), adopting(dev))
				if len(report) > 0 {
					t.Fatalf("diagnostics: %v", report)
				}
				want := maps.Clone(next)
				if what == "changed" {
					want["large/app/b.sh"] = small["large/app/b.sh"] // a foreign file now
				}
				equal(t, "adopted", read(t, dir), want)
				if c := write(t, dir, treeOf(next), dev); !c.Empty() {
					t.Errorf("written again: %+v", c)
				}
			})
		}
	}
}

func TestClusterTypeRecordOfAnotherVersion(t *testing.T) {
	dir := indexed(t)
	// A newer version would have written both like this.
	file := filepath.Join(dir, tree.ClusterTypeRecordPath("large"))
	data, err := os.ReadFile(file)
	must(t, err)
	newer := strings.Replace(string(data), apiVersion, "kalypso.io/v9", 1)
	must(t, os.WriteFile(file, []byte(newer), 0o644))
	header, err := os.ReadFile(filepath.Join(dir, recordPath))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, recordPath), []byte(strings.Replace(string(header), string(tree.BlobID(data)), string(tree.BlobID([]byte(newer))), 1)), 0o644))
	for _, o := range []tree.Options{dev, adopting(dev)} {
		_, report := tryWrite(t, dir, treeOf(changed(files{"large/app/a.yaml": "a2"})), o)
		points(t, report, diag.BadRecord, dir, tree.ClusterTypeRecordPath("large"))
	}
}

// The record of a cluster type appears and disappears with it; other files stay.
func TestClusterTypeRecordsComeAndGo(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	must(t, os.WriteFile(filepath.Join(dir, recordsFolder, "notes"), nil, 0o644))
	write(t, dir, treeOf(files{"small/README.md": "readme", "third/app/x": "x"}), dev)
	entries, err := os.ReadDir(filepath.Join(dir, recordsFolder))
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"notes", "small.json", "third.json"}; !slices.Equal(names, want) {
		t.Errorf("there are %v, want %v", names, want)
	}
}

// A change in one cluster type changes no other cluster type's record.
func TestOtherRecordsAreNotTouched(t *testing.T) {
	dir := indexed(t)
	before := times(t, dir)
	write(t, dir, treeOf(changed(files{"large/app/a.yaml": "a2"})), dev)
	after := times(t, dir)
	if p := tree.ClusterTypeRecordPath("small"); before[p] != after[p] {
		t.Error("the other record was written")
	}
	if p := tree.ClusterTypeRecordPath("large"); before[p] == after[p] {
		t.Error("the record was not written")
	}
}

func TestClusterTypesAreLoadedOnceAndTogether(t *testing.T) {
	encoded := map[string][]byte{}
	r := &tree.Record{APIVersion: apiVersion, Kind: recordKind, Tree: emptyTree}
	for i := range 8 {
		c := &tree.ClusterTypeRecord{APIVersion: apiVersion, Kind: clusterTypeKind, Name: fmt.Sprint("type-", i)}
		data, err := c.Encode()
		must(t, err)
		encoded[c.Name] = data
		r.ClusterTypes = append(r.ClusterTypes, tree.ClusterTypeEntry{Name: c.Name, Tree: emptyTree, Record: tree.BlobID(data)})
	}
	var mu sync.Mutex
	loads := map[string]int{}
	r, err := tree.ParseRecord(r.Encode(), func(name string) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		loads[name]++
		return encoded[name], nil
	})
	must(t, err)
	var wg sync.WaitGroup
	for i := range 80 {
		wg.Go(func() {
			name := fmt.Sprint("type-", i%8)
			if c, err := r.ClusterType(name); err != nil || c.Name != name {
				t.Errorf("%s is %v, %v", name, c, err)
			}
		})
	}
	wg.Wait()
	for name := range encoded {
		if loads[name] != 1 {
			t.Errorf("%s was loaded %d times", name, loads[name])
		}
	}
	for _, r := range []*tree.Record{r, nil} {
		if c, err := r.ClusterType("other"); c != nil || err != nil {
			t.Errorf("what is not listed is %v, %v", c, err)
		}
	}
}

// TestEntriesAreReadAsJSON checks that reading entries line by line gives the same result as
// reading the whole record as JSON.
func TestEntriesAreReadAsJSON(t *testing.T) {
	one, two := tree.ShardName("st-01"), ""
	for i := range 1000 { // another cluster of the same folder
		if name := fmt.Sprintf("st-%02d", i+2); tree.ShardName(name) == one {
			two = name
			break
		}
	}
	files := map[string]tree.Blob{"k.yaml": {ID: tree.BlobID(nil)}}
	record := &tree.ClusterTypeRecord{APIVersion: apiVersion, Kind: clusterTypeKind, Name: one, Files: map[string]tree.Blob{}, Assignments: []tree.AssignmentRecord{},
		Entries: []tree.EntryRecord{{"st-01", "store", files}, {two, "store", files}}}
	data, err := record.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := tree.ParseClusterTypeRecord(data)
	if err != nil || !reflect.DeepEqual(read, record) {
		t.Fatalf("%+v, %v", read, err)
	}
	entry := `{"cluster":"st-01","folder":"decoy","files":{}}`
	for name, change := range map[string][2]string{
		"no comma":          {"}},\n", "}}\n"},
		"a comma too many":  {"}}\n  ]", "}},\n  ]"},
		"a cluster twice":   {`"st-01",`, `"st-01","cluster":"",`},
		"an escaped one":    {`"st-01",`, `"st-01","\u0063luster":"x",`},
		"a null one":        {`"st-01",`, `"st-01","cluster":null,`},
		"a folder twice":    {`"st-01",`, `"st-01","folder":"x",`},
		"entries twice":     {"\n  \"assignments\"", "\n  \"entries\": [],\n  \"assignments\""},
		"an assignment too": {"\"assignments\": [\n", "\"assignments\": [\n    {\"deploymentTarget\":\"st-01\",\"workspace\":\"w\",\"workload\":\"w\",\"namespace\":\"n\",\"backend\":\"b\",\"tree\":\"" + string(tree.BlobID(nil)) + "\",\"values\":\"\",\"files\":{\"k.yaml\":\"" + string(tree.BlobID(nil)) + "\"}}\n"},
		"not a name":        {`"st-01"`, `"../x"`},
		"not a path":        {`"k.yaml"`, `"../k.yaml"`},
	} {
		if got, err := tree.ParseClusterTypeRecord([]byte(strings.Replace(string(data), change[0], change[1], 1))); err == nil {
			t.Errorf("%s: it is read as %+v", name, got.Entries)
		}
	}
	decoy := strings.Replace(string(data), "\n  \"files\"", "\n  \"other\": {\n  \"entries\": [\n    "+entry+"\n  ]\n  },\n  \"files\"", 1)
	if read, err = tree.ParseClusterTypeRecord([]byte(decoy)); err != nil || !reflect.DeepEqual(read, record) {
		t.Errorf("entries of something else are read: %+v, %v", read, err)
	}
	alone := strings.Replace(decoy, "\n  \"entries\": [\n    {\"cluster\":\"st-01\",\"folder\":\"store\"", "\n  \"former\": [\n    {\"cluster\":\"st-01\",\"folder\":\"store\"", 1)
	if read, err = tree.ParseClusterTypeRecord([]byte(alone)); err != nil || len(read.Entries) > 0 {
		t.Errorf("entries of something else are read: %+v, %v", read, err)
	}
}
