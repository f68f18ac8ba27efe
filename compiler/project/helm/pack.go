package helm

import (
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/compiler/project/internal/quiet"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// Version returns the version in a Chart.yaml. It returns "" if the file has no version.
func Version(data []byte) string {
	var metadata chart.Metadata
	if yaml.Unmarshal(data, &metadata) != nil {
		return ""
	}
	return metadata.Version
}

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
	loaded, err := loader.LoadDir(folder)
	if err != nil {
		return nil, err
	}
	packed, err := chartutil.Save(loaded, tmp)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(packed)
}
