package commandtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Chart returns the archive of a chart with the files of a txtar archive below prefix. A folder
// whose name ends in .tgz becomes an archive in the chart.
func Chart(t testing.TB, a *txtar.Archive, prefix string) []byte {
	t.Helper()
	files := map[string][]byte{}
	nested := map[string]bool{}
	for _, f := range a.Files {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok {
			continue
		}
		if archive, _, ok := strings.Cut(name, ".tgz/"); ok {
			nested[archive+".tgz"] = true
			continue
		}
		files[name] = f.Data
	}
	for name := range nested {
		files[name] = Chart(t, a, prefix+name+"/")
	}
	return Archive(t, files)
}

// Archive returns a chart's archive of files.
func Archive(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	var headers []tar.Header
	var data [][]byte
	for _, name := range names {
		headers = append(headers, tar.Header{Name: "chart/" + name, Typeflag: tar.TypeReg, Mode: 0o644,
			Size: int64(len(files[name]))})
		data = append(data, files[name])
	}
	return Tar(t, headers, data)
}

// Tar returns a gzipped tar archive with these entries.
func Tar(t testing.TB, headers []tar.Header, data [][]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for i := range headers {
		if err := tw.WriteHeader(&headers[i]); err != nil {
			t.Fatal(err)
		}
		if i < len(data) {
			if _, err := tw.Write(data[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
