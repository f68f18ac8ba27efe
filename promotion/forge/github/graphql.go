package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/promotion/forge"
)

// unprocessable is the kind of errors for what the current state does not allow.
const unprocessable = "UNPROCESSABLE"

// graphQLError is an error of GraphQL, which has the status 200.
type graphQLError struct {
	host, operation string
	kind            string // FORBIDDEN, NOT_FOUND, unprocessable ...
	message         string // one printable line
}

func (e *graphQLError) Error() string {
	return fmt.Sprintf("%s refuses %s: %s", e.host, e.operation, e.message)
}

// isGraphQL reports whether an error has a kind, and one of some words in its message; none
// for any message.
func isGraphQL(err error, kind string, words ...string) bool {
	e := (*graphQLError)(nil)
	if !errors.As(err, &e) || e.kind != kind {
		return false
	}
	for _, word := range words {
		if strings.Contains(strings.ToLower(e.message), word) {
			return true
		}
	}
	return len(words) == 0
}

// graphQL runs one operation, by its name in the text.
func (c *client) graphQL(ctx context.Context, k kind, operation, text string, variables map[string]any, out any) error {
	in := map[string]any{"operationName": operation, "query": text, "variables": variables}
	got := struct {
		Data   any `json:"data"`
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}{Data: out}
	header, err := c.call(ctx, k, http.MethodPost, c.graphql, in, &got)
	if err != nil {
		return err
	}
	if len(got.Errors) == 0 {
		return nil
	}
	first := got.Errors[0]
	switch first.Type {
	case "RATE_LIMITED":
		until, ok := reset(header)
		if !ok {
			until = c.now().Add(defaultPause)
		}
		return c.unavailable(until.Truncate(time.Second), errors.New(first.Message))
	case "INSUFFICIENT_SCOPES", "FORBIDDEN":
		if k != read {
			return &forge.AuthError{
				Host:    c.host,
				Problem: fmt.Sprintf("it does not allow %s: %s", operation, c.printable(first.Message)),
				Hint:    permissionHint(header),
			}
		}
	}
	return &graphQLError{host: c.host, operation: operation, kind: first.Type, message: c.printable(first.Message)}
}
