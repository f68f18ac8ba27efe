package cuemodule_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"cuelang.org/go/cmd/cue/cmd"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/load"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts run the package's three functions, each as a minimal program, beside the real cue
// command and an editor.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"cue":          func() { os.Exit(cmd.Main()) },
		"ensure-cache": func() { exit(cuemodule.EnsureCache(context.Background())) },
		"vendor":       func() { exit(vendor()) },
		"load":         func() { exit(loadPackage(os.Args[1])) },
		"edit":         func() { exit(edit(os.Args[1:])) },
	})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("KALYPSO_UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CUE_REGISTRY", "none")
			e.Setenv("CUE_CACHE_DIR", filepath.Join(e.WorkDir, ".cache"))
			e.Setenv("HOME", e.WorkDir)
			if err := os.CopyFS(filepath.Join(e.WorkDir, "examples"), os.DirFS("../../examples")); err != nil {
				return err
			}
			// CUE searches for a module upwards; here it must not leave the folder.
			err := os.Mkdir(filepath.Join(filepath.Dir(e.WorkDir), "cue.mod"), 0o777)
			if errors.Is(err, fs.ErrExist) {
				err = nil
			}
			return err
		},
	})
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func vendor() error {
	changed, err := cuemodule.Vendor(".")
	for _, name := range changed {
		fmt.Println(name)
	}
	return err
}

// loadPackage evaluates a package of the platform in the working folder as
// kalypso does, and prints the values of the hidden field _print.
func loadPackage(pkg string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	overlay, err := cuemodule.Overlay(root, nil)
	if err != nil {
		return err
	}
	inst := load.Instances([]string{pkg}, &load.Config{
		Dir: root, ModuleRoot: root, Package: "platform", Overlay: overlay,
		Env: []string{"CUE_REGISTRY=none", "CUE_CACHE_DIR=" + os.Getenv("CUE_CACHE_DIR")},
	})[0]
	if inst.Err != nil {
		if e := cuemodule.Language(root, inst.Err); e != nil {
			return fmt.Errorf("%v: %w", e.Position, e)
		}
		return inst.Err
	}
	value := cuecontext.New().BuildInstance(inst)
	if err := value.Validate(); err != nil {
		for _, e := range cueerrors.Errors(err) {
			fmt.Println(e)
			for _, p := range cueerrors.Positions(e) {
				fmt.Printf("\t%s:%d:%d ours=%t\n", rel(root, p.Filename()), p.Line(), p.Column(), cuemodule.IsOurs(p.Filename(), root))
			}
		}
		return errors.New("the package has errors")
	}
	fmt.Println("ok")
	return nil
}

func rel(root, name string) string {
	if r, err := filepath.Rel(root, name); err == nil {
		return filepath.ToSlash(r)
	}
	return name
}
