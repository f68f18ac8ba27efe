package application_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// folder is the content of files by path, with slashes.
type folder map[string]string

// chart is an application whose chart writes its values into a ConfigMap.
const chart = `
-- kalypso.yaml --
name: shop
manifests: {helm: {path: ./chart}}
-- chart/Chart.yaml --
apiVersion: v2
name: shop
version: 1.0.0
-- chart/values.yaml --
chart: own
-- chart/templates/it.yaml --
{{ if .Values.broken }}{{ fail "broken" }}{{ end }}
apiVersion: shop.example/v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {{ .Values | toJson }}
`

// parse returns the files of a txtar archive.
func parse(text string) folder {
	f := folder{}
	for _, file := range txtar.Parse([]byte(text)).Files {
		f[file.Name] = string(file.Data)
	}
	return f
}

// with returns the folder with other files; "-" is for one that does not exist.
func (f folder) with(other folder) folder {
	out := maps.Clone(f)
	maps.Copy(out, other)
	maps.DeleteFunc(out, func(_, text string) bool { return text == "-" })
	return out
}

// put makes a folder with these files, in the order of names.
func (f folder) put(t testing.TB, dir string, names []string) {
	t.Helper()
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(f[name]), 0o666))
	}
}

// replace makes dir a folder with these files and no others.
func (f folder) replace(t testing.TB, dir string) {
	t.Helper()
	must(t, os.RemoveAll(dir))
	f.put(t, dir, slices.Sorted(maps.Keys(f)))
}

// in returns a new folder with these files.
func (f folder) in(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "app")
	f.replace(t, dir)
	return dir
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// read returns the files of a folder, without kalypso's own.
func read(t testing.TB, dir string) folder {
	t.Helper()
	f := everything(t, dir)
	maps.DeleteFunc(f, func(name, _ string) bool { return strings.Contains(name, "/.kalypso/") })
	return f
}

// everything returns the files of a folder, with kalypso's records.
func everything(t testing.TB, dir string) folder {
	t.Helper()
	f := folder{}
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		f[filepath.ToSlash(rel)] = string(data)
		return err
	}))
	// The index is of the machine's clock, and the lock is empty.
	maps.DeleteFunc(f, func(name, _ string) bool {
		return strings.HasSuffix(name, "/.kalypso/index") || strings.HasSuffix(name, "/.kalypso/lock")
	})
	return f
}

// equal compares the content of two folders.
func equal(t testing.TB, what string, got, want folder) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want.with(got))) {
		if g, ok := got[name]; !ok || g != want[name] {
			t.Errorf("%s: %s is %q, want %q", what, name, g, want[name])
		} else if _, ok := want[name]; !ok {
			t.Errorf("%s: %s is there: %q", what, name, g)
		}
	}
}

// write writes an application's tree, and returns it and a line for each diagnostic.
func write(t testing.TB, dir, to string, environments ...string) (map[string]*tree.Changes, []string) {
	t.Helper()
	a, changes, err := application.Write(t.Context(), request(dir, environments...), application.Output{Dir: to})
	must(t, err)
	return changes, lines(a.Diagnostics)
}

// written calls write and expects no diagnostics.
func written(t testing.TB, dir, to string, environments ...string) map[string]*tree.Changes {
	t.Helper()
	changes, said := write(t, dir, to, environments...)
	if len(said) > 0 {
		t.Fatalf("%q", said)
	}
	return changes
}

// afresh returns an application's tree in a new folder.
func afresh(t *testing.T, dir string) folder {
	t.Helper()
	out := t.TempDir()
	written(t, dir, out)
	return read(t, out)
}

// below are the files in a folder of a folder.
func below(f folder, dir string) folder {
	out := maps.Clone(f)
	maps.DeleteFunc(out, func(name, _ string) bool { return !strings.HasPrefix(name, dir+"/") })
	return out
}

func request(dir string, environments ...string) application.Request {
	return application.Request{Dir: dir, Environments: environments, Store: os.DevNull}
}

// lines returns a line for each diagnostic, with its positions and targets.
func lines(ds []diag.Diagnostic) []string {
	var out []string
	for _, d := range ds {
		line := fmt.Sprintf("%s %s", d.Code, d.Message)
		for _, s := range d.Sites {
			line += fmt.Sprintf(" @%s:%d:%d", s.Position.File, s.Position.Line, s.Position.Column)
		}
		if len(d.Assignments) > 0 {
			line += " on " + strings.Join(d.Assignments, ", ")
		}
		out = append(out, line)
	}
	return out
}

// shop is an application with values and contracts at each height.
var shop = parse(chart + `
-- values.yaml --
region: none
deep: {root: root, environment: root, target: root}
list: [root, root]
-- values.cue --
region: string
level:  *"info" | string
-- environments/dev/values.yaml --
region: dev
deep: {environment: dev, target: dev}
-- environments/dev/east/values.yaml --
deep: {target: east}
list: [east]
-- environments/dev/west/values.yaml --
-- environments/prod/values.cue --
tier: *"gold" | "silver"
-- environments/prod/main/values.yaml --
region: main
tier: silver
-- environments/prod/other/values.yaml --
`)

// overlays is an application with a base and an overlay in each target.
var overlays = parse(`
-- kalypso.cue --
name: "shop"
manifests: kustomize: {}
-- base/kustomization.yaml --
resources: [it.yaml]
-- base/it.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: it}
-- environments/dev/east/kustomization.yaml --
resources: [../../../base]
namePrefix: east-
-- environments/dev/west/kustomization.yaml --
resources: [../../../base]
namePrefix: west-
`)

// many is an application with n targets in each environment, all of which have the
// version in their values.
func many(n int, version string, environments ...string) folder {
	f := parse(chart).with(folder{"values.yaml": "version: " + version + "\n"})
	for _, environment := range environments {
		for i := range n {
			f[fmt.Sprintf("environments/%s/t%03d/values.yaml", environment, i)] = fmt.Sprintf("i: %d\n", i)
		}
	}
	return f
}

// A run whose renders are all in the cache starts no worker.
func TestReuseNeedsNoWorker(t *testing.T) {
	t.Parallel()
	c, err := cache.Open(cache.Options{Dir: t.TempDir()})
	must(t, err)
	defer c.Close()
	r := request(shop.in(t))
	r.Cache = c
	first, err := application.Project(t.Context(), r)
	must(t, err)
	started := errors.New("a worker is started")
	r.Workers = worker.NewPool(1, func() (*exec.Cmd, error) { return nil, started })
	defer r.Workers.Close()
	second, err := application.Project(t.Context(), r)
	must(t, err)
	if !reflect.DeepEqual(first.Targets, second.Targets) || len(first.Targets) == 0 {
		t.Errorf("got %v, want %v", second.Targets, first.Targets)
	}
	must(t, os.WriteFile(filepath.Join(r.Dir, "chart", "values.yaml"), []byte("chart: new\n"), 0o666))
	if _, err := application.Project(t.Context(), r); !errors.Is(err, started) {
		t.Errorf("a changed chart: %v", err)
	}
}
