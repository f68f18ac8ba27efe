package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func TestMain(m *testing.M) { isolated.Main(m) }

// cases are the tests that every kind of database must pass.
var cases = []struct {
	name string
	test func(t *testing.T, database func() string)
}{
	{"older", older}, {"newer", newer}, {"views", views},
}

func TestSQLite(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(t, hubtest.SQLite(t)) })
	}
}

func TestSlowPostgres(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	database := hubtest.Postgres(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(t, database) })
	}
}

const sums = "testdata/migrations.sum"

// Databases already have the migrations of earlier hubs. Their files must not change, and their
// numbers must not have a gap.
func TestMigrations(t *testing.T) {
	golden, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(golden)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		known[name] = sum
	}
	numbers := migrations(t)
	for i, number := range slices.Sorted(maps.Keys(numbers)) {
		if number != i+1 {
			t.Fatalf("there is no migration %d before %d", i+1, number)
		}
	}
	for _, name := range numbers {
		text, err := os.ReadFile(filepath.Join("migrations", name))
		if err != nil {
			t.Fatal(err)
		}
		switch sum := fmt.Sprintf("%x", sha256.Sum256(text)); known[name] {
		case sum:
		case "":
			t.Errorf("%s lacks a migration that is new. Add:\n%s  %s", sums, sum, name)
		default:
			t.Errorf("%s was changed: write another migration", name)
		}
		delete(known, name)
	}
	for name := range known {
		t.Errorf("%s is gone, or has another number: databases have had it", name)
	}
}

// Migrations run in the order of their numbers, not of their names.
func TestNumbered(t *testing.T) {
	of := func(names ...string) (fs fstest.MapFS) {
		fs = fstest.MapFS{}
		for _, name := range names {
			fs["migrations/"+name] = &fstest.MapFile{}
		}
		return fs
	}
	if got, err := store.Numbered(of("1-a.sql", "10-a.sql", "2-a.sql", "9-a.sql")); err != nil || !slices.Equal(got, []int{1, 2, 9, 10}) {
		t.Errorf("their order is %d, %v", got, err)
	}
	if got, err := store.Numbered(of("1-a.sql", "b.sql")); err == nil || !strings.Contains(err.Error(), "migration b.sql has no number") {
		t.Errorf("%d, %v", got, err)
	}
}

// migrations returns the files by their numbers.
func migrations(t *testing.T) map[int]string {
	t.Helper()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	out := map[int]string{}
	for _, file := range files {
		name := filepath.Base(file)
		text, _, _ := strings.Cut(name, "-")
		number, err := strconv.Atoi(text)
		if err != nil || out[number] != "" {
			t.Fatalf("%s and %s: %v", name, out[number], err)
		}
		out[number] = name
	}
	return out
}

// last returns the number of the newest migration.
func last(t *testing.T) int {
	t.Helper()
	return slices.Max(slices.Collect(maps.Keys(migrations(t))))
}

// left makes a database as a hub with the migrations up to a number has left it. testdata/older has
// the rows that each version wrote.
func left(t *testing.T, name string, number int) {
	t.Helper()
	if err := store.Older(t.Context(), name, number); err != nil {
		t.Fatal(err)
	}
	db := hubtest.SQL(t, name)
	for n := range number {
		text, err := os.ReadFile(fmt.Sprintf("testdata/older/%d.sql", n+1))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		rows := string(text)
		if store.IsPostgres(name) {
			rows = regexp.MustCompile(`X'([0-9a-f]+)'`).ReplaceAllString(rows, `'\x$1'`)
		}
		if _, err := db.ExecContext(t.Context(), rows); err != nil {
			t.Fatalf("the rows of version %d: %v", n+1, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// now is later than every time in testdata/older.
func now() time.Time { return time.UnixMilli(1_700_000_500_000).UTC() }

// run starts a hub until the test ends.
func run(t *testing.T, db *store.Store, problem func(error)) *hub.Hub {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h, err := hub.Open(ctx, hub.Options{Store: db, StaleAfter: time.Hour, Now: now, Problem: problem})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { h.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return h
}

// older opens the database of each earlier version, and compares all answers about its content.
// Then a cluster reports.
func older(t *testing.T, database func() string) {
	golden, err := os.ReadFile("testdata/older/answers.txt")
	if err != nil {
		t.Fatal(err)
	}
	for number := range migrations(t) {
		name := database()
		left(t, name, number)
		db := hubtest.Open(t, name)
		h := run(t, db, func(err error) { t.Errorf("version %d: %v", number, err) })
		got, want := answers(t, h), string(golden)
		for n, lines := range since { // earlier versions lack these answers
			if number < n {
				want = strings.NewReplacer(lines...).Replace(want)
			}
		}
		if got != want {
			t.Errorf("of version %d it answers\n%s\nand should\n%s", number, got, want)
		}
		outcome, err := h.Report(t.Context(), &state.Report{Cluster: "oslo", Received: now(), Items: []state.Item{{Assignment: "prod/edge/hello-main", Commit: "c3", State: state.ReportedOK}}})
		if err != nil || h.Fleet().Count(state.Filter{})[0].Tally[state.OK] != 2 {
			t.Errorf("version %d: a report: %+v, %v", number, outcome, err)
		}
	}
}

// since has, for each version, the answers that only later versions have and the answers of earlier
// ones instead.
var since = map[int][]string{
	3: {"secret sss", "secret new"},
	4: {"sessions [s1]", "sessions []"},
	6: {"u1 u0 1700000245000", "  -"},
	7: {"t1 aa cc", "t1 aa "},
	8: {"then of base s-c2 1700000130000 [0 0 1 0 0 0 1 0]", "then of base s-c2 1700000130000 [0 0 0 0 0 0 0 0]"},
}

// answers returns all answers of a hub.
func answers(t *testing.T, h *hub.Hub) string {
	t.Helper()
	var b strings.Builder
	ctx, db := t.Context(), h.Store()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	line := func(parts ...any) {
		for i := range parts {
			if at, is := parts[i].(time.Time); is {
				if parts[i] = "-"; !at.IsZero() {
					parts[i] = at.UnixMilli()
				}
			}
		}
		b.WriteString(strings.TrimSpace(fmt.Sprintln(parts...)) + "\n")
	}
	for _, row := range hubtest.Rows(h.Fleet()) {
		line("assignment", row.Environment, row.Cluster, row.Target, row.Workload, row.Version, row.State, row.Running, row.Message, row.Changed, row.Commit, row.By)
	}
	for _, g := range h.Fleet().Count(state.Filter{}, state.ByRing, state.ByBase) {
		line("count", fmt.Sprintf("%+v", g))
	}
	for _, name := range []string{"berlin", "oslo"} {
		c := h.Fleet().Contact(name)
		line("cluster", name, c.Last, c.Snapshot, c.Digest, c.By, c.UID, c.Before, c.Conflict)
	}
	transitions, _, err := db.History(ctx, store.Filter{}, 100)
	must(err)
	for _, x := range transitions {
		line("history", x.Number, x.At, x.Cluster, x.Was, x.State, x.Version, x.Running, x.Commit, x.Message)
	}
	then, _, err := db.CountAt(ctx, state.Filter{Environments: state.In("prod"), Workload: "hello"}, time.UnixMilli(1_700_000_130_000))
	must(err)
	line("then", then)
	for _, base := range []string{"s-c2", "s-c3"} {
		for _, at := range []int64{1_700_000_130_000, 1_700_000_430_000} {
			tally, _, err := db.CountAt(ctx, state.Filter{Environments: state.In("prod"), Workload: "hello", Base: base}, time.UnixMilli(at))
			must(err)
			line("then of base", base, at, tally)
		}
	}
	releases, err := db.Releases(ctx, nil, 100)
	must(err)
	for _, r := range releases {
		line("release", r.Environment, r.Ring, r.Commit, r.Base, r.Own, r.Author, r.Subject, r.Committed, r.At, r.Completed, r.Failed, r.Restored)
	}
	tokens, err := db.Tokens(ctx)
	must(err)
	for _, x := range tokens {
		line("token", x.ID, x.Hash, x.SigningKey, x.Role, x.Cluster, x.Environment, x.Note, x.Made, x.MadeBy, x.Expires, x.Used, x.Revoked)
	}
	ended, number, err := db.EndedTokens(ctx, 0)
	must(err)
	line("ended", ended, number)
	events, err := db.Events(ctx, 0, 100)
	must(err)
	for _, e := range events {
		line("audit", e.Number, e.At, e.Who, e.Action, e.Subject, e.Detail)
	}
	sent, err := db.Notifications(ctx, "")
	must(err)
	line("notifications", sent)
	secret, err := db.Secret(ctx, "session", "new")
	must(err)
	line("secret", secret)
	sessions, err := db.EndedSessions(ctx, now())
	must(err)
	line("sessions", sessions)
	return b.String()
}

// newer opens the database of a later version.
func newer(t *testing.T, database func() string) {
	name := database()
	last := last(t)
	left(t, name, last)
	if _, err := hubtest.SQL(t, name).Exec(fmt.Sprint("INSERT INTO migration (number) VALUES (", last+7, ")")); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), name)
	if err == nil {
		_ = db.Close()
		t.Fatal("a database of a newer hub is opened")
	}
	if want := fmt.Sprintf("it was written by a newer kalypso-hub, with migration %d of %d: use that one", last+7, last); !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the error is %q, and should end with %q", err, want)
	}
}
