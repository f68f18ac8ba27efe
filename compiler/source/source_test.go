package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/unprivileged"
)

const moduleText = "module: \"test.example/platform@v0\"\nlanguage: version: \"v0.15.0\"\n"

// write makes a platform's folder of files; a text that begins with "->" is a
// link.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	if _, given := files["cue.mod/module.cue"]; !given {
		files["cue.mod/module.cue"] = moduleText
	}
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if to, isLink := strings.CutPrefix(text, "->"); isLink {
			if err := os.Symlink(to, path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestOpen(t *testing.T) {
	const platform = "package platform\n"
	for name, c := range map[string]struct {
		files   map[string]string
		folders string // of environments
		found   string // codes and places
		hides   string // the environments of dev, prod and other with a file that is not loaded
	}{
		"plain":                             {map[string]string{"a.cue": platform, "environments/dev/a.cue": platform, "environments/prod/a.cue": platform}, "dev prod", "", ""},
		"no environment has a folder":       {map[string]string{"a.cue": platform}, "", "", ""},
		"a folder without CUE":              {map[string]string{"a.cue": platform, "environments/dev/README": "x"}, "", "", ""},
		"another package":                   {map[string]string{"a.cue": platform, "environments/dev/a.cue": "\npackage other\n"}, "", "K1202 environments/dev/a.cue:2:9", "dev"},
		"no package":                        {map[string]string{"a.cue": platform, "b.cue": "a: 1\n"}, "", "K1202 b.cue:1:1", "dev prod other"},
		"package _":                         {map[string]string{"a.cue": platform, "environments/dev/a.cue": "package _\n"}, "", "K1202 environments/dev/a.cue:1:9", "dev"},
		"an empty file":                     {map[string]string{"a.cue": platform, "environments/dev/a.cue": platform, "environments/dev/b.cue": ""}, "dev", "K1202 environments/dev/b.cue:1:1", "dev"},
		"a stray file":                      {map[string]string{"a.cue": platform, "teams/a/a.cue": platform}, "", "K1201 teams/a/a.cue:1:9", "dev prod other"},
		"a stray file in an environment":    {map[string]string{"a.cue": platform, "environments/dev/a/a.cue": platform}, "", "K1201 environments/dev/a/a.cue:1:9", "dev"},
		"a file beside environments":        {map[string]string{"a.cue": platform, "environments/a.cue": platform}, "", "K1201 environments/a.cue:1:9", "dev prod other"},
		"a helper package":                  {map[string]string{"a.cue": platform, "lib/a.cue": "package lib\n", "environments/dev/lib/a.cue": "package lib\n"}, "", "", ""},
		"what CUE does not look into":       {map[string]string{"a.cue": platform, "_a/a.cue": platform, ".a/a.cue": platform, "m/a.cue": platform, "m/cue.mod/module.cue": moduleText, "_b.cue": "", "b_test.cue": "", "b_tool.cue": "package x\n"}, "", "", ""},
		"a mistake after the package":       {map[string]string{"a.cue": platform, "environments/dev/a.cue": platform + "a: {"}, "dev", "", ""},
		"a mistake in the package clause":   {map[string]string{"a.cue": platform, "environments/dev/a.cue": "package 1\n"}, "dev", "", ""},
		"an environment's folder is a link": {map[string]string{"a.cue": platform, "environments/prod/a.cue": platform, "environments/dev": "->prod"}, "dev prod", "", ""},
		"a file is a link":                  {map[string]string{"a.cue": platform, "x/real.txt": platform, "environments/dev/a.cue": "->../../x/real.txt"}, "dev", "", ""},
		"another folder is a link":          {map[string]string{"a.cue": platform, "environments/dev/a.cue": platform, "linked": "->environments/dev"}, "dev", "", ""},
		"UTF-16":                            {map[string]string{"a.cue": platform, "environments/dev/a.cue": "\xff\xfep\x00a\x00"}, "dev", "", ""},
		"Latin 1":                           {map[string]string{"a.cue": platform, "environments/dev/a.cue": platform + "a: \"M\xfcnchen\"\n"}, "dev", "K1001 environments/dev/a.cue:2:6", "dev"},
		"byte order mark and CRLF":          {map[string]string{"a.cue": "\ufeffpackage platform\r\n"}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, ds, err := Open(write(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			var found, hides []string
			for _, d := range ds {
				at := d.Sites[0].Position
				found = append(found, fmt.Sprintf("%s %s:%d:%d", d.Code, at.File, at.Line, at.Column))
			}
			for _, e := range []string{"dev", "prod", "other"} {
				if p.Hides(e) {
					hides = append(hides, e)
				}
			}
			if got := strings.Join(p.Folders, " "); got != c.folders {
				t.Errorf("folders %q, want %q", got, c.folders)
			}
			if got := strings.Join(found, " "); got != c.found {
				t.Errorf("found %q, want %q", got, c.found)
			}
			if got := strings.Join(hides, " "); got != c.hides {
				t.Errorf("hides %q, want %q", got, c.hides)
			}
			if !p.HasBase() || p.Module != "test.example/platform@v0" {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestOpenFrom(t *testing.T) {
	root := write(t, map[string]string{"a.cue": "package platform\n", "environments/dev/a.cue": "package platform\n"})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, filepath.Join(root, "environments", "dev"), link, filepath.Join(link, "environments")} {
		p, ds, err := Open(dir)
		if err != nil || len(ds) > 0 || !p.HasFolder("dev") {
			t.Errorf("%s: %+v %v %v", dir, p, ds, err)
		}
	}
}

func TestOpenFails(t *testing.T) {
	var none *NotAPlatformError
	if _, _, err := Open(t.TempDir()); !errors.As(err, &none) {
		t.Errorf("no platform: %v", err)
	}
	root := write(t, map[string]string{"a.cue": "package platform\n", "b.cue": "->nowhere"})
	p, ds, err := Open(root)
	if err != nil || len(ds) != 1 || ds[0].Code != "K1002" || ds[0].Sites[0].Position.File != "b.cue" || p.Loadable("") || p.Loadable("dev") {
		t.Errorf("a broken link: %v, %v", ds, err)
	}
	if _, _, err := Open(filepath.Join(root, "a.cue")); err == nil {
		t.Error("a file is no platform")
	}
}

func TestUnreadableFile(t *testing.T) {
	if !unprivileged.Test(t) {
		return
	}
	root := write(t, map[string]string{"a.cue": "package platform\n"})
	if err := os.Chmod(filepath.Join(root, "a.cue"), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(root); !errors.Is(err, os.ErrPermission) {
		t.Errorf("an unreadable file: %v", err)
	}
}

func TestModules(t *testing.T) {
	for text, line := range map[string]int{
		"":                                 1,
		"language: version: \"v0.15.0\"\n": 1,
		"module: \"a.example/a@v0\"\n":     1,
		"module: \"a.example/a@v0\"\nlanguage: version \"v0.15.0\"\n": 2,
	} {
		p, ds, err := Open(write(t, map[string]string{"cue.mod/module.cue": text, "a.cue": "package platform\n"}))
		if err != nil {
			t.Fatal(err)
		}
		if p.Module != "" || len(ds) != 1 || ds[0].Code != "K1005" || ds[0].Sites[0].Position.Line != line {
			t.Errorf("%q: %+v", text, ds)
		}
	}
}
