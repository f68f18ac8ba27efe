package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"

	"github.com/kalypso-io/kalypso/compiler/cache"
)

// Get returns the data of a key: exactly the bytes of some Put, up to 1 GiB. If there is
// no entry, or the entry is incomplete, the error is [cache.ErrNotFound]. Any other
// error is a *RegistryError.
func (r *Remote) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := r.withTimeout(ctx)
	defer cancel()
	data, err := r.get(ctx, key)
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, cache.ErrNotFound
	}
	if err != nil {
		return nil, r.failed(ctx, "read", key, err)
	}
	return data, nil
}

func (r *Remote) get(ctx context.Context, key string) ([]byte, error) {
	d, body, err := r.repository.Manifests().FetchReference(ctx, tagOf(key))
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if d.Size > maxManifest {
		return nil, fmt.Errorf("a manifest of %d bytes: there are at most %d", d.Size, maxManifest)
	}
	text, err := content.ReadAll(body, d)
	if err != nil {
		return nil, err
	}
	layer, err := parseManifest(text, key)
	if err != nil {
		return nil, err
	}
	data, err := r.repository.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	return content.ReadAll(data, layer)
}

var errReadOnly = errors.New("the remote cache is read-only")

// Put stores or replaces the data of a key, up to 1 GiB. It does not send data that the repository
// already has. After Put returns, others can read the entry. Until then they read the previous
// entry, never a part of the new one. Errors are *RegistryError.
func (r *Remote) Put(ctx context.Context, key string, data []byte) error {
	ctx, cancel := r.withTimeout(ctx)
	defer cancel()
	if err := r.put(ctx, key, data); err != nil {
		return r.failed(ctx, "write", key, err)
	}
	return nil
}

func (r *Remote) put(ctx context.Context, key string, data []byte) error {
	switch {
	case r.readOnly:
		return errReadOnly
	case len(data) > maxData:
		return fmt.Errorf("an entry of %d bytes: there are at most %d", len(data), maxData)
	}
	layer := layerOf(data)
	text, err := newManifest(key, layer)
	if err != nil {
		return err
	}
	// A registry accepts a manifest only after its blobs.
	if err := r.putConfig(ctx); err != nil {
		return err
	}
	if err := r.putBlob(ctx, layer, data); err != nil {
		return err
	}
	manifest := content.NewDescriptorFromBytes(manifestType, text)
	return r.repository.Manifests().PushReference(ctx, manifest, bytes.NewReader(text), tagOf(key))
}

// putConfig uploads the empty config, once. Concurrent calls upload it as well, which does no harm.
func (r *Remote) putConfig(ctx context.Context) error {
	r.mu.Lock()
	has := r.hasConfig
	r.mu.Unlock()
	if has {
		return nil
	}
	if err := r.putBlob(ctx, emptyConfig(), ocispec.DescriptorEmptyJSON.Data); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hasConfig = true
	return nil
}

// putBlob uploads a blob, unless the repository already has it.
func (r *Remote) putBlob(ctx context.Context, d ocispec.Descriptor, data []byte) error {
	if has, err := r.repository.Blobs().Exists(ctx, d); err != nil || has {
		return err
	}
	return r.repository.Blobs().Push(ctx, d, bytes.NewReader(data))
}
