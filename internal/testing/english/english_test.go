package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestRules checks the examples of each rule in testdata/rules.txt: the rule lists each sentence
// behind "-", and does not list any sentence behind "+". Each rule has two of both at least.
func TestRules(t *testing.T) {
	text, err := os.ReadFile("testdata/rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]map[bool][]string{}
	name := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		sentence, bad := strings.CutPrefix(line, "- ")
		good := false
		if !bad {
			sentence, good = strings.CutPrefix(line, "+ ")
		}
		switch {
		case bad || good:
			examples[name][bad] = append(examples[name][bad], sentence)
		case line != "":
			name = line
			examples[name] = map[bool][]string{}
		}
	}
	for _, r := range rules {
		of := examples[r.name]
		delete(examples, r.name)
		if len(of[true]) < 2 || len(of[false]) < 2 {
			t.Errorf("%s: has %d bad and %d good examples", r.name, len(of[true]), len(of[false]))
		}
		for bad, sentences := range of {
			for _, sentence := range sentences {
				listed := false
				for _, f := range findings([]block{{sentence, []int{1}}}) {
					listed = listed || f.name == r.name
				}
				if listed != bad {
					t.Errorf("%s: listed is %v for: %s", r.name, listed, sentence)
				}
			}
		}
	}
	for name := range examples {
		t.Errorf("%s: not a rule", name)
	}
}

// TestCheck compares the findings in the files of testdata with testdata/*.golden, by class of text.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		file, golden string
		classes      classes
	}{
		{"testdata/package.go", "testdata/comments.golden", classes{comments: true}},
		{"testdata/package.go", "testdata/commands.golden", classes{commands: true}},
		{"testdata/page.md", "testdata/markdown.golden", classes{markdown: true}},
		{"testdata/page.md", "", classes{comments: true, commands: true}},
		{"testdata/generated.go", "", classes{comments: true, commands: true}},
		{"testdata/rules.txt", "", classes{comments: true, commands: true, markdown: true}},
	} {
		var out bytes.Buffer
		found, err := check(&out, []string{test.file}, test.classes)
		if err != nil {
			t.Error(err)
			continue
		}
		var golden []byte
		if test.golden != "" {
			if os.Getenv("KALYPSO_UPDATE") == "1" {
				err = os.WriteFile(test.golden, out.Bytes(), 0o644)
			}
			if err == nil {
				golden, err = os.ReadFile(test.golden)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != string(golden) || found != (len(golden) > 0) {
			t.Errorf("%s: %s: found is %v:\n%s", test.file, test.golden, found, &out)
		}
	}
	if _, err := check(&bytes.Buffer{}, []string{"testdata/none.go"}, classes{}); err == nil {
		t.Error("a file that does not exist is not an error")
	}
}
