package helm

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// Version returns the version in a Chart.yaml. It returns "" if the file has no version.
func Version(data []byte) string {
	var metadata chart.Metadata
	if yaml.Unmarshal(data, &metadata) != nil {
		return ""
	}
	return metadata.Version
}

// LocalDependencies returns the folders of the dependencies that a Chart.yaml names by file://,
// relative to the chart's folder, by the names of the dependencies.
func LocalDependencies(data []byte) map[string]string {
	var metadata chart.Metadata
	if yaml.Unmarshal(data, &metadata) != nil {
		return nil
	}
	out := map[string]string{}
	for _, d := range metadata.Dependencies {
		if d == nil {
			continue
		}
		if folder, local := strings.CutPrefix(d.Repository, "file://"); local && folder != "" {
			out[d.Name] = folder
		}
	}
	return out
}

// chartFiles reads the files of a request's chart, within the bounds of package helm.
func chartFiles(req Request) ([]*loader.BufferedFile, error) {
	if req.Files == nil {
		if err := checkArchive(req.Chart); err != nil {
			return nil, err
		}
		files, err := loader.LoadArchiveFiles(bytes.NewReader(req.Chart))
		return files, notLoaded(err)
	}
	if err := checkFolder(req.Files); err != nil {
		return nil, err
	}
	rules := ignore.Empty()
	if text, ok := req.Files[ignore.HelmIgnore]; ok {
		var err error
		if rules, err = ignore.Parse(bytes.NewReader(text)); err != nil {
			return nil, notLoaded(fmt.Errorf("%s: %w", ignore.HelmIgnore, err))
		}
	}
	rules.AddDefaults()
	var files []*loader.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(req.Files)) {
		if ignored(rules, name) {
			continue
		}
		data := req.Files[name]
		if len(data) > int(loader.MaxDecompressedFileSize) {
			return nil, notLoaded(fmt.Errorf("%s is larger than %d MiB", name,
				loader.MaxDecompressedFileSize>>20))
		}
		files = append(files, &loader.BufferedFile{Name: name,
			Data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))}) // as Helm does
	}
	return files, nil
}

// ignored reports whether rules exclude a file, or a folder above it.
func ignored(rules *ignore.Rules, name string) bool {
	for i, c := range name {
		if c == '/' && rules.Ignore(name[:i],
			(&tar.Header{Name: name[:i], Typeflag: tar.TypeDir}).FileInfo()) {
			return true
		}
	}
	return rules.Ignore(name, (&tar.Header{Name: name, Typeflag: tar.TypeReg}).FileInfo())
}

// notLoaded returns the error of a chart that Helm cannot load, or nil if err is nil.
func notLoaded(err error) error {
	if err == nil {
		return nil
	}
	return refusal.New(diag.BadSource, "check the chart with helm lint",
		"the chart cannot be loaded: %v", err)
}

// load reads a chart that can be rendered. Rendering changes a chart, so it is
// loaded for each render. The files stay unchanged.
func load(files []*loader.BufferedFile) (*chart.Chart, error) {
	ch, err := loader.LoadFiles(files)
	if err != nil {
		return nil, notLoaded(err)
	}
	if ch.Metadata.Type == "library" {
		return nil, refusal.New(diag.Render, "name a chart that has it among its dependencies",
			"chart %s is a library: it has templates for other charts, and makes no objects", ch.Name())
	}
	if err := checkVendored(ch); err != nil {
		return nil, err
	}
	return ch, sortDependencies(ch)
}

// checkVendored refuses a chart whose dependencies are not all in charts/. As in Helm, the
// dependencies of a dependency do not count: a dependency that is switched off may lack
// them.
func checkVendored(ch *chart.Chart) error {
	var missing []string
	for _, want := range ch.Metadata.Dependencies {
		if want != nil && !slices.ContainsFunc(ch.Dependencies(),
			func(d *chart.Chart) bool { return d.Name() == want.Name }) {
			missing = append(missing, want.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return refusal.New(diag.BadSource,
		"run helm dependency build, and package or commit the chart again: a build fetches nothing",
		"chart %s has dependencies that are not in its charts folder: %s", ch.Name(),
		strings.Join(missing, ", "))
}

// sortDependencies puts dependencies in a fixed order. Helm loads them in the order of a map,
// and their CRDs would come out in that order.
func sortDependencies(ch *chart.Chart) error {
	deps := slices.Clone(ch.Dependencies())
	slices.SortFunc(deps, func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()),
			cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	for i, d := range deps {
		if i > 0 && deps[i-1].Name() == d.Name() && deps[i-1].Metadata.Version == d.Metadata.Version &&
			!sameFiles(deps[i-1], d) {
			return refusal.New(diag.BadSource,
				"remove one of them from charts/, and package the chart again",
				"chart %s has two different dependencies named %s of version %s, of which Helm takes either",
				ch.Name(), d.Name(), d.Metadata.Version)
		}
		if err := sortDependencies(d); err != nil {
			return err
		}
	}
	ch.SetDependencies(deps...)
	return nil
}

func sameFiles(a, b *chart.Chart) bool {
	key := func(f *chart.File) string { return fmt.Sprintf("%q %s", f.Name, f.Data) }
	files := func(c *chart.Chart) []string {
		var keys []string
		for _, f := range c.Raw {
			keys = append(keys, key(f))
		}
		slices.Sort(keys)
		return keys
	}
	return slices.Equal(files(a), files(b))
}
