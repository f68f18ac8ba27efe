package source

import (
	"fmt"
	"path"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// unportable warns of a file or folder if not every file system can have its name beside
// the other names in its folder. names has the earlier names, by their lower case.
// unportable adds the name.
func unportable(rel string, names map[string]string) []diag.Diagnostic {
	name := path.Base(rel)
	lower := strings.ToLower(name)
	other, taken := names[lower]
	names[lower] = name
	var why string
	switch {
	case taken:
		why = fmt.Sprintf("%s and %s differ in case alone, and Windows and macOS hold one of them", name,
			other)
	case model.IsDevice(name) && path.Dir(rel) == Environments:
		return nil // it cannot be loaded, which is an error
	case model.IsDevice(name):
		why = fmt.Sprintf(
			"%s is the name of a device on Windows, so the platform cannot be checked out there", name)
	default:
		return nil
	}
	return []diag.Diagnostic{diag.New(diag.Unportable,
		why).In(model.Position{File: rel, Line: 1, Column: 1}, "").Hinting("give it another name")}
}
