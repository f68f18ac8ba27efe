package helm

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// load reads a chart that can be rendered. Rendering changes a chart, so it is
// loaded for each render.
func load(archive []byte) (*chart.Chart, error) {
	ch, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, refusal.New(diag.BadSource, "check the chart with helm lint, and package it again",
			"the chart cannot be loaded: %v", err)
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
		"run helm dependency build, and package the chart again: a build fetches nothing",
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
