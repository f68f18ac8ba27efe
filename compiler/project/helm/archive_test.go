package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
)

func TestArchives(t *testing.T) {
	plain := tar.Header{Name: "app/Chart.yaml", Typeflag: tar.TypeReg, Mode: 0o644}
	entry := func(name string, kind byte) tar.Header {
		return tar.Header{Name: name, Typeflag: kind, Linkname: "/etc/hostname", Mode: 0o644}
	}
	nested := func(depth int) []byte {
		archive := packed(t, chartYAML)
		for range depth {
			archive = commandtest.Archive(t, map[string][]byte{"Chart.yaml": []byte("name: app\nversion: 1.0.0\n"), "charts/app.tgz": archive})
		}
		return archive
	}
	zeros := gzipped(t, maxUnpacked+1)
	many := make([]tar.Header, maxEntries+1)
	for i := range many {
		many[i] = entry(fmt.Sprintf("app/%d", i), tar.TypeReg)
	}
	for _, c := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"empty", nil, "it is no gzip archive"},
		{"text", []byte("apiVersion: v2\n"), "it is no gzip archive"},
		{"cut short", packed(t, chartYAML+configMap(strings.Repeat("x", 9999)))[:100], "unexpected EOF"},
		{"symlink", commandtest.Tar(t, []tar.Header{plain, entry("app/values.yaml", tar.TypeSymlink)}, nil), "app/values.yaml is a link"},
		{"hard link", commandtest.Tar(t, []tar.Header{plain, entry("app/values.yaml", tar.TypeLink)}, nil), "app/values.yaml is a link"},
		{"device", commandtest.Tar(t, []tar.Header{plain, entry("app/null", tar.TypeChar)}, nil), "app/null is no plain file"},
		{"pipe", commandtest.Tar(t, []tar.Header{plain, entry("app/fifo", tar.TypeFifo)}, nil), "app/fifo is no plain file"},
		{"up", commandtest.Tar(t, []tar.Header{plain, entry("app/../../etc/passwd", tar.TypeReg)}, nil), "chart illegally"},
		{"absolute", commandtest.Tar(t, []tar.Header{plain, entry("app//etc/passwd", tar.TypeReg)}, nil), "absolute paths"},
		{"drive", commandtest.Tar(t, []tar.Header{plain, entry(`app\c:\x`, tar.TypeReg)}, nil), "illegally named files"},
		{"zeros", zeros, "it is larger than 256 MiB when unpacked"},
		{"zeros in a dependency", commandtest.Archive(t, map[string][]byte{"charts/a.tgz": zeros}), "it is larger than 256 MiB when unpacked"},
		{"many files", commandtest.Tar(t, many, nil), "it has more than 100000 files"},
		{"nested", nested(20), "nests more than 16 archives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if refused := refusedAs(t, Request{Chart: c.archive, ReleaseName: "demo"}, diag.BadSource); !strings.Contains(refused.Message, c.want) {
				t.Errorf("%s\nwant %s", refused.Message, c.want)
			}
		})
	}
	if _, err := Render(Request{Chart: nested(10), ReleaseName: "demo"}); err != nil {
		t.Error(err)
	}
}

// gzipped returns a tar archive with one file of zeros.
func gzipped(t *testing.T, size int64) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	tw := tar.NewWriter(zw)
	if err := tw.WriteHeader(&tar.Header{Name: "app/zeros", Typeflag: tar.TypeReg, Size: size, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for left := size; left > 0; left -= int64(len(zeros)) {
		if _, err := tw.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// A chart of files renders as its archive does, without the files that .helmignore lists.
func TestFolder(t *testing.T) {
	for _, file := range examples(t) {
		e := readExample(t, file)
		want, err := Render(e.Request)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := loader.LoadArchiveFiles(bytes.NewReader(e.Chart))
		if err != nil {
			t.Fatal(err)
		}
		e.Chart, e.Files = nil, map[string][]byte{
			"templates/.hidden.yaml":     []byte(`{{ fail "hidden" }}`),
			"templates/no/ignored.yaml":  []byte(`{{ fail "ignored folder" }}`),
			"templates/ignored.out.yaml": []byte(`{{ fail "ignored" }}`),
		}
		for _, f := range unpacked {
			e.Files[f.Name] = f.Data
		}
		e.Files[".helmignore"] = []byte("*.out.yaml\nno/\n")
		e.Files["Chart.yaml"] = append([]byte("\xef\xbb\xbf"), e.Files["Chart.yaml"]...)
		got, err := Render(e.Request)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%v\nwant\n%v", file, err, got, want)
		}
	}
}

func TestRefusedFolders(t *testing.T) {
	aliases := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		aliases += fmt.Sprintf("%c: &%[1]c [*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c]\n", 'b'+i, 'a'+i)
	}
	for _, c := range []struct {
		name, file, text, want string
		code                   diag.Code
	}{
		{"zeros in a dependency", "charts/a.tgz", string(gzipped(t, maxUnpacked+1)), "it is larger than 256 MiB when unpacked", diag.BadSource},
		{"aliases", "charts/a/values.yaml", aliases, "charts/a/values.yaml", diag.Unbounded},
		{"a large file", "large", strings.Repeat("x", 5<<20+1), "large is larger than 5 MiB", diag.BadSource},
		{"rules", ".helmignore", "a/**\n", ".helmignore: double-star", diag.BadSource},
		{"no chart", "Chart.yaml", "[", "cannot load Chart.yaml", diag.BadSource},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Request{ReleaseName: "demo", Files: map[string][]byte{"Chart.yaml": []byte("apiVersion: v2\nname: app\nversion: 1.0.0\n")}}
			r.Files[c.file] = []byte(c.text)
			if refused := refusedAs(t, r, c.code); !strings.Contains(refused.Message, c.want) {
				t.Errorf("%s\nwant %s", refused.Message, c.want)
			}
		})
	}
}

// FuzzArchive: no archive panics, whatever Helm makes of it.
func FuzzArchive(f *testing.F) {
	for _, file := range examples(f) {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(commandtest.Chart(f, a, "chart/"))
	}
	f.Add(packed(f, chartYAML))
	f.Fuzz(func(t *testing.T, archive []byte) {
		if files, err := chartFiles(Request{Chart: archive}); err == nil {
			_, _ = load(files)
		}
	})
}
