package publish

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/kalypso-io/kalypso/backends"
)

// The media types of an artifact. The config is Flux's own, so Flux's commands know the
// artifact (https://fluxcd.io/flux/cheatsheets/oci-artifacts). The layer has the type of an
// image's layer. Flux uses the first layer, whatever type it has. Argo CD accepts no other
// type for a tree unless its administrator allows it
// (https://argo-cd.readthedocs.io/en/stable/user-guide/oci).
const (
	ConfigType = "application/vnd.cncf.flux.config.v1+json"
	LayerType  = ocispec.MediaTypeImageLayerGzip

	manifestType = ocispec.MediaTypeImageManifest
)

// Annotations that identify a tag with an environment's tree.
const (
	PlatformAnnotation    = "io.kalypso.platform"
	EnvironmentAnnotation = "io.kalypso.environment"
	TreeAnnotation        = "io.kalypso.tree"
)

// Artifact is an environment's tree as an OCI image manifest with one layer.
type Artifact struct {
	layer, config, manifest []byte

	platform, environment string
	tree                  string
}

// Tree is git's id of the tree, as the environment's record has it.
func (a *Artifact) Tree() string { return a.tree }

// Environment returns the name of the environment whose tree it is.
func (a *Artifact) Environment() string { return a.environment }

// Digest is the digest of the artifact's manifest.
func (a *Artifact) Digest() string { return digest.FromBytes(a.manifest).String() }

func newArtifact(files []backends.File, o Options, p provenance) (*Artifact, error) {
	layer, unpacked, err := newLayer(files, o.Path)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(
		ocispec.Image{RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{unpacked}}})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   manifestType,
		Config:      content.NewDescriptorFromBytes(ConfigType, config),
		Layers:      []ocispec.Descriptor{content.NewDescriptorFromBytes(LayerType, layer)},
		Annotations: p.annotations(o),
	})
	if err != nil {
		return nil, err
	}
	return &Artifact{
		layer: layer, config: config, manifest: manifest,
		platform: p.platform, environment: p.environment, tree: string(p.tree),
	}, nil
}

// newLayer returns the files as a compressed archive below a path, and the digest of the
// archive before it was compressed. Equal files give equal bytes: entries are sorted, and
// have no owner and no time.
func newLayer(files []backends.File, at string) ([]byte, digest.Digest, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, "", err
	}
	unpacked := digest.SHA256.Digester()
	w := tar.NewWriter(io.MultiWriter(compressed, unpacked.Hash()))
	for _, e := range entries(files, at) {
		if err := w.WriteHeader(&e.header); err != nil {
			return nil, "", fmt.Errorf("%s: %w", e.header.Name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, "", fmt.Errorf("%s: %w", e.header.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	if err := compressed.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), unpacked.Digest(), nil
}

// entry is a folder or a file of an archive.
type entry struct {
	header tar.Header
	data   []byte
}

// entries returns an archive's entries, each folder before its files and folders.
func entries(files []backends.File, at string) []entry {
	var out []entry
	folders := map[string]bool{".": true}
	var folder func(string)
	folder = func(name string) {
		if folders[name] {
			return
		}
		folder(path.Dir(name))
		folders[name] = true
		out = append(out, entry{header: tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}})
	}
	for _, f := range files {
		// A path from a build is clean; for other paths, Join cleans it.
		name := strings.TrimPrefix(path.Join("/", at, path.Join("/", f.Path)), "/")
		folder(path.Dir(name))
		mode := int64(0o644)
		if f.Executable {
			mode = 0o755
		}
		out = append(out,
			entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(f.Data))},
				f.Data})
	}
	slices.SortFunc(out,
		func(a, b entry) int { return cmp.Compare(sortKey(a.header.Name), sortKey(b.header.Name)) })
	return out
}

// sortKey orders paths by their parts, so the content of a folder follows the folder.
func sortKey(name string) string { return strings.ReplaceAll(name, "/", "\x00") }
