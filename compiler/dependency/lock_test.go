package dependency

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

var (
	commit = strings.Repeat("0123456789", 4)
	digest = Digest("sha256:" + strings.Repeat("01234567", 8))
)

// sample has an entry of each kind, sorted.
func sample() []Entry {
	return []Entry{
		{Source{Kind: Chart, URL: "https://charts.example.com", Chart: "podinfo", Version: ">=1.2 <2"}, "1.9.0", digest, 2048},
		{Source{Kind: Chart, URL: "oci://registry.example.com/charts/podinfo", Version: "6.5.4"}, "6.5.4", digest, 2048},
		{Source{Kind: Git, URL: "https://git.example.com/app", Commit: commit}, commit, digest, 10240},
		{Source{Kind: Git, URL: "https://git.example.com/app", Branch: "main"}, commit, digest, 10240},
		{Source{Kind: Module, URL: "example.com/base@v1", Version: "v1.2.3"}, "v1.2.3", digest, 300},
		{Source{Kind: OCI, URL: "oci://registry.example.com/manifests", Semver: "1.x"}, string(digest), digest, 512},
	}
}

func TestWriteAndRead(t *testing.T) {
	root := t.TempDir()
	want := sample()
	shuffled := slices.Clone(want)
	slices.Reverse(shuffled)
	must(t, NewLock(append(shuffled, want[0])).Write(root))
	l, ds, err := ReadLock(root)
	if err != nil || len(ds) > 0 || !slices.Equal(l.Sources, want) {
		t.Fatalf("%v, %v, %v", l, ds, err)
	}
	for _, e := range want {
		if got, ok := l.Find(e.Source); !ok || got != e {
			t.Errorf("%v: %v, %t", e.Source, got, ok)
		}
		other := e.Source
		other.URL += "/other"
		if _, ok := l.Find(other); ok {
			t.Errorf("%v is there", other)
		}
	}
}

func TestFormat(t *testing.T) {
	const want = `{
  "apiVersion": "kalypso.io/v1alpha1",
  "kind": "Lock",
  "sources": [
    {
      "kind": "chart",
      "url": "https://charts.example.com",
      "chart": "podinfo",
      "version": ">=1.2 <2",
      "revision": "1.9.0",
      "content": "sha256:0123456701234567012345670123456701234567012345670123456701234567",
      "size": 2048
    }
  ]
}
`
	got, err := NewLock(sample()[:1]).encode()
	if err != nil || string(got) != want {
		t.Errorf("%v, got:\n%s", err, got)
	}
	empty, err := (&Lock{}).encode()
	if want := "{\n  \"apiVersion\": \"kalypso.io/v1alpha1\",\n  \"kind\": \"Lock\",\n  \"sources\": []\n}\n"; err != nil || string(empty) != want {
		t.Errorf("%v, got:\n%s", err, empty)
	}
}

func TestNoFile(t *testing.T) {
	l, ds, err := ReadLock(t.TempDir())
	if err != nil || len(ds) > 0 || len(l.Sources) > 0 {
		t.Errorf("%v, %v, %v", l, ds, err)
	}
	if _, ok := l.Find(sample()[0].Source); ok {
		t.Error("an empty lock has an entry")
	}
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, FileName), 0o777))
	if _, _, err := ReadLock(root); err == nil {
		t.Error("a folder is read")
	}
}

// Entries that are in the lock already are not touched.
func TestWriteEqual(t *testing.T) {
	root := t.TempDir()
	name := filepath.Join(root, FileName)
	l := NewLock(sample())
	must(t, l.Write(root))
	before, err := os.Stat(name)
	must(t, err)
	must(t, l.Write(root))
	after, err := os.Stat(name)
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("an equal lock is written again")
	}
	must(t, NewLock(sample()[1:]).Write(root))
	files, err := os.ReadDir(root)
	must(t, err)
	if changed, err := os.Stat(name); err != nil || os.SameFile(before, changed) || len(files) != 1 || changed.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", err, files)
	}
	if err := l.Write(filepath.Join(root, "missing")); err == nil {
		t.Error("it is written nowhere")
	}
}

// file is a lock with one source, which has these fields.
func file(fields string) string {
	return "{\n\"apiVersion\": \"kalypso.io/v1alpha1\", \"kind\": \"Lock\",\n\"sources\": [\n{" + fields + "}\n]\n}\n"
}

// gitFields are the fields of a sound source, with others instead of some.
func gitFields(replace ...string) string {
	fields := []string{
		`"kind": "git"`, `"url": "https://example.com/a"`, `"branch": "main"`,
		fmt.Sprintf(`"revision": %q`, commit), fmt.Sprintf(`"content": %q`, digest), `"size": 1`,
	}
	for _, r := range replace {
		name, _, _ := strings.Cut(r, ":")
		i := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, name+":") })
		if i < 0 {
			fields = append(fields, r)
		} else {
			fields[i] = r
		}
	}
	return strings.Join(fields, ",\n")
}

func TestReadBad(t *testing.T) {
	whole, err := NewLock(sample()).encode()
	must(t, err)
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"empty":            {"", "1:1 kalypso.lock is not valid JSON: it ends too early"},
		"cut":              {string(whole[:60]), "kalypso.lock is not valid JSON: it ends too early"},
		"no JSON":          {"{\n  sources: 1}", "2:3 kalypso.lock is not valid JSON: invalid character 's'"},
		"more":             {string(whole) + "{}", "56:1 kalypso.lock is not valid JSON: there is more after it"},
		"a list":           {"[]", "1:1 kalypso.lock is not an object"},
		"deep":             {strings.Repeat("[", 100_000), "1:10 kalypso.lock is not valid JSON: it is nested too deeply"},
		"conflict":         {"{\n<<<<<<< HEAD\n  \"a\": 1\n=======\n>>>>>>> b\n", "2:1 kalypso.lock has a merge conflict"},
		"no version":       {`{"kind": "Lock", "sources": []}`, `1:1 kalypso.lock does not have the apiVersion "kalypso.io/v1alpha1"`},
		"newer":            {`{"apiVersion": "kalypso.io/v2", "extra": 1}`, `1:16 kalypso.lock has the apiVersion "kalypso.io/v2", and this kalypso reads "kalypso.io/v1alpha1"`},
		"other kind":       {`{"apiVersion": "kalypso.io/v1alpha1", "kind": "Workload", "sources": []}`, `1:47 kalypso.lock is not of the kind "Lock"`},
		"no sources":       {`{"apiVersion": "kalypso.io/v1alpha1", "kind": "Lock"}`, `1:1 kalypso.lock has no sources`},
		"sources no list":  {`{"apiVersion": "kalypso.io/v1alpha1", "kind": "Lock", "sources": {}}`, `1:66 sources is not a list`},
		"unknown field":    {`{"apiVersion": "kalypso.io/v1alpha1", "kind": "Lock", "sources": [], "more": 1}`, `1:70 kalypso.lock has no field "more"`},
		"source no object": {`{"apiVersion": "kalypso.io/v1alpha1", "kind": "Lock", "sources": [null]}`, `1:67 a source is not an object`},
		"field twice":      {file(gitFields(`"x": 1, "branch"` + `: "b"`)), `the field "branch" is there twice`},
		"source twice":     {file(gitFields() + "},\n{" + gitFields()), "10:1 kalypso.lock has git https://example.com/a branch main twice"},
		"unknown in it":    {file(gitFields(`"brunch": "main"`)), `10:1 a source has no field "brunch"`},
		"number as text":   {file(gitFields(`"branch": 7`)), `6:11 branch is not a text of one line`},
		"line break":       {file(gitFields(`"branch": "a\nb"`)), `6:11 branch is not a text of one line`},
		"size":             {file(gitFields(`"size": -1`)), `9:9 size is not a number of bytes`},
		"size too large":   {file(gitFields(`"size": 1e99`)), `9:9 size is not a number of bytes`},
		"unknown kind":     {file(gitFields(`"kind": "svn"`)), `4:10 kind is "svn", and not git, chart, oci or module`},
		"no url":           {file(gitFields(`"url": ""`)), `5:8 a source has no url`},
		"two revisions":    {file(gitFields(`"tag": "a"`)), `4:1 a source of the kind git has not exactly one of: branch, tag, semver, commit`},
		"version of git":   {file(gitFields(`"version": "1"`)), `10:12 a source of the kind git has no version`},
		"chart of git":     {file(gitFields(`"chart": "a"`)), `10:10 chart is the name of a chart`},
		"short commit":     {file(gitFields(`"revision": "0123456"`)), `7:13 revision is not the full id of a commit`},
		"option":           {file(gitFields(`"revision": "--upload-pack=x"`)), `7:13 revision is not the full id of a commit`},
		"another commit":   {file(gitFields(`"branch": ""`, `"commit": "x"`)), `7:13 revision is not what is asked for, x`},
		"digest":           {file(gitFields(`"content": "sha256:../../etc/passwd"`)), `8:12 content is not sha256: and 64 hexadecimal digits`},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			must(t, os.WriteFile(filepath.Join(root, FileName), []byte(c.text), 0o666))
			l, ds, err := ReadLock(root)
			must(t, err)
			if len(ds) == 0 {
				t.Fatal("no diagnostic")
			}
			d := ds[0]
			at := d.Sites[0].Position
			got := fmt.Sprintf("%d:%d %s", at.Line, at.Column, d.Message)
			if !strings.Contains(got, c.want) || at.File != FileName || d.Code != diag.BadLock || d.Hint == "" {
				t.Errorf("%s\n  hint: %s\nwant %s", got, d.Hint, c.want)
			}
			if name != "source twice" && name != "unknown field" && len(l.Sources) > 0 {
				t.Errorf("%v", l.Sources)
			}
		})
	}
}

// All errors are reported, and sound entries are there.
func TestReadGoesOn(t *testing.T) {
	l, ds := parse([]byte(file(gitFields(`"revision": "x"`, `"content": "y"`) + "},\n{" + gitFields())))
	if len(ds) != 2 || len(l.Sources) != 1 {
		t.Errorf("%v, %v", ds, l.Sources)
	}
}

func TestReadTooLarge(t *testing.T) {
	root := t.TempDir()
	name := filepath.Join(root, FileName)
	must(t, os.WriteFile(name, nil, 0o666), os.Truncate(name, 1<<40))
	_, ds, err := ReadLock(root)
	if err != nil || len(ds) != 1 || !strings.Contains(ds[0].Message, "has more than") {
		t.Errorf("%v, %v", ds, err)
	}
}

func TestSourceOf(t *testing.T) {
	git := &model.Git{Repo: "https://example.com/a", Branch: "b", Path: "./x", SecretRef: "s"}
	artifact := &model.OCI{URL: "oci://example.com/a", Digest: string(digest), Path: "./x"}
	for name, c := range map[string]struct {
		m    model.Manifests
		want Source
	}{
		"git":           {model.Manifests{Git: git}, Source{Kind: Git, URL: "https://example.com/a", Branch: "b"}},
		"oci":           {model.Manifests{OCI: artifact}, Source{Kind: OCI, URL: "oci://example.com/a", Digest: string(digest)}},
		"chart":         {model.Manifests{Helm: &model.Helm{Repo: "https://example.com", Chart: "c", Version: "1.x"}}, Source{Kind: Chart, URL: "https://example.com", Chart: "c", Version: "1.x"}},
		"oci chart":     {model.Manifests{Helm: &model.Helm{OCI: "oci://example.com/c", Version: "1"}}, Source{Kind: Chart, URL: "oci://example.com/c", Version: "1"}},
		"named chart":   {model.Manifests{Helm: &model.Helm{OCI: "oci://example.com/a", Chart: "c", Version: "1"}}, Source{Kind: Chart, URL: "oci://example.com/a/c", Version: "1"}},
		"kustomize":     {model.Manifests{Kustomize: &model.Kustomize{Git: git}}, Source{Kind: Git, URL: "https://example.com/a", Branch: "b"}},
		"kustomize oci": {model.Manifests{Kustomize: &model.Kustomize{OCI: artifact}}, Source{Kind: OCI, URL: "oci://example.com/a", Digest: string(digest)}},
		"ansible":       {model.Manifests{Ansible: &model.Playbook{Git: git}}, Source{Kind: Git, URL: "https://example.com/a", Branch: "b"}},
		"package":       {model.Manifests{Package: &model.Package{}}, Source{}},
		"none":          {model.Manifests{}, Source{}},
	} {
		if got, ok := SourceOf(c.m); got != c.want || ok != (c.want != Source{}) {
			t.Errorf("%s: %v, %t", name, got, ok)
		}
	}
}

func TestString(t *testing.T) {
	for want, s := range map[string]Source{
		"git https://example.com/a branch main":            {Kind: Git, URL: "https://example.com/a", Branch: "main"},
		"git git@example.com:a semver 1.x":                 {Kind: Git, URL: "git@example.com:a", Semver: "1.x"},
		"git ssh://git@example.com/a tag v1":               {Kind: Git, URL: "ssh://git@example.com/a", Tag: "v1"},
		"git https://example.com/a commit 01":              {Kind: Git, URL: "https://user:secret@example.com/a", Commit: "01"},
		"chart podinfo >=1.2 <2 of https://example.com":    {Kind: Chart, URL: "https://:secret@example.com", Chart: "podinfo", Version: ">=1.2 <2"},
		"chart oci://example.com/c 1.2.3":                  {Kind: Chart, URL: "oci://example.com/c", Version: "1.2.3"},
		"oci oci://example.com/a digest " + string(digest): {Kind: OCI, URL: "oci://example.com/a", Digest: string(digest)},
		"module example.com/base@v1 v1.2.3":                {Kind: Module, URL: "example.com/base@v1", Version: "v1.2.3"},
	} {
		if got := s.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Whatever the file contains, nothing panics, and each error has a position in it. The
// parsed lock stays the same when it is written and read again.
func FuzzRead(f *testing.F) {
	whole, err := NewLock(sample()).encode()
	must(f, err)
	f.Add(whole)
	f.Add(whole[:200])
	f.Add([]byte(file(gitFields(`"brunch": 1`))))
	f.Add([]byte("<<<<<<< a\n=======\n>>>>>>> b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, ds := parse(data)
		for _, d := range ds {
			at := d.Sites[0].Position
			if lines := strings.Split(string(data), "\n"); at.Line > len(lines) || at.Column > len(lines[at.Line-1])+1 || at.Line < 1 || at.Column < 1 {
				t.Errorf("%v is not in the file: %s", at, d.Message)
			}
		}
		text, err := l.encode()
		must(t, err)
		again, ds := parse(text)
		if len(ds) > 0 || !slices.Equal(again.Sources, l.Sources) {
			t.Errorf("%v, got %v, want %v", ds, again.Sources, l.Sources)
		}
	})
}

// A lock with the earlier name of apiVersion can be read, and is written again with the
// present name.
func TestOlder(t *testing.T) {
	root := t.TempDir()
	name := filepath.Join(root, FileName)
	text := `{"apiVersion": "kalypso.io/v1", "kind": "Lock", "sources": []}`
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	l, ds, err := ReadLock(root)
	if err != nil || len(ds) > 0 {
		t.Fatal(err, ds)
	}
	if err := l.Write(root); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(name); err != nil || !strings.Contains(string(now), `"apiVersion": "kalypso.io/v1alpha1"`) {
		t.Errorf("%s, %v", now, err)
	}
}
