package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	sigs "sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// scalar returns the value that a scalar has to kubectl, in YAML 1.1 as sigs.k8s.io/yaml reads
// it. So a plain yes is true, and 0777 is 511. Numbers have the form that JSON writes, so 1e3
// is the int 1000. Timestamps stay strings.
func scalar(n *yaml.Node) (model.Value, error) {
	tagged := n.Style&yaml.TaggedStyle != 0
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|
		yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch tag := n.ShortTag(); {
	case !tagged && quoted, tagged && (tag == "!!str" || n.Tag == "!"):
		return model.StringOf(n.Value), nil
	case !tagged:
		if n.Value == "" {
			return model.Value{}, nil
		}
		if !ambiguous(n.Value) {
			return model.StringOf(n.Value), nil
		}
		return resolve(n, n.Value)
	case tag == "!!int", tag == "!!float", tag == "!!bool", tag == "!!null", tag == "!!binary",
		tag == "!!timestamp":
		return resolve(n, tag+" "+strconv.Quote(n.Value))
	default:
		return model.Value{}, fmt.Errorf("line %d: the tag %s means nothing to Kubernetes", n.Line, tag)
	}
}

// ambiguous reports whether a plain scalar might be anything except a string: whether it starts
// like a number, or like one of the few words with another meaning.
func ambiguous(s string) bool {
	if strings.ContainsAny(s, " \n\t") {
		return false
	}
	switch c := s[0]; {
	case '0' <= c && c <= '9':
		return true
	case c == '+' || c == '-' || c == '.':
		return len(s) > 1 && strings.IndexByte("0123456789.iInN", s[1]) >= 0 &&
			strings.Trim(s, "-.") != ""
	case strings.IndexByte("yYnNtTfFoO~", c) >= 0:
		return len(s) <= len("false")
	}
	return false
}

// resolve returns the value of a scalar, according to the library with which kubectl reads
// YAML.
func resolve(n *yaml.Node, text string) (model.Value, error) {
	b, err := sigs.YAMLToJSON([]byte(text))
	if err != nil {
		return model.Value{}, fmt.Errorf("line %d: %q is no value that JSON can hold", n.Line, n.Value)
	}
	switch b[0] {
	case 'n':
		return model.Value{}, nil
	case 't', 'f':
		return model.BoolOf(b[0] == 't'), nil
	case '"':
		var v model.Value
		err := v.UnmarshalJSON(b)
		return v, err
	case '{', '[':
		// The other parser reads this text as a scalar.
		return model.StringOf(n.Value), nil
	}
	number, err := model.NumberOf(string(b))
	return number.Canonical(), err // the canonical form of the library's output
}

// key returns the name of a field. As for kubectl, a number or a bool that is a key becomes
// its text as a string. Other values are errors.
func key(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("line %d: a key is a list or a mapping", n.Line)
	}
	v, err := scalar(n)
	if err != nil {
		return "", err
	}
	switch v.Kind() {
	case model.Null:
		return "", fmt.Errorf("line %d: a key is null", n.Line)
	case model.Float:
		// Single precision, as in sigs.k8s.io/yaml.
		f, err := strconv.ParseFloat(v.Text(), 64)
		return strconv.FormatFloat(f, 'g', -1, 32), err
	}
	return v.Text(), nil
}
