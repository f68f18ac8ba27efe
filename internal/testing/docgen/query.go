package docgen

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/query/database"
	"github.com/kalypso-io/kalypso/compiler/query/tables"
)

// queryPage is the tables and views of kalypso query.
func queryPage() []byte {
	p := newPage("Tables", "compiler/query/tables and compiler/query/database")
	p.block("<!-- parse only -->")
	p.block("`kalypso query TABLE` prints a table of the compiled platform as JSON lines, and " +
		"`kalypso query --to FILE.db` writes\n" +
		"all tables and views into a SQLite file. [dashboards.md](dashboards.md) has examples.")
	p.block("```sh\nkalypso query\nkalypso query assignments prod\nkalypso query --to fleet.db --history 100\n```")
	p.block("- Fields that `kalypso get -o json` has too are called as there. Text that is not " +
		"known is empty. A column is null only where this page says so.\n" +
		"- The type json is the value itself in JSON lines, and JSON text in SQLite: `labels ->> " +
		"'region'`, `json_each(policies)`. A boolean is 0 or 1 in SQLite.\n" +
		"- Rows are in an order that is always the same, and equal platforms of equal commits give equal files.\n" +
		"- SQLite needs to be 3.38 or newer, for strict tables and JSON. `.schema` shows the docs of " +
		"this page as comments.\n" +
		"- The file is written beside the one that it then replaces: a reader has the old one or the " +
		"new one. A file that kalypso did not write stays as it is.\n" +
		"- Text of others is data, and never part of a statement. JSON lines escape what cannot be " +
		"seen; a program that shows or exports texts of\n" +
		"  the SQLite file has to do so itself. What looks like a plaintext secret is masked in values.")
	p.block("Tables, views and columns are [stable](stability.md): releases add some, and `PRAGMA " +
		"user_version` grows where one changes\n" +
		"or goes. `PRAGMA application_id` is the same for all files that kalypso writes.")
	p.block("## Tables")
	for _, t := range tables.All() {
		p.block("### %s", t.Name)
		p.block("%s", escape(t.Doc))
		p.columns(t.Columns)
		var key []string
		for _, c := range t.Columns[:t.Key] {
			key = append(key, c.Name)
		}
		said := "The key is " + names(key) + "."
		for _, r := range t.References {
			said += fmt.Sprintf(" By %s a row refers to one of %s.", names(r.Columns), code(r.Table))
		}
		p.block("%s", said)
	}
	p.block("## Views")
	p.block("A view is in a file that has all the tables that it reads.")
	for _, v := range database.Views() {
		p.block("### %s", v.Name)
		p.block("%s", escape(v.Doc))
		p.columns(v.Columns)
	}
	return p.Bytes()
}

// names lists names as code.
func names(of []string) string { return "`" + strings.Join(of, "`, `") + "`" }

// columns adds a table of columns.
func (p *page) columns(of []tables.Column) {
	var rows []string
	for _, c := range of {
		doc := c.Doc
		if c.Optional {
			doc += "; null where there is none"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", code(c.Name), c.Type, cell(escape(doc))))
	}
	p.block("| column | type | meaning |\n|---|---|---|\n%s", strings.Join(rows, "\n"))
}
