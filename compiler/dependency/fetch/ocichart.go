package fetch

import (
	"context"
	"errors"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/kalypso-io/kalypso/compiler/dependency"
)

// The media types of a chart's archive (https://helm.sh/docs/topics/registries). Helm
// accepts the second one as well.
const (
	chartLayer    = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	oldChartLayer = "application/tar+gzip"
)

func isChart(mediaType string) bool { return mediaType == chartLayer || mediaType == oldChartLayer }

// chartTag returns the tag of a chart's version: a tag cannot contain a plus sign, so Helm
// writes an underscore.
func chartTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// chartVersion returns the version of a chart's tag.
func chartVersion(tag string) string { return strings.ReplaceAll(tag, "_", "+") }

// resolveChart returns the newest version of a chart that matches, and its archive.
func (r *registries) resolveChart(ctx context.Context, url, wanted string) (string, []byte, error) {
	repo, err := r.repository(url)
	if err != nil {
		return "", nil, err
	}
	version := wanted
	if _, err := strictly(wanted); err != nil {
		if version, err = r.newestChart(ctx, repo, wanted); err != nil {
			return "", nil, err
		}
	}
	_, data, err := r.pull(ctx, repo, chartTag(version), isChart)
	return version, data, err
}

func (r *registries) newestChart(ctx context.Context, repo *remote.Repository,
	wanted string) (string, error) {
	tags, err := r.tags(ctx, repo)
	if err != nil {
		return "", err
	}
	for i, tag := range tags {
		tags[i] = chartVersion(tag)
	}
	return newest(wanted, tags, strictly)
}

// fetchChart returns the archive that an entry pins. Registries keep its blob when a tag
// moves, so it is requested by its digest first.
func (r *registries) fetchChart(ctx context.Context, url string, e dependency.Entry) ([]byte,
	error) {
	repo, err := r.repository(url)
	if err != nil {
		return nil, err
	}
	data, err := r.blob(ctx, repo,
		ocispec.Descriptor{MediaType: chartLayer, Digest: digest.Digest(e.Content), Size: e.Size})
	if isMissing := (*missingError)(nil); !errors.Is(err, errdef.ErrNotFound) &&
		!errors.As(err, &isMissing) {
		return data, err
	}
	_, data, err = r.pull(ctx, repo, chartTag(e.Revision), isChart)
	return data, err
}
