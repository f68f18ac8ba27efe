package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v3/pkg/helmpath"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	ociref "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// registries fetches from OCI registries.
type registries struct{ client *auth.Client }

// registryLogins reads the credentials of registries: docker's configuration and its
// credential helpers, and then helm's.
func registryLogins() (auth.CredentialFunc, error) {
	docker, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("docker's configuration, which has the credentials of registries "+
			"($DOCKER_CONFIG names its folder): %w", err)
	}
	helm, err := credentials.NewStore(envOr("HELM_REGISTRY_CONFIG",
		helmpath.ConfigPath("registry", "config.json")), credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("helm's configuration, which has the credentials of registries "+
			"($HELM_REGISTRY_CONFIG names it): %w", err)
	}
	return credentials.Credential(credentials.NewStoreWithFallbacks(docker, helm)), nil
}

func newRegistries(f *Fetcher) *registries {
	client := &auth.Client{
		Client: &http.Client{Transport: f.web, CheckRedirect: httpclient.Redirect},
		Cache:  auth.NewCache(),
		Credential: func(ctx context.Context, host string) (auth.Credential, error) {
			c, err := f.logins.registry(ctx, host)
			f.secrets.Add(c.Password, c.RefreshToken, c.AccessToken)
			return c, err
		},
	}
	client.SetUserAgent("kalypso")
	return &registries{client: client}
}

func envOr(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// repository returns the repository of oci://HOST/PATH.
func (r *registries) repository(url string) (*remote.Repository, error) {
	rest, ok := strings.CutPrefix(url, "oci://")
	host, path, _ := strings.Cut(rest, "/")
	reference := ociref.Reference{Registry: host, Repository: path}
	if !ok || reference.ValidateRegistry() != nil || reference.ValidateRepository() != nil {
		return nil, errors.New("this is no repository of an OCI registry: that is oci://HOST/PATH in " +
			"lower case, without a tag or digest")
	}
	return &remote.Repository{
		Client:    r.client,
		Reference: reference,
		PlainHTTP: httpclient.IsLoopback(host),
		// With indexes among them, an index is distinguished from a missing manifest.
		ManifestMediaTypes: []string{ocispec.MediaTypeImageManifest, dockerManifest,
			ocispec.MediaTypeImageIndex, dockerIndex},
	}, nil
}

// The media types of docker, which registries use in place of OCI's.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
)

func (r *registries) resolve(ctx context.Context, s dependency.Source) (string, []byte, error) {
	repo, err := r.repository(s.URL)
	if err != nil {
		return "", nil, err
	}
	reference := s.Tag + s.Digest
	if s.Semver != "" {
		tags, err := r.tags(ctx, repo)
		if err != nil {
			return "", nil, err
		}
		if reference, err = newest(s.Semver, tags, strictly); err != nil {
			return "", nil, err
		}
	}
	id, data, err := r.pull(ctx, repo, reference, isArchive)
	return id, data, err
}

func (r *registries) fetch(ctx context.Context, e dependency.Entry) ([]byte, error) {
	repo, err := r.repository(e.URL)
	if err != nil {
		return nil, err
	}
	_, data, err := r.pull(ctx, repo, e.Revision, isArchive)
	return data, err
}

// isArchive reports whether a layer is a tar archive that builds can read.
func isArchive(mediaType string) bool {
	for _, end := range []string{"tar+gzip", "tar.gzip", ".tar", "/tar", ".tgz"} {
		if strings.HasSuffix(mediaType, end) {
			return true
		}
	}
	return false
}

// maxManifest is the maximal size of a manifest, in bytes: registries accept no larger ones
// (https://github.com/opencontainers/distribution-spec/blob/main/spec.md).
const maxManifest = 4 << 20

// pull returns the digest of the manifest of a tag or digest, and its first wanted layer.
func (r *registries) pull(ctx context.Context, repo *remote.Repository, reference string,
	wanted func(mediaType string) bool) (string, []byte, error) {
	d, body, err := repo.Manifests().FetchReference(ctx, reference)
	if errors.Is(err, errdef.ErrNotFound) {
		return "", nil, r.notThere(ctx, repo, reference)
	}
	if err != nil {
		return "", nil, r.explain(err, repo)
	}
	defer body.Close()
	if d.Size > maxManifest {
		return "", nil,
			fmt.Errorf("the manifest has %d bytes, more than the %d that are read", d.Size, maxManifest)
	}
	text, err := content.ReadAll(body, d)
	if err != nil {
		return "", nil, err
	}
	layer, err := layerOf(d.MediaType, text, wanted)
	if err != nil {
		return "", nil, err
	}
	data, err := r.blob(ctx, repo, layer)
	return d.Digest.String(), data, err
}

// layerOf returns the first wanted layer of a manifest, which is not trusted.
func layerOf(mediaType string, manifest []byte, wanted func(string) bool) (ocispec.Descriptor,
	error) {
	var none ocispec.Descriptor
	if mediaType == ocispec.MediaTypeImageIndex || mediaType == dockerIndex {
		return none, errors.New("this is an index of several images, and not one artifact")
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(manifest, &m); err != nil {
		return none, fmt.Errorf("the manifest cannot be read: %w", err)
	}
	var others []string
	for _, l := range m.Layers {
		if !wanted(l.MediaType) {
			others = append(others, l.MediaType)
			continue
		}
		if l.Digest.Validate() != nil || l.Digest.Algorithm() != digest.SHA256 || l.Size < 0 ||
			l.Size > dependency.MaxSize {
			return none, fmt.Errorf("the manifest has a layer with the size %d and the digest %q, which "+
				"is none that kalypso fetches", l.Size, l.Digest)
		}
		return ocispec.Descriptor{MediaType: l.MediaType, Digest: l.Digest, Size: l.Size}, nil
	}
	if len(others) == 0 {
		return none, errors.New("the artifact has no layers")
	}
	return none, fmt.Errorf("the artifact has no layer of the kind that is wanted here, but %s",
		strings.Join(others[:min(len(others), 3)], ", "))
}

// blob returns the verified content of a blob.
func (r *registries) blob(ctx context.Context, repo *remote.Repository,
	d ocispec.Descriptor) ([]byte, error) {
	body, err := repo.Blobs().Fetch(ctx, d)
	if err != nil {
		return nil, r.explain(err, repo)
	}
	defer body.Close()
	// Not content.ReadAll, which allocates the size in the manifest.
	verified := content.NewVerifyReader(body, d)
	data, err := io.ReadAll(verified)
	if err != nil {
		return nil, err
	}
	return data, verified.Verify()
}

// maxTags is the largest number of tags of a repository that are read.
const maxTags = 100_000

// tags returns the tags of a repository.
func (r *registries) tags(ctx context.Context, repo *remote.Repository) ([]string, error) {
	var all []string
	err := repo.Tags(ctx, "", func(page []string) error {
		if all = append(all, page...); len(all) > maxTags {
			return fmt.Errorf("the repository has more than %d tags", maxTags)
		}
		return nil
	})
	if err != nil {
		return nil, r.explain(err, repo)
	}
	return all, nil
}

// notThere returns the error for a missing tag or digest, with the existing tags.
func (r *registries) notThere(ctx context.Context, repo *remote.Repository,
	reference string) error {
	what := "tag"
	if strings.Contains(reference, ":") {
		what = "digest"
	}
	tags, err := r.tags(ctx, repo)
	if err != nil {
		return &missingError{problem: fmt.Sprintf("there is no %s %s, or no such repository", what,
			reference)}
	}
	return &missingError{problem: fmt.Sprintf("there is no %s %s", what, reference),
		there: likely(tags)}
}

// explain returns the error for one of a registry.
func (r *registries) explain(err error, repo *remote.Repository) error {
	host := repo.Reference.Registry
	login := fmt.Sprintf("`docker login %s` or `helm registry login %s` adds credentials", host, host)
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return &unauthorizedError{host + " wants credentials, and neither docker nor helm has any for it",
			login}
	}
	var answer *errcode.ErrorResponse
	if !errors.As(err, &answer) {
		return err
	}
	text := fmt.Sprintf("%s answers %d %s", host, answer.StatusCode,
		http.StatusText(answer.StatusCode))
	if len(answer.Errors) > 0 {
		text += " (" + answer.Errors.Error() + ")"
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &unauthorizedError{text,
			login + "; many registries also answer this for a repository that is not there"}
	case http.StatusNotFound:
		return &missingError{problem: "there is no such repository"}
	}
	return errors.New(text)
}
