// Package docgen writes the reference pages of docs/ from their sources: the CUE module's
// comments, the command tree, the catalogue of diagnostics and the tables of kalypso query. So
// the pages repeat nothing by hand, and a test can report outdated pages.
package docgen

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"
)

// Pages returns the generated pages as Markdown, by file name. Equal arguments
// give equal bytes. The error is about a definition that has no place on a page.
func Pages(root *cobra.Command) (map[string][]byte, error) {
	language, err := languagePage()
	if err != nil {
		return nil, err
	}
	stdlib, err := stdlibPage()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"language.md":    language,
		"stdlib.md":      stdlib,
		"cli.md":         cliPage(root),
		"diagnostics.md": diagnosticsPage(),
		"query.md":       queryPage(),
	}, nil
}

// page is a Markdown page as it grows.
type page struct{ bytes.Buffer }

// newPage begins a page. from is the source to change in place of the page.
func newPage(title, from string) *page {
	p := &page{}
	fmt.Fprintf(p, "<!-- Generated from %s by `make docs`. Do not edit. -->\n\n# %s\n", from, title)
	return p
}

// block adds a paragraph, heading, list or fence, with the blank line before it.
func (p *page) block(format string, args ...any) {
	fmt.Fprintf(p, "\n"+format+"\n", args...)
}
