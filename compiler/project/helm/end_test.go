package helm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
)

// endings are the texts that can follow the last line of a document.
var endings = []string{
	"", "\n", "\n\n", "\n\n\n", "\n  \n", "\n# a comment\n", "\n\n# a comment\n", "\n---\n", "\n\n---\n", "\n---\n---\n# nothing\n---\n",
	"\n...\n", "\r\n", "\r\n\r\n", "\r\n---\r\n", "\r\n# a comment\r\n",
}

// document returns one that ends in a block scalar.
func document(kind, name, header, ending string) string {
	switch kind {
	case "List":
		return "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: " + name + "}\n  data:\n    text: " + header + "\n      one\n      two" + ending
	case "Hook":
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  annotations: {helm.sh/hook: pre-install}\ndata:\n  text: " + header + "\n    one\n    two" + ending
	}
	return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n  text: " + header + "\n    one\n\n    two" + ending
}

// A block scalar at the end of a document has the same value as in helm, down to the last line
// feed.
func TestEndsOfDocuments(t *testing.T) {
	files := map[string][]byte{"Chart.yaml": []byte("apiVersion: v2\nname: ends\nversion: 1.0.0\n")}
	want := 0
	for i, header := range []string{"|", "|-", "|+", ">", ">-", ">+"} {
		for j, ending := range endings {
			for _, kind := range []string{"ConfigMap", "List", "Hook", "Widget"} {
				name := fmt.Sprintf("%c%d-%d", kind[0]|0x20, i, j)
				text := document(kind, name, header, ending)
				want++
				if j%2 == 1 && strings.HasSuffix(ending, "\n") && !strings.HasPrefix(ending, "\n.") { // a second document follows
					text += "---\n" + document(kind, name+"-second", header, "")
					want++
				}
				files["templates/"+name+".yaml"] = []byte(text)
			}
			name := fmt.Sprintf("crd%d-%d", i, j)
			files["crds/"+name+".yaml"] = []byte(document("CustomResourceDefinition", name, header, ending))
			want++
		}
	}
	sameAsCommand(t, files, want)
	for _, header := range []string{"|", "|+"} {
		for _, ending := range endings {
			// Nothing is printed behind the last CRD.
			sameAsCommand(t, map[string][]byte{"Chart.yaml": files["Chart.yaml"],
				"crds/a.yaml": []byte(document("CustomResourceDefinition", "a", header, ending))}, 1)
		}
	}
}

// sameAsCommand compares a chart with the helm command, which prints n objects.
func sameAsCommand(t *testing.T, files map[string][]byte, n int) {
	t.Helper()
	chart := commandtest.Archive(t, files)
	archive := filepath.Join(t.TempDir(), "chart.tgz")
	if err := os.WriteFile(archive, chart, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := commandtest.Helm(t, "template", "demo", archive, "--include-crds")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Render(Request{Chart: chart, ReleaseName: "demo", Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	printed := printedBy(t, out)
	if len(printed) != n {
		t.Errorf("helm prints %d objects, want %d", len(printed), n)
	}
	same(t, values(got), printed)
}
