package yamlfile

import (
	"os"
	"path/filepath"
	"testing"

	"cuelang.org/go/cue/format"
)

// FuzzRead checks that arbitrary bytes result in a file that CUE can write, or in a diagnostic
// with a position.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("../../../../backends/ansible/role/tasks/*.yml")
	for _, name := range files[:min(len(files), 20)] {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{"a: &a\n  <<: *a\n", "? {a: b}\n: c\n", "a: !!binary x\n--- \n- 1\n", "a: 0x_\n", "{\"a\": 1e999}", "%TAG ! x\n---\na", "a\r\rb: 1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, problem := Read("a.yaml", "/a.yaml", data)
		if problem != nil {
			if problem.Message == "" || len(problem.Sites) == 0 || problem.Sites[0].Position.Line < 1 {
				t.Errorf("%+v says nothing, or not where", problem)
			}
			return
		}
		if _, err := format.Node(file); err != nil {
			t.Errorf("%q: %v", data, err)
		}
	})
}
