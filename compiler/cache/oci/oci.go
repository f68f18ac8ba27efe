// Package oci stores the entries of a cache in a repository of an OCI registry, so that machines
// share them. The input is a reference such as oci://registry.example.com/acme/platform-cache; the
// output is a [cache.Remote].
//
// A key is a tag of an OCI 1.1 image manifest with the artifact type [ArtifactType]. The manifest
// has the empty config, the key as an annotation, and one layer with the data. So registries need
// no support for kalypso, and their own rules for tags limit the size of the cache.
//
// # Trust
//
// The package limits the size of manifests and layers, and verifies their size and digest. So a
// registry cannot exhaust memory, and damage is an error.
//
// But an entry proves nothing. It names its key, but does not prove that anyone computed it. A user
// who may write to the repository, or who runs the registry, can store wrong results under right
// keys. All builds that read from it then use them, as with any shared build cache. Without TLS the
// same applies to the network. So programs that run unreviewed code must not have credentials that
// can write. [Options.ReadOnly] prevents mistakes, but not attacks. The mode [cache.Verify] finds
// wrong entries in a cache folder.
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
	// Timeout is the time limit of a Get or a Put with all its requests, or 0 for a minute. The
	// context of a call may set a lower limit.
	Timeout time.Duration

	retry retryWait
}

// A Remote is a repository with the entries of a cache. Any number of goroutines may call the
// methods at once. Any number of machines may use a repository at once: if two of them write the
// same key, the last write counts.
type Remote struct {
	repository *remote.Repository
	name       string // for people: host and path
	readOnly   bool
	timeout    time.Duration

	mu        sync.Mutex
	hasConfig bool // the empty config is in the repository
}

var _ cache.Remote = (*Remote)(nil)

// Open returns the cache in a repository: oci://HOST[:PORT]/PATH, or oci+http://HOST[:PORT]/PATH
// for a registry without TLS. It never uses TLS for loopback hosts, such as localhost.
//
// Open makes no request: if the repository does not exist, the first Get or Put
// fails. Credentials come from docker's configuration, in
// $DOCKER_CONFIG/config.json or ~/.docker/config.json, and its credential helpers.
// They are read when the registry requires them.
//
// The error for an invalid reference is a *ReferenceError. Any other error is
// about docker's configuration.
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
			// This package accepts no other type of manifest.
			ManifestMediaTypes: []string{manifestType},
		},
		name:     where.Registry + "/" + where.Repository,
		readOnly: o.ReadOnly,
		timeout:  o.Timeout,
	}, nil
}

// String returns the location of the cache, for people: HOST/PATH.
func (r *Remote) String() string { return r.name }

// ReadOnly reports whether the cache was opened with [Options.ReadOnly].
func (r *Remote) ReadOnly() bool { return r.readOnly }

// withTimeout returns the context of an operation with its timeout.
func (r *Remote) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.timeout)
}
