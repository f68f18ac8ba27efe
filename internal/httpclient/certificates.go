package httpclient

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"sync"
)

// Certificates are the files of the client's certificate and of the authorities that it trusts.
// The zero value means the authorities of the machine. Its names in YAML are Helm's.
type Certificates struct {
	CertFile              string `yaml:"certFile"`
	KeyFile               string `yaml:"keyFile"`
	CAFile                string `yaml:"caFile"`
	InsecureSkipTLSVerify bool   `yaml:"insecure_skip_tls_verify"`
}

// Transport returns a transport with the options and the certificates. The files are read at the
// first request, so that files for unused servers need not exist. Any number of goroutines may
// use it.
func (c Certificates) Transport(o Options) http.RoundTripper {
	if c == (Certificates{}) {
		return Transport(o)
	}
	return &lazyTransport{ready: sync.OnceValues(func() (http.RoundTripper, error) {
		config, err := c.config()
		if err != nil {
			return nil, fmt.Errorf("the certificates for the server: %w", err)
		}
		o.TLS = config
		return Transport(o), nil
	})}
}

type lazyTransport struct {
	ready func() (http.RoundTripper, error)
}

func (l *lazyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	transport, err := l.ready()
	if err != nil {
		return nil, err
	}
	return transport.RoundTrip(r)
}

func (c Certificates) config() (*tls.Config, error) {
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
