// Package oci stores the entries of a cache in a repository of an OCI registry, so that
// machines share them. The input is a reference such as
// oci://registry.example.com/acme/platform-cache; the output is a [cache.Remote].
//
// A key is a tag of an OCI 1.1 image manifest with the artifact type [ArtifactType], the
// empty config, the key as an annotation, and one layer with the data. So registries need
// no support for kalypso, and their own rules for tags limit what is kept.
//
// # Trust
//
// Manifests and layers are read up to a bound and verified by size and digest, so that a
// registry cannot exhaust memory, and damage is an error.
//
// But an entry is no proof. It states its key, and not that anyone computed it: a user who
// may write to the repository, or runs the registry, can store wrong results under right
// keys, and all builds that read from it use them, as with any shared build cache. Without
// TLS the same holds for the network. So programs that run unreviewed code must not have
// credentials that can write; [Options.ReadOnly] is against mistakes, and not against
// attacks. The mode [cache.Verify] finds wrong entries that were read into a cache folder.
package oci

import (
	"context"
	"sync"
	"time"

	"oras.land/oras-go/v2/registry/remote"

	"github.com/kalypso-io/kalypso/compiler/cache"
)

// Options configure a Remote.
type Options struct {
	// ReadOnly makes a Remote that never writes.
	ReadOnly bool
	// Timeout is how long a Get or a Put may take with all its requests, 0 for a
	// minute. The context of a call may allow less.
	Timeout time.Duration

	retry retryWait
}

// A Remote is a repository with the entries of a cache. Any number of goroutines may call
// the methods at once, and any number of machines may use a repository at once: of two
// writes of the same key, the last one counts.
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
// oci+http://HOST[:PORT]/PATH for one without TLS. Loopback hosts, such as localhost, are
// always used without TLS.
//
// Open makes no request: the first Get or Put fails where there is no such repository.
// Credentials are docker's, in $DOCKER_CONFIG/config.json or ~/.docker/config.json and its
// credential helpers; they are read when the registry requires them.
//
// The error for an invalid reference is a *ReferenceError. Any other error is about
// docker's configuration.
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
			// No other type is a manifest of this package.
			ManifestMediaTypes: []string{manifestType},
		},
		name:     where.Registry + "/" + where.Repository,
		readOnly: o.ReadOnly,
		timeout:  o.Timeout,
	}, nil
}

// String returns where the cache is, for people: HOST/PATH.
func (r *Remote) String() string { return r.name }

// ReadOnly reports whether the cache was opened with [Options.ReadOnly].
func (r *Remote) ReadOnly() bool { return r.readOnly }

// during returns the context of an operation with its timeout.
func (r *Remote) during(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.timeout)
}
