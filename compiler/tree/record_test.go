package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
)

const goldenRecord = `{
  "apiVersion": "kalypso.io/v1alpha1",
  "kind": "Provenance",
  "platform": "example.com/platform@v0",
  "environment": "dev",
  "compiler": {
    "version": "v0.1.0",
    "cue": "v0.17.1",
    "schema": "v0"
  },
  "source": {
    "base": "b1",
    "environment": "e1"
  },
  "tree": "b7b336855da774f6e1dc9ca5c26ac4bb4633b740",
  "clusterTypes": [
    {
      "name": "large",
      "files": {
        "README.md": "b8626c4cff2849624fb67f87cd0ad72b163671ad"
      },
      "assignments": [
        {
          "deploymentTarget": "app-test",
          "workspace": "team",
          "workload": "app",
          "namespace": "dev-large-app-test",
          "version": "1.2.0",
          "dependsOn": [
            "db-test"
          ],
          "wave": 1,
          "backend": "flux",
          "shared": {
            "x": "<&>"
          },
          "tree": "fcfa55af8981ea3f827543d552528218edaa2366",
          "values": "d1",
          "files": {
            "kustomization.yaml": "00750edc07d6415dcc07ae0351e9397b0222b7ba"
          }
        }
      ]
    },
    {
      "name": "small",
      "files": {},
      "assignments": []
    }
  ]
}
`

func goldenTree() *Tree {
	return &Tree{ClusterTypes: []ClusterType{
		{
			Name:  "large",
			Files: []backends.File{{Path: "README.md", Data: []byte("4\n")}},
			Folders: []Folder{{
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
	if tree := writeTree(t, dir); c.Record.Tree != tree {
		t.Errorf("the tree is %s, git says %s", c.Record.Tree, tree)
	}
	r := record(t, dir)
	if shared := string(r.ClusterTypes[0].Assignments[0].Shared); shared != `{"x":"<&>"}` {
		t.Errorf("shared comes back as %s", shared)
	}
	ignored, err := os.ReadFile(filepath.Join(dir, gitignorePath))
	must(t, err)
	if string(ignored) != "lock\njournal.json\n*.tmp\nindex\n" {
		t.Errorf(".gitignore is %q", ignored)
	}
}

func TestParseRecordRefuses(t *testing.T) {
	id := strings.Repeat("0", 40)
	for _, c := range []struct{ name, old, new, want string }{
		{"no JSON", goldenRecord, "<<<<<<< HEAD", "invalid character"},
		{"cut off", "}\n", "", "unexpected end"},
		{"another kind", `"Provenance"`, `"Journal"`, "kind is"},
		{"a newer version", "v1alpha1", "v1", "another version"},
		{"another type", `"b1"`, `1`, "cannot unmarshal"},
		{"no id", "00750edc07d6415dcc07ae0351e9397b0222b7ba", "HEAD", "not a git id"},
		{"no tree", "fcfa55af8981ea3f827543d552528218edaa2366", "", "not a git id"},
		{"a path outside", `"README.md"`, `"../../.bashrc"`, "relative path"},
		{"a path of git", `"README.md"`, `"x/.git/config"`, "git's own"},
		{"kalypso's folder", `"large"`, `".kalypso"`, "own folder"},
		{"a name with a slash", `"app-test"`, `"app/test"`, "slash"},
		{"a name twice", `"small"`, `"large"`, "comes after"},
		{"one path twice", `"README.md"`, `"app-test/kustomization.yaml"`, "twice"},
		{"a file that is a folder", `"README.md": "b8626c4cff2849624fb67f87cd0ad72b163671ad"`, `"app-test": "` + id + `"`, "folder of"},
	} {
		text := strings.Replace(goldenRecord, c.old, c.new, 1)
		if c.name == "cut off" {
			text = strings.TrimSuffix(goldenRecord, c.old)
		}
		if _, err := ParseRecord([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q", c.name, err, c.want)
		}
	}
}

// A record is untrusted: whatever its bytes, it is refused or names only paths
// that may be written, and is read again as it was.
func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(goldenRecord))
	f.Add([]byte(`{"apiVersion":"kalypso.io/v1alpha1","kind":"Provenance","tree":"` + strings.Repeat("a", 40) + `","clusterTypes":[{"name":"a"}]}`))
	f.Add([]byte(`{"apiVersion":"kalypso.io/v1alpha1","kind":"Journal","write":["a/b"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if j, err := parseJournal(data); err == nil {
			for _, p := range j.paths() {
				must(t, checkPath(p))
			}
		}
		r, err := ParseRecord(data)
		if err != nil {
			return
		}
		for p := range r.Files() {
			must(t, checkPath(p))
		}
		TreeID(r.Files())
		once, err := r.Encode()
		must(t, err)
		again, err := ParseRecord(once)
		must(t, err)
		twice, err := again.Encode()
		must(t, err)
		if string(once) != string(twice) {
			t.Errorf("%s is read as %s", once, twice)
		}
	})
}
