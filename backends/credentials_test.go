package backends_test

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// secretive are reconcilers that have secrets, or that show their view of manifests.
var secretive = map[string]string{
	"flux":  `{"interval": "10m", "namespace": "flux-system", "prune": true, "wait": true, ` + hostSecrets + `}`,
	"fleet": `{"namespace": "fleet-default", "pollingInterval": "1m", "correctDrift": true, ` + hostSecrets + `}`,
	"gotemplate": `{"reconciler": {"source.yaml": {"contentType": "text", "mode": "0644", "template": ` +
		bt.JSON("{{ toYaml .Manifests }}\n") + `}}}`,
}

const hostSecrets = `"secretRef": "platform-token", "credentials": {
	"git.example.test/app": {"secretRef": "git-secret"}, "charts.example.test": {"secretRef": "charts-secret"}}`

// TestCredentials checks that no backend sends a secret to a host that it does not belong to. The
// secret of the platform is only for the platform's git sources on the host of its repository. The
// secret of a host is only for that host. A secret that a registration names is used only if the
// platform allows it.
func TestCredentials(t *testing.T) {
	belongs := map[string]string{"git.example.test": "git-secret", "charts.example.test": "charts-secret"}
	hosts := []string{"git.example.test", "charts.example.test", "tree.example.test", "other.example.test"}
	beside := &model.GitOps{Repo: "https://tree.example.test/fleet", Branch: "dev", Path: "fleet"}
	for _, b := range all {
		options := b.options
		if with, ok := secretive[b.Name()]; ok {
			options = with
		}
		for _, kind := range model.SourceKinds {
			if kind == model.PackageSource || reason(b, kind, false) != "" {
				continue
			}
			for _, host := range hosts {
				for _, own := range []string{"", "own-secret", "platform-token", "git-secret"} {
					for _, registration := range []string{"", "team"} {
						t.Run(strings.Join([]string{b.Name(), string(kind), host, own, registration}, "/"), func(t *testing.T) {
							target := target(t, kind, false)
							target.Registration = registration
							target.Manifests = sourceAt(target.Manifests, host, own)
							tree := bt.Build(t, b, bt.Platform{Options: options, GitOps: beside, Targets: []bt.Target{target}})
							isGit := kind != model.OCISource && kind != model.HelmSource
							allowed := map[string]bool{
								belongs[host]:    true,
								own:              registration == "" || own == belongs[host],
								"platform-token": registration == "" && (own == "platform-token" || own == "" && isGit && host == "tree.example.test"),
							}
							for _, name := range sortedNames(tree) {
								for _, secret := range []string{"platform-token", "git-secret", "charts-secret", "own-secret"} {
									if strings.Contains(string(tree.Files[name]), secret) && !allowed[secret] {
										t.Errorf("%s gives %s to %s:\n%s", name, secret, host, tree.Files[name])
									}
								}
							}
							checkSaid(t, tree, own != "" && registration != "" && own != belongs[host], own == "" && belongs[host] == "" && (!isGit || registration != "" || host != "tree.example.test"), b.Name())
						})
					}
				}
			}
		}
	}
}

// checkSaid checks the errors of a source that gets no secret, although the reconciler has
// secrets.
func checkSaid(t *testing.T, tree bt.Tree, foreign, lost bool, backend string) {
	t.Helper()
	has := backend == "flux" || backend == "fleet"
	for code, want := range map[diag.Code]bool{diag.ForeignSecret: has && foreign, diag.NoSecret: has && lost} {
		got := false
		for _, d := range tree.Diagnostics {
			got = got || d.Code == code && strings.Contains(d.Hint, `reconcilers: "main": `+backend+`: credentials: `)
		}
		if got != want {
			t.Errorf("%s: %t, want %t: %v", code, got, want, tree.Diagnostics)
		}
	}
}

// sourceAt returns manifests from another host, with their own secret.
func sourceAt(m model.Manifests, host, secret string) model.Manifests {
	m = m.WithoutSecrets() // a copy
	git := func(g *model.Git) {
		if g != nil {
			g.Repo, g.SecretRef = "https://"+host+"/app", secret
		}
	}
	git(m.Git)
	if m.OCI != nil {
		m.OCI.URL, m.OCI.SecretRef = "oci://"+host+"/app", secret
	}
	switch {
	case m.Helm != nil && m.Helm.Git != nil:
		git(m.Helm.Git)
	case m.Helm != nil:
		m.Helm.Repo, m.Helm.SecretRef = "https://"+host+"/app", secret
	}
	if m.Kustomize != nil {
		git(m.Kustomize.Git)
	}
	if m.Ansible != nil {
		git(m.Ansible.Git)
	}
	return m
}
