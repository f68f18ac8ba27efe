package oci

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// The media types of an entry.
const (
	// ArtifactType is the artifact type of an entry's manifest.
	ArtifactType = "application/vnd.kalypso.cache.v1"
	// DataType is the media type of an entry's only layer.
	DataType = "application/vnd.kalypso.cache.data.v1"

	manifestType = ocispec.MediaTypeImageManifest
)

// KeyAnnotation is the annotation of a manifest that holds the entry's key.
const KeyAnnotation = "io.kalypso.cache.key"

// The maximum sizes, in bytes: if a registry sends more, the result is an error, and
// memory is not exhausted.
const (
	maxManifest = 1 << 20
	maxData     = 1 << 30
)

// plainKey matches the keys whose tag has dashes instead of slashes. No such key has a dash or an
// underscore, so their tags differ from each other, and from the tags of hashes.
var plainKey = lazyregexp.New(`^[a-z0-9][a-z0-9/]{0,127}$`)

// tagOf returns the tag of a key, which the distribution specification limits to
// [a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}. Other keys are hashed.
func tagOf(key string) string {
	if plainKey.MatchString(key) {
		return strings.ReplaceAll(key, "/", "-")
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256_" + hex.EncodeToString(sum[:])
}

// newManifest returns the manifest of an entry. Equal entries have equal manifests: a manifest
// contains no time.
func newManifest(key string, layer ocispec.Descriptor) ([]byte, error) {
	return json.Marshal(ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    manifestType,
		ArtifactType: ArtifactType,
		Config:       emptyConfig(),
		Layers:       []ocispec.Descriptor{layer},
		Annotations:  map[string]string{KeyAnnotation: key},
	})
}

// emptyConfig returns the descriptor of the empty config, without its content.
func emptyConfig() ocispec.Descriptor {
	empty := ocispec.DescriptorEmptyJSON
	empty.Data = nil
	return empty
}

// layerOf returns the descriptor of data as a layer.
func layerOf(data []byte) ocispec.Descriptor {
	return content.NewDescriptorFromBytes(DataType,
		data)
}

// errForeign is the error for a tag with other content.
var errForeign = errors.New(
	"it is no entry of kalypso's cache (delete the tag if nothing else needs it)")

// parseManifest returns the layer of a manifest, which is not trusted. The descriptor has
// only a size within the limits, and a SHA-256.
func parseManifest(text []byte, key string) (ocispec.Descriptor, error) {
	var m ocispec.Manifest
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&m); err != nil {
		return ocispec.Descriptor{}, errForeign
	}
	if m.SchemaVersion != 2 || m.MediaType != manifestType || m.ArtifactType != ArtifactType ||
		len(m.Layers) != 1 {
		return ocispec.Descriptor{}, errForeign
	}
	if m.Annotations[KeyAnnotation] != key {
		return ocispec.Descriptor{},
			fmt.Errorf("it holds the entry of another key, %q", m.Annotations[KeyAnnotation])
	}
	layer := m.Layers[0]
	switch {
	case layer.MediaType != DataType, layer.Digest.Validate() != nil,
		layer.Digest.Algorithm() != digest.SHA256:
		return ocispec.Descriptor{}, errForeign
	case layer.Size < 0 || layer.Size > maxData:
		return ocispec.Descriptor{},
			fmt.Errorf("an entry of %d bytes: there are at most %d", layer.Size, maxData)
	}
	return ocispec.Descriptor{MediaType: DataType, Digest: layer.Digest, Size: layer.Size}, nil
}
