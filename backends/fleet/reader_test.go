package fleet_test

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
	"github.com/kalypso-io/kalypso/internal/testing/crdtest"
)

// bundle is a Bundle as Fleet 0.15 makes it of a folder. It follows Fleet's packages
// internal/cmd/cli/apply and internal/bundlereader, as far as kalypso relies on them.
type bundle struct {
	Name                 string
	Labels               map[string]string
	ServiceAccount       string
	DefaultNamespace     string
	Namespace            string
	DependsOn            []dependency
	TargetCustomizations []customization
	// files of the bundle, by path in its folder.
	files map[string][]byte
}

type dependency struct {
	Name     string
	Selector struct{ MatchLabels map[string]string }
}

type customization struct {
	ClusterName string
	Kustomize   struct{ Dir string }
}

// bundles returns the bundles that Fleet makes of a GitRepo's path, which is a pattern. Each folder
// that matches is a bundle, and so is each folder below that has a fleet.yaml. (If the first has no
// fleet.yaml, Fleet makes one bundle of it if it contains YAML that is not in a bundle below.)
func bundles(t *testing.T, files map[string][]byte, pattern string) []bundle {
	t.Helper()
	var roots, folders []string
	for file := range files {
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			folders = append(folders, dir)
			if ok, err := path.Match(pattern, dir); err != nil {
				t.Fatal(err)
			} else if ok {
				roots = append(roots, dir)
			}
		}
	}
	slices.Sort(roots)
	slices.Sort(folders)
	var out []bundle
	for _, root := range slices.Compact(roots) {
		for _, dir := range slices.Compact(folders) {
			below := strings.HasPrefix(dir, root+"/")
			switch _, configured := files[dir+"/fleet.yaml"]; {
			case dir == root && !configured:
				t.Errorf("%s has no fleet.yaml", dir)
			case dir == root, below && configured:
				out = append(out, read(t, files, dir))
			}
		}
	}
	return out
}

// read returns the bundle of a folder.
func read(t *testing.T, files map[string][]byte, dir string) bundle {
	t.Helper()
	b := bundle{files: map[string][]byte{}}
	if err := yaml.Unmarshal(files[dir+"/fleet.yaml"], &b); err != nil {
		t.Fatalf("%s/fleet.yaml: %v", dir, err)
	}
	for name, data := range files {
		if name, ok := strings.CutPrefix(name, dir+"/"); ok && name != "fleet.yaml" && taken(t, files, dir, name) {
			b.files[name] = data
		}
	}
	return b
}

// taken reports whether Fleet takes a file below a folder into the folder's bundle. Fleet ignores
// hidden files. It also ignores a file if a .fleetignore has a pattern for the file's name or the
// name of a folder around it. The .fleetignore is in the folder, or between it and the file.
func taken(t *testing.T, files map[string][]byte, dir, name string) bool {
	t.Helper()
	var patterns []string
	elements := strings.Split(name, "/")
	for i, element := range elements {
		if strings.HasPrefix(element, ".") {
			return false
		}
		patterns = append(patterns, strings.Fields(string(files[path.Join(dir, path.Join(elements[:i]...), ".fleetignore")]))...)
		for _, pattern := range patterns {
			folder, isFolder := strings.CutSuffix(pattern, "/*")
			matches, err := path.Match(pattern, element)
			if err != nil {
				t.Fatal(err)
			}
			if isFolder && i < len(elements)-1 && folder == element || !isFolder && matches {
				return false
			}
		}
	}
	return true
}

// on returns the objects that the bundle creates on a cluster. If there is a
// kustomization.yaml, they are the result of kustomize. Otherwise they are the content of
// all YAML files, including files in folders.
func (b bundle) on(t *testing.T, cluster string) []bt.Object {
	t.Helper()
	dir := "."
	if i := slices.IndexFunc(b.TargetCustomizations, func(c customization) bool { return c.ClusterName == cluster }); i >= 0 {
		dir = b.TargetCustomizations[i].Kustomize.Dir
	}
	if b.files[path.Join(dir, "kustomization.yaml")] != nil {
		return bt.Objects(t, b.build(t, dir))
	}
	var out []bt.Object
	for name, data := range b.files {
		if path.Ext(name) == ".yaml" {
			out = append(out, bt.Objects(t, data)...)
		}
	}
	return out
}

// build runs kustomize as Fleet does (internal/helmdeployer/kustomize).
func (b bundle) build(t *testing.T, dir string) []byte {
	t.Helper()
	fs := filesys.MakeEmptyDirInMemory()
	for name, data := range b.files {
		if err := fs.WriteFile(name, data); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(&krusty.Options{LoadRestrictions: types.LoadRestrictionsRootOnly, PluginConfig: types.DisabledPluginConfig()}).Run(fs, dir)
	if err != nil {
		t.Fatalf("%s: %v", b.Name, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// asBundle returns a fleet.yaml as the Bundle that it configures, because the CRD of Bundles knows
// all fields. The fields of FleetYAML are the Bundle's spec, its name and labels, and three lists.
// kalypso writes only one of these lists.
func asBundle(t *testing.T, text []byte) []byte {
	t.Helper()
	spec := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	object := map[string]any{
		"apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Bundle",
		"metadata": map[string]any{"name": spec["name"], "namespace": "fleet-default", "labels": spec["labels"]},
		"spec":     spec,
	}
	if customizations, ok := spec["targetCustomizations"]; ok {
		spec["targets"] = customizations
	}
	for _, field := range []string{"name", "labels", "targetCustomizations"} {
		delete(spec, field)
	}
	out, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Fleet ignores an unknown field without a message, so this test looks for such fields.
func TestUnknownFields(t *testing.T) {
	for text, ok := range map[string]bool{
		`{name: x, labels: {a: b}, helm: {takeOwnership: true}, targetCustomizations: [{name: c, clusterName: c, kustomize: {dir: overlays/c}}]}`: true,
		`{name: x, labels: {a: b}, helm: {takeOwnerships: true}}`:                                                                                 false,
		`{name: x, labels: {a: b}, dependOn: [{name: y}]}`:                                                                                        false,
		`{name: x, labels: {a: b}, dependsOn: [{bundle: y}]}`:                                                                                     false,
		`{name: x, labels: {a: b}, targetCustomizations: [{kustomise: {dir: c}}]}`:                                                                false,
		`{name: x, labels: {a: b}, defaultNamespaces: y}`:                                                                                         false,
		`{name: X_x, labels: {a: b}}`:                                                                                                             false,
		`{name: x, labels: {a: "b c"}}`:                                                                                                           false,
		`{name: x, labels: {a: b}, helm: {releaseName: ` + long + `, chart: a}}`:                                                                  false,
	} {
		if _, err := crdtest.Check(asBundle(t, []byte(text))); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
