package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
)

// certificates are what a server must prove and this side can, where it is not what
// the machine takes for granted.
type certificates struct {
	CertFile              string `yaml:"certFile"`
	KeyFile               string `yaml:"keyFile"`
	CAFile                string `yaml:"caFile"`
	InsecureSkipTLSVerify bool   `yaml:"insecure_skip_tls_verify"`
}

// transport returns a transport that uses the certificates. It reads them when it
// is used first: those of servers that nobody speaks to are no matter.
func (c certificates) transport(f *Fetcher) http.RoundTripper {
	if c == (certificates{}) {
		return f.web
	}
	return &lazyTransport{certificates: c, fetcher: f}
}

type lazyTransport struct {
	certificates certificates
	fetcher      *Fetcher
	ready        memo[http.RoundTripper]
}

func (l *lazyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	transport, err := l.ready.get("", func() (http.RoundTripper, error) {
		config, err := l.certificates.config()
		return l.fetcher.transport(config), err
	})
	if err != nil {
		return nil, fmt.Errorf("the certificates for the server: %w", err)
	}
	return transport.RoundTrip(r)
}

func (c certificates) config() (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: c.InsecureSkipTLSVerify}
	if c.CertFile != "" || c.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", c.CAFile)
		}
	}
	return config, nil
}
