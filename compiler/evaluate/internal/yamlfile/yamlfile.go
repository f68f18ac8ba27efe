// Package yamlfile reads other people's YAML as CUE does, in bounded time. It returns a
// diagnostic for a file that would take CUE too long, or that CUE and Helm read differently.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"cuelang.org/go/cue/ast"
	cueyaml "cuelang.org/go/encoding/yaml"
	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/yamlnodes"
)

// invalid reports why a file is not valid YAML. The error contains the name by which CUE knows
// the file, and a line in its text.
func invalid(name, file string, err error) diag.Diagnostic {
	at := model.Position{File: name, Line: 1, Column: 1}
	message := strings.TrimPrefix(cuevalue.FirstLine(err.Error()), file+":")
	if line, rest, ok := strings.Cut(message, ":"); ok {
		if n, err := strconv.Atoi(line); err == nil {
			at.Line, message = n, rest
		}
	}
	return diag.New(diag.Syntax, "the file is not valid YAML: "+strings.TrimSpace(message)).In(at,
		"").Hinting("correct the file")
}

// Read reads a file of YAML as CUE does. CUE knows the file by the name at; the diagnostic has
// its position in the file name. Both Read and CUE's evaluation of the result take only a short
// time for any file.
func Read(name, at string, data []byte) (*ast.File, *diag.Diagnostic) {
	_, f, problem := Parse(name, at, data)
	return f, problem
}

// Parse reads a file like Read, and also returns the nodes of the documents.
func Parse(name, at string, data []byte) (docs []*yaml.Node, f *ast.File,
	problem *diag.Diagnostic) {
	docs, problem = check(name, data)
	if problem != nil {
		return nil, nil, problem
	}
	f, err := extract(at, data)
	if errors.Is(err, errCrash) {
		line, _ := yamlnodes.LineOf(data, func(begin []byte) bool {
			_, err := extract(at, begin)
			return errors.Is(err, errCrash)
		})
		err = fmt.Errorf("%s:%d: %w", at, max(line, 1), err)
	}
	if err != nil {
		d := invalid(name, at, err)
		return nil, nil, &d
	}
	return docs, f, nil
}

// errCrash is the error for a file on which CUE's reader panics. It has no position.
var errCrash = errors.New("it has a form that CUE cannot read")

// extract reads YAML as CUE does. CUE v0.17.1 panics on some files.
func extract(file string, data []byte) (f *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("%w: %v", errCrash, p)
		}
	}()
	return cueyaml.Extract(file, data)
}

// The bounds of YAML files. At each bound, CUE v0.17.1 takes a few seconds, or half a gibibyte
// of memory.
const (
	maxEntries = 250_000
	// maxIndicators bounds the indicators in the text, some of which are not entries.
	maxIndicators = 4 * maxEntries
	// maxPairs bounds pairs in lists and mappings: CUE searches all entries for each entry.
	maxPairs = 1_000_000_000
	// maxMergedPairs bounds pairs in mappings with merge keys: CUE's reader unquotes all keys
	// for each key.
	maxMergedPairs = 20_000_000
	// maxAliased bounds the values that CUE's reader writes out for aliases. The reader has no
	// bound for merge keys, with which a short text can take a long way.
	maxAliased = 50_000
	// maxScanned bounds lists and mappings in brackets that an alias writes: CUE's reader may
	// search the whole file for the end of each.
	maxScanned = 1 << 30
	// maxLevels bounds the sum of the depths of all values, because each value has a path.
	maxLevels = 50_000_000
	// maxDigits bounds the digits of a number, because reading one takes quadratic time.
	maxDigits = 1000
)

// check rejects files that would take CUE's reader or evaluator too much time or memory, and
// files with values that CUE cannot locate.
func check(name string, data []byte) ([]*yaml.Node, *diag.Diagnostic) {
	if d, bad := badBreak(name, data); bad {
		return nil, &d
	}
	unbounded := func(line, column int, why, hint string) *diag.Diagnostic {
		d := diag.New(diag.Unbounded, "reading the file would take too long: "+why).
			In(model.Position{File: name, Line: max(line, 1), Column: max(column, 1)}, "").Hinting(hint)
		return &d
	}
	if yamlnodes.Most(data) > maxIndicators {
		return nil, unbounded(1, 1, fmt.Sprintf("it has more than %d entries", maxEntries),
			"keep what is needed of it, or divide the file")
	}
	docs, cost, err := yamlnodes.Parse(data)
	if e, refused := err.(*yamlnodes.Error); refused {
		if e.Unbounded {
			return nil, unbounded(e.Line, e.Column, e.Message, "write the file without it")
		}
		d := diag.New(diag.Syntax, "the file is not valid YAML: "+e.Message).
			In(model.Position{File: name, Line: max(e.Line, 1), Column: max(e.Column, 1)},
				"").Hinting("correct the file")
		return nil, &d
	}
	yamlnodes.MarkTags(data, docs)
	for _, b := range []struct {
		is, most  int64
		why, hint string
	}{
		{cost.Aliased, maxAliased, "its aliases write out more than %d values",
			"write what is needed, without aliases"},
		{cost.Merged, maxMergedPairs, "the mappings with a merge key, <<, have too many keys",
			"write the keys without merging"},
		{scanned(cost, data), maxScanned, "its aliases refer to lists or mappings in brackets too often",
			"write what is needed, without aliases"},
		{cost.Entries, maxEntries, "it has more than %d entries",
			"keep what is needed of it, or divide the file"},
		{cost.Pairs, maxPairs, "a list or mapping has too many entries",
			"keep what is needed of it, or divide it"},
		{cost.Levels, maxLevels, "its values nest too deep",
			"make the structure flatter, or divide the file"},
	} {
		if b.is > b.most {
			why := b.why
			if strings.Contains(why, "%d") {
				why = fmt.Sprintf(why, b.most)
			}
			return nil, unbounded(1, 1, why, b.hint)
		}
	}
	for _, doc := range docs {
		if n := first(doc, isLongNumber); n != nil {
			return nil, unbounded(n.Line, n.Column,
				fmt.Sprintf("a number has more than %d digits", maxDigits), "quote it if it is a text")
		}
		if d, bad := badTag(name, doc); bad {
			return nil, &d
		}
		if d, bad := badNumber(name, doc); bad {
			return nil, &d
		}
		if d, bad := badKey(name, doc, isNegative); bad {
			return nil, &d
		}
	}
	return docs, nil
}

func scanned(cost yamlnodes.Cost, data []byte) int64 {
	if cost.AliasedFlow > math.MaxInt64/int64(len(data)+1) {
		return math.MaxInt64
	}
	return cost.AliasedFlow * int64(len(data))
}

// badBreak reports the first character that YAML, but not CUE, reads as the end of a line. CUE
// would then look for values at wrong places, or beyond the end.
func badBreak(name string, data []byte) (d diag.Diagnostic, found bool) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return diag.New(diag.Syntax, "the file is UTF-16").In(model.Position{File: name, Line: 1,
			Column: 1}, "").Hinting("save the file as UTF-8"), true
	}
	at := bytes.IndexFunc(data,
		func(r rune) bool { return r == '\u0085' || r == '\u2028' || r == '\u2029' })
	for i := 0; i < len(data); i++ {
		cr := bytes.IndexByte(data[i:], '\r')
		if cr < 0 {
			break
		}
		i += cr
		if i+1 == len(data) || data[i+1] != '\n' {
			if at < 0 || i < at {
				at = i
			}
			break
		}
	}
	if at < 0 {
		return d, false
	}
	r, _ := utf8.DecodeRune(data[at:])
	line := bytes.Count(data[:at], []byte("\n"))
	column := at - (bytes.LastIndexByte(data[:at], '\n') + 1)
	return diag.New(diag.Syntax, fmt.Sprintf("the file has a line break of another kind, %U", r)).
		In(model.Position{File: name, Line: line + 1, Column: column + 1}, "").
		Hinting(fmt.Sprintf("end lines with a line feed; in a text, write \"\\u%04X\" in double quotes",
			r)), true
}

// first returns the first node in a document that is wanted. It returns nil if there is no such
// node. It does not follow aliases, because it visits their targets at their own places.
func first(n *yaml.Node, wanted func(*yaml.Node) bool) *yaml.Node {
	if wanted(n) {
		return n
	}
	for _, of := range n.Content {
		if found := first(of, wanted); found != nil {
			return found
		}
	}
	return nil
}

// isLongNumber reports whether a node is a number with too many digits.
func isLongNumber(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && len(n.Value) > maxDigits &&
		(n.Style == 0 || n.Style&yaml.TaggedStyle != 0) &&
		(n.ShortTag() == "!!int" || n.ShortTag() == "!!float")
}

// GivenTwice reports the first key that occurs twice in a mapping of a file. CUE makes one
// field with both values, and Helm takes the last value.
func GivenTwice(name string, docs []*yaml.Node) (d diag.Diagnostic, found bool) {
	for _, doc := range docs {
		if first, second := twins(doc); first != nil {
			return diag.New(diag.Conflict, fmt.Sprintf("the key %s is given twice", nameOf(first))).
				In(model.Position{File: name, Line: first.Line, Column: first.Column}, "").
				In(model.Position{File: name, Line: second.Line, Column: second.Column}, "").
				Hinting("keep one of them"), true
		}
	}
	return d, false
}

// twins returns the first two equal keys of one mapping. It returns nil if all keys differ.
// Merge keys may repeat.
func twins(n *yaml.Node) (first, second *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		keys := map[string]*yaml.Node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if yamlnodes.IsMerge(key) {
				continue
			}
			name := nameOf(key)
			if first = keys[name]; first != nil {
				return first, key
			}
			keys[name] = key
		}
	}
	for _, of := range n.Content {
		if first, second = twins(of); first != nil {
			return first, second
		}
	}
	return nil, nil
}

// nameOf returns the name of the field that CUE makes of a key. The key is a scalar, or an
// alias of one.
func nameOf(key *yaml.Node) string {
	if key.Kind == yaml.AliasNode {
		key = key.Alias
	}
	if key.ShortTag() == "!!null" {
		return "null"
	}
	return key.Value
}

// badTag reports the first value with a tag that CUE does not know, or reads differently from
// YAML. For example, CUE reads !!bool "yes" as false.
func badTag(name string, doc *yaml.Node) (d diag.Diagnostic, found bool) {
	n := first(doc, yamlnodes.Retagged)
	if n == nil {
		return d, false
	}
	hint := "write the value without the tag"
	switch tag := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode:
		hint = "write a plain list or mapping"
	case n.Tag == "!" || !strings.HasPrefix(tag, "!!"):
		hint = fmt.Sprintf("write the text in quotes, %q", n.Value)
	case tag == "!!bool":
		hint = "write true or false"
	case tag == "!!int" || tag == "!!float":
		hint = "write the number itself, without the tag and quotes"
	case tag == "!!binary":
		hint = "write the text that it stands for"
	case tag == "!!timestamp":
		hint = fmt.Sprintf("write the text that is meant, such as %q", n.Value)
	}
	message := fmt.Sprintf("the tag %s gives the value another meaning than it has without, which "+
		"not every reader knows", n.Tag)
	return diag.New(diag.WrongValue, message).
		In(model.Position{File: name, Line: n.Line, Column: n.Column}, "").Hinting(hint), true
}

// wholeNumber matches decimal integers. An integer of more than 64 bits is a !!float.
var wholeNumber = lazyregexp.New(`^[-+]?[0-9][0-9_]*$`)

// badNumber reports the first number that CUE's reader turns into invalid CUE: an integer of
// more than 64 bits, infinity, or a value that is not a number.
func badNumber(name string, doc *yaml.Node) (d diag.Diagnostic, found bool) {
	value := func(n *yaml.Node) (float64, error) {
		return strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	}
	n := first(doc, func(n *yaml.Node) bool {
		if n.Kind != yaml.ScalarNode || n.Style&^yaml.TaggedStyle != 0 || n.ShortTag() != "!!float" {
			return false
		}
		_, err := value(n)
		return err != nil || wholeNumber.MatchString(n.Value)
	})
	if n == nil {
		return d, false
	}
	at := model.Position{File: name, Line: n.Line, Column: n.Column}
	v, err := value(n)
	if err != nil { // .inf, .nan
		return diag.New(diag.WrongValue, n.Value+" is no number that JSON has").In(at, "").
			Hinting(fmt.Sprintf("quote it if it is a text, %q", n.Value)), true
	}
	return diag.New(diag.WrongValue,
		fmt.Sprintf("the number %s is too large: an integer has 64 bits", n.Value)).In(at, "").
		Hinting(fmt.Sprintf("quote it if it is a text, %q, or write %g", n.Value, v)), true
}

// badKey reports the first key of a kind.
func badKey(name string, doc *yaml.Node, is func(*yaml.Node) bool) (d diag.Diagnostic, found bool) {
	var key *yaml.Node
	first(doc, func(n *yaml.Node) bool {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content) && key == nil; i += 2 {
			if k := n.Content[i]; k.Kind == yaml.ScalarNode && k.ShortTag() != "!!str" && is(k) {
				key = k
			}
		}
		return key != nil
	})
	if key == nil {
		return d, false
	}
	return diag.New(diag.WrongValue,
			fmt.Sprintf("the key %s is no text, and has another name for other readers", key.Value)).
			In(model.Position{File: name, Line: key.Line, Column: key.Column}, "").
			Hinting(fmt.Sprintf("quote it if it is a text, %q, or write the name that is meant", key.Value)),
		true
}

// isNegative reports whether a key is a negative number, which CUE does not accept as a name.
func isNegative(key *yaml.Node) bool { return strings.HasPrefix(key.Value, "-") }

// isRespelt reports whether Helm's name of a key differs from the key's text, as for numbers
// (1.50 is 1.5). It also holds if Helm has no name for the key, as for null.
func isRespelt(key *yaml.Node) bool {
	switch key.ShortTag() {
	case "!!null":
		return true
	case "!!int":
		var v any
		return key.Decode(&v) != nil || fmt.Sprint(v) != key.Value
	case "!!float":
		f, err := strconv.ParseFloat(key.Value, 64)
		return err != nil || strconv.FormatFloat(f, 'g', -1, 32) != key.Value
	}
	return false
}

// ambiguous matches plain scalars with different types in YAML 1.1 and YAML 1.2. Helm and
// kubectl read YAML 1.1, in which they are booleans or other numbers. CUE reads YAML 1.2, in
// which they are strings (https://yaml.org/type/bool.html, https://yaml.org/type/int.html).
var ambiguous = lazyregexp.New(
	`^([yYnN]|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|[-+]?0[0-9_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)

// Ambiguous reports the first scalar of a file that has different meanings in Helm and in
// kalypso, so that a chart always gets the same values as with Helm.
func Ambiguous(name string, docs []*yaml.Node) (d diag.Diagnostic, found bool) {
	for _, doc := range docs {
		if d, found = badKey(name, doc, isRespelt); found {
			return d, true
		}
		if n := first(doc, isAmbiguous); n != nil {
			return diag.New(diag.WrongValue,
				fmt.Sprintf("%s is a string in YAML 1.2, and something else in YAML 1.1, which Helm reads",
					n.Value)).
				In(model.Position{File: name, Line: n.Line, Column: n.Column}, "").
				Hinting(fmt.Sprintf("quote it if it is a text, %q, or write true, false or the number",
					n.Value)), true
		}
	}
	return d, false
}

// isAmbiguous reports whether a node is a scalar that ambiguous matches.
func isAmbiguous(n *yaml.Node) bool {
	plain := n.Style == 0 || n.Style == yaml.TaggedStyle && n.ShortTag() != "!!str"
	return n.Kind == yaml.ScalarNode && plain && ambiguous.MatchString(n.Value)
}
