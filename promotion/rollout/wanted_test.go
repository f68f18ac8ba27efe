package rollout_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

const noTree = tree.ID("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

// recorded returns the record of environment prod with these folders, by cluster type.
func recorded(t *testing.T, names []string, folders map[string][]backends.Folder) *tree.Record {
	t.Helper()
	r := &tree.Record{APIVersion: "kalypso.io/v1alpha1", Kind: "Provenance", Platform: "p", Environment: "prod", Tree: noTree}
	files := map[string][]byte{}
	for _, name := range names {
		c := &tree.ClusterTypeRecord{APIVersion: "kalypso.io/v1alpha1", Kind: "ClusterTypeProvenance", Name: name}
		for _, f := range folders[name] {
			c.Assignments = append(c.Assignments, tree.AssignmentRecord{Folder: f, Tree: noTree})
		}
		data, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
		r.ClusterTypes = append(r.ClusterTypes, tree.ClusterTypeEntry{Name: name, Tree: noTree, Assignments: len(c.Assignments), Record: tree.BlobID(data)})
	}
	r, err := tree.ParseRecord(r.Encode(), func(name string) ([]byte, error) {
		if files[name] == nil {
			return nil, errors.New("no such file")
		}
		return files[name], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func folder(target, backend, shared string) backends.Folder {
	f := backends.Folder{DeploymentTarget: target, Workspace: "team", Workload: "hello", Namespace: "n-" + target, Backend: backend}
	if shared != "" {
		f.Shared = []byte(shared)
	}
	return f
}

func TestWantedOf(t *testing.T) {
	long := "hello-" + strings.Repeat("x", 60)
	r := recorded(t, []string{"eu", "eu-large", "us"}, map[string][]backends.Folder{
		"eu":       {folder("hello-main", "flux", ""), folder(long, "flux", "")},
		"eu-large": {folder("hello-main", "argocd", `{"clusters":["one","two"]}`), folder("hello-other", "argocd", "")},
		"us":       {folder("hello-main", "ansible", "")},
	})
	all, err := rollout.WantedOf(r, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range all {
		got = append(got, fmt.Sprintf("%s %s %v", a.ID, a.Object, a.Objects))
	}
	want := []string{
		// '-' is less than '/'
		"prod/eu-large/hello-main prod-eu-large-hello-main-assignment map[prod-eu-large-hello-main-assignment-one:one prod-eu-large-hello-main-assignment-two:two]",
		"prod/eu-large/hello-other prod-eu-large-hello-other-assignment map[]",
		"prod/eu/hello-main prod-eu-hello-main-assignment map[]",
		"prod/eu/" + long + " " + backends.AssignmentName("prod", "eu", long) + " map[]",
		"prod/us/hello-main  map[]",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if object := all[3].Object; len(object) > 63 || !strings.HasPrefix(object, "prod-eu-hello-") {
		t.Errorf("got %s", object)
	}
}

func TestWantedOfClasses(t *testing.T) {
	newer := folder("hello-main", "flux", "")
	newer.Version = "2.0.0"
	r := recorded(t, []string{"shop", "shop.early"}, map[string][]backends.Folder{
		"shop":       {folder("hello-main", "flux", "")},
		"shop.early": {newer, folder("hello-more", "flux", "")},
	})
	clusters := map[string][]string{"shop": {"s-1", "s-3"}, "shop.early": {"s-2"}}
	got, err := rollout.WantedOf(r, nil, func(clusterType string) []string { return clusters[clusterType] })
	if err != nil {
		t.Fatal(err)
	}
	want := []rollout.Assignment{
		{ID: "prod/shop/hello-main", ClusterType: "shop", Workload: "hello", Target: "hello-main", Backend: "flux", Namespace: "n-hello-main",
			Object: "prod-shop-hello-main-assignment", Clusters: []string{"s-1", "s-2", "s-3"}},
		{ID: "prod/shop/hello-more", ClusterType: "shop", Workload: "hello", Target: "hello-more", Backend: "flux", Namespace: "n-hello-more",
			Object: "prod-shop-hello-more-assignment", Clusters: []string{"s-2"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWantedOfSome(t *testing.T) {
	r := recorded(t, []string{"eu", "us"}, map[string][]backends.Folder{"eu": {folder("hello-main", "flux", "")}, "us": {folder("hello-main", "flux", "")}})
	got, err := rollout.WantedOf(r, func(name string) bool { return name == "us" }, func(clusterType string) []string {
		return []string{clusterType + "-2", clusterType + "-1", clusterType + "-2"}
	})
	want := []rollout.Assignment{{
		ID: "prod/us/hello-main", ClusterType: "us", Workload: "hello", Target: "hello-main", Backend: "flux", Namespace: "n-hello-main",
		Object: "prod-us-hello-main-assignment", Clusters: []string{"us-1", "us-2"},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// An unreadable record is not an empty one.
func TestWantedOfDamaged(t *testing.T) {
	r := recorded(t, []string{"eu"}, map[string][]backends.Folder{"eu": {folder("hello-main", "flux", "")}})
	damaged, err := tree.ParseRecord(r.Encode(), func(string) ([]byte, error) { return []byte("{}"), nil })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rollout.WantedOf(damaged, nil, nil); !errors.As(err, new(*tree.RecordError)) || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// In an application's tree each cluster type is a wanted assignment. A record without assignments
// therefore does not mean that nothing is wanted.
func TestTargetsOf(t *testing.T) {
	r := recorded(t, []string{"east", "west"}, map[string][]backends.Folder{})
	var got []string
	for _, a := range rollout.TargetsOf(r, nil) {
		got = append(got, a.ID+" "+a.Target)
	}
	if want := []string{"prod/east east", "prod/west west"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	counts := rollout.Count(&rollout.DesiredState{Assignments: rollout.TargetsOf(r, func(name string) bool { return name == "west" })}, nil, rollout.Options{})
	if verdict, reason := counts.Verdict(rollout.Policy{}); counts.Wanted != 1 || verdict != rollout.Pending {
		t.Errorf("without reports %s: %s", verdict, reason)
	}
}
