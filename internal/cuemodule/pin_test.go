package cuemodule

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/mod/modfile"
)

const head = `// The platform.
module: "test.example/platform@v0"
language: version: "v0.17.0"
`

// pins are spellings of module.cue with the pin in it, and Vendor's results for them.
var pins = []struct{ name, source, want string }{
	{"chain", `deps: "kalypso.io@v0": v: "v0.1.0"`, ""},
	{"block", "deps: {\n\t\"kalypso.io@v0\": {\n\t\tv: \"v0.1.0\"\n\t}\n}", ""},
	{"default", `deps: "kalypso.io@v0": {v: "v0.1.0", default: true}`, ""},
	{"quoted", `"deps": "kalypso.io@v0": "v": "v0.1.0"`, ""},
	{"no major", `deps: "kalypso.io": v: "v0.1.0"`, ""},
	{"in two places", "deps: \"kalypso.io@v0\": v: \"v0.1.0\"\ndeps: \"kalypso.io@v0\": default: true", ""},
	{
		"among others",
		`deps: {
	// The first.
	"a.example/a@v0": v: "v0.1.0" // a
	// Ours.
	"kalypso.io@v0": v: "v0.1.0" // ours
	// The last.
	"z.example/z@v0": v: "v0.1.0" // z
	// The end.
}`,
		`deps: {
	// The first.
	"a.example/a@v0": v: "v0.1.0" // a
	// The last.
	"z.example/z@v0": v: "v0.1.0" // z

	// The end.
}
`,
	},
	{
		"one line",
		`deps: {"a.example/a@v0": v: "v0.1.0", "kalypso.io@v0": v: "v0.1.0" , "z.example/z@v0": v: "v0.1.0"}`,
		"deps: {\"a.example/a@v0\": v: \"v0.1.0\", \"z.example/z@v0\": v: \"v0.1.0\"}\n",
	},
	{
		"last on a line",
		`deps: {"a.example/a@v0": v: "v0.1.0", "kalypso.io@v0": v: "v0.1.0"}, description: "x"`,
		"deps: {\"a.example/a@v0\": v: \"v0.1.0\"}, description: \"x\"\n",
	},
	{
		"first on a line",
		`deps: {"kalypso.io@v0": v: "v0.1.0", "a.example/a@v0": v: "v0.1.0"}, description: "x"`,
		"deps: {\"a.example/a@v0\": v: \"v0.1.0\"}, description: \"x\"\n",
	},
	{
		"others of the name",
		`deps: {"kalypso.io@v1": v: "v1.0.0", "kalypso.io/x@v0": v: "v0.1.0"}, custom: "kalypso.io@v0": v: "v0.1.0"`,
		"",
	},
	{"none", "", ""},
}

func TestPinIsTakenOut(t *testing.T) {
	for _, c := range pins {
		t.Run(c.name, func(t *testing.T) {
			source := []byte(head + c.source)
			if c.source != "" {
				source = append(source, '\n')
			}
			before := parse(t, source)

			vendored, err := withoutPin(File, source)
			if err != nil {
				t.Fatal(err)
			}
			had := pinned(before)
			want := head + c.want
			if !had {
				want = string(source)
			}
			if string(vendored) != want {
				t.Errorf("vendored:\n%s\nwant:\n%s", vendored, want)
			}
			if formatted, err := format.Source(vendored); had && string(formatted) != string(vendored) {
				t.Errorf("not formatted (%v):\n%s", err, vendored)
			}

			overlaid, ok := blanked(File, source)
			if ok != had {
				t.Errorf("blanked says %t, want %t", ok, had)
			}
			checkPositions(t, source, overlaid)

			delete(before.Deps, basePath)
			delete(before.Deps, basePath+"@"+major)
			for way, text := range map[string][]byte{"vendored": vendored, "overlaid": overlaid} {
				if text == nil { // nothing to overlay
					continue
				}
				after := parse(t, text)
				if len(after.Deps) != len(before.Deps) || pinned(after) {
					t.Errorf("%s has dependencies %v, want %v", way, after.Deps, before.Deps)
				}
			}
		})
	}
}

// pinned reports whether CUE itself sees a pin in a module file.
func pinned(f *modfile.File) bool {
	for path, dep := range f.Deps {
		if path == basePath+"@"+major || path == basePath && strings.HasPrefix(dep.Version, major+".") {
			return true
		}
	}
	return false
}

func parse(t *testing.T, source []byte) *modfile.File {
	t.Helper()
	f, err := modfile.ParseNonStrict(source, File)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, source)
	}
	return f
}

// checkPositions checks that the remaining text of a file has not moved.
func checkPositions(t *testing.T, source, overlaid []byte) {
	t.Helper()
	for i, c := range overlaid {
		if c != source[i] && c != ' ' {
			t.Fatalf("byte %d became %q:\n%s", i, c, overlaid)
		}
	}
	if overlaid != nil && len(overlaid) != len(source) {
		t.Fatalf("%d bytes became %d", len(source), len(overlaid))
	}
}

// FuzzBlank checks that blanking never panics, never moves text, and never leaves a pin, for
// any module file. CUE repairs invalid UTF-8 in a module file before it parses it. Blanking
// does not do so, and CUE then reports that pin and package are ambiguous.
func FuzzBlank(f *testing.F) {
	for _, c := range pins {
		f.Add(head + c.source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		before, err := modfile.ParseNonStrict([]byte(source), File)
		if err != nil || !utf8.ValidString(source) {
			return
		}
		overlaid, ok := blanked(File, []byte(source))
		if !ok {
			overlaid = []byte(source)
		}
		checkPositions(t, []byte(source), overlaid)
		after := parse(t, overlaid)
		if pinned(after) || after.Module != before.Module {
			t.Errorf("%q became %q", source, overlaid)
		}
	})
}

func TestVendorStaysInside(t *testing.T) {
	for _, link := range []string{"cue.mod/pkg", vendorDir, vendorDir + "/schema", vendorDir + "/schema/names.cue", File} {
		t.Run(link, func(t *testing.T) {
			root, outside := t.TempDir(), t.TempDir()
			overwrite(t, filepath.Join(root, File), head)
			overwrite(t, filepath.Join(outside, "schema/foreign.cue"), "package schema\n")
			target := outside
			if strings.HasSuffix(link, ".cue") {
				target = filepath.Join(outside, "schema/foreign.cue")
			}
			remove(t, filepath.Join(root, link))
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, link)), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
				t.Skip(err)
			}
			before := list(t, outside)
			if changed, err := Vendor(root); err == nil {
				t.Errorf("followed the link and changed %v", changed)
			}
			if after := list(t, outside); after != before {
				t.Errorf("outside changed from %s to %s", before, after)
			}
		})
	}
}

func TestVendorKeepsABrokenModuleFile(t *testing.T) {
	root := t.TempDir()
	overwrite(t, filepath.Join(root, File), "module: {")
	if changed, err := Vendor(root); err == nil || changed != nil {
		t.Errorf("changed %v, error %v; want an error before any change", changed, err)
	}
	if _, err := parser.ParseFile("x", "module: {"); err == nil {
		t.Error("the test's module file is not broken")
	}
}

func TestIsOurs(t *testing.T) {
	const root = "/home/u/platform"
	ours := []string{
		root + "/cue.mod/pkg/kalypso.io/schema/names.cue",
		"cue.mod/pkg/kalypso.io/schema/names.cue",
		"./cue.mod/pkg/kalypso.io/stdlib/value/doc.cue",
		"/home/u/.cache/cue/mod/extract/kalypso.io@v0.1.0/schema/names.cue",
	}
	users := []string{
		root + "/platform.cue",
		"platform.cue",
		root + "/cue.mod/pkg/kalypso.io.example/schema/names.cue",
		root + "/schema/names.cue",
		"/home/u/.cache/cue/mod/extract/example.com/lib@v0.1.0/lib.cue",
		"/elsewhere/cue.mod/pkg/kalypso.io/schema/names.cue",
	}
	for _, file := range slices.Concat(ours, users) {
		if got, want := IsOurs(file, root), slices.Contains(ours, file); got != want {
			t.Errorf("IsOurs(%q) = %t, want %t", file, got, want)
		}
	}
}
