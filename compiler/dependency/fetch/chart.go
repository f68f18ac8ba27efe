package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// chartRepositories fetches charts: from chart repositories, and from registries.
type chartRepositories struct {
	registries *registries
	helm       []*helmClient
	anonymous  *http.Client
	indexes    memo[*index] // by the repository's URL
}

func newChartRepositories(f *Fetcher, r *registries) *chartRepositories {
	return &chartRepositories{
		registries: r, helm: newHelmClients(f),
		anonymous: &http.Client{Transport: f.web, CheckRedirect: httpclient.Redirect},
	}
}

func (c *chartRepositories) resolve(ctx context.Context, s dependency.Source) (string, []byte,
	error) {
	if strings.HasPrefix(s.URL, "oci://") {
		return c.registries.resolveChart(ctx, s.URL, s.Version)
	}
	released, err := c.releases(ctx, s)
	if err != nil {
		return "", nil, err
	}
	version, err := newestRelease(s.Version, released)
	if err != nil {
		return "", nil, err
	}
	data, err := c.download(ctx, s.URL, released[version],
		dependency.Entry{Source: s, Revision: version})
	return version, data, err
}

func (c *chartRepositories) fetch(ctx context.Context, e dependency.Entry) ([]byte, error) {
	if strings.HasPrefix(e.URL, "oci://") {
		return c.registries.fetchChart(ctx, e.URL, e)
	}
	released, err := c.releases(ctx, e.Source)
	if err != nil {
		return nil, err
	}
	r, ok := released[e.Revision]
	if !ok {
		return nil, &missingError{problem: fmt.Sprintf(
			"the chart repository has no version %s of %s any more",
			e.Revision, e.Chart), there: versionNames(versions(releaseNames(released), semver.NewVersion))}
	}
	return c.download(ctx, e.URL, r, e)
}

// newestRelease returns the wanted version: an exact match, else the newest in a range, as
// Helm selects it.
func newestRelease(wanted string, released map[string]release) (string, error) {
	if _, ok := released[wanted]; ok {
		return wanted, nil
	}
	return newest(wanted, releaseNames(released), semver.NewVersion)
}

func releaseNames(released map[string]release) []string {
	names := make([]string, 0, len(released))
	for name := range released {
		names = append(names, name)
	}
	return names
}

// releases returns the versions of a chart.
func (c *chartRepositories) releases(ctx context.Context, s dependency.Source) (map[string]release,
	error) {
	i, err := c.indexes.get(s.URL, func() (*index, error) { return c.readIndex(ctx, s.URL) })
	if err != nil {
		return nil, err
	}
	released, ok, err := i.releases(s.Chart)
	if err != nil || ok {
		return released, err
	}
	there := i.charts()
	if near := spelling.Nearest(s.Chart, there); near != "" {
		there = append([]string{near},
			slices.DeleteFunc(there, func(name string) bool { return name == near })...)
	}
	return nil, &missingError{problem: "the chart repository has no chart " + s.Chart, there: there}
}

// maxIndex is the maximal size of the index of a chart repository, in bytes: the largest
// known ones have about half of that.
const maxIndex = 64 << 20

func (c *chartRepositories) readIndex(ctx context.Context, repository string) (*index, error) {
	base, err := parseChartRepository(repository)
	if err != nil {
		return nil, err
	}
	text, err := c.get(ctx, base, base.JoinPath("index.yaml"), maxIndex)
	if err != nil {
		return nil, err
	}
	return parseIndex(text)
}

func parseChartRepository(repository string) (*url.URL, error) {
	base, err := url.Parse(repository)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, errors.New("this is no URL of a chart repository: that is https://HOST/PATH")
	}
	base.User, base.Fragment = nil, ""
	if base.Path == "" {
		base.Path = "/"
	}
	return base, nil
}

// download returns the archive of a release. It verifies the digest in the index, if there
// is one.
func (c *chartRepositories) download(ctx context.Context, repository string, r release,
	e dependency.Entry) ([]byte, error) {
	base, err := parseChartRepository(repository)
	if err != nil {
		return nil, err
	}
	if len(r.URLs) == 0 {
		return nil, fmt.Errorf("the index of the chart repository does not say where version %s is",
			e.Revision)
	}
	if strings.HasPrefix(r.URLs[0], "oci://") {
		return c.fromRegistry(ctx, r.URLs[0], e)
	}
	at, err := url.Parse(r.URLs[0])
	if err == nil && !at.IsAbs() {
		directory := *base
		directory.Path, directory.RawPath = strings.TrimSuffix(base.Path, "/")+"/", ""
		at = directory.ResolveReference(at)
		if httpclient.SameOrigin(base, at) {
			at.RawQuery = base.RawQuery // as with Helm
		}
	}
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, fmt.Errorf("the index of the chart repository says that version %s is at a place "+
			"that is no URL of a web server", e.Revision)
	}
	data, err := c.get(ctx, base, at, dependency.MaxSize)
	if err != nil {
		return nil, err
	}
	want := strings.ToLower(strings.TrimPrefix(r.Digest, "sha256:"))
	if got := dependency.DigestOf(data); want != "" && "sha256:"+want != string(got) {
		return nil, fmt.Errorf("the archive of version %s has the digest %s, and the index of the "+
			"chart repository says sha256:%s: it was damaged or tampered with", e.Revision, got, want)
	}
	return data, nil
}

// fromRegistry returns the archive of a release with a URL oci://HOST/PATH:TAG in the
// index.
func (c *chartRepositories) fromRegistry(ctx context.Context, at string,
	e dependency.Entry) ([]byte, error) {
	if slash := strings.LastIndexByte(at, '/'); strings.Contains(at[slash:], ":") {
		at = at[:slash+strings.IndexByte(at[slash:], ':')]
	}
	if e.Content.Valid() {
		return c.registries.fetchChart(ctx, at, e)
	}
	_, data, err := c.registries.resolveChart(ctx, at, e.Revision)
	return data, err
}

// get returns the content at a URL, with the credentials of its repository if that is on
// the same server.
func (c *chartRepositories) get(ctx context.Context, base, at *url.URL, most int64) ([]byte,
	error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "kalypso")
	client := c.anonymous
	entry := c.find(base)
	if entry != nil && (entry.PassCredentialsAll || httpclient.SameOrigin(base, at)) {
		client = entry.client
		if entry.Username != "" || entry.Password != "" {
			request.SetBasicAuth(entry.Username, entry.Password)
		}
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if err := answered(response, at, entry != nil); err != nil {
		return nil, err
	}
	return httpclient.ReadAll(response.Body, most)
}

// answered returns the error for a response that is not a success.
func answered(r *http.Response, at *url.URL, known bool) error {
	text := fmt.Sprintf("%s answers %s", at.Host, r.Status)
	switch r.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		hint := "`helm repo add NAME URL --username USER --password-stdin` adds the credentials of a " +
			"chart repository"
		if known {
			hint = "those that helm has for the repository are not accepted: `helm repo add NAME URL " +
				"--force-update --username USER --password-stdin` replaces them"
		}
		return &unauthorizedError{text, hint}
	case http.StatusNotFound, http.StatusGone:
		return &missingError{problem: fmt.Sprintf("there is no %s on %s", at.Path, at.Host)}
	}
	return errors.New(text)
}
