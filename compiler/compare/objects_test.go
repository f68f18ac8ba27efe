package compare

import (
	"testing"
)

// TestScanned compares the scanner with the parser, wherever the scanner is sure of its
// result.
func TestScanned(t *testing.T) {
	for doc, want := range map[string]bool{
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: b\ndata:\n  name: c\n":                  true,
		"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  annotations:\n    name: x\n  name: a.b-1\nspec: {}\n":   true,
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: |\n    kind: B\n    metadata:\n  y: z\n": true,
		"apiVersion: v1\nkind: List\nitems:\n- kind: A\n  metadata:\n    name: x\nmetadata:\n  name: l\n":            true,
		"apiVersion: v1\nkind: A\nmetadata: {name: a}\n":                                                             false,
		"apiVersion: v1\nkind: A\nmetadata:\n  name: \"1\"\n":                                                        false,
		"apiVersion: v1\nkind: A\nmetadata:\n  name: 1\n":                                                            false,
		"apiVersion: v1\nkind: A # no\nmetadata:\n  name: a\n":                                                       false,
		"apiVersion: v1\nkind: Null\n":                                                                               false,
		"apiVersion: v1\nkind: A\nkind: B\n":                                                                         false,
		"kind: A\nmetadata:\n  name: a\n":                                                                            false,
		"---\napiVersion: v1\nkind: A\n":                                                                             false,
		"apiVersion: v1\nkind: A\nnote: \"x\n\nkind: B\"\n":                                                          false,
		"apiVersion: v1\nkind: A\nmetadata:\n    name: a\n":                                                          false,
		"apiVersion: v1\nkind: A\nmetadata:\n  labels: \"a\n\n  name: b\"\n":                                         false,
		"apiVersion: v1\nkind: A\nmetadata:\n  name: {{ .x }}\n":                                                     false,
		"- apiVersion: v1\n  kind: A\n":                                                                              false,
		"plain":                                                                                                      false,
	} {
		o, sure := scanned([]byte(doc))
		if sure != want {
			t.Errorf("sure is %v of\n%s", sure, doc)
		}
		if is := parsed([]byte(doc)); sure && is != o {
			t.Errorf("%+v, and the parser says %+v, of\n%s", o, is, doc)
		}
	}
}
