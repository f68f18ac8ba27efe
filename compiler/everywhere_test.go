package compiler_test

import (
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/archive"
)

// chartSource is the source that the example's lock pins. No server has it, so the example
// contains the chart in the form that `kalypso lock` and `kalypso vendor` write.
var chartSource = dependency.Source{Kind: dependency.Chart, URL: "https://charts.example.com", Chart: "weather", Version: "2.1.0"}

// TestVendoredChart compares the archive in examples/everywhere/vendor with the chart's source in
// examples/everywhere/chart. It compares the files, because two compressors may produce different
// bytes. KALYPSO_UPDATE=1 packs the chart again, and pins it.
func TestVendoredChart(t *testing.T) {
	const root = "../examples/everywhere"
	want := chartFiles(t, filepath.Join(root, "chart"))
	if os.Getenv("KALYPSO_UPDATE") != "" && !maps.EqualFunc(want, vendored(t, root), equal) {
		pinChart(t, root, want)
	}
	got := vendored(t, root)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if f, there := got[name]; !there || !equal(f, want[name]) {
			t.Errorf("%s of the chart is not what is vendored; KALYPSO_UPDATE=1 packs it anew", name)
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s is vendored, and not in the chart", name)
		}
	}
}

func equal(a, b archive.File) bool {
	return a.Executable == b.Executable && bytes.Equal(a.Data, b.Data)
}

// chartFiles returns the files of a folder as in a chart's archive, where they are in a folder
// with the chart's name.
func chartFiles(t *testing.T, dir string) map[string]archive.File {
	t.Helper()
	files := map[string]archive.File{}
	err := filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		files[chartSource.Chart+"/"+filepath.ToSlash(name)] = archive.File{Data: data}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// vendored returns the files of the chart that the lock at root pins. It reads only the vendor
// folder, and returns nil if the chart is missing there.
func vendored(t *testing.T, root string) map[string]archive.File {
	t.Helper()
	contents, ds, err := dependency.Open(root, t.TempDir())
	if err != nil || len(ds) > 0 {
		t.Fatal(err, ds)
	}
	entry, ds := contents.Entry(chartSource)
	if len(ds) > 0 {
		return nil
	}
	files, ds := contents.Tree(entry)
	if len(ds) > 0 {
		return nil
	}
	return files.Files
}

// pinChart writes the archive into the vendor folder, and writes the lock.
func pinChart(t *testing.T, root string, files map[string]archive.File) {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	if _, err := compressed.Write(archive.Pack(&archive.Tree{Files: files})); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	machine := dependency.OpenStore("", t.TempDir())
	digest, err := machine.Put(packed.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := machine.Copy([]dependency.Digest{digest}, filepath.Join(root, dependency.VendorDir)); err != nil {
		t.Fatal(err)
	}
	pinned := dependency.NewLock([]dependency.Entry{{Source: chartSource, Revision: chartSource.Version, Content: digest, Size: int64(packed.Len())}})
	if err := pinned.Write(root); err != nil {
		t.Fatal(err)
	}
}
