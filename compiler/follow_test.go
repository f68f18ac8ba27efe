package compiler_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf16"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
)

// wide returns a text in UTF-16, with a byte order mark.
func wide(s string) string {
	b := []byte("\xff\xfe")
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return string(b)
}

// TestWhatCUEReadsIsFollowed changes inputs of a platform that are easily overlooked. A build
// with a cache must give the same result as a build without a cache. A file that starts with ->
// is a link.
func TestWhatCUEReadsIsFollowed(t *testing.T) {
	const helper = "package platform\nimport \"platform.example/platform/helper\"\nconfigs: u: {match: {}, values: PORT: helper.Port}\n"
	const replaced = "package platform\nimport \"ext.example/lib\"\nconfigs: u: {match: {}, values: PORT: lib.Port}\n"
	const localModule = "deps: \"ext.example/lib@v0\": replaceWith: \"./lib\"\n"
	for name, c := range map[string]struct {
		language      string
		before, after map[string]string
	}{
		"an import of a file in UTF-16": {
			before: map[string]string{"u.cue": wide(helper), "helper/h.cue": "package helper\nPort: 1\n"},
			after:  map[string]string{"helper/h.cue": "package helper\nPort: 2\n"},
		},
		"an embedded file of a file in UTF-16": {
			before: map[string]string{"u.cue": wide("@extern(embed)\npackage platform\nconfigs: u: {match: {}, values: {_, @embed(file=\"v.json\")}}\n"), "v.json": `{"PORT": 1}`},
			after:  map[string]string{"v.json": `{"PORT": 2}`},
		},
		"a link in a module that is replaced": {
			language: "v0.17.0",
			before: map[string]string{
				"u.cue": replaced, "cue.mod/local-module.cue": localModule, "real.txt": "package lib\nPort: 1\n",
				"lib/cue.mod/module.cue": "module: \"ext.example/lib@v0\"\nlanguage: version: \"v0.15.0\"\n", "lib/l.cue": "->../real.txt",
			},
			after: map[string]string{"real.txt": "package lib\nPort: 2\n"},
		},
		"a module that begins in an imported folder": {
			before: map[string]string{"u.cue": helper, "helper/h.cue": "package helper\nPort: 1\n"},
			after:  map[string]string{"helper/cue.mod/module.cue": "module: \"other.example/helper@v0\"\nlanguage: version: \"v0.15.0\"\n"},
		},
		"the lock of an editor":    {after: map[string]string{"environments/dev/.#dev.cue": "->user@host.123:4"}},
		"a data file that is gone": {after: map[string]string{"environments/dev/x.json": "->nowhere.json", "y.yaml": "->nowhere"}},
		"a folder like a data file": {
			before: map[string]string{"data/readme.txt": ""},
			after:  map[string]string{"environments/dev/x.json": "->../../data", "y.yaml": "->data"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			platform, warm, cold := t.TempDir(), t.TempDir(), t.TempDir()
			if err := os.CopyFS(platform, os.DirFS("../testdata/platform")); err != nil {
				t.Fatal(err)
			}
			put := func(files map[string]string) {
				for p, text := range files {
					at := filepath.Join(platform, filepath.FromSlash(p))
					if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
						t.Fatal(err)
					}
					_ = os.Remove(at)
					var err error
					if len(text) > 2 && text[:2] == "->" {
						err = os.Symlink(filepath.FromSlash(text[2:]), at)
					} else {
						err = os.WriteFile(at, []byte(text), 0o666)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if c.language != "" {
				put(map[string]string{"cue.mod/module.cue": "module: \"platform.example/platform@v0\"\nlanguage: version: \"" + c.language + "\"\ndeps: {\"ext.example/lib@v0\": v: \"v0.1.0\", \"kalypso.io@v0\": v: \"v0.1.0\"}\n"})
			}
			put(c.before)
			remembering, err := cache.Open(cache.Options{Dir: filepath.Join(t.TempDir(), "cache")})
			if err != nil {
				t.Fatal(err)
			}
			defer remembering.Close()
			build := func(c *cache.Cache, out string) string {
				b, _, err := compiler.Write(t.Context(), compiler.Request{Dir: platform, Cache: c}, compiler.Output{Dir: out})
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(b.Diagnostics)
			}
			if said := build(remembering, warm); said != "[]" {
				t.Fatalf("before: %s", said)
			}
			build(nil, cold)
			put(c.after)
			got, want := build(remembering, warm), build(nil, cold)
			if got != want {
				t.Errorf("said is\n%s\nwant\n%s", got, want)
			}
			sameOutput(t, files(t, warm), files(t, cold))
			if len(c.before) == 0 && want != "[]" {
				t.Errorf("what is no part of the platform is wrong: %s", want)
			}
		})
	}
}
