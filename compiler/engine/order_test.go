package engine_test

import (
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestOrder checks the files of the package against the list in the package comment: a file uses
// only declarations, fields and methods of files above it.
func TestOrder(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax |
		packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile}, ".")
	if err != nil || len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		t.Fatal(err, loaded)
	}
	p := loaded[0]
	var order []string
	for _, f := range p.Syntax {
		if filepath.Base(p.Fset.Position(f.Pos()).Filename) == "engine.go" {
			for _, row := range regexp.MustCompile(`(?m)^\t([a-z]+\.go) `).FindAllStringSubmatch(f.Doc.Text(), -1) {
				order = append(order, row[1])
			}
		}
	}
	fileOf := func(n interface{ Pos() token.Pos }) string { return filepath.Base(p.Fset.Position(n.Pos()).Filename) }
	for _, f := range p.Syntax {
		if !slices.Contains(order, fileOf(f)) {
			t.Errorf("the package comment does not list %s", fileOf(f))
		}
	}
	for id, of := range p.TypesInfo.Uses {
		if of.Pkg() != p.Types {
			continue
		}
		from, to := fileOf(id), fileOf(of)
		if slices.Index(order, to) > slices.Index(order, from) {
			t.Errorf("%s uses %s of %s, which is below it", p.Fset.Position(id.Pos()), types.ObjectString(of, types.RelativeTo(p.Types)), to)
		}
	}
}
