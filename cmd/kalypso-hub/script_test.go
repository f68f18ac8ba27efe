package main

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"wanted", "compiled", compiler.WorkerArgument}, os.Args[1]) {
		main() // the test's program is the one that serve starts, too
		return
	}
	if filepath.Base(os.Args[0]) != "kalypso-hub" {
		isolated.Environment() // the programs of scripts have the scripts' environment
	}
	testscript.Main(m, map[string]func(){"kalypso-hub": main})
}

// TestScript runs the program as users do. $IN_USE is an address that is taken.
func TestScript(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("IN_USE", listener.Addr().String())
			return nil
		},
	})
}
