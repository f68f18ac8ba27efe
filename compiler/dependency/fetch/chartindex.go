package fetch

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/internal/yamlnodes"
)

// index is the index.yaml of a chart repository
// (https://helm.sh/docs/topics/chart_repository). Charts are decoded on demand: errors in
// one do not affect the others.
type index struct{ entries map[string]yaml.Node }

// release is a version of a chart.
type release struct {
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
	Digest  string   `yaml:"digest"`
}

// maxPairs bounds the pairs of entries of one list or mapping of an index: the
// library compares each key of a mapping with all others.
const maxPairs = 1_000_000_000

// parseIndex reads an index, in YAML or JSON.
func parseIndex(text []byte) (*index, error) {
	var file struct {
		APIVersion string               `yaml:"apiVersion"`
		Entries    map[string]yaml.Node `yaml:"entries"`
	}
	docs, cost, err := yamlnodes.Parse(text)
	if err == nil && cost.Pairs > maxPairs {
		err = errors.New("it has too many entries")
	}
	if err == nil && len(docs) > 0 {
		err = docs[0].Decode(&file)
	}
	if otherTypes := (*yaml.TypeError)(nil); errors.As(err, &otherTypes) || err == nil &&
		file.APIVersion == "" {
		return nil, errors.New(
			"what is at the URL is no chart repository: its index.yaml is not one of Helm's")
	}
	if err != nil {
		return nil, fmt.Errorf("the index of the chart repository cannot be read: %w", err)
	}
	return &index{entries: file.Entries}, nil
}

// charts returns the names of all charts, sorted.
func (i *index) charts() []string { return slices.Sorted(maps.Keys(i.entries)) }

// releases returns the versions of a chart. If two versions are equal, the first counts, as
// with Helm. ok reports whether the index has the chart.
func (i *index) releases(chart string) (byVersion map[string]release, ok bool, err error) {
	node, ok := i.entries[chart]
	if !ok {
		return nil, false, nil
	}
	var all []release
	if err := node.Decode(&all); err != nil {
		return nil, true,
			fmt.Errorf("the index of the chart repository has an entry for %s that cannot be read", chart)
	}
	byVersion = map[string]release{}
	for _, r := range all {
		if _, twice := byVersion[r.Version]; !twice && r.Version != "" {
			byVersion[r.Version] = r
		}
	}
	return byVersion, true, nil
}
