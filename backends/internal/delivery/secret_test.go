package delivery

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// secrets returns the secrets of a reconciler from their JSON.
func secrets(t *testing.T, text string) Secrets {
	t.Helper()
	var c Secrets
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSecretByHost(t *testing.T) {
	c := secrets(t, `{"credentials": {
		"git.example.com": {"secretRef": "host"},
		"git.example.com/team": {"secretRef": "team"},
		"git.example.com/team/open": {},
		"git.example.com:443/team": {"secretRef": "https-team"},
		"git.example.com:8443": {"secretRef": "port"},
		"insecure.example.com:80": {"secretRef": "http"},
		"[::1]:3000": {"secretRef": "loopback"}
	}}`)
	for address, want := range map[string]string{
		"https://git.example.com/other":             "host",
		"https://GIT.example.com/other":             "host",
		"https://git.example.com:443/other":         "host",
		"ssh://git@git.example.com/team/app":        "team",
		"ssh://git@git.example.com:22/team":         "team",
		"git@git.example.com:team/app.git":          "team",
		"https://git.example.com/team/app":          "https-team",
		"https://git.example.com/team.git":          "https-team",
		"https://git.example.com/team%2Dx/app":      "host",
		"https://git.example.com/teams":             "host",
		"oci://git.example.com/other/app":           "host",
		"https://git.example.com/team/open":         "",
		"https://git.example.com/team/open.git":     "",
		"https://git.example.com/team/../other":     "host",
		"https://git.example.com/team/%2e%2e/other": "host",
		"https://git.example.com/team%2Fapp":        "host",
		"https://git.example.com:8443/team":         "port",
		"https://git.example.com:9443/team":         "unknown",
		"http://git.example.com/team":               "unknown", // for all to read
		"http://git.example.com:443/team":           "https-team",
		"http://insecure.example.com/a":             "http",
		"http://[::1]:3000/a":                       "loopback",
		"https://git.example.com.evil.test/team":    "unknown",
		"https://evil.test/git.example.com/team":    "unknown",
		"https://example.com/team":                  "unknown",
		"https://git.example.com./team":             "unknown",
		"file:///git.example.com/team":              "unknown",
		"git.example.com/team":                      "unknown",
		"https://git.example.com\\@evil.test/team":  "unknown",
	} {
		got, known := c.secretAt(address)
		if !known {
			got = "unknown"
		}
		if got != want {
			t.Errorf("%s gets %q, want %q", address, got, want)
		}
	}
}

func TestSecretOf(t *testing.T) {
	const (
		plain  = `{"secretRef": "platform"}`
		byHost = `{"secretRef": "platform", "credentials": {"git.example.com": {"secretRef": "git"}, "charts.example.com": {"secretRef": "charts"}, "open.example.com": {}}}`
	)
	git := func(host, own string, anonymous bool) Source {
		return Source{Git: &model.Git{Repo: "https://" + host + "/a", SecretRef: own, Anonymous: anonymous}, Field: "git"}
	}
	chart := func(host, own string, anonymous bool) Source {
		return Source{Helm: &model.Helm{Repo: "https://" + host + "/a", SecretRef: own, Anonymous: anonymous}, Field: "helm"}
	}
	oci := Source{OCI: &model.OCI{URL: "oci://registry.example.com/a"}, Field: "oci"}
	for name, c := range map[string]struct {
		options      string
		registration string
		source       Source
		want         string // the secret; with a code first, what the hint says
	}{
		"own git beside the tree":          {plain, "", git("tree.example.com", "", false), "platform"},
		"own git beside the tree, port":    {plain, "", git("tree.example.com:8443", "", false), `K3025 credentials: "tree.example.com:8443": secretRef: "platform"`},
		"own git elsewhere":                {plain, "", git("any.example.com", "", false), `K3025 reconcilers: "main": flux: credentials: "any.example.com": secretRef: "platform"`},
		"own git elsewhere, how without":   {plain, "", git("any.example.com", "", false), "K3025 anonymous: true"},
		"own git where there is no secret": {`{}`, "", git("any.example.com", "", false), ""},
		"registered git beside the tree":   {plain, "team", git("tree.example.com", "", false), `K3025 credentials: "tree.example.com": secretRef: "platform"`},
		"own git with a secret":            {plain, "", git("any.example.com", "own", false), "own"},
		"own git, by host":                 {byHost, "", git("git.example.com", "", false), "git"},
		"own git, open host":               {byHost, "", git("open.example.com", "", false), ""},
		"own git, anonymous":               {byHost, "", git("any.example.com", "", true), ""},
		"chart":                            {plain, "", chart("charts.example.com", "", false), `K3025 reconcilers: "main": flux: credentials: "charts.example.com": secretRef: "platform"`},
		"chart with a port":                {plain, "", chart("charts.example.com:8443", "", false), `K3025 credentials: "charts.example.com:8443": secretRef: "platform"`},
		"chart says how to do without":     {plain, "", chart("charts.example.com", "", false), "K3025 anonymous: true"},
		"chart with a secret":              {plain, "", chart("charts.example.com", "own", false), "own"},
		"chart, by host":                   {byHost, "", chart("charts.example.com", "", false), "charts"},
		"chart, anonymous":                 {byHost, "", chart("other.example.com", "", true), ""},
		"chart, open host":                 {byHost, "", chart("open.example.com", "", false), ""},
		"chart where there is no secret":   {`{}`, "", chart("charts.example.com", "", false), ""},
		"registry":                         {plain, "", oci, `K3025 credentials: "registry.example.com": secretRef: "platform"`},
		"registered git":                   {plain, "team", git("git.example.com", "", false), `K3025 credentials: "git.example.com": secretRef: "platform"`},
		"registered git, how without":      {plain, "team", git("git.example.com", "", false), `K3025 credentials: "git.example.com": {}`},
		"registered git, by host":          {byHost, "team", git("git.example.com", "", false), "git"},
		"registered git, anonymous":        {byHost, "team", git("git.example.com", "", true), ""},
		"registered, names the host's":     {byHost, "team", git("git.example.com", "git", false), "git"},
		"registered, names another":        {byHost, "team", git("git.example.com", "charts", false), `K3026 credentials: "git.example.com": secretRef: "charts"`},
		"registered, names the platform's": {byHost, "team", git("evil.example.com", "platform", false), `K3026 credentials: "evil.example.com": secretRef: "platform"`},
		"registered, nothing configured":   {`{}`, "team", git("evil.example.com", "platform", false), "K3026"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &backends.Assignment{
				Environment: "dev", ClusterType: "large", DeploymentTarget: "app-main", Registration: c.registration,
				Reconciler: backends.Spec{Ref: model.Ref{Collection: "reconcilers", Name: "main"}},
				GitOps:     &model.GitOps{Repo: "ssh://git@tree.example.com/fleet.git"},
			}
			got, ds := secrets(t, c.options).SecretFor(a, c.source, "flux")
			code, hint, fails := strings.Cut(c.want, " ")
			if fails = fails || strings.HasPrefix(code, "K3"); !fails {
				if len(ds) > 0 || got != c.want {
					t.Errorf("%q %v, want %q", got, ds, c.want)
				}
				return
			}
			if len(ds) != 1 || string(ds[0].Code) != code || !strings.Contains(ds[0].Hint, hint) || got != "" {
				t.Errorf("%q %v, want %s with the hint %s", got, ds, code, hint)
			}
		})
	}
}

// If an environment has no repository, its secretRef is for the git sources of the platform's own
// workloads. There is no tree that it could be a token for.
func TestSecretWithoutRepository(t *testing.T) {
	source := Source{Git: &model.Git{Repo: "https://git.example.com/a"}, Field: "git"}
	for name, gitOps := range map[string]*model.GitOps{"no gitops": nil, "registry": {OCI: "oci://git.example.com/fleet"}} {
		a := &backends.Assignment{Environment: "dev", Reconciler: backends.Spec{Ref: model.Ref{Collection: "reconcilers", Name: "main"}}, GitOps: gitOps}
		got, ds := secrets(t, `{"secretRef": "platform"}`).SecretFor(a, source, "flux")
		if got != "platform" || len(ds) > 0 {
			t.Errorf("%s: %q %v", name, got, ds)
		}
	}
}
