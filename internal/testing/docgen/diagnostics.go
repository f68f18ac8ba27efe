package docgen

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// phases are the first digits of codes.
var phases = []struct{ prefix, title string }{
	{"K1", "Reading and evaluating the platform"},
	{"K2", "Assigning and composing"},
	{"K3", "Emitting"},
	{"K4", "Writing"},
}

func diagnosticsPage() []byte {
	p := newPage("Diagnostics", "compiler/diag/catalogue.go")
	p.block("What kalypso says about a platform has a code that never changes its meaning. An error fails the\n" +
		"assignments that it concerns, or the environment where it hides which assignments there are; a warning\n" +
		"fails nothing. `kalypso explain K2003` prints the same text. The second digit 9 marks warnings.")
	codes := slices.Clone(diag.Codes)
	slices.SortFunc(codes, func(a, b diag.Explanation) int { return strings.Compare(string(a.Code), string(b.Code)) })
	for _, phase := range phases {
		p.block("## %s: %s", phase.prefix, strings.ToLower(phase.title[:1])+phase.title[1:])
		for _, e := range codes {
			if strings.HasPrefix(string(e.Code), phase.prefix) {
				p.block("### %s: %s", e.Code, escape(e.Title))
				p.block("%s. %s", strings.ToUpper(string(e.Severity[:1]))+string(e.Severity[1:]), escape(e.Text))
			}
		}
	}
	return p.Bytes()
}
