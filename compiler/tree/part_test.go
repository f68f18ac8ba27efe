package tree_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// recordOf returns a record with an assignment for each name. The second one retains something.
func recordOf(names ...string) *tree.ClusterTypeRecord {
	c := &tree.ClusterTypeRecord{APIVersion: apiVersion, Kind: clusterTypeKind, Name: "large", Files: map[string]tree.Blob{"index.yaml": {ID: tree.BlobID([]byte("index"))}},
		Clusters: []string{"c1", "c2"}, Facts: []tree.ClusterFacts{}, Denied: []tree.DeniedTarget{{DeploymentTarget: "z", Policies: []string{"p"}}}}
	for i, name := range names {
		a := tree.AssignmentRecord{Folder: backends.Folder{DeploymentTarget: name, Workspace: "team", Workload: "w", Namespace: "ns-" + name, Backend: "flux", Shared: json.RawMessage(`{"a":[]}`)},
			Tree: emptyTree, Values: "v", Files: map[string]tree.Blob{"a.yaml": {ID: tree.BlobID([]byte(name))}}}
		if i == 1 {
			a.Retained = []string{"Secret s"}
			values := model.StructOf(model.Field{Name: "a<b", Value: model.StringOf("x")}, model.Field{Name: "n", Value: model.Value{}})
			c.Facts = append(c.Facts, tree.ClusterFacts{Cluster: "c2", Address: "192.0.2.1", Labels: map[string]string{"k": "v"}, Composed: map[string]model.Value{name: values}, Kept: true})
		}
		c.Assignments = append(c.Assignments, a)
	}
	return c
}

// listing returns a record of an environment whose only cluster type is large,
// with the text as its file.
func listing(t *testing.T, text []byte) *tree.Record {
	t.Helper()
	header := tree.Record{APIVersion: apiVersion, Kind: recordKind, Tree: emptyTree,
		ClusterTypes: []tree.ClusterTypeEntry{{Name: "large", Tree: emptyTree, Record: tree.BlobID(text)}}}
	r, err := tree.ParseRecord(header.Encode(), func(string) ([]byte, error) { return text, nil })
	must(t, err)
	return r
}

// partOf returns a record with only the wanted assignments, filtered without Part.
func partOf(c *tree.ClusterTypeRecord, wanted func(name string) bool) tree.ClusterTypeRecord {
	some := *c
	some.Assignments = slices.DeleteFunc(slices.Clone(c.Assignments), func(a tree.AssignmentRecord) bool { return !wanted(a.DeploymentTarget) })
	return some
}

func TestPartOfARecord(t *testing.T) {
	for _, names := range [][]string{nil, {"a"}, {"a", "b", "c"}, {"a", `b"`, "c"}} { // the last one is read as a whole
		text, err := recordOf(names...).Encode()
		must(t, err)
		want, err := tree.ParseClusterTypeRecord(text)
		must(t, err)
		for kept := range 1 << len(names) {
			wanted := func(name string) bool { return kept>>slices.Index(names, name)&1 == 1 }
			got, err := listing(t, text).Part("large", func(target, namespace string, retains bool) bool {
				if namespace != "ns-"+target || retains != (len(names) > 1 && target == names[1]) {
					t.Errorf("%s has the namespace %s, and retains %v", target, namespace, retains)
				}
				return wanted(target)
			})
			must(t, err)
			if some := partOf(want, wanted); fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", some) {
				t.Errorf("of %q, %b is\n%+v\nwant\n%+v", names, kept, *got, some)
			}
		}
		outlines, err := listing(t, text).Outlines("large")
		must(t, err)
		for i, o := range outlines {
			if a := want.Assignments[i]; o != (tree.Outline{DeploymentTarget: a.DeploymentTarget, Namespace: a.Namespace, Tree: a.Tree}) {
				t.Errorf("the outline of %s is %+v", names[i], o)
			}
		}
		if len(outlines) != len(names) {
			t.Errorf("%q have the outlines %+v", names, outlines)
		}
	}
}

// Part does not read unwanted assignments in the form that Encode writes, so it does
// not notice damage there.
func TestPartReadsOnlyWhatIsWanted(t *testing.T) {
	encoded, err := recordOf("a", "b", "c").Encode()
	must(t, err)
	damaged := []byte(strings.Replace(string(encoded), `"namespace":"ns-c","backend":"flux"`, `"namespace":"ns-c","backend":1`, 1))
	c, err := listing(t, damaged).Part("large", func(target, _ string, _ bool) bool { return target != "c" })
	if err != nil || len(c.Assignments) != 2 {
		t.Errorf("part of it is %+v, %v", c, err)
	}
	if all, err := listing(t, damaged).Outlines("large"); err != nil || len(all) != 3 {
		t.Errorf("the outlines are %+v, %v", all, err)
	}
	if _, err := listing(t, damaged).Part("large", func(string, string, bool) bool { return true }); err == nil {
		t.Error("what is wanted is damaged, and read")
	}
}

// A record in any other form is read as a whole, including its errors.
func TestOtherFormsOfRecordsAreNotSplit(t *testing.T) {
	encoded, err := recordOf("a", "b", "c").Encode()
	must(t, err)
	text := string(encoded)
	var compact strings.Builder
	must(t, json.NewEncoder(&compact).Encode(json.RawMessage(text)))
	for _, other := range []string{
		"", "{}", compact.String(), text[:len(text)/2], strings.Replace(text, "\n    {", "\n   {", 3), strings.Replace(text, `{"deploymentTarget":"b",`, `{"deploymentTarget" : "b",`, 1),
		strings.Replace(text, `{"deploymentTarget":"b"`, `{"deploymentTarget":"c"`, 1), strings.Replace(text, `"workload":"w",`, "", 1), strings.Replace(text, "\n  ]", "\n ]", 3),
	} {
		wanted := func(target string) bool { return target == "a" }
		part := func(text string) (string, error) {
			c, err := listing(t, []byte(text)).Part("large", func(target, _ string, _ bool) bool { return wanted(target) })
			return fmt.Sprintf("%+v", c), err
		}
		got, err := part(other)
		want := "<nil>"
		whole, wholeErr := listing(t, []byte(other)).ClusterType("large")
		if wholeErr == nil {
			some := partOf(whole, wanted)
			want = fmt.Sprintf("%+v", &some)
		}
		if got != want || fmt.Sprint(err) != fmt.Sprint(wholeErr) {
			t.Errorf("of\n%s\npart is\n%s, %v\nwant\n%s, %v", other, got, err, want, wholeErr)
		}
		// A line that is not wanted is read in this case.
		if damaged := strings.Replace(other, `"flux"`, "1", 3); damaged != other {
			if _, err := listing(t, []byte(damaged)).Part("large", func(string, string, bool) bool { return false }); err == nil {
				t.Errorf("this is split:\n%s", damaged)
			}
		}
	}
}
