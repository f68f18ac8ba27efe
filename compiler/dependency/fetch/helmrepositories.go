package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/helmpath"

	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// helmRepository is a chart repository in the list of `helm repo add`.
type helmRepository struct {
	URL                     string `yaml:"url"`
	Username                string `yaml:"username"`
	Password                string `yaml:"password"`
	PassCredentialsAll      bool   `yaml:"pass_credentials_all"`
	httpclient.Certificates `yaml:",inline"`
}

// helmClient is the client for a chart repository.
type helmClient struct {
	helmRepository
	client *http.Client
}

// readHelmRepositories reads $HELM_REPOSITORY_CONFIG, else helm's repositories.yaml. A
// missing file is not an error.
func readHelmRepositories() ([]helmRepository, error) {
	name := envOr("HELM_REPOSITORY_CONFIG", helmpath.ConfigPath("repositories.yaml"))
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var file struct {
		Repositories []helmRepository `yaml:"repositories"`
	}
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("helm's list of chart repositories ($HELM_REPOSITORY_CONFIG names it): %w",
			err)
	}
	return slices.DeleteFunc(file.Repositories,
		func(r helmRepository) bool { return strings.HasPrefix(r.URL, "oci://") }), nil
}

func newHelmClients(f *Fetcher) []*helmClient {
	var all []*helmClient
	for _, r := range f.logins.helm {
		f.secrets.Add(r.Password)
		check := httpclient.Redirect
		if r.PassCredentialsAll {
			check = nil
		}
		all = append(all, &helmClient{r, &http.Client{Transport: r.transport(f), CheckRedirect: check}})
	}
	return all
}

// transport returns the Fetcher's transport, unless the repository has certificates of its
// own.
func (r *helmRepository) transport(f *Fetcher) http.RoundTripper {
	if r.Certificates == (httpclient.Certificates{}) {
		return f.web
	}
	return r.Transport(f.patient())
}

// find returns helm's entry for a chart repository, or nil.
func (c *chartRepositories) find(base *url.URL) *helmClient {
	for _, r := range c.helm {
		if u, err := url.Parse(r.URL); err == nil && httpclient.SameOrigin(u, base) &&
			strings.TrimRight(u.Path, "/") == strings.TrimRight(base.Path, "/") {
			return r
		}
	}
	return nil
}
