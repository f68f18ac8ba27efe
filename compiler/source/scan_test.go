package source

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/load"

	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// digestOf opens a platform and scans the sources of an environment, or of the base.
func digestOf(t *testing.T, root, environment string) Digest {
	t.Helper()
	p, _, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Sources(environment, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Digest()
}

// change writes a file; a text that begins with "->" is a link, and "" removes it.
func change(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if text == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	var err error
	if to, isLink := strings.CutPrefix(text, "->"); isLink {
		err = os.Symlink(to, path)
	} else {
		err = os.WriteFile(path, []byte(text), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func manyKinds(t *testing.T) string {
	t.Helper()
	return write(t, map[string]string{
		"platform.cue":                             "package platform\n",
		"embedding.cue":                            "@extern(embed)\npackage platform\n\n_file: _ @embed(file=data/a.json)\n_glob: _ @embed(glob=data/*.yaml)\n",
		"data/a.json":                              "{}",
		"data/b.yaml":                              "b: 1",
		"data/c.txt":                               "c",
		"environments/dev/a.cue":                   "package platform\n\nimport (\n\t\"test.example/platform/lib/deep:helper\"\n\t\"vendored.example/x\"\n\t\"vendored.example/y@v1:y\"\n\t\"strings\"\n)\n",
		"environments/prod/a.cue":                  "package platform\n",
		"lib/deep/helper.cue":                      "package helper\n\nimport \"test.example/platform/more\"\n",
		"lib/deep/other.cue":                       "package other\n",
		"lib/above.cue":                            "package helper\n",
		"lib/beside.cue":                           "package lib\n",
		"more/more.cue":                            "@extern(embed)\npackage more\n\nx: _ @embed(file=x.json)\n",
		"more/x.json":                              "{}",
		"unused/unused.cue":                        "package unused\n",
		"cue.mod/pkg/vendored.example/x/x.cue":     "package x\n\nimport \"again.example/z\"\n",
		"cue.mod/usr/vendored.example/x/more.cue":  "package x\n",
		"cue.mod/gen/again.example/z/z.cue":        "package z\n",
		"cue.mod/pkg/vendored.example/y/y.cue":     "package y\n",
		"cue.mod/pkg/vendored.example/never/n.cue": "package never\n",
		"README.md":                                "x",
	})
}

func TestSources(t *testing.T) {
	const both, none, devOnly = "both", "none", "dev"
	for name, c := range map[string]struct {
		file, text string
		changes    string
	}{
		"a file of the environment":           {"environments/dev/a.cue", "package platform\n", devOnly},
		"a new file":                          {"environments/dev/b.cue", "package platform\n", devOnly},
		"a file that does not parse":          {"environments/dev/b.cue", "package {", devOnly},
		"a file of the base":                  {"platform.cue", "package platform\n\n// more\n", both},
		"a file between":                      {"environments/b.cue", "package platform\n", devOnly},
		"a file of another package":           {"other.cue", "package other\n", none},
		"what CUE passes over":                {"environments/dev/_b.cue", "package platform\n", none},
		"another environment":                 {"environments/prod/a.cue", "package platform\n\n// more\n", none},
		"a README":                            {"README.md", "y", none},
		"an embedded file":                    {"data/a.json", "{\"a\": 1}", both},
		"an embedded file that goes":          {"data/a.json", "", both},
		"an embedded file becomes a link":     {"data/a.json", "->b.yaml", both},
		"a file of a glob":                    {"data/b.yaml", "b: 2", both},
		"a new file of a glob":                {"data/d.yaml", "d: 1", both},
		"a file beside a glob":                {"data/c.txt", "d", none},
		"a helper package":                    {"lib/deep/helper.cue", "package helper\n", devOnly},
		"a new file of a helper package":      {"lib/deep/more.cue", "package helper\n", devOnly},
		"a file of it in a folder above":      {"lib/above.cue", "package helper\n\n// more\n", devOnly},
		"a new file of it in a folder above":  {"helper.cue", "package helper\n", devOnly},
		"another package beside it":           {"lib/deep/other.cue", "package other\n\n// more\n", none},
		"another package above it":            {"lib/beside.cue", "package lib\n\n// more\n", none},
		"what a helper package imports":       {"more/more.cue", "package more\n", devOnly},
		"what a helper package embeds":        {"more/x.json", "{\"x\": 1}", devOnly},
		"what nobody imports":                 {"unused/unused.cue", "package unused\n\n// more\n", none},
		"a vendored package":                  {"cue.mod/pkg/vendored.example/x/x.cue", "package x\n", devOnly},
		"what is added to it":                 {"cue.mod/usr/vendored.example/x/more.cue", "package x\n\n// more\n", devOnly},
		"what is newly added to it":           {"cue.mod/gen/vendored.example/x/new.cue", "package x\n", devOnly},
		"what a vendored package imports":     {"cue.mod/gen/again.example/z/z.cue", "package z\n\n// more\n", devOnly},
		"a vendored package with a version":   {"cue.mod/pkg/vendored.example/y/y.cue", "package y\n\n// more\n", devOnly},
		"a vendored package that is not used": {"cue.mod/pkg/vendored.example/never/n.cue", "package never\n\n// more\n", none},
		"the module's file":                   {"cue.mod/module.cue", moduleText + "deps: \"a.example/a@v0\": v: \"v0.1.0\"\n", both},
		"a local module's file":               {"cue.mod/local-module.cue", "deps: {}\n", both},
	} {
		t.Run(name, func(t *testing.T) {
			root := manyKinds(t)
			dev, base := digestOf(t, root, "dev"), digestOf(t, root, "")
			change(t, root, c.file, c.text)
			if got := digestOf(t, root, "dev") != dev; got != (c.changes != none) {
				t.Errorf("the environment changes: %v", got)
			}
			if got := digestOf(t, root, "") != base; got != (c.changes == both) {
				t.Errorf("the base changes: %v", got)
			}
		})
	}
}

// A folder that replaces a module is read whole.
func TestReplacedModule(t *testing.T) {
	root, other := manyKinds(t), t.TempDir()
	change(t, root, "cue.mod/local-module.cue", fmt.Sprintf("deps: \"a.example/a@v0\": replaceWith: %q\n", other))
	before := digestOf(t, root, "")
	change(t, other, "sub/a.cue", "package a\n")
	after := digestOf(t, root, "")
	if before == after {
		t.Error("a new file changes nothing")
	}
	change(t, other, "sub/a.cue", "package b\n")
	if digestOf(t, root, "") == after {
		t.Error("another text changes nothing")
	}
}

func TestImportsItself(t *testing.T) {
	root := manyKinds(t)
	for text, want := range map[string]bool{
		"package platform\n\nimport \"test.example/platform:platform\"\n":       true,
		"package platform\n\nimport \"test.example/platform@v0:platform\"\n":    true,
		"package platform\n\nimport \"test.example/platform/lib/deep:other\"\n": false,
	} {
		change(t, root, "environments/dev/a.cue", text)
		p, _, err := Open(root)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Sources("dev", nil)
		if err != nil || s.Imported != want {
			t.Errorf("%s: %v %v", text, s.Imported, err)
		}
	}
}

// loads is everything that CUE loads of a package of a platform.
func loads(t *testing.T, root, dir string) string {
	t.Helper()
	overlay, err := cuemodule.Overlay(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	inst := load.Instances([]string{"./" + dir}, &load.Config{Dir: root, ModuleRoot: root, Package: Package, Overlay: overlay, Env: []string{"CUE_REGISTRY=none"}})[0]
	lines := map[string]bool{fmt.Sprint(inst.Err): true}
	for _, inst := range append([]*build.Instance{inst}, inst.Dependencies()...) {
		lines[inst.ImportPath] = true
		for i, f := range inst.BuildFiles {
			if data, ok := f.Source.([]byte); ok {
				lines[fmt.Sprintf("%s %x", f.Filename, sha256.Sum256(data))] = true
			}
			if i < len(inst.Files) {
				for _, e := range Embeds(inst.Files[i], NewFiles(root, nil)) {
					data, err := os.ReadFile(e.Path)
					lines[fmt.Sprintf("%s %x %v", e.Path, sha256.Sum256(data), err)] = true
				}
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(lines)), "\n")
}

// If any file is changed or removed and CUE then loads something else, the digest differs.
func TestSourcesCoverWhatCUELoads(t *testing.T) {
	for _, from := range []string{"../../testdata/platform", "../../examples/hello-world", "../../examples/factory", manyKinds(t)} {
		root := t.TempDir()
		if err := os.CopyFS(root, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := Open(root)
		if err != nil {
			t.Fatal(err)
		}
		changed := 0
		for _, environment := range append(slices.Clone(p.Folders), "") {
			dir := p.Dir(environment)
			if environment == "" {
				dir = "."
			}
			before, digest := loads(t, root, dir), digestOf(t, root, environment)
			err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				name, _ := filepath.Rel(root, path)
				for what, text := range map[string]string{"more": string(data) + "\n", "gone": ""} {
					if name == filepath.Join("cue.mod", "module.cue") && what == "gone" {
						continue // no platform is left
					}
					change(t, root, filepath.ToSlash(name), text)
					if loads(t, root, dir) != before {
						changed++
						if digestOf(t, root, environment) == digest {
							t.Errorf("%s, %s %s: CUE loads something else, and the digest is the same", from, name, what)
						}
					}
				}
				change(t, root, filepath.ToSlash(name), string(data))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if changed == 0 {
			t.Errorf("%s: nothing changes what CUE loads", from)
		}
	}
}
