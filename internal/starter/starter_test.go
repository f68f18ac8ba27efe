package starter_test

import (
	"bytes"
	"path"
	"testing"

	"github.com/rhysd/actionlint"

	"github.com/kalypso-io/kalypso/internal/starter"
)

func TestFiles(t *testing.T) {
	for _, reconciler := range starter.Reconcilers {
		for _, ci := range starter.CIs {
			p := starter.Platform{Repository: starter.Repository{Name: "shop", Environments: []string{"dev", "1st"}, CI: ci}, Reconciler: reconciler}
			files, err := p.Files()
			if err != nil {
				t.Fatal(err)
			}
			check(t, reconciler, files)
		}
	}
	if _, err := (starter.Platform{Repository: starter.Repository{Name: "shop", Environments: []string{"dev"}, CI: "none"}, Reconciler: "helm"}).Files(); err == nil {
		t.Error("a platform has a reconciler that there is none of")
	}
}

func TestAppFiles(t *testing.T) {
	for _, ci := range starter.CIs {
		for _, environments := range [][]string{{"dev", "1st", "no"}, {"only"}} {
			files, err := starter.App{Repository: starter.Repository{Name: "shop", Environments: environments, CI: ci}}.Files()
			if err != nil {
				t.Fatal(err)
			}
			check(t, "an application", files)
		}
	}
	if _, err := (starter.App{Repository: starter.Repository{Name: "shop", CI: "none"}}).Files(); err == nil {
		t.Error("an application has no environments")
	}
}

// check looks for what templates left, and at the workflows.
func check(t *testing.T, of string, files []starter.File) {
	t.Helper()
	for _, f := range files {
		if bytes.Contains(f.Data, []byte("[[")) || !bytes.HasSuffix(f.Data, []byte("\n")) {
			t.Errorf("%s of %s: %s", f.Path, of, f.Data)
		}
		if path.Dir(f.Path) == ".github/workflows" {
			lint(t, f)
		}
	}
}

func lint(t *testing.T, f starter.File) {
	t.Helper()
	linter, err := actionlint.NewLinter(bytes.NewBuffer(nil), &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := linter.Lint(f.Path, f.Data, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		t.Errorf("%s:%d:%d: %s", f.Path, e.Line, e.Column, e.Message)
	}
}
