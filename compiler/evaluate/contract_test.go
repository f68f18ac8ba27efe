package evaluate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestContracts(t *testing.T) {
	for _, c := range []struct{ schema, text, mentions, fields string }{
		{`{A: string}`, `{A: string, ...}`, "A", "A"},
		{`{A!: string, B?: int}`, `{A!: string, B?: int, ...}`, "A B", "A B?"},
		{`#Closed`, `{A: string, db: url: string} & {...}`, "A db", "A db.url"}, // opened at every level
		{`close({A: string})`, `close({A: string}) & {...}`, "any", "A"},
		{`{A: *3 | int}`, `{A: *3 | int, ...}`, "A", "A"},
		{`{A: [...string] & [_, ...]}`, ``, "A", "A"},
		{`{[=~"^x"]: int}`, ``, "any", ""},
		{`{"a-b": {c!: int}}`, ``, "a-b", `"a-b".c`},
		{`{ca?: {x!: int}}`, ``, "ca", "ca.x?"},
		{`{mode: "a" | "b", if mode == "a" {X!: string}}`, ``, "any", "mode"},
	} {
		t.Run(c.schema, func(t *testing.T) {
			pkg := healthy(t, `
#Closed: {A: string, db: {url: string}}
configSchemas: s: {match: {}, schema: `+c.schema+`}`)
			contract := pkg.Model.ConfigSchemas[0].Schema
			if text := oneLine(string(contract.Expr)); c.text != "" && text != c.text {
				t.Errorf("text %s, want %s", text, c.text)
			}
			mentions := strings.Join(contract.Mentions, " ")
			if contract.Mentions == nil {
				mentions = "any"
			}
			if mentions != c.mentions {
				t.Errorf("mentions %s, want %s", mentions, c.mentions)
			}
			var fields []string
			for _, f := range contract.Fields {
				optional := ""
				if f.Optional {
					optional = "?"
				}
				fields = append(fields, f.Path+optional)
			}
			slices.Sort(fields)
			if got := strings.Join(fields, " "); got != c.fields {
				t.Errorf("fields %s, want %s", got, c.fields)
			}
		})
	}
}

func TestContractsAdvise(t *testing.T) {
	pkg := healthy(t, `workloads: w: {workspace: "team", requires: A: int, enforce: "advise"}
configSchemas: s: {match: {}, schema: A: int}`)
	got := fmt.Sprint(pkg.Model.Workloads[0].Requires.Advise, pkg.Model.ConfigSchemas[0].Schema.Advise)
	if got != "true false" {
		t.Error(got)
	}
}
