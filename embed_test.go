package kalypso_test

import (
	"bytes"
	"io/fs"
	"path"
	"testing"

	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/load"

	"github.com/kalypso-io/kalypso"
)

// files returns the files of the packages that the binary carries. It leaves out module.cue,
// which `cue fmt` does not format.
func files(t *testing.T) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(kalypso.Module, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".cue" && path.Dir(name) != "cue.mod" {
			out = append(out, name)
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatal(err, out)
	}
	return out
}

func TestModuleIsFormatted(t *testing.T) {
	for _, name := range files(t) {
		text, err := kalypso.Module.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		formatted, err := format.Source(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(formatted, text) {
			t.Errorf("%s is not formatted: cue fmt ./%s", name, name)
		}
	}
}

func TestModuleIsValid(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range files(t) {
		dir := path.Dir(name)
		if seen[dir] {
			continue
		}
		seen[dir] = true
		inst := load.Instances([]string{"./" + dir}, &load.Config{Env: []string{"CUE_REGISTRY=none"}})[0]
		if inst.Err != nil {
			t.Errorf("%s: %v", dir, inst.Err)
			continue
		}
		if err := cuecontext.New().BuildInstance(inst).Validate(); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
