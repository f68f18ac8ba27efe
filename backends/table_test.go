package backends_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestTable compares the table in docs/reconcilers/README.md with the support that the backends
// report. With KALYPSO_UPDATE=1 it writes the table again.
func TestTable(t *testing.T) {
	const (
		page  = "../docs/reconcilers/README.md"
		begin = "<!-- table: written by `make docs` from what the backends say -->\n"
		end   = "<!-- end of the table -->\n"
	)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", page)
	}
	want := before + begin + table() + end + after
	if string(text) == want {
		return
	}
	if os.Getenv("KALYPSO_UPDATE") != "1" {
		t.Fatalf("the table in %s is not what the backends say; `make docs` writes it anew", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table returns the table of the manifests that each backend delivers, and of its support
// for values of single clusters. Below it are the reasons for missing support.
func table() string {
	var b, line strings.Builder
	b.WriteString("| manifests | |")
	line.WriteString("|---|---|")
	for _, backend := range all {
		fmt.Fprintf(&b, " `%s` |", backend.Name())
		line.WriteString("---|")
	}
	b.WriteString("\n" + line.String() + "\n")
	var reasons []string
	for _, kind := range model.SourceKinds {
		for _, render := range ways {
			fmt.Fprintf(&b, "| `%s` | %s |", kind, wayName(render))
			for _, backend := range all {
				why := reason(backend, kind, render)
				if why == "" {
					b.WriteString(" yes |")
					continue
				}
				n := slices.Index(reasons, why)
				if n < 0 {
					n, reasons = len(reasons), append(reasons, why)
				}
				fmt.Fprintf(&b, " no (%d) |", n+1)
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("| values of single clusters | |")
	for _, backend := range all {
		if backend.Traits().PerCluster {
			b.WriteString(" yes |")
		} else {
			b.WriteString(" no |")
		}
	}
	b.WriteString("\n\n")
	for n, why := range reasons {
		fmt.Fprintf(&b, "%d. %s\n", n+1, why)
	}
	return b.String() + "\n"
}
