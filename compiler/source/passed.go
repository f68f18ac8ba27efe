package source

import (
	"fmt"
	"path"
	"strings"

	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// isPassedOver reports whether CUE skips a file of that name although it looks like a file
// to load. Hidden files belong to editors, and scripts to the cue command.
func isPassedOver(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "_tool.cue") {
		return false
	}
	return strings.HasSuffix(strings.ToLower(name), ".cue") && !isSource(name)
}

// lookPassedOver warns of a file of the platform that CUE skips: its content has no effect.
func (p *Platform) lookPassedOver(rel string) ([]diag.Diagnostic, error) {
	environment, deeper := environmentOf(path.Dir(rel))
	if path.Dir(rel) != "." && (environment == "" || deeper != "") {
		return nil, nil
	}
	data, err := p.files.ReadFile(rel)
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseFile(rel, data, parser.PackageClauseOnly)
	if err != nil {
		return nil, nil // no file of the platform
	}
	if pkg, at := packageOf(f, rel); pkg == Package {
		return []diag.Diagnostic{diag.New(diag.PassedOver,
			fmt.Sprintf("CUE passes over files named like %s, so nothing in it counts", path.Base(rel))).
			In(at, "").Hinting("give it a name that ends in .cue, and neither begins with _ nor ends in " +
			"_test.cue, or remove it")}, nil
	}
	return nil, nil
}
