package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

const goldenRecord = `{
  "apiVersion": "kalypso.io/v1alpha1",
  "kind": "Provenance",
  "platform": "example.com/platform@v0",
  "environment": "dev",
  "compiler": {"version":"v0.1.0","cue":"v0.17.1","schema":"v0"},
  "source": {"base":"b1","environment":"e1"},
  "tree": "b7b336855da774f6e1dc9ca5c26ac4bb4633b740",
  "clusterTypes": [
    {"name":"large","tree":"37e1b3a0a2659422a46ba27d1061d7a85ab81206","digest":"8e37155375397fbbd97a448bdedba7e96239a2e1fb9e072f31c710356f087f89","assignments":1,"record":"18f3e5401cec71936850bc723187e038cd2ca25a"},
    {"name":"small","tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","digest":"6ef20f9c14d5d91959c3f3bef4ac582f49b0ee03c5feddc5c1bd75c07ef52ee4","assignments":0,"record":"ff7a595f7e530a0c4e84ff8663339d3ec01fe6bd"}
  ]
}
`

const goldenClusterType = `{
  "apiVersion": "kalypso.io/v1alpha1",
  "kind": "ClusterTypeProvenance",
  "name": "large",
  "files": {"README.md":"b8626c4cff2849624fb67f87cd0ad72b163671ad"},
  "assignments": [
    {"deploymentTarget":"app-test","workspace":"team","workload":"app","namespace":"dev-large-app-test","version":"1.2.0","dependsOn":["db-test"],"wave":1,"backend":"flux","shared":{"x":"<&>"},"tree":"fcfa55af8981ea3f827543d552528218edaa2366","values":"d1","files":{"kustomization.yaml":"00750edc07d6415dcc07ae0351e9397b0222b7ba"}}
  ]
}
`

func goldenTree() *plainTree {
	return &plainTree{ClusterTypes: []plainType{
		{
			Name:  "large",
			Files: []backends.File{{Path: "README.md", Data: []byte("4\n")}},
			Folders: []plainFolder{{
				Info: backends.Folder{
					DeploymentTarget: "app-test", Workspace: "team", Workload: "app", Namespace: "dev-large-app-test",
					Version: "1.2.0", DependsOn: []string{"db-test"}, Wave: 1, Backend: "flux", Shared: []byte(`{"x":"<&>"}`),
				},
				Files:  []backends.File{{Path: "kustomization.yaml", Data: []byte("3\n")}},
				Values: "d1",
			}},
		},
		{Name: "small"},
	}}
}

func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out", "dev")
	c := write(t, dir, goldenTree(), dev)
	got, err := os.ReadFile(filepath.Join(dir, recordPath))
	must(t, err)
	if string(got) != goldenRecord {
		t.Errorf("the record is %s", got)
	}
	got, err = os.ReadFile(filepath.Join(dir, tree.ClusterTypeRecordPath("large")))
	must(t, err)
	if string(got) != goldenClusterType {
		t.Errorf("the record of the cluster type is %s", got)
	}
	if desired := writeTree(t, dir); c.Record.Tree != desired {
		t.Errorf("the tree is %s, git says %s", c.Record.Tree, desired)
	}
	r := record(t, dir)
	if shared := string(clusterType(t, r, "large").Assignments[0].Shared); shared != `{"x":"<&>"}` {
		t.Errorf("shared comes back as %s", shared)
	}
	ignored, err := os.ReadFile(filepath.Join(dir, ownFolder, ".gitignore"))
	must(t, err)
	if string(ignored) != "lock\njournal.json\n*.tmp\nindex\n" {
		t.Errorf(".gitignore is %q", ignored)
	}
}

func TestParseRecordRefuses(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"no JSON", goldenRecord, "<<<<<<< HEAD", "invalid character"},
		{"cut off", "}\n", "", "unexpected end"},
		{"another kind", `"Provenance"`, `"Journal"`, "kind is"},
		{"a newer version", "v1alpha1", "v1", "another version"},
		{"another type", `"b1"`, `1`, "cannot unmarshal"},
		{"no id", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "HEAD", "not a git id"},
		{"no tree", "b7b336855da774f6e1dc9ca5c26ac4bb4633b740", "", "not a git id"},
		{"kalypso's folder", `"large"`, `".kalypso"`, "own folder"},
		{"a name with a slash", `"large"`, `"app/test"`, "slash"},
		{"a name outside", `"large"`, `".."`, "relative path"},
		{"a name twice", `"small"`, `"large"`, "comes after"},
		{"less than nothing", `"assignments":1`, `"assignments":-1`, "has -1 assignments"},
		{"more kept than there are", `"assignments":1`, `"assignments":1,"kept":2`, "2 are kept"},
	} {
		refuses(t, c.name, goldenRecord, c.old, c.new, c.want, func(data []byte) error {
			_, err := tree.ParseRecord(data, nil)
			return err
		})
	}
}

// refuses checks the error for a text with a replacement. In the case "cut off", it removes old
// from the end of the text.
func refuses(t *testing.T, name, text, old, replacement, want string, parse func([]byte) error) {
	t.Helper()
	changed := strings.Replace(text, old, replacement, 1)
	if name == "cut off" {
		changed = strings.TrimSuffix(text, old)
	}
	if err := parse([]byte(changed)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: the error is %v, want %q", name, err, want)
	}
}

func TestParseClusterTypeRecordRefuses(t *testing.T) {
	id := strings.Repeat("0", 40)
	for _, c := range []struct{ name, old, new, want string }{
		{"no JSON", goldenClusterType, "<<<<<<< HEAD", "invalid character"},
		{"cut off", "}\n", "", "unexpected end"},
		{"another kind", `"ClusterTypeProvenance"`, `"Provenance"`, "kind is"},
		{"a newer version", "v1alpha1", "v1", "another version"},
		{"another type", `"d1"`, `1`, "cannot unmarshal"},
		{"no id", "00750edc07d6415dcc07ae0351e9397b0222b7ba", "HEAD", "not a git id"},
		{"no tree", "fcfa55af8981ea3f827543d552528218edaa2366", "", "not a git id"},
		{"a file that is neither an id nor an object", `"00750edc07d6415dcc07ae0351e9397b0222b7ba"`, `["x"]`, "cannot unmarshal"},
		{"an executable file without an id", `"00750edc07d6415dcc07ae0351e9397b0222b7ba"`, `{"executable":true}`, "not a git id"},
		{"a mode that is none", `"00750edc07d6415dcc07ae0351e9397b0222b7ba"`, `{"id":"00750edc07d6415dcc07ae0351e9397b0222b7ba","executable":"yes"}`, "cannot unmarshal"},
		{"a path outside", `"README.md"`, `"../../.bashrc"`, "relative path"},
		{"a path of git", `"README.md"`, `"x/.git/config"`, "git's own"},
		{"kalypso's folder", `"large"`, `".kalypso"`, "own folder"},
		{"a name with a slash", `"app-test"`, `"app/test"`, "slash"},
		{"one path twice", `"README.md"`, `"app-test/kustomization.yaml"`, "twice"},
		{"a file that is a folder", `"README.md":"b8626c4cff2849624fb67f87cd0ad72b163671ad"`, `"app-test":"` + id + `"`, "folder of"},
	} {
		refuses(t, c.name, goldenClusterType, c.old, c.new, c.want, func(data []byte) error {
			_, err := tree.ParseClusterTypeRecord(data)
			return err
		})
	}
}

// Records are untrusted: ParseRecord rejects them, or they name only paths that may be written, and
// Encode returns them unchanged.
func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(goldenRecord))
	f.Add([]byte(`{"apiVersion":"kalypso.io/v1alpha1","kind":"Provenance","tree":"` + strings.Repeat("a", 40) + `","clusterTypes":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := tree.ParseRecord(data, nil)
		if err != nil {
			return
		}
		r.Whole()
		once := r.Encode()
		again, err := tree.ParseRecord(once, nil)
		must(t, err)
		if twice := again.Encode(); string(once) != string(twice) {
			t.Errorf("%s is read as %s", once, twice)
		}
	})
}

// FuzzJournal: after any journal, a write changes nothing outside the folder,
// and none of git's files.
//
// Slow: each input is a folder, which is written to.
func FuzzJournal(f *testing.F) {
	const header = `{"apiVersion":"kalypso.io/v1alpha1","kind":"Journal","platform":"example.com/platform@v0","environment":"dev",`
	for _, rest := range []string{
		`"write":["large/a/b"],"remove":["large/x"],"records":{"large":[]}}`,
		`"write":["../outside"]}`, `"remove":["../outside"]}`, `"write":["/outside"]}`, `"remove":[".git/config"]}`,
		`"records":{"../../outside":[]}}`, `"records":{"large":["x"]}}`, `"write":1}`,
	} {
		f.Add([]byte(header + rest))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		around := t.TempDir()
		dir := filepath.Join(around, "dev")
		theirs := files{"outside": "mine", "outside.json": "mine", "dev/.git/config": "mine"}
		put(t, around, theirs)
		put(t, dir, files{journalPath: string(data)})
		d, err := tree.Open(dir)
		must(t, err)
		_, _, _ = d.Write(t.Context(), treeOf(files{}).tree(), dev)
		must(t, d.Close())
		got := read(t, around)
		for p, content := range theirs {
			if got[p] != content {
				t.Errorf("%s is %q", p, got[p])
			}
		}
	})
}

// FuzzParseClusterTypeRecord: a record lists only paths inside the folder, and
// encoding it changes nothing.
func FuzzParseClusterTypeRecord(f *testing.F) {
	f.Add([]byte(goldenClusterType))
	f.Add([]byte(strings.Replace(goldenClusterType, `"00750edc07d6415dcc07ae0351e9397b0222b7ba"`, `{"id":"00750edc07d6415dcc07ae0351e9397b0222b7ba","executable":true}`, 1)))
	f.Add([]byte(`{"apiVersion":"kalypso.io/v1alpha1","kind":"ClusterTypeProvenance","name":"a","kept":"\u2028<\"\\","assignments":[{"deploymentTarget":"b","tree":"` + strings.Repeat("a", 40) + `"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := tree.ParseClusterTypeRecord(data)
		if err != nil {
			return
		}
		for p := range listed(c) {
			must(t, tree.CheckPaths([]string{p}))
		}
		_, _ = (&tree.ClusterType{Name: c.Name, Outside: true}).Entry(t.Context(), c, nil)
		once, err := c.Encode()
		must(t, err)
		again, err := tree.ParseClusterTypeRecord(once)
		must(t, err)
		twice, err := again.Encode()
		must(t, err)
		if string(once) != string(twice) {
			t.Errorf("%s is read as %s", once, twice)
		}
	})
}
