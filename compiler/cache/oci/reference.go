package oci

import (
	"fmt"
	"strings"

	"oras.land/oras-go/v2/registry"

	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// A ReferenceError describes why a reference is invalid.
type ReferenceError struct {
	Reference string // as given, without a password
	Problem   string
}

func (e *ReferenceError) Error() string {
	return fmt.Sprintf("%s is no remote cache: %s", e.Reference, e.Problem)
}

// parseReference returns the repository of a reference, and reports whether it is used without TLS.
func parseReference(reference string) (where registry.Reference, plain bool, err error) {
	shown := reference
	problem := func(format string, args ...any) (registry.Reference, bool, error) {
		return registry.Reference{}, false,
			&ReferenceError{Reference: shown, Problem: fmt.Sprintf(format, args...)}
	}
	scheme, rest, ok := strings.Cut(reference, "://")
	if !ok || scheme != "oci" && scheme != "oci+http" {
		return problem(
			"write oci://HOST/REPOSITORY, such as oci://registry.example.com/acme/platform-cache")
	}
	host, path, _ := strings.Cut(rest, "/")
	if user, after, ok := strings.Cut(host, "@"); ok {
		name, _, _ := strings.Cut(user, ":")
		shown = fmt.Sprintf("%s://%s@%s/%s", scheme, name, after, path)
		return problem(
			"credentials come from docker's config.json (`docker login %s`), and are not written here",
			after)
	}
	where = registry.Reference{Registry: host, Repository: path}
	switch {
	case host == "":
		return problem("there is no host before the first slash")
	case where.ValidateRegistry() != nil:
		return problem("%q is neither HOST nor HOST:PORT", host)
	case path == "":
		return problem("a repository is missing, such as oci://%s/platform-cache", host)
	case strings.ContainsAny(path, ":@"):
		return problem(
			"a repository is named without a tag or digest: every entry of the cache has a tag of its own")
	case where.ValidateRepository() != nil:
		return problem("%q is no name of a repository: that is of lower-case letters, digits, and "+
			"single . _ - / between them", path)
	}
	return where, scheme == "oci+http" || httpclient.IsLoopback(host), nil
}
