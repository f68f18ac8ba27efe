package flux

import (
	"fmt"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// sourceObject returns the object that fetches the manifests or the chart.
func sourceObject(a *backends.Assignment, o options, name string,
	s delivery.Source) (kubernetes.Object, []diag.Diagnostic) {
	object := kubernetes.Object{APIVersion: sourceAPI, Metadata: kubernetes.Meta(a, name, o.Namespace)}
	secret, ds := o.Of(a, s, "flux")
	switch {
	case s.Git != nil:
		url, ok := gitURL(s.Git.Repo)
		if !ok {
			field := s.Field + ".repo"
			ds = append(ds, delivery.Unsupported(a, field, "Flux fetches git repositories by https, http "+
				"or ssh, not "+s.Git.Repo))
		}
		object.Kind, object.Spec = gitKind, gitSpec(o, url, s.Git, secret)
	case s.OCI != nil:
		object.Kind, object.Spec = ociKind, ociSpec(o, s.OCI, secret)
	case s.Helm.OCI != "":
		object.Kind, object.Spec = ociKind, chartSpec(o, s.Helm, secret)
	default:
		object.Kind, object.Spec = helmKind, helmRepository{
			Interval: o.Interval, Timeout: o.fetchTimeout, URL: s.Helm.Repo, SecretRef: referenceTo(secret),
		}
	}
	return object, ds
}

func gitSpec(o options, url string, g *model.Git, secret string) gitRepository {
	spec := gitRepository{
		Interval: o.Interval, Timeout: o.fetchTimeout, URL: url,
		Ref:       gitRef{Branch: g.Branch, Tag: g.Tag, Semver: g.Semver, Commit: g.Commit},
		SecretRef: referenceTo(secret),
	}
	if g.Verify != nil {
		spec.Verify = &gitVerify{Mode: g.Verify.Mode, SecretRef: reference{g.Verify.SecretRef}}
	}
	return spec
}

func ociSpec(o options, c *model.OCI, secret string) ociRepository {
	spec := ociRepository{
		Interval: o.Interval, Timeout: o.fetchTimeout, URL: c.URL,
		Ref:       ociRef{Tag: c.Tag, Semver: c.Semver, Digest: c.Digest},
		SecretRef: referenceTo(secret),
	}
	if v := c.Verify; v != nil {
		spec.Verify = &ociVerify{Provider: v.Provider, SecretRef: referenceTo(v.SecretRef)}
		for _, id := range v.MatchOIDCIdentity {
			spec.Verify.MatchOIDCIdentity = append(spec.Verify.MatchOIDCIdentity,
				oidcIdentity{Issuer: id.Issuer, Subject: id.Subject})
		}
	}
	return spec
}

// chartSpec fetches a chart as it is: helm-controller wants the archive, not
// what is in it.
func chartSpec(o options, h *model.Helm, secret string) ociRepository {
	ref := ociRef{Semver: h.Version}
	if delivery.Exact(h.Version) {
		ref = ociRef{Tag: delivery.ChartTag(h.Version)}
	}
	return ociRepository{
		Interval: o.Interval, Timeout: o.fetchTimeout, URL: delivery.ChartURL(h),
		LayerSelector: &layerSelector{MediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", Operation: "copy"},
		Ref:           ref,
		SecretRef:     referenceTo(secret),
	}
}

// gitURL returns a repository's URL in the form that Flux takes: no other than
// these schemes, and no git@host:path.
func gitURL(repo string) (string, bool) {
	scheme, _, found := strings.Cut(repo, "://")
	switch {
	case found:
		return repo, scheme == "https" || scheme == "http" || scheme == "ssh"
	default:
		host, path, ok := strings.Cut(repo, ":")
		return "ssh://" + host + "/" + strings.TrimPrefix(path, "/"), ok
	}
}

// withoutHours returns a duration in minutes and less, as the timeouts of sources
// are. What has no hours stays
// as it was written.
func withoutHours(duration string) (string, error) {
	if duration == "" {
		return "", nil
	}
	d, err := time.ParseDuration(duration)
	if err != nil || !strings.Contains(duration, "h") {
		return duration, err
	}
	out := fmt.Sprintf("%dm", d/time.Minute)
	if rest := d % time.Minute; rest >= time.Second {
		out += rest.Truncate(time.Millisecond).String()
	} else if rest >= time.Millisecond {
		out += fmt.Sprintf("%dms", rest/time.Millisecond)
	}
	return out, nil
}
