package fleet_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
	"github.com/kalypso-io/kalypso/internal/testing/crdtest"
)

// central is an object of the management cluster, as far as the checks look at it.
type central struct {
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct {
		Labels    map[string]string
		DependsOn []dependency
		Paths     []string
		Bundles   []struct{ Base string }
		Helm      struct{ ReleaseName string }
	}
}

// check checks a tree against the rules of Fleet: the destinations of objects, and the dependencies
// between bundles.
func check(t *testing.T, p bt.Platform, tree bt.Tree) {
	t.Helper()
	everything := checkClusters(t, p, tree)
	names := map[string]map[string]string{} // labels of all bundles, by name
	for _, b := range everything {
		if names[b.Name] != nil {
			t.Errorf("two bundles are named %s", b.Name)
		}
		names[b.Name] = b.Labels
	}
	waiting := map[string][]dependency{}
	for _, b := range everything {
		waiting[b.Name] = b.DependsOn
	}
	for _, o := range checkManagement(t, tree) {
		name := o.Metadata.Name
		if names[name] != nil {
			t.Errorf("%s is a bundle of a folder too", name)
		}
		names[name] = o.Spec.Labels
		if o.Spec.Labels == nil { // a GitRepo's labels are its bundles'
			names[name] = o.Metadata.Labels
		}
		waiting[name] = o.Spec.DependsOn
	}
	for name, dependencies := range waiting {
		if len(name) > 53 {
			t.Errorf("%s is no name of a release", name)
		}
		for _, d := range dependencies {
			checkDependency(t, name, d, names)
		}
	}
}

// checkDependency checks that exactly one bundle matches a dependency, and that it is another
// bundle.
func checkDependency(t *testing.T, of string, d dependency, bundles map[string]map[string]string) {
	t.Helper()
	want := d.Selector.MatchLabels
	var found []string
	for name, labels := range bundles {
		matches := len(want) > 0
		for key, value := range want {
			matches = matches && labels[key] == value
		}
		if matches || d.Name == name {
			found = append(found, name)
		}
	}
	if len(found) != 1 || found[0] == of {
		t.Errorf("%s waits for %+v, which is %v", of, d, found)
	}
}

// checkClusters checks the files for the clusters, and returns their bundles.
func checkClusters(t *testing.T, p bt.Platform, tree bt.Tree) []bundle {
	t.Helper()
	files := map[string][]byte{}
	for name, data := range tree.Files {
		files["large/"+name] = data
		if path.Base(name) == "fleet.yaml" {
			if _, err := crdtest.Check(asBundle(t, data)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	all := bundles(t, files, "large/*")
	clusters := []string{"another"}
	for _, c := range p.Clusters {
		clusters = append(clusters, c.Name)
	}
	for _, cluster := range clusters {
		var brought []backends.Object
		for _, b := range all {
			if b.DefaultNamespace != "" || b.Namespace != "" {
				t.Errorf("%s is released in a namespace that goes with it", b.Name)
			}
			for _, o := range b.on(t, cluster) {
				brought = append(brought, o.ID())
			}
		}
		var listed []backends.Object
		for _, o := range slices.Concat(slices.Collect(maps.Values(tree.Objects))...) {
			if o.Group != "fleet.cattle.io" {
				listed = append(listed, o)
			}
		}
		same(t, "cluster "+cluster, brought, listed)
	}
	return all
}

// checkManagement checks the files for the management cluster, and returns their objects.
func checkManagement(t *testing.T, tree bt.Tree) []central {
	t.Helper()
	files := map[string][]byte{}
	for name, data := range tree.Files {
		files["large/"+name] = data
	}
	root := read(t, files, "large")
	if len(root.files) == 0 {
		t.Error("there is no bundle for the management cluster")
	}
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(tree.Files["kustomization.yaml"], &kustomization); err != nil {
		t.Fatal(err)
	}
	taken := slices.DeleteFunc(slices.Sorted(maps.Keys(root.files)), func(name string) bool { return name == "README.md" })
	slices.Sort(kustomization.Resources)
	if !slices.Equal(taken, kustomization.Resources) {
		t.Errorf("the management cluster gets %v, and kustomization.yaml lists %v", taken, kustomization.Resources)
	}
	var out []central
	var brought, listed []backends.Object
	for _, object := range root.on(t, "local") {
		if _, err := crdtest.Check(object.Text); err != nil {
			t.Error(err)
		}
		var o central
		if err := yaml.Unmarshal(object.Text, &o); err != nil {
			t.Fatal(err)
		}
		out, brought = append(out, o), append(brought, object.ID())
	}
	for _, o := range slices.Concat(slices.Collect(maps.Values(tree.Objects))...) {
		if o.Group == "fleet.cattle.io" {
			listed = append(listed, o)
		}
	}
	same(t, "the management cluster", brought, listed)
	if len(tree.Bootstrap) > 0 {
		if n, err := crdtest.Check(tree.Bootstrap); n != 2 || err != nil {
			t.Errorf("bootstrap: %d objects, %v", n, err)
		}
	}
	return out
}

// same compares the objects that Fleet takes to a place with the objects that emissions list.
func same(t *testing.T, where string, brought, listed []backends.Object) {
	t.Helper()
	compare := func(a, b backends.Object) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	slices.SortFunc(brought, compare)
	slices.SortFunc(listed, compare)
	if !slices.Equal(brought, listed) {
		t.Errorf("%s gets %v, and the emissions list %v", where, brought, listed)
	}
}

// The files at a cluster type's root do not name a folder that has left the tree.
func checkRemoval(t *testing.T, tree bt.Tree, gone string) {
	t.Helper()
	for name, data := range tree.Files {
		if strings.HasPrefix(name, gone+"/") || strings.Contains(string(data), gone) && path.Base(name) != kubernetes.NamespaceFile {
			t.Errorf("%s still speaks of %s", name, gone)
		}
	}
	if strings.Contains(string(tree.Bootstrap), gone) {
		t.Errorf("bootstrap still speaks of %s", gone)
	}
}
