package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/kalypso-io/kalypso/internal/terminal"
)

// A RegistryError is a failed operation of a registry.
type RegistryError struct {
	Repository string // HOST/PATH
	Op         string // read or write
	Tag        string
	Err        error
}

// Error returns one line that a terminal can print, for any answer of the registry. It omits the
// URLs of redirects: they may be signed, and must not appear in logs.
func (e *RegistryError) Error() string {
	return terminal.Line(
		fmt.Sprintf("cannot %s %s:%s: %s", e.Op, e.Repository, e.Tag, reason(e.Err, e.host())))
}

// Unwrap returns the error of the registry or of the connection.
func (e *RegistryError) Unwrap() error { return e.Err }

// host returns the host of the registry.
func (e *RegistryError) host() string {
	host, _, _ := strings.Cut(e.Repository, "/")
	return host
}

// failed wraps an error. If the operation timed out, the timeout is the error.
func (r *Remote) failed(ctx context.Context, op, key string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return &RegistryError{Repository: r.name, Op: op, Tag: tagOf(key), Err: err}
}

// reason returns the reason of an error, and a hint for the user.
func reason(err error, host string) string {
	var answer *errcode.ErrorResponse
	var address *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the registry takes too long"
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fmt.Sprintf("the registry wants credentials, and docker's config.json has none for %s: "+
			"`docker login %s` adds them", host, host)
	case errors.As(err, &answer):
		return answered(answer, host)
	case errors.As(err, &address):
		return reason(address.Err, host)
	}
	return err.Error()
}

// answered returns the reason for an answer that is not a success.
func answered(answer *errcode.ErrorResponse, host string) string {
	text := fmt.Sprintf("the registry answers %d %s", answer.StatusCode,
		http.StatusText(answer.StatusCode))
	if len(answer.Errors) > 0 {
		text += " (" + answer.Errors.Error() + ")"
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return text + fmt.Sprintf(": the credentials for %s in docker's config.json are missing or "+
			"wrong; `docker login %s` replaces them", host, host)
	case http.StatusForbidden:
		return text + ": the credentials do not allow this; those that may only read need a read-only " +
			"remote cache"
	}
	return text
}
