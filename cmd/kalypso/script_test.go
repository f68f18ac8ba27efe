package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	cuecmd "cuelang.org/go/cmd/cue/cmd"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/testing/editor"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/internal/testing/ocitest"
	"github.com/kalypso-io/kalypso/internal/testing/unprivileged"
)

func TestMain(m *testing.M) {
	kalypso := func() {
		clockAnywhere = os.Getenv("KALYPSO_TEST_CLOCK") == "anywhere"
		os.Exit(run())
	}
	programs := map[string]func(){
		"kalypso":      kalypso,
		"git-kalypso":  kalypso,                           // which git finds by its name
		"cue":          func() { os.Exit(cuecmd.Main()) }, // the version that the compiler is made with
		"editor":       func() { os.Exit(runEditor(os.Args[1:])) },
		"unprivileged": func() { os.Exit(runUnprivileged(os.Args[1:])) },
		"wanted":       wantedProgram,
	}
	if programs[filepath.Base(os.Args[0])] == nil {
		isolated.Environment() // the programs of scripts have the scripts' environment
	}
	testscript.Main(m, programs)
}

// gitVariables make git do the same everywhere: the same people, at the same time,
// on a branch of the same name.
var gitVariables = []string{
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main",
	"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
	"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
}

// TestScript runs the command line as users do, with the real cue. KALYPSO_UPDATE=1 writes the
// expected output again.
func TestScript(t *testing.T) { scripts(t, "script") }

// TestSlowScript runs scripts that take long: KALYPSO_ALL=1 go test -run TestSlowScript/NAME
// runs one of them. For each command TestScript has at least one script in which it does
// its work, and one in which it fails.
func TestSlowScript(t *testing.T) {
	isolated.Slow(t, "it takes minutes")
	scripts(t, "slow")
}

// scripts runs the scripts of a folder of testdata.
func scripts(t *testing.T, folder string) {
	testscript.Run(t, scriptParams(t, filepath.Join("../..", "testdata", folder)))
}

// scriptParams returns the parameters to run the scripts of a folder.
func scriptParams(t *testing.T, dir string) testscript.Params {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	registry := ocitest.New(t, nil)
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("KALYPSO_UPDATE") != "",
		Cmds:                commands(repository),
		Setup: func(e *testscript.Env) error {
			e.Setenv("CUE_REGISTRY", "none")
			e.Setenv("KALYPSO_TEST_CLOCK", "anywhere") // servers of scripts have no other
			e.Setenv("CUE_CACHE_DIR", filepath.Join(e.WorkDir, ".cache", "cue"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("KALYPSO_STORE_DIR", filepath.Join(e.WorkDir, ".store"))
			e.Setenv("NO_COLOR", "1")
			e.Setenv(completionEnv, "10m")      // however busy the machine is
			e.Setenv("REGISTRY", registry.Host) // of all scripts: each has repositories of its own
			e.Values[serverKey{}] = &hosted{}
			e.Values[hubKey{}] = new(*scriptHub)
			for _, v := range gitVariables {
				name, value, _ := strings.Cut(v, "=")
				e.Setenv(name, value)
			}
			// CUE looks for a module in the folders above.
			err := os.Mkdir(filepath.Join(filepath.Dir(e.WorkDir), "cue.mod"), 0o777)
			if errors.Is(err, fs.ErrExist) {
				err = nil
			}
			return err
		},
	}
}

// commands returns the scripts' commands in addition to those of testscript.
func commands(repository string) map[string]func(*testscript.TestScript, bool, []string) {
	all := map[string]func(*testscript.TestScript, bool, []string){
		"platform": func(ts *testscript.TestScript, neg bool, args []string) {
			copyCommand(ts, neg, args, filepath.Join(repository, "testdata", "platform"))
		},
		"exits":  exitsCommand,
		"cached": cachedCommand,
		"example": func(ts *testscript.TestScript, neg bool, args []string) {
			if len(args) != 2 {
				ts.Fatalf("usage: example NAME DIR")
			}
			copyCommand(ts, neg, args[1:], filepath.Join(repository, "examples", args[0]))
		},
	}
	maps.Copy(all, serverCommands)
	maps.Copy(all, fleetCommands(repository))
	all["forge"] = func(ts *testscript.TestScript, neg bool, args []string) { forgeCommand(ts, neg, args, repository) }
	return all
}

// runUnprivileged is `unprivileged COMMAND...`. It runs the command without root's rights, so
// that the permissions of files apply even if root runs the tests.
func runUnprivileged(args []string) int {
	err := unprivileged.Run(args...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "unprivileged:", err)
		return 125
	}
	return 0
}

// runEditor is `editor SESSION [PROGRAM...]`: an editor with `kalypso lsp`, or another server.
func runEditor(args []string) int {
	server := []string{"kalypso", "lsp", "--delay", "0s"}
	if len(args) > 1 {
		server = args[1:]
	}
	err := editor.Session(args[0], func() *exec.Cmd {
		cmd := exec.Command(server[0], server[1:]...)
		cmd.Stderr = os.Stderr
		return cmd
	}, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "editor:", err)
		return 1
	}
	return 0
}

// exitsCommand is `exits CODE COMMAND...`: the command ends with that exit code.
func exitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code is %d, not %s", got, args[0])
	}
}

// cachedCommand is `cached DIR`: the cache in that folder holds two single
// entries and a table of three.
func cachedCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: cached DIR")
	}
	c, err := cache.Open(cache.Options{Dir: ts.MkAbs(args[0])})
	ts.Check(err)
	key := func(n int) cache.Key { return cache.NewHash("script").Int(n).Sum() }
	for n := range 2 {
		c.Put(cache.Model, key(n), []byte("a model"))
	}
	for n := range 3 {
		c.Table(cache.Assignment, "dev/small").Put(key(n), []byte("summary"))
	}
	ts.Check(c.Close())
}

// copyCommand copies a folder of the repository to the one that a script names.
func copyCommand(ts *testscript.TestScript, neg bool, args []string, from string) {
	if neg || len(args) != 1 {
		ts.Fatalf("one folder to copy to")
	}
	ts.Check(os.CopyFS(ts.MkAbs(args[0]), os.DirFS(from)))
}

// TestEveryCodeHasAScript keeps the catalogue of codes and the scripts together:
// each code is provoked by a script that is named after it.
func TestEveryCodeHasAScript(t *testing.T) {
	for _, e := range diag.Codes {
		if e.Code == diag.Crash {
			continue // no test can do that: package evaluate makes CUE panic
		}
		pattern := filepath.Join(repository, "testdata", "script", strings.ToLower(string(e.Code))+"-*.txtar")
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("no script provokes %s, %s", e.Code, e.Title)
			continue
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), string(e.Code)) {
			t.Errorf("%s does not look for %s", found[0], e.Code)
		}
	}
}
