// Package oci keeps the entries of a cache in a repository of an OCI registry, so
// that machines share them. What comes in is a reference such as
// oci://registry.example.com/acme/platform-cache; what goes out is a [cache.Remote].
//
// A key is a tag of an OCI 1.1 image manifest with the artifact type
// [ArtifactType], the empty config, the key as an annotation, and one layer, which
// is what the key names. So registries need to know nothing of kalypso, and their
// own rules for tags bound what is kept.
//
// # Trust
//
// Manifests and layers are read up to a bound and verified by size and digest, so
// a registry can exhaust no memory, and damage is an error.
//
// But an entry is no proof. It says which key it is for, and not that anyone
// computed it: whoever may write to the repository, or runs the registry, can put
// wrong results under right keys, and all who read from it build with them, as
// with any shared build cache. Without TLS the same holds for who is in between. So what runs code that nobody has reviewed must have no credentials that
// can write; [Options.ReadOnly] is the same for those who are careless, not for
// those who are hostile. The mode [cache.Verify] finds wrong entries that were
// read into a cache folder.
package oci

import (
	"context"
	"sync"
	"time"

	"oras.land/oras-go/v2/registry/remote"

	"github.com/kalypso-io/kalypso/compiler/cache"
)

// Options say how to use a repository.
type Options struct {
	// ReadOnly makes a Remote that never writes.
	ReadOnly bool
	// Timeout is how long a Get or a Put may take with all its requests, 0 for a
	// minute. The context of a call may allow less.
	Timeout time.Duration

	retry retryWait
}

// A Remote is a repository that holds a cache. Any number of goroutines may call
// the methods at once, and any number of machines may use a repository at once:
// of two that put the same key, the last one holds.
type Remote struct {
	repository *remote.Repository
	name       string // for people: host and path
	readOnly   bool
	timeout    time.Duration

	mu        sync.Mutex
	hasConfig bool // the empty config is in the repository
}

var _ cache.Remote = (*Remote)(nil)

// Open returns the cache in a repository: oci://HOST[:PORT]/PATH, or
// oci+http://HOST[:PORT]/PATH for one without TLS. A host that is this machine's
// own, such as localhost, is always asked without TLS.
//
// Open asks nobody: whether there is such a repository shows at the first Get or
// Put. Credentials are those that docker has, in $DOCKER_CONFIG/config.json or
// ~/.docker/config.json and the helpers that it names; they are looked up when the
// registry asks for them.
//
// A reference that is none is a *ReferenceError. Any other error is about docker's
// configuration.
func Open(reference string, o Options) (*Remote, error) {
	where, plain, err := parseReference(reference)
	if err != nil {
		return nil, err
	}
	client, err := newClient(o.retry)
	if err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	return &Remote{
		repository: &remote.Repository{
			Client:           client,
			Reference:        where,
			PlainHTTP:        plain,
			MaxMetadataBytes: maxManifest,
			// Nothing else is a manifest of this package.
			ManifestMediaTypes: []string{manifestType},
		},
		name:     where.Registry + "/" + where.Repository,
		readOnly: o.ReadOnly,
		timeout:  o.Timeout,
	}, nil
}

// String is where the cache is, for people: HOST/PATH.
func (r *Remote) String() string { return r.name }

// ReadOnly reports whether the cache was opened with [Options.ReadOnly].
func (r *Remote) ReadOnly() bool { return r.readOnly }

// during returns a context that ends when an operation has taken too long.
func (r *Remote) during(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.timeout)
}
