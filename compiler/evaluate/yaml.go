package evaluate

import (
	"fmt"
	"regexp"

	"cuelang.org/go/cue/ast"
	cueyaml "cuelang.org/go/encoding/yaml"
	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// extractYAML reads YAML as CUE does. CUE v0.17.1 panics on some files that are
// none, such as with line breaks of a carriage return alone.
func extractYAML(file string, data []byte) (f *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("%s: it has a form that cannot be read: %v", file, p)
		}
	}()
	return cueyaml.Extract(file, data)
}

// otherInYAML11 matches plain scalars that Helm and kubectl, who read YAML 1.1, take
// for booleans or other numbers, and CUE, which reads YAML 1.2, for strings
// (https://yaml.org/type/bool.html, https://yaml.org/type/int.html).
var otherInYAML11 = regexp.MustCompile(`^([yYnN]|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|[-+]?0[0-9_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)

// otherwise reports the first scalar of a file that means one thing to Helm and
// another here, so that a chart never gets something else than with Helm.
func otherwise(name string, data []byte) (d diag.Diagnostic, found bool) {
	var root yaml.Node
	if yaml.Unmarshal(data, &root) != nil {
		return d, false // reported by whoever reads it
	}
	n := otherScalar(&root)
	if n == nil {
		return d, false
	}
	return diag.New(diag.WrongValue, fmt.Sprintf("%s is a string in YAML 1.2, and something else in YAML 1.1, which Helm reads", n.Value)).
		In(model.Position{File: name, Line: n.Line, Column: n.Column}, "").
		Hinting(fmt.Sprintf("quote it if it is a text, %q, or write true, false or the number", n.Value)), true
}

// otherScalar returns the first such scalar; nil for none. Aliases are not followed:
// what they refer to is looked at where it stands.
func otherScalar(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.ScalarNode && n.Style == 0 && otherInYAML11.MatchString(n.Value) {
		return n
	}
	for _, of := range n.Content {
		if found := otherScalar(of); found != nil {
			return found
		}
	}
	return nil
}
