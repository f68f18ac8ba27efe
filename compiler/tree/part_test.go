package tree

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// recordOf is a record with an assignment for each name, the second of which retains something.
func recordOf(names ...string) *ClusterTypeRecord {
	c := &ClusterTypeRecord{APIVersion: apiVersion, Kind: clusterTypeKind, Name: "large", Files: map[string]Blob{"index.yaml": {ID: BlobID([]byte("index"))}},
		Clusters: []string{"c1", "c2"}, Facts: []ClusterFacts{}, Denied: []Denied{{DeploymentTarget: "z", Policies: []string{"p"}}}}
	for i, name := range names {
		a := AssignmentRecord{Folder: backends.Folder{DeploymentTarget: name, Workspace: "team", Workload: "w", Namespace: "ns-" + name, Backend: "flux", Shared: json.RawMessage(`{"a":[]}`)},
			Tree: emptyTree, Values: "v", Files: map[string]Blob{"a.yaml": {ID: BlobID([]byte(name))}}}
		if i == 1 {
			a.Retained = []string{"Secret s"}
			values := model.StructOf(model.Field{Name: "a<b", Value: model.StringOf("x")}, model.Field{Name: "n", Value: model.Value{}})
			c.Facts = append(c.Facts, ClusterFacts{Cluster: "c2", Address: "192.0.2.1", Labels: map[string]string{"k": "v"}, Composed: map[string]model.Value{name: values}, Kept: true})
		}
		c.Assignments = append(c.Assignments, a)
	}
	return c
}

func TestPartOfARecord(t *testing.T) {
	for _, names := range [][]string{nil, {"a"}, {"a", "b", "c"}, {"a", `b"`, "c"}} { // the last one is read as a whole
		c := recordOf(names...)
		text, err := c.Encode()
		must(t, err)
		want, err := ParseClusterTypeRecord(text)
		must(t, err)
		if l := splitRecord(text); l == nil != (len(names) > 1 && names[1] != "b") {
			t.Errorf("%q is split into %v", names, l)
		}
		for kept := range 1 << len(names) {
			whole := &Record{ClusterTypes: []ClusterTypeEntry{c.entry("d", text)}}
			whole.from(identified(func(string) ([]byte, error) { return text, nil }), func(err error) error { return err })
			wanted := func(name string) bool { return kept>>slices.Index(names, name)&1 == 1 }
			got, err := whole.Part("large", func(target, namespace string, retains bool) bool {
				if namespace != "ns-"+target || retains != (len(names) > 1 && target == names[1]) {
					t.Errorf("%s has the namespace %s, and retains %v", target, namespace, retains)
				}
				return wanted(target)
			})
			must(t, err)
			some := *want
			some.Assignments = slices.DeleteFunc(slices.Clone(want.Assignments), func(a AssignmentRecord) bool { return !wanted(a.DeploymentTarget) })
			if fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", some) {
				t.Errorf("of %q, %b is\n%+v\nwant\n%+v", names, kept, *got, some)
			}
		}
	}
}

// What has another form than Encode gives it is read as a whole, and so are its errors.
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
		if splitRecord([]byte(other)) != nil {
			t.Errorf("this is split:\n%s", other)
		}
	}
	l := splitRecord(encoded)
	if all := l.part(func(int) bool { return true }); !reflect.DeepEqual(all, encoded) {
		t.Errorf("all of it is\n%s\nwant\n%s", all, encoded)
	}
}
