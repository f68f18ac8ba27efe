package delivery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/address"
)

// Secrets are the fields of a reconciler that assign secrets to its sources. A secret is
// sent only to its own hosts.
type Secrets struct {
	// SecretRef is for the environment's tree, and for git sources of the platform's own
	// workloads on the host of its repository. If there is no repository, it is for all of
	// these sources.
	SecretRef string
	// Credentials are by host. A key may also have a port and the first parts of a path.
	Credentials map[string]struct{ SecretRef string }
}

// SecretFor returns the secret for a source of the assignment. It returns "" if the source gets no
// secret. backend is the reconciler's. SecretFor returns an error if the workspace may not use the
// secret.
func (c Secrets) SecretFor(a *backends.Assignment, s Source, backend string) (string,
	[]diag.Diagnostic) {
	secret, ds := c.secretFor(a, s, backend)
	if secret == "" || a.Bounds == nil || a.Bounds.Secrets.Allow(secret) {
		return secret, ds
	}
	d := diag.New(diag.Bounds,
		fmt.Sprintf("a workload of workspace %s may not use the secret %s of reconciler %s", a.Workspace,
			secret, a.Reconciler.Ref.Name)).
		Hinting("if it may have it, write " + a.Bounds.AllowingSecret(a.Workspace, a.Registration,
			secret) + "; if the source needs none, write anonymous: true beside its URL")
	return "", c.refused(d, a, s.Field+"."+s.origin().field)
}

func (c Secrets) secretFor(a *backends.Assignment, s Source, backend string) (string,
	[]diag.Diagnostic) {
	at := s.origin()
	secret, known := c.secretAt(at.address)
	// The source is on the host that has the environment's repository. Without one, secretRef is
	// the token of no tree, so every source may have it.
	g := a.GitOps
	besideTree := g == nil || g.Repo == "" || keyOf(g.Repo) == keyOf(at.address)
	switch {
	case at.anonymous:
		return "", nil
	case at.own == "" && known:
		return secret, nil
	case at.own != "" && (a.Registration == "" || secret == at.own):
		return at.own, nil
	case at.own != "":
		d := diag.New(diag.ForeignSecret,
			fmt.Sprintf("registration %s names the secret %s, which is not the one that %s gets",
				a.Registration, at.own, keyOf(at.address)))
		return "", c.refused(d.Hinting("if the host may have it, write "+line(a, backend, at.address,
			at.own)+"; or let the registration leave secretRef out"), a, s.Field+".secretRef")
	case s.Git != nil && a.Registration == "" && besideTree:
		return c.SecretRef, nil
	case c.SecretRef == "":
		return "", nil
	}
	purpose := "git sources of the platform's own workloads"
	if s.Git != nil && a.Registration == "" {
		purpose = keyOf(a.GitOps.Repo) + ", which has gitops.repo"
	}
	d := diag.New(diag.NoSecret, fmt.Sprintf("%s gets no secret: secretRef of reconciler %s is for %s",
		keyOf(at.address), a.Reconciler.Ref.Name, purpose))
	none := "anonymous: true beside its URL"
	if a.Registration != "" {
		none = fmt.Sprintf("credentials: %q: {} there", keyOf(at.address))
	}
	return "", c.refused(d.Hinting("if the host may have it, write "+line(a, backend, at.address,
		c.SecretRef)+"; if the source needs none, write "+none), a, s.Field+"."+at.field)
}

// refused points to a field of the assignment's manifests, and to the reconciler.
func (c Secrets) refused(d diag.Diagnostic, a *backends.Assignment,
	field string) []diag.Diagnostic {
	path := model.JoinPath("manifests", field)
	return []diag.Diagnostic{d.On(path).At(a.Ref.At(path), "").At(a.Reconciler.Ref, "").For(a.ID())}
}

// OfTree returns the secret that the source of the environment's tree gets.
func (c Secrets) OfTree(g *model.GitOps) string {
	if g.SecretRef != "" {
		return g.SecretRef
	}
	if secret, known := c.secretAt(g.Repo + g.OCI); known {
		return secret
	}
	return c.SecretRef
}

// line returns the line that gives a host a secret, with the permission for the assignment's
// workspace if it needs one.
func line(a *backends.Assignment, backend, address, secret string) string {
	out := fmt.Sprintf("reconcilers: %q: %s: credentials: %q: secretRef: %q", a.Reconciler.Ref.Name,
		backend, keyOf(address), secret)
	if a.Bounds == nil || a.Bounds.Secrets.Allow(secret) {
		return out
	}
	return out + " and " + a.Bounds.AllowingSecret(a.Workspace, a.Registration, secret)
}

// origin is the address of a source, and its own credentials.
type origin struct {
	address, field string
	own            string
	anonymous      bool
}

func (s Source) origin() origin {
	switch {
	case s.Git != nil:
		return origin{s.Git.Repo, "repo", s.Git.SecretRef, s.Git.Anonymous}
	case s.OCI != nil:
		return origin{s.OCI.URL, "url", s.OCI.SecretRef, s.OCI.Anonymous}
	case s.Helm.OCI != "":
		return origin{ChartURL(s.Helm), "oci", s.Helm.SecretRef, s.Helm.Anonymous}
	}
	return origin{s.Helm.Repo, "repo", s.Helm.SecretRef, s.Helm.Anonymous}
}

// secretAt returns the secret of an address: the secret of the longest prefix. If two prefixes
// have the same length, it is the secret of the one that names the port. known reports
// whether there is an entry for the address, which may have no secret.
func (c Secrets) secretAt(source string) (secret string, known bool) {
	at, ok := address.Parse(source)
	if !ok || at.Host == "" {
		return "", false
	}
	longest := -1
	for key, of := range c.Credentials {
		authority, prefix, _ := strings.Cut(key, "/")
		length := 0
		if prefix != "" {
			length = 2 * (strings.Count(prefix, "/") + 1)
		}
		switch authority {
		case at.Host + ":" + at.Port:
			length++
		case at.Host:
			if at.Port != at.Usual {
				continue
			}
		default:
			continue
		}
		if length > longest && below(at, prefix) {
			secret, known, longest = of.SecretRef, true, length
		}
	}
	return secret, known
}

// below reports whether the address is at a prefix, or below it. It ignores the suffix .git of a
// repository's name.
func below(p address.Address, prefix string) bool {
	if prefix == "" {
		return true
	}
	parts := strings.Split(prefix, "/")
	if len(parts) > len(p.Path) {
		return false
	}
	last := len(parts) - 1
	return slices.Equal(parts[:last], p.Path[:last]) &&
		strings.TrimSuffix(parts[last], ".git") == strings.TrimSuffix(p.Path[last], ".git")
}

// keyOf returns the key of an address in credentials: its host, with a port if the key must
// name the port.
func keyOf(source string) string {
	switch p, ok := address.Parse(source); {
	case !ok || p.Host == "":
		return source
	case p.Port == p.Usual:
		return p.Host
	default:
		return p.Host + ":" + p.Port
	}
}

// AccountOf returns the service account that the workspace of an assignment names. If it names
// none, AccountOf returns the reconciler's account, which may be "".
func AccountOf(a *backends.Assignment, reconciler string) string {
	if a.Bounds != nil && a.Bounds.Reconciler.ServiceAccount != "" {
		return a.Bounds.Reconciler.ServiceAccount
	}
	return reconciler
}

// AccessOf chooses the service account that the reconciler uses to apply fetched objects, in a
// namespace of the reconciler's objects. It is the account of AccountOf. If AccountOf returns "",
// it is an account of the assignment's own, and AccessOf returns it with its permissions. *account
// is the reconciler's account before the call, and the chosen account after it. "" stands for the
// reconciler itself.
func AccessOf(a *backends.Assignment, account *string, name, namespace string) (*kubernetes.Access,
	[]diag.Diagnostic) {
	if *account = AccountOf(a, *account); *account != "" {
		return nil, nil
	}
	access, ds := kubernetes.AccessOf(a, name, namespace)
	if access != nil {
		*account = access.Account
	}
	return access, ds
}
