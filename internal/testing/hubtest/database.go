package hubtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kalypso-io/kalypso/hub/store"
)

// Cluster is a PostgreSQL that runs.
type Cluster struct {
	dir, log string
	command  func(name string, args ...string) *exec.Cmd
	made     atomic.Int64
}

// StartPostgres starts a PostgreSQL that listens on a socket in a new folder below another one,
// or below the folder for temporary files. It uses the programs of Debian's package postgresql,
// which do not run as root. If the process runs as root, they run as nobody, and all users need
// access to every folder on the path.
func StartPostgres(below string) (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	if below == "" {
		if below, err = temporary(os.Geteuid() == 0); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp(below, "pg") // the path of a socket is short
	if err != nil {
		return nil, err
	}
	as := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		const nobody = 65534
		as.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			return nil, err
		}
	}
	c := &Cluster{dir: dir, log: filepath.Join(dir, "log"), command: func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, as
		return cmd
	}}
	for _, cmd := range []*exec.Cmd{
		c.command("initdb", "-D", c.data(), "-U", "hub", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
		c.command("pg_ctl", "start", "-w", "-t", "120", "-D", c.data(), "-l", c.log, "-o",
			"-k "+dir+" -c listen_addresses= -c shared_buffers=128MB"),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out), os.RemoveAll(dir))
		}
	}
	return c, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// temporary returns a folder for temporary files. If forAll is true, all users can reach it,
// because TMPDIR often is a folder of only one user.
func temporary(forAll bool) (string, error) {
	dir, err := filepath.Abs(os.TempDir())
	for path := dir; err == nil && forAll && path != "/"; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		if info.Mode().Perm()&1 == 0 {
			return "/tmp", nil
		}
	}
	return dir, err
}

// Database makes a database, and returns its address.
func (c *Cluster) Database(ctx context.Context) (string, error) {
	address := func(name string) string { return "postgres://hub@/" + name + "?host=" + c.dir }
	db, err := sql.Open("pgx", address("postgres"))
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	name := fmt.Sprintf("hub%d", c.made.Add(1))
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+name)
	return address(name), err
}

// Stop ends it at once, and removes all its files.
func (c *Cluster) Stop() {
	_ = c.command("pg_ctl", "stop", "-w", "-m", "immediate", "-D", c.data()).Run()
	_ = os.RemoveAll(c.dir)
}

func binaries() (string, error) {
	if file, err := exec.LookPath("initdb"); err == nil {
		if file, err = filepath.EvalSymlinks(file); err == nil {
			return filepath.Dir(file), nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian's place for them
	if len(found) == 0 {
		return "", errors.New("there is no initdb: .ci/tools installs PostgreSQL")
	}
	return found[len(found)-1], nil
}

// Postgres starts a PostgreSQL for a test, and returns a function that makes a database and
// returns its address.
func Postgres(t testing.TB) (database func() string) {
	t.Helper()
	c, err := StartPostgres("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if text, _ := os.ReadFile(c.log); t.Failed() {
			t.Logf("PostgreSQL:\n%.4000s", text)
		}
		c.Stop()
	})
	return func() string {
		t.Helper()
		name, err := c.Database(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
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

// SQL opens a database until the test ends. Others may have it open, too.
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
