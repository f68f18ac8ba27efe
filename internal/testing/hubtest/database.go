package hubtest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kalypso-io/kalypso/hub/store"
)

// Postgres starts a PostgreSQL for a test, which listens on a socket in a folder of its own, and
// returns a function that makes a database and returns its address. It is programs of Debian's
// package postgresql, which do not run as root.
func Postgres(t testing.TB) (database func() string) {
	t.Helper()
	bin := binaries(t)
	dir, err := os.MkdirTemp("", "pg") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		const nobody = 65534
		as.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, as
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", data, "-U", "hub", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	log := filepath.Join(dir, "log")
	if out, err := command("pg_ctl", "start", "-w", "-t", "120", "-D", data, "-l", log, "-o", "-k "+dir+" -c listen_addresses= -c shared_buffers=128MB").CombinedOutput(); err != nil {
		t.Fatalf("pg_ctl: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		_ = command("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data).Run()
		if text, _ := os.ReadFile(log); t.Failed() {
			t.Logf("PostgreSQL:\n%.4000s", text)
		}
	})
	address := func(name string) string { return "postgres://hub@/" + name + "?host=" + dir }
	var made atomic.Int64
	return func() string {
		t.Helper()
		name := fmt.Sprintf("hub%d", made.Add(1))
		db, err := sql.Open("pgx", address("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		if _, err = db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		return address(name)
	}
}

func binaries(t testing.TB) string {
	t.Helper()
	if file, err := exec.LookPath("initdb"); err == nil {
		if file, err = filepath.EvalSymlinks(file); err == nil {
			return filepath.Dir(file)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // where Debian has them
	if len(found) == 0 {
		t.Fatal("there is no initdb: .ci/tools installs PostgreSQL")
	}
	return found[len(found)-1]
}

// SQLite returns a function that returns the name of a new file.
func SQLite(t testing.TB) (database func() string) {
	return func() string { return filepath.Join(t.TempDir(), "hub.db") }
}

// Open opens a database until the test ends.
func Open(t testing.TB, name string) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// SQL opens a database, beside whatever has it open, until the test ends.
func SQL(t testing.TB, name string) *sql.DB {
	t.Helper()
	driver := "sqlite"
	if store.IsPostgres(name) {
		driver = "pgx"
	} else {
		name = "file:" + name + "?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
