package store_test

import (
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// views checks that the views have exactly the columns and types that docs/hub-notifications.md
// promises.
func views(t *testing.T, database func() string) {
	text, err := os.ReadFile("../../docs/hub-notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	name := database()
	kind := map[string]string{"text": "text", "integer": "integer", "bigint": "integer"}
	if store.IsPostgres(name) {
		kind["bigint"] = "bigint"
	}
	promised, columns := []string{}, map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(v_\\w+)` \\| `(\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(string(text), -1) {
		if columns[m[1]] == nil {
			promised = append(promised, m[1])
		}
		columns[m[1]] = append(columns[m[1]], m[2]+" "+kind[m[3]])
	}
	left(t, name, last(t))
	hubtest.Open(t, name)
	db := hubtest.SQL(t, name)
	if _, err := db.Exec(`UPDATE assignment SET state = 3 WHERE state = 6`); err != nil { // so that something drifts
		t.Fatal(err)
	}
	of, all := sqliteColumns, `SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY 1`
	if store.IsPostgres(name) {
		of, all = postgresColumns, `SELECT table_name FROM information_schema.views WHERE table_schema = 'public' ORDER BY 1`
	}
	if there := texts(t, db, all); !slices.Equal(there, slices.Sorted(slices.Values(promised))) {
		t.Errorf("there are the views %q, and docs/hub-notifications.md lists %q", there, promised)
	}
	for _, view := range promised {
		want := columns[view]
		if got := of(t, db, view); !slices.Equal(got, want) {
			t.Errorf("%s has the columns\n%q\nand docs/hub-notifications.md promises\n%q:\na column may be added to a view, and nothing else may change", view, got, want)
		}
	}
}

func texts(t *testing.T, db *sql.DB, query string, args ...any) (out []string) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	return out
}

func postgresColumns(t *testing.T, db *sql.DB, view string) []string {
	t.Helper()
	return texts(t, db, `SELECT column_name || ' ' || data_type FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1 ORDER BY ordinal_position`, view)
}

// sqliteColumns returns the columns of a view with the types of their values, because expressions
// have no other type.
func sqliteColumns(t *testing.T, db *sql.DB, view string) (out []string) {
	t.Helper()
	for _, column := range texts(t, db, `SELECT name FROM pragma_table_info(?) ORDER BY cid`, view) {
		types := texts(t, db, fmt.Sprintf(`SELECT DISTINCT typeof(%s) FROM %s WHERE %s IS NOT NULL`, column, view, column))
		if len(types) != 1 {
			t.Errorf("%s of %s is %q", column, view, types)
			continue
		}
		out = append(out, column+" "+types[0])
	}
	return out
}
