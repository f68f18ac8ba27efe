package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/kalypso-io/kalypso/compiler/cache/oci"
)

// Target is a tag of an OCI repository.
type Target struct {
	Repository string // oci://HOST[:PORT]/PATH
	Tag        string
}

func (t Target) String() string { return t.Repository + ":" + t.Tag }

// ParseTarget reads oci://HOST[:PORT]/PATH[:TAG]. Without a tag, Tag is "". The error
// describes the mistake in the reference.
func ParseTarget(reference string) (Target, error) {
	t := Target{Repository: reference}
	if slash, colon := strings.LastIndex(reference, "/"),
		strings.LastIndex(reference, ":"); colon > slash {
		t.Repository, t.Tag = reference[:colon], reference[colon+1:]
		if (registry.Reference{Registry: "registry", Repository: "x",
			Reference: t.Tag}).ValidateReferenceAsTag() != nil {
			return Target{}, fmt.Errorf("%s names no place to publish to: %q is no tag", reference, t.Tag)
		}
	}
	if _, err := open(t.Repository); err != nil {
		return Target{}, err
	}
	return t, nil
}

// open returns a repository, without a request to it.
func open(repository string) (*remote.Repository, error) {
	r, err := oci.OpenRepository(repository)
	if wrong := (*oci.ReferenceError)(nil); errors.As(err, &wrong) {
		return nil, fmt.Errorf("%s names no place to publish to: %s", wrong.Reference, wrong.Problem)
	}
	return r, err
}

// TakenError reports that a tag holds something other than the environment's tree.
type TakenError struct {
	Target Target
	Holds  string // the content of the tag
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s holds %s; choose another tag, or take it over with --adopt", e.Target,
		e.Holds)
}

// Push pushes an artifact to a tag. It returns the digest of the tag's content after that,
// and whether it is new. If the tag has an equal layer of the same environment, the tag
// stays unchanged, with its own provenance. If it holds something other than a tree of this
// platform and environment, Push returns a *TakenError, unless adopt is set. Other errors
// are *oci.RegistryError, or about docker's configuration.
func Push(ctx context.Context, t Target, a *Artifact, adopt bool) (digest string, pushed bool,
	err error) {
	r, err := open(t.Repository)
	if err != nil {
		return "", false, err
	}
	op := "read"
	defer func() {
		if taken := (*TakenError)(nil); err != nil && !errors.As(err, &taken) {
			err = &oci.RegistryError{Repository: r.Reference.Registry + "/" + r.Reference.Repository, Op: op,
				Tag: t.Tag, Err: err}
		}
	}()
	before, there, err := current(ctx, r, t.Tag)
	if err != nil {
		return "", false, err
	}
	if before.is(a) {
		return there, false, nil
	}
	if holds := before.stranger(a); holds != "" && !adopt {
		return "", false, &TakenError{t, holds}
	}
	op = "write"
	// A registry accepts a manifest only when it has the blobs to which the manifest
	// refers.
	for _, blob := range []struct {
		mediaType string
		data      []byte
	}{{LayerType, a.layer}, {ConfigType, a.config}} {
		if err := pushBlob(ctx, r, content.NewDescriptorFromBytes(blob.mediaType, blob.data),
			blob.data); err != nil {
			return "", false, err
		}
	}
	manifest := content.NewDescriptorFromBytes(manifestType, a.manifest)
	if err := r.Manifests().PushReference(ctx, manifest, bytes.NewReader(a.manifest),
		t.Tag); err != nil {
		return "", false, err
	}
	return a.Digest(), true, nil
}

func pushBlob(ctx context.Context, r *remote.Repository, d ocispec.Descriptor, data []byte) error {
	if has, err := r.Blobs().Exists(ctx, d); err != nil || has {
		return err
	}
	return r.Blobs().Push(ctx, d, bytes.NewReader(data))
}

// tagManifest is the manifest that a tag has, or nil.
type tagManifest struct{ ocispec.Manifest }

// current returns the content of a tag with its digest. It returns nil if the tag does not
// exist.
func current(ctx context.Context, r *remote.Repository, tag string) (*tagManifest, string, error) {
	d, body, err := r.Manifests().FetchReference(ctx, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer body.Close()
	if d.Size > r.MaxMetadataBytes {
		return &tagManifest{}, "", nil // nothing of ours
	}
	text, err := content.ReadAll(body, d)
	if err != nil {
		return nil, "", err
	}
	var h tagManifest
	if json.Unmarshal(text, &h.Manifest) != nil {
		return &tagManifest{}, "", nil
	}
	return &h, d.Digest.String(), nil
}

// is reports whether the tag holds the same tree as the artifact.
func (h *tagManifest) is(a *Artifact) bool {
	return h != nil && h.stranger(a) == "" && h.Config.MediaType == ConfigType &&
		h.MediaType == manifestType &&
		len(h.Layers) == 1 && h.Layers[0].MediaType == LayerType &&
		h.Layers[0].Digest == content.NewDescriptorFromBytes(LayerType, a.layer).Digest
}

// stranger describes the content of the tag if it is not a tree of the artifact's platform
// and environment. Otherwise it returns "".
func (h *tagManifest) stranger(a *Artifact) string {
	if h == nil {
		return ""
	}
	platform, environment := h.Annotations[PlatformAnnotation], h.Annotations[EnvironmentAnnotation]
	switch {
	case platform == "" && environment == "":
		return "something that kalypso did not publish"
	case platform != a.platform:
		return fmt.Sprintf("a tree of another platform, %q", platform)
	case environment != a.environment:
		return fmt.Sprintf("the tree of environment %q", environment)
	}
	return ""
}
