package cuemodule

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/lockedfile"
)

const (
	aRelease     = false // the treatment of an entry that differs
	aDevelopment = true
)

func newEntry(t testing.TB) entry {
	e := entryIn(t.TempDir())
	t.Cleanup(func() { // the test cannot remove read-only folders
		filepath.WalkDir(e.folder, func(name string, _ os.DirEntry, _ error) error { return os.Chmod(name, 0o755) })
	})
	return e
}

func mustEnsure(t *testing.T, e entry, replace bool) {
	t.Helper()
	if err := e.ensure(t.Context(), replace); err != nil {
		t.Fatal(err)
	}
	if file := e.differs(); file != "" {
		t.Fatalf("the entry differs in %s", file)
	}
}

// damages are ways in which an entry can differ from the module.
var damages = map[string]func(t *testing.T, e entry){
	"changed": func(t *testing.T, e entry) {
		overwrite(t, filepath.Join(e.folder, "schema/names.cue"), "package schema\n")
	},
	"missing": func(t *testing.T, e entry) { remove(t, filepath.Join(e.folder, "schema/names.cue")) },
	"added":   func(t *testing.T, e entry) { overwrite(t, filepath.Join(e.folder, "schema/x.cue"), "package schema\n") },
	"above":   func(t *testing.T, e entry) { overwrite(t, filepath.Join(e.folder, "x.cue"), "package schema\n") },
	"mod":     func(t *testing.T, e entry) { overwrite(t, e.mod, `module: "kalypso.io@v0"`) },
	"empty": func(t *testing.T, e entry) {
		for _, f := range embedded() {
			remove(t, filepath.Join(e.folder, f.name))
		}
	},
}

func TestDevelopmentBuildRepairsTheCache(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			e := newEntry(t)
			mustEnsure(t, e, aDevelopment)
			damage(t, e)
			mustEnsure(t, e, aDevelopment)
			if mod, err := os.ReadFile(e.mod); err != nil || string(mod) != string(moduleText()) {
				t.Errorf("%s was not repaired", e.mod)
			}
			left, err := filepath.Glob(e.folder + ".*")
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestReleaseLeavesAnotherEntryAlone(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			e := newEntry(t)
			mustEnsure(t, e, aRelease)
			damage(t, e)
			before := list(t, e.folder)
			var different *DifferentError
			if err := e.ensure(t.Context(), aRelease); !errors.As(err, &different) || different.Folder != e.folder {
				t.Errorf("got error %v, want a *DifferentError for %s", err, e.folder)
			}
			if after := list(t, e.folder); after != before {
				t.Errorf("the entry changed from %s to %s", before, after)
			}
		})
	}
}

func TestWhatCUELeftUnfinishedIsWritten(t *testing.T) {
	for name, unfinished := range map[string]func(e entry){
		"partial folder": func(e entry) {
			overwrite(t, e.partial, "")
			remove(t, filepath.Join(e.folder, "schema/names.cue"))
		},
		"no mod file": func(e entry) { remove(t, e.mod) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEntry(t)
			mustEnsure(t, e, aRelease)
			unfinished(e)
			mustEnsure(t, e, aRelease)
			if _, err := os.Stat(e.partial); err == nil {
				t.Error("the entry is still marked as partial")
			}
		})
	}
}

// TestFilesThatNoPackageReadsDoNotCount checks a module from a registry, which holds its whole
// repository.
func TestFilesThatNoPackageReadsDoNotCount(t *testing.T) {
	e := newEntry(t)
	mustEnsure(t, e, aRelease)
	os.Chmod(e.folder, 0o755)
	overwrite(t, filepath.Join(e.folder, "README.md"), "kalypso\n")
	overwrite(t, filepath.Join(e.folder, "examples/x.cue"), "package x\n")
	mustEnsure(t, e, aRelease)
}

func TestEntryIsReadOnly(t *testing.T) {
	e := newEntry(t)
	mustEnsure(t, e, aRelease)
	err := filepath.WalkDir(e.folder, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Development builds that race over a damaged entry are the hardest case: each wants to replace
// the entry that it saw.
func TestProcessesRace(t *testing.T) {
	e := newEntry(t)
	cache := strings.TrimSuffix(e.folder, filepath.Join("mod", "extract", filepath.Base(e.folder)))
	for range 5 {
		var running []*exec.Cmd
		for range 4 {
			cmd := exec.Command("ensure-cache")
			cmd.Env = append(os.Environ(), "CUE_CACHE_DIR="+cache)
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			running = append(running, cmd)
		}
		for _, cmd := range running {
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		}
		if file := e.differs(); file != "" {
			t.Fatalf("the entry differs in %s", file)
		}
		overwrite(t, filepath.Join(e.folder, "schema/names.cue"), "package schema\n")
	}
}

func TestWaitingForTheLockEnds(t *testing.T) {
	e := newEntry(t)
	if err := os.MkdirAll(e.download, 0o777); err != nil {
		t.Fatal(err)
	}
	unlock, err := lockedfile.MutexAt(e.lock).Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.ensure(ctx, aRelease); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
}

func TestCacheThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	overwrite(t, file, "")
	t.Setenv("CUE_CACHE_DIR", filepath.Join(file, "cache"))
	var different *DifferentError
	if err := EnsureCache(t.Context()); err == nil || errors.As(err, &different) {
		t.Errorf("got error %v, want one that is no *DifferentError", err)
	}
	t.Setenv("CUE_CACHE_DIR", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if err := EnsureCache(t.Context()); err == nil {
		t.Error("no error without a home")
	}
}

func TestRelease(t *testing.T) {
	const kalypso = "github.com/kalypso-io/kalypso"
	for _, c := range []struct {
		main, version string
		deps          []*debug.Module
		want          bool
	}{
		{main: kalypso, version: "v0.1.0", want: true},
		{main: kalypso, version: "v0.2.0-rc.1", want: true},
		{main: kalypso, version: "(devel)"},
		{main: kalypso, version: ""},
		{main: kalypso, version: "v0.1.0+dirty"},
		{main: kalypso, version: "v0.1.1-0.20260102030405-abcdefabcdef"},
		{main: kalypso, version: "v0.1.1-0.20260102030405-abcdefabcdef+dirty"},
		{main: "example.com/other", version: "(devel)", deps: []*debug.Module{{Path: kalypso, Version: "v0.1.0"}}, want: true},
		{main: "example.com/other", version: "v1.0.0", deps: []*debug.Module{{Path: kalypso, Version: "v0.1.0", Replace: &debug.Module{Path: "../kalypso"}}}},
		{main: "example.com/other", version: "v1.0.0"},
	} {
		build := &debug.BuildInfo{Main: debug.Module{Path: c.main, Version: c.version}, Deps: c.deps}
		if got := release(build); got != c.want {
			t.Errorf("release(%s %s, %v) = %t, want %t", c.main, c.version, c.deps, got, c.want)
		}
	}
}

func BenchmarkEnsureCachePresent(b *testing.B) {
	e := newEntry(b)
	if err := e.ensure(b.Context(), aDevelopment); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := e.ensure(b.Context(), aDevelopment); err != nil {
			b.Fatal(err)
		}
	}
}

// overwrite and remove change files regardless of their permissions.
func overwrite(t *testing.T, name, text string) {
	t.Helper()
	remove(t, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	os.Chmod(filepath.Dir(name), 0o755)
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
}

// list returns the names of all files below a folder.
func list(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}
