package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/manifest"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// The bounds of a chart's archive, together with the archives of its dependencies. Helm has its
// own bounds, but it applies them to each archive separately.
const (
	maxUnpacked = 256 << 20
	maxEntries  = 100_000
	maxNested   = 16 // archives in archives
)

var errTooMany = fmt.Errorf("it has more than %d files", maxEntries)
var errTooLarge = fmt.Errorf("it is larger than %d MiB when unpacked", maxUnpacked>>20)

// checkArchive walks through a chart's archive before Helm loads it. It returns an error if
// the archive exceeds a bound or has anything except plain files. It keeps nothing.
func checkArchive(chart []byte) error {
	b := bounds{bytes: maxUnpacked, entries: maxEntries}
	return unreadable("the chart's archive", b.walk(chart, "", 0))
}

// checkFolder checks the files of a chart's folder as checkArchive checks the files of an archive.
func checkFolder(files map[string][]byte) error {
	b := bounds{bytes: maxUnpacked, entries: maxEntries}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := b.check(name, name, files[name], 0); err != nil {
			return unreadable("the chart", err)
		}
	}
	return nil
}

// unreadable returns the error of a chart that breaks a bound, or nil if err is nil.
func unreadable(chart string, err error) error {
	if err == nil {
		return nil
	}
	if data := (*refusal.Error)(nil); errors.As(err, &data) { // of a file, which no packaging mends
		return refusal.New(data.Code, "write what is needed of the file, without aliases",
			"%s cannot be read: %v", chart, err)
	}
	return refusal.New(diag.BadSource, "package the chart again with helm package",
		"%s cannot be read: %v", chart, err)
}

// bounds are the bytes and entries that an archive may still have. The archives inside it share
// them.
type bounds struct {
	bytes   int64
	entries int
}

func (b *bounds) walk(archive []byte, within string, depth int) error {
	if depth > maxNested {
		return fmt.Errorf("%s nests more than %d archives", within, maxNested)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return fmt.Errorf("%sit is no gzip archive: %w", prefix(within), err)
	}
	// The bound applies to the unpacked bytes, so padding counts as well.
	tr := tar.NewReader(&countingReader{unzipped, b})
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s%w", prefix(within), err)
		}
		if b.entries--; b.entries < 0 {
			return errTooMany
		}
		name := path.Join(within, h.Name)
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
		case tar.TypeSymlink, tar.TypeLink:
			return fmt.Errorf("%s is a link, which Helm reads as an empty file", name)
		default:
			return fmt.Errorf("%s is no plain file", name)
		}
		if h.Typeflag != tar.TypeReg || !isDependency(h.Name) && !isData(h.Name) {
			continue
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := b.check(h.Name, name, data, depth); err != nil {
			return err
		}
	}
}

// check checks a file that Helm reads while it loads a chart. name is its path in the chart, shown
// its path in messages.
func (b *bounds) check(name, shown string, data []byte, depth int) error {
	switch {
	case isData(name):
		return manifest.Check(shown, data)
	case isDependency(name):
		return b.walk(data, shown, depth+1)
	}
	return nil
}

// isData reports whether Helm reads a file as YAML while it loads a chart.
func isData(name string) bool {
	switch path.Base(strings.ReplaceAll(name, `\`, "/")) {
	case "Chart.yaml", "Chart.lock", "values.yaml", "requirements.yaml", "requirements.lock":
		return true
	}
	return false
}

// isDependency reports whether a file is the archive of a dependency for Helm's loader. The
// loader ignores names that begin with . and _.
func isDependency(name string) bool {
	dir, base := path.Split(strings.ReplaceAll(name, `\`, "/"))
	return path.Ext(base) == ".tgz" &&
		path.Base(path.Clean(dir)) == "charts" && strings.IndexAny(base, "_.") != 0
}

func prefix(within string) string {
	if within == "" {
		return ""
	}
	return within + ": "
}

// countingReader fails once more was read than the bounds leave.
type countingReader struct {
	io.Reader
	left *bounds
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.left.bytes -= int64(n); c.left.bytes < 0 {
		return 0, errTooLarge
	}
	return n, err
}
