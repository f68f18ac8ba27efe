package helm

import (
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/kalypso-io/kalypso/compiler/project/internal/quiet"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// Pack makes the archive of a chart from the files of its folder, by their paths in it.
// Like `helm package`, it omits the files in .helmignore. Paths must be local, as in
// package archive. Two archives of the same files may differ in their times.
func Pack(files map[string][]byte) ([]byte, error) {
	defer quiet.Begin()()
	tmp, remove, err := scratch.Dir("chart")
	if err != nil {
		return nil, err
	}
	defer remove() //nolint:errcheck // the next process removes what is left
	folder := filepath.Join(tmp, "chart")
	for name, data := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return nil, err
		}
	}
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return nil, err
	}
	packed, err := chartutil.Save(chart, tmp)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(packed)
}
