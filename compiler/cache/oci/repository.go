package oci

import "oras.land/oras-go/v2/registry/remote"

// OpenRepository returns a repository for artifacts other than a cache. References, credentials,
// retries and errors work as in [Open]. The maximum size of a manifest is 1 MiB.
func OpenRepository(reference string) (*remote.Repository, error) {
	where, plain, err := parseReference(reference)
	if err != nil {
		return nil, err
	}
	client, err := newClient(retryWait{})
	if err != nil {
		return nil, err
	}
	return &remote.Repository{
		Client: client, Reference: where, PlainHTTP: plain,
		MaxMetadataBytes: maxManifest,
	}, nil
}
