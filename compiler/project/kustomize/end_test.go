package kustomize

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
)

// A block scalar at the end of a document has the same value as in kustomize, down to the last
// line feed. This is true for an overlay and for a folder of manifests.
func TestEndsOfDocuments(t *testing.T) {
	files := map[string][]byte{}
	list := "resources:\n"
	for i, header := range []string{"|", "|-", "|+", ">", ">-", ">+"} {
		for j, ending := range []string{"", "\n", "\n\n", "\n  \n", "\n# a comment\n", "\n---\n", "\n\n---\n# nothing\n---\n", "\r\n", "\r\n\r\n---\r\n"} {
			document := func(name, ending string) string {
				return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n  text: " + header + "\n    one\n\n    two" + ending
			}
			name := fmt.Sprintf("c%d-%d", i, j)
			text := document(name, ending)
			if strings.HasSuffix(ending, "\n") {
				text += "---\napiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(document(name+"-listed", ""), "\n", "\n  ") + "\n---\n" + document(name+"-second", "")
			}
			files["base/"+name+".yaml"] = []byte(text)
			list += "- " + name + ".yaml\n"
		}
	}
	plain, err := Render(Request{Files: files, Path: "base"})
	if err != nil {
		t.Fatal(err)
	}
	files["base/kustomization.yaml"] = []byte(list)
	out, err := commandtest.Kustomize(t, "build", filepath.Join(onDisk(t, files), "base"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Render(Request{Files: files, Path: "base"})
	if err != nil {
		t.Fatal(err)
	}
	want := printedBy(t, out)
	same(t, got, want)
	slices.SortFunc(plain, func(a, b model.Projected) int { return strings.Compare(a.Value.String(), b.Value.String()) }) // the orders differ
	slices.SortFunc(want, func(a, b model.Value) int { return strings.Compare(a.String(), b.String()) })
	same(t, plain, want)
}
