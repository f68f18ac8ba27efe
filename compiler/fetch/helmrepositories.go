package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/helmpath"
)

// helmRepository is a chart repository that `helm repo add` has written down, with
// what it takes to speak with it.
type helmRepository struct {
	URL                   string `yaml:"url"`
	Username              string `yaml:"username"`
	Password              string `yaml:"password"`
	CertFile              string `yaml:"certFile"`
	KeyFile               string `yaml:"keyFile"`
	CAFile                string `yaml:"caFile"`
	InsecureSkipTLSVerify bool   `yaml:"insecure_skip_tls_verify"`
	PassCredentialsAll    bool   `yaml:"pass_credentials_all"`

	client *http.Client
}

// readHelmRepositories reads $HELM_REPOSITORY_CONFIG, else helm's repositories.yaml.
// None is no error.
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
		f.secrets.add(r.Password)
		transport := f.web
		if r.hasTLS() {
			transport = &lazyTLS{repository: r, fetcher: f}
		}
		check := redirect
		if r.PassCredentialsAll {
			check = nil
		}
		r.client = &http.Client{Transport: transport, CheckRedirect: check}
		all = append(all, r)
	}
	return all, nil
}

// find returns what helm knows about a chart repository; nil for nothing.
func (c *chartRepositories) find(base *url.URL) *helmRepository {
	for _, r := range c.helm {
		if u, err := url.Parse(r.URL); err == nil && sameOrigin(u, base) && strings.TrimRight(u.Path, "/") == strings.TrimRight(base.Path, "/") {
			return r
		}
	}
	return nil
}

func (r *helmRepository) hasTLS() bool {
	return r.CertFile != "" || r.KeyFile != "" || r.CAFile != "" || r.InsecureSkipTLSVerify
}

// lazyTLS reads the certificates of a repository when that is spoken to: those of
// others are no matter.
type lazyTLS struct {
	repository *helmRepository
	fetcher    *Fetcher
	ready      memo[http.RoundTripper]
}

func (l *lazyTLS) RoundTrip(r *http.Request) (*http.Response, error) {
	transport, err := l.ready.get("", func() (http.RoundTripper, error) {
		config, err := l.repository.tls()
		return l.fetcher.transport(config), err
	})
	if err != nil {
		return nil, fmt.Errorf("the certificates that helm has for the chart repository: %w", err)
	}
	return transport.RoundTrip(r)
}

func (r *helmRepository) tls() (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: r.InsecureSkipTLSVerify}
	if r.CertFile != "" || r.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(r.CertFile, r.KeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if r.CAFile != "" {
		text, err := os.ReadFile(r.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", r.CAFile)
		}
	}
	return config, nil
}
