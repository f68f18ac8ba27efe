package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/helmpath"

	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// helmRepository is a chart repository in the list of `helm repo add`, with its client.
type helmRepository struct {
	URL                     string `yaml:"url"`
	Username                string `yaml:"username"`
	Password                string `yaml:"password"`
	PassCredentialsAll      bool   `yaml:"pass_credentials_all"`
	httpclient.Certificates `yaml:",inline"`

	client *http.Client
}

// readHelmRepositories reads $HELM_REPOSITORY_CONFIG, else helm's repositories.yaml. A
// missing file is no error.
func readHelmRepositories(f *Fetcher) ([]*helmRepository, error) {
	name := envOr("HELM_REPOSITORY_CONFIG", helmpath.ConfigPath("repositories.yaml"))
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var file struct {
		Repositories []*helmRepository `yaml:"repositories"`
	}
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("helm's list of chart repositories ($HELM_REPOSITORY_CONFIG names it): %w", err)
	}
	var all []*helmRepository
	for _, r := range file.Repositories {
		if r == nil || strings.HasPrefix(r.URL, "oci://") {
			continue
		}
		f.secrets.Add(r.Password)
		check := redirect
		if r.PassCredentialsAll {
			check = nil
		}
		r.client = &http.Client{Transport: r.transport(f), CheckRedirect: check}
		all = append(all, r)
	}
	return all, nil
}

// transport returns the Fetcher's transport, unless the repository has certificates of its
// own.
func (r *helmRepository) transport(f *Fetcher) http.RoundTripper {
	if r.Certificates == (httpclient.Certificates{}) {
		return f.web
	}
	return r.Transport(httpclient.Patient(f.wait))
}

// find returns helm's entry for a chart repository; nil for none.
func (c *chartRepositories) find(base *url.URL) *helmRepository {
	for _, r := range c.helm {
		if u, err := url.Parse(r.URL); err == nil && sameOrigin(u, base) && strings.TrimRight(u.Path, "/") == strings.TrimRight(base.Path, "/") {
			return r
		}
	}
	return nil
}
