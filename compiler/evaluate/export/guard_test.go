package export

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// TestCrashOfOneEntity checks that a panic in CUE becomes an error of the current entity, with
// its position, and that the other entities are exported.
func TestCrashOfOneEntity(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"cue.mod/module.cue":       "module: \"test.example/platform@v0\"\nlanguage: version: \"v0.15.0\"\n",
		"platform.cue":             "package platform\n\nimport \"kalypso.io/schema\"\n\nconfigs: schema.#Configs\n",
		"environments/dev/dev.cue": "package platform\n\nconfigs: {\n\ta: match: {}\n\tb: match: {}\n}\n",
	} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	p, _, err := source.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := loader.Platform(t.Context(), p, "environments/dev", nil)
	if err != nil || l == nil {
		t.Fatal(err)
	}
	x := New(l)
	var exported []string
	x.each("configs", func(_ cue.Value, ref model.Ref) {
		if ref.Name == "a" {
			panic("A-1 is not a valid identifier")
		}
		exported = append(exported, ref.Name)
	})
	a := model.Ref{Collection: "configs", Name: "a"}
	if len(exported) != 1 || len(x.Diagnostics) != 1 || !x.Invalid[a] {
		t.Fatalf("exported %v, and said %+v", exported, x.Diagnostics)
	}
	diag.Resolve(x.Diagnostics, x.Positions)
	if d := x.Diagnostics[0]; d.Code != diag.Crash || d.Hint == "" || d.Sites[0].Position.Line != 4 {
		t.Errorf("said %+v", d)
	}
}
