package oci

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/kalypso-io/kalypso/internal/httpclient"
)

const (
	dialTimeout = 5 * time.Second
	// answerTimeout is the time limit for a registry's answer to a request. It is short: a build
	// computes the results that a hanging registry does not send.
	answerTimeout = 15 * time.Second
	retries       = 3
)

// retryWait is the wait before retries.
type retryWait struct {
	first time.Duration // doubled each time, 0 for 250 ms
	most  time.Duration // the maximum, even if the registry asks for more; 0 for 3 s
}

// newClient returns a client with docker's credentials for all hosts.
func newClient(wait retryWait) (*auth.Client, error) {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("docker's configuration, which has the credentials of registries "+
			"($DOCKER_CONFIG names its folder): %w", err)
	}
	client := &auth.Client{
		Client:     &http.Client{Transport: newTransport(wait)},
		Cache:      auth.NewCache(),
		Credential: credentials.Credential(store),
	}
	client.SetUserAgent("kalypso")
	return client, nil
}

// newTransport returns a transport that retries after 429, 408, 5xx and broken connections,
// and not after timeouts.
func newTransport(wait retryWait) http.RoundTripper {
	if wait.first == 0 {
		wait.first = 250 * time.Millisecond
	}
	if wait.most == 0 {
		wait.most = 3 * time.Second
	}
	return httpclient.Transport(httpclient.Options{
		Dial: dialTimeout, Answer: answerTimeout,
		Retries: retries, First: wait.first, Most: wait.most,
		Repeat: func(response *http.Response, err error) (bool, error) {
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				return false, err
			}
			return retry.DefaultPredicate(response, err)
		},
	})
}
