package yamlfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"cuelang.org/go/cue/cuecontext"
	"go.yaml.in/yaml/v3"
	sigs "sigs.k8s.io/yaml"
)

// meaning returns kalypso's reading of a file of values, as plain data, or the reason for
// rejecting it.
func meaning(text string) (any, string) {
	docs, f, problem := Parse("f.yaml", "/f.yaml", []byte(text))
	if problem != nil {
		return nil, problem.Message
	}
	if len(docs) > 1 {
		return nil, "several documents"
	}
	if d, twice := GivenTwice("f.yaml", docs); twice {
		return nil, d.Message
	}
	if d, other := Ambiguous("f.yaml", docs); other {
		return nil, d.Message
	}
	b, err := cuecontext.New().BuildFile(f).MarshalJSON()
	if err != nil {
		return nil, "CUE: " + err.Error()
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, "JSON: " + err.Error()
	}
	return v, ""
}

// helms returns Helm's reading of a file of values.
func helms(text string) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	err = sigs.Unmarshal([]byte(text), &v)
	return v, err
}

var (
	anyTag = []string{"", "!!bool", "!!int", "!!float", "!!null", "!!str", "!", "!!binary", "!!timestamp", "!Ref", "!!set",
		"!!merge", "!!seq", "!!map", "!<tag:yaml.org,2002:bool>", "!<tag:yaml.org,2002:str>"}
	anyScalar = []string{"yes", "no", "on", "y", "true", "True", "tRue", "1", "0", `"true"`, `'yes'`, "3", "-3", "+3", "3.0", "3.5",
		"1.50", "1e3", `"3"`, "0x1F", `"0x1F"`, "0o17", "017", "09", "0b11", "1_000", "1:30",
		".inf", "-.inf", ".nan", "inf", `"inf"`, "null", "~", "", `""`, "Null", "abc", "aGk=",
		"2001-12-14", "2001-12-14t21:59:43.10-05:00", "1e400", "99999999999999999999", "|\n  x", "'a b'", "[]", "{a: b}", "[1, yes]"}
)

// TestMeansWhatHelmReads checks that a file of values has the same meaning as for Helm, or is
// rejected at the position of a value. It combines all tags, values and places.
func TestMeansWhatHelmReads(t *testing.T) {
	read := 0
	for _, tag := range anyTag {
		for _, scalar := range anyScalar {
			value := strings.TrimSpace(tag + " " + scalar)
			for _, form := range []string{"a: %s\n", "%s : 1\n", "a: [x, %s ]\n", "- &x %s\n- *x\n", "a: &x %s\n"} {
				if strings.Contains(scalar, "\n") && !strings.HasPrefix(form, "a: %s") {
					continue
				}
				text := "# a comment\n" + fmt.Sprintf(form, value)
				got, refused := meaning(text)
				want, err := helms(text)
				switch {
				case strings.HasPrefix(refused, "CUE: "), strings.HasPrefix(refused, "JSON: "):
					t.Errorf("%q is not read, and not refused: %s", text, refused)
				case refused != "":
				case err != nil:
					t.Errorf("%q is %v, and Helm refuses it: %v", text, got, err)
				case !reflect.DeepEqual(got, want):
					t.Errorf("%q is %v, and Helm reads %v", text, got, want)
				default:
					read++
				}
			}
		}
	}
	if read < 200 {
		t.Errorf("only %d files are read", read)
	}
}

// TestTagIsRefusedInItsPlace checks that a diagnostic names the rejected value and its
// position.
func TestTagIsRefusedInItsPlace(t *testing.T) {
	for _, c := range []struct{ text, want, hint string }{
		{"a: 1\nb: {c: !!bool \"yes\"}\n", "f.yaml:2:8 the tag !!bool", "write true or false"},
		{"a: 1\nb: !!float 3\n", "f.yaml:2:4 the tag !!float", "write the number itself"},
		{"a: 1\nb: !!int \"0x1F\"\n", "f.yaml:2:4 the tag !!int", "write the number itself"},
		{"a:\n- ! 3\n", "f.yaml:2:3 the tag !", `write the text in quotes, "3"`},
		{"a:\n- &x ! 3\n", "f.yaml:2:3 the tag !", `write the text in quotes, "3"`},
		{"a:\n  !Ref b: c\n", "f.yaml:2:3 the tag !Ref", `write the text in quotes, "b"`},
		{"a: 1\nb: !!set {c: null}\n", "f.yaml:2:4 the tag !!set", "plain list or mapping"},
		{"a: 1\nb: !!binary aGk=\n", "f.yaml:2:4 the tag !!binary", "the text that it stands for"},
		{"a: 1\nb: !!timestamp 2001-12-14\n", "f.yaml:2:4 the tag !!timestamp", `"2001-12-14"`},
		{"a: 1\nb: !!float .inf\n", "f.yaml:2:4 .inf is no number", "quote"},
		{"a: 1\n# *c\nb: [*c]\n", "f.yaml:3:5 the file is not valid YAML: unknown anchor 'c'", "correct"},
		{"a: 1\n-3: x\n", "f.yaml:2:1 ", "quote"},
		{"a: 1\n? [b]\n: c\n", "f.yaml:2:", ""},
		{"a: 1\n? {b: c}\n: c\n", "f.yaml:2:", ""},
		{"a: 1\nb: {<<: 3}\n", "f.yaml:2:", ""},
		{"z: 1\na: &a {<<: {}}\nb: *a\nc: 1\n", "f.yaml:3:1 the file is not valid YAML: it has a form that CUE cannot read", "correct"},
	} {
		_, problem := Read("f.yaml", "/f.yaml", []byte(c.text))
		if problem == nil {
			t.Errorf("%q is read", c.text)
			continue
		}
		at := problem.Sites[0].Position
		if got := fmt.Sprintf("%s:%d:%d %s", at.File, at.Line, at.Column, problem.Message); !strings.HasPrefix(got, c.want) || !strings.Contains(problem.Hint, c.hint) {
			t.Errorf("%q: %s (%s), want %s (%s)", c.text, got, problem.Hint, c.want, c.hint)
		}
	}
}

// FuzzMeaning checks that every YAML text has the same meaning for kalypso and for Helm.
func FuzzMeaning(f *testing.F) {
	for _, s := range []string{"a: !!bool \"yes\"\n", "? !!int 0x1F\n: [! 3, !!str 3]\n", "a: &x {b: !!float 3}\nc: {<<: *x, d: .nan}\n", "a: |-\n  x\n ", "? a\n", "a: \"\\u0041\\\n  b\"\n", "- 1:30\n- 0o7\n- ~\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, refused := meaning(text)
		if refused != "" {
			if strings.HasPrefix(refused, "CUE: ") {
				t.Errorf("%q is not read, and not refused: %s", text, refused)
			}
			return
		}
		var node yaml.Node
		if yaml.Unmarshal([]byte(text), &node) != nil || node.IsZero() {
			return // it is empty
		}
		if want, err := helms(text); err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v, and Helm reads %v", text, got, want)
		}
	})
}
