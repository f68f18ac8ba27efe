package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/compiler/query/tables"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func TestMain(m *testing.M) { isolated.Main(m) }

// source compiles a platform.
func source(t *testing.T, dir string) *tables.Source {
	t.Helper()
	b, err := compiler.Compile(t.Context(), compiler.Request{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return &tables.Source{Build: b, Dir: dir}
}

// reader returns the first column of a query of a database, as text.
type reader func(t *testing.T, query string) []string

// ours reads with the library that writes.
func ours(t *testing.T, file string) reader {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return func(t *testing.T, query string) (out []string) {
		t.Helper()
		rows, err := db.Query(query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			out = append(out, text)
		}
		if err := rows.Err(); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return out
	}
}

// theirs reads with the sqlite3 command.
func theirs(_ *testing.T, file string) reader {
	return func(t *testing.T, query string) []string {
		t.Helper()
		out, err := exec.Command("sqlite3", "-readonly", "-batch", file, query).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", query, err, out)
		}
		return strings.Fields(string(out)) // numbers and names only
	}
}

func (read reader) count(t *testing.T, query string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.Join(read(t, query), " "))
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// The database of each example has the same number of rows as the lists of get. It refers only to
// existing rows, and has the columns in the docs.
func TestExamples(t *testing.T) { examples(t, ours) }

func TestSlowExamples(t *testing.T) {
	isolated.Slow(t, "it reads with sqlite3")
	examples(t, theirs)
}

func examples(t *testing.T, open func(*testing.T, string) reader) {
	modules, err := filepath.Glob("../../../examples/*/cue.mod")
	if err != nil || len(modules) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, module := range modules {
		dir := filepath.Dir(module)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			s := source(t, dir)
			file := filepath.Join(t.TempDir(), "fleet.db")
			if err := Write(t.Context(), file, s, tables.All()); err != nil {
				t.Fatal(err)
			}
			read := open(t, file)
			b := s.Build
			for table, want := range map[string]int{
				"environments": len(query.Environments(b)), "cluster_types": len(query.ClusterTypes(b)), "clusters": len(query.Clusters(b)),
				"workloads": len(query.Workloads(b)), "deployment_targets": len(query.DeploymentTargets(b)),
				"assignments": len(listed(t, b, query.Assignments)), "v_assignment_clusters": len(listed(t, b, query.ClusterAssignments)),
				"scheduling_policies": len(query.SchedulingPolicies(b)), "configs": len(query.Configs(b)),
				"config_schemas": len(query.ConfigSchemas(b)), "reconcilers": len(query.Reconcilers(b)), "diagnostics": len(b.Diagnostics),
				"v_fleet": len(query.Workloads(b)),
			} {
				if n := read.count(t, "SELECT count(*) FROM "+table); n != want {
					t.Errorf("%s has %d rows, want %d", table, n, want)
				}
			}
			for _, total := range []string{
				"SELECT sum(assignments) FROM versions", "SELECT sum(assignments) FROM environments",
				"SELECT sum(assignments) FROM cluster_types", "SELECT sum(assignments) FROM classes", "SELECT sum(assignments) FROM v_fleet",
			} {
				if n := read.count(t, total); n != len(listed(t, b, query.Assignments)) {
					t.Errorf("%s is %d, want %d", total, n, len(listed(t, b, query.Assignments)))
				}
			}
			check(t, read)
		})
	}
}

// check checks properties of every database.
func check(t *testing.T, read reader) {
	t.Helper()
	if n := read.count(t, "SELECT count(*) FROM pragma_foreign_key_check"); n != 0 {
		t.Errorf("%d rows refer to what is not there", n)
	}
	if said := read(t, "PRAGMA integrity_check"); !slices.Equal(said, []string{"ok"}) {
		t.Errorf("it is damaged: %q", said)
	}
	var names []string
	for _, v := range Views() {
		names = append(names, v.Name)
		read.count(t, "SELECT count(*) FROM "+v.Name)
		var columns []string
		for _, c := range v.Columns {
			columns = append(columns, c.Name)
		}
		if is := read(t, "SELECT name FROM pragma_table_info('"+v.Name+"')"); !slices.Equal(is, columns) {
			t.Errorf("%s has the columns %q, and says %q", v.Name, is, columns)
		}
	}
	if is := read(t, "SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY rowid"); !slices.Equal(is, names) {
		t.Errorf("there are the views %q, want %q", is, names)
	}
	for _, table := range tables.All() {
		for _, c := range table.Columns {
			if c.Type == tables.JSON {
				if n := read.count(t, "SELECT count(*) FROM "+table.Name+" WHERE "+c.Name+" IS NOT NULL AND NOT json_valid("+c.Name+")"); n != 0 {
					t.Errorf("%s.%s is not JSON in %d rows", table.Name, c.Name, n)
				}
			}
			if strings.Contains(c.Doc, "\n") {
				t.Errorf("%s.%s: the doc is more than a line", table.Name, c.Name)
			}
		}
	}
}

// If errors leave rows out, no other row refers to them.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../examples/retail")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"broken.cue":                      `configSchemas: broken: {match: clusterType: "market", schema: CURRENCY: "USD"}` + "\n" + `workloads: stock: deploymentTargets: dev: labels: nothing: 1`,
		"environments/prod/broken.cue":    `clusterTypes: express: reconciler: "nothing"` + "\n" + `clusters: lost: clusterType: "nothing"`,
		"environments/dev/unreadable.cue": `{`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("package platform\n"+text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s := source(t, dir)
	file := filepath.Join(t.TempDir(), "fleet.db")
	if err := Write(t.Context(), file, s, tables.All()); err != nil {
		t.Fatal(err)
	}
	read := ours(t, file)
	check(t, read)
	failed := 0
	for _, a := range listed(t, s.Build, query.Assignments) {
		if a.Failed {
			failed++
		}
	}
	if failed == 0 {
		t.Fatal("nothing failed")
	}
	for _, total := range []string{"SELECT sum(failed) FROM v_fleet", "SELECT count(*) FROM (SELECT DISTINCT environment, clusterType, deploymentTarget FROM v_failures)"} {
		if n := read.count(t, total); n != failed {
			t.Errorf("%s is %d, want %d", total, n, failed)
		}
	}
	for _, one := range []string{"environments WHERE NOT readable", "clusters WHERE folder IS NULL"} {
		if n := read.count(t, "SELECT count(*) FROM "+one); n != 1 {
			t.Errorf("there are %d %s, want 1", n, one)
		}
	}
}

// A name may be any text, and can be read unchanged.
func TestHostile(t *testing.T) { hostile(t, ours) }

func TestSlowHostile(t *testing.T) {
	isolated.Slow(t, "it reads with sqlite3")
	hostile(t, theirs)
}

func hostile(t *testing.T, open func(*testing.T, string) reader) {
	names := []string{"<script>alert(1)</script>", "\x1b[31mred\u009b2J", "=cmd|' /C calc'!A0", "'); DROP TABLE history; --", `"a","b"`, "a\x00b", "line\nline", strings.Repeat("ä", 10_000)}
	slices.Sort(names)
	var want []string
	for _, name := range names {
		want = append(want, fmt.Sprintf("%X", name))
	}
	s := source(t, "../../../examples/hello-world")
	s.Changes = func(_ context.Context, f func(tables.Change) error) error {
		for _, name := range names {
			if err := f(tables.Change{Environment: name, ClusterType: name, DeploymentTarget: name, Workload: name, Author: name, Subject: name}); err != nil {
				return err
			}
		}
		return nil
	}
	file := filepath.Join(t.TempDir(), "a ?#%20 b.db")
	if err := Write(t.Context(), file, s, tables.All()); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "plain.db") // a name that readers need not escape
	if err := os.Rename(file, plain); err != nil {
		t.Fatal(err)
	}
	read := open(t, plain)
	for _, column := range []string{"environment", "subject"} {
		if is := read(t, "SELECT hex("+column+") FROM history ORDER BY environment"); !slices.Equal(is, want) {
			t.Errorf("%s: %q", column, is)
		}
	}
}

// The file is whole even if several processes write it at the same time. After a failure it is
// unchanged, and no other file is left.
func TestAtOnce(t *testing.T) {
	s := source(t, "../../../examples/hello-world")
	dir := t.TempDir()
	file := filepath.Join(dir, "fleet.db")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := Write(t.Context(), file, s, tables.All()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("wrong")
	s.Changes = func(context.Context, func(tables.Change) error) error { return wrong }
	if err := Write(t.Context(), file, s, tables.All()); !errors.Is(err, wrong) {
		t.Errorf("the error is %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("there are %v: %v", entries, err)
	}
}

// listed returns the items of a list.
func listed[T any](t *testing.T, b *compiler.Build, list func(context.Context, *compiler.Build) ([]T, error)) []T {
	t.Helper()
	all, err := list(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
