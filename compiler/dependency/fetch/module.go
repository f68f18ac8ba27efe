package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modregistry"
	"cuelang.org/go/mod/module"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// modules fetches CUE modules from the registries of the cue command: $CUE_REGISTRY, with
// the logins of `cue login` and docker.
type modules struct {
	fetcher *Fetcher
	client  memo[*modregistry.Client]
}

func (m *modules) resolve(ctx context.Context, s dependency.Source) (string, []byte, error) {
	data, err := m.zip(ctx, s.URL, s.Version)
	return s.Version, data, err
}

func (m *modules) fetch(ctx context.Context, e dependency.Entry) ([]byte, error) {
	return m.zip(ctx, e.URL, e.Revision)
}

// zip returns the zip file of a module's version.
func (m *modules) zip(ctx context.Context, path, version string) ([]byte, error) {
	id, err := module.NewVersion(path, version)
	if err != nil {
		return nil, fmt.Errorf(
			"this is no version of a CUE module, such as example.com/base@v1 v1.2.3: %w", err)
	}
	client, err := m.client.get("", func() (*modregistry.Client, error) {
		resolver, err := modconfig.NewResolver(
			&modconfig.Config{Transport: m.fetcher.web, ClientType: "kalypso"})
		if err != nil {
			return nil, fmt.Errorf("$CUE_REGISTRY, which says where CUE modules are: %w", err)
		}
		return modregistry.NewClientWithResolver(resolver), nil
	})
	if err != nil {
		return nil, err
	}
	found, err := client.GetModule(ctx, id)
	if errors.Is(err, modregistry.ErrNotFound) {
		there, _ := client.ModuleVersions(ctx, path) // an error leaves the alternatives out
		slices.Reverse(there)
		return nil, &missingError{problem: fmt.Sprintf("there is no version %s of the module", version),
			there: there}
	}
	if err != nil {
		return nil, explainModule(err)
	}
	body, err := found.GetZip(ctx)
	if err != nil {
		return nil, explainModule(err)
	}
	defer body.Close()
	return httpclient.ReadAll(body, dependency.MaxSize)
}

// explainModule returns the error for one of a registry of modules.
func explainModule(err error) error {
	if errors.Is(err, ociregistry.ErrUnauthorized) || errors.Is(err, ociregistry.ErrDenied) {
		return &unauthorizedError{"the registry of the module wants other credentials: " + err.Error(),
			"`cue login` or `docker login` of the registry that $CUE_REGISTRY names adds them"}
	}
	return err
}
