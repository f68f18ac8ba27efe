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
			p := starter.Platform{Name: "shop", Environments: []string{"dev", "1st"}, Reconciler: reconciler, CI: ci}
			files, err := p.Files()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if bytes.Contains(f.Data, []byte("[[")) || !bytes.HasSuffix(f.Data, []byte("\n")) {
					t.Errorf("%s of %s: %s", f.Path, reconciler, f.Data)
				}
				if path.Dir(f.Path) == ".github/workflows" {
					lint(t, f)
				}
			}
		}
	}
	if _, err := (starter.Platform{Name: "shop", Environments: []string{"dev"}, Reconciler: "helm", CI: "none"}).Files(); err == nil {
		t.Error("a platform has a reconciler that there is none of")
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
