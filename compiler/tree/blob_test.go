package tree_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// A record has the executable bit only for executable files, so that records of trees without such
// files equal older records.
func TestBlobsInJSON(t *testing.T) {
	id := tree.BlobID([]byte("a"))
	for _, c := range []struct {
		blob tree.Blob
		want string
	}{
		{tree.Blob{ID: id}, `"` + string(id) + `"`},
		{tree.Blob{id, true}, `{"id":"` + string(id) + `","executable":true}`},
		{tree.Blob{ID: "<\"not an id"}, `"<\"not an id"`},
	} {
		record, err := (&tree.ClusterTypeRecord{Files: map[string]tree.Blob{"f": c.blob}}).Encode()
		must(t, err)
		if want := `"files": {"f":` + c.want + "},"; !strings.Contains(string(record), want) {
			t.Errorf("%v is %s, want %s", c.blob, record, want)
		}
		var back tree.Blob
		if err := json.Unmarshal([]byte(c.want), &back); err != nil || back != c.blob {
			t.Errorf("%s is read as %v, %v", c.want, back, err)
		}
	}
	for _, text := range []string{"1", `"`, strings.Repeat("1", 42), "true", `{"id":1}`, "[]"} {
		if err := new(tree.Blob).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// If a write makes a file executable, the record shows it, on one line with the rest of the folder.
func TestExecutableFilesAreRecorded(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(files{"large/app/run.sh": "run", "large/run.sh": "+x run"}), dev)
	recorded := func() string {
		data, err := os.ReadFile(filepath.Join(dir, tree.ClusterTypeRecordPath("large")))
		must(t, err)
		return string(data)
	}
	plain := `"files":{"run.sh":"` + string(tree.BlobID([]byte("run"))) + `"}`
	executable := `"files":{"run.sh":{"id":"` + string(tree.BlobID([]byte("run"))) + `","executable":true}}`
	own := strings.Replace(executable, `":{`, `": {`, 1)
	if got := recorded(); !strings.Contains(got, plain) || !strings.Contains(got, own) {
		t.Errorf("the record is %s", got)
	}
	c := write(t, dir, treeOf(files{"large/app/run.sh": "+x run", "large/run.sh": "+x run"}), dev)
	if got := recorded(); len(c.Written) != 1 || len(c.Assignments.Changed) != 1 || !strings.Contains(got, executable) {
		t.Errorf("changes are %+v, the record %s", c, got)
	}
}

// Kept folders keep their modes.
func TestKeptFilesStayExecutable(t *testing.T) {
	m := newMirror(t, "dev")
	m.both(treeOf(small), dev)
	m.both(failed(), later("b2"))
	if a := assignment(t, record(t, filepath.Join(m.dir, "dev")), "large", "app"); !a.Files["b.sh"].Executable || a.Kept == nil {
		t.Errorf("the record of the kept folder is %+v", a)
	}
	equal(t, "folder", read(t, filepath.Join(m.dir, "dev")), changed(files{"large/db/a.yaml": "a2"}))
}

func TestFilesOfATreeAreExecutable(t *testing.T) {
	all, err := treeOf(small).tree().Files(context.Background())
	must(t, err)
	got := files{}
	for _, f := range all {
		content := string(f.Data)
		if f.Executable {
			content = "+x " + content
		}
		got[f.Path] = content
	}
	equal(t, "tree", got, small)
	if f := (backends.File{Path: "a", Data: []byte("x"), Executable: true}); tree.FileOf(f).Blob() != tree.BlobOf(f) {
		t.Errorf("%v has the blob %v", f, tree.FileOf(f).Blob())
	}
}
