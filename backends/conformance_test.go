package backends_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// TestCells checks each cell of the table in docs/reconcilers/README.md. A backend emits every kind
// of manifests that it claims to deliver. It refuses every other kind, with the reason and a way
// out.
func TestCells(t *testing.T) {
	for _, b := range all {
		for _, kind := range model.SourceKinds {
			for _, render := range ways {
				t.Run(b.Name()+"/"+string(kind)+"/"+wayName(render), func(t *testing.T) {
					target := target(t, kind, render)
					if !render && !b.Support(kind).Looks {
						target.Projection = nil // as the compiler does it
					}
					tree := bt.Build(t, b, bt.Platform{Options: b.options, GitOps: bt.GitOps, Targets: []bt.Target{target}})
					if why := reason(b, kind, render); why != "" {
						checkRefused(t, b, tree, why)
						return
					}
					if diag.Errors(tree.Diagnostics) && !onlyNoBootstrap(tree.Diagnostics) {
						t.Fatalf("it is to be delivered: %v", tree.Diagnostics)
					}
					tree.Conforms(t)
					folder := strings.ReplaceAll(target.Name, "/", "-") + "/"
					if !slices.ContainsFunc(sortedNames(tree), func(name string) bool { return strings.HasPrefix(name, folder) }) {
						t.Errorf("nothing is in the folder: %v", sortedNames(tree))
					}
				})
			}
		}
	}
}

// checkRefused checks that the build refuses an assignment with the reason why its manifests are
// not delivered.
func checkRefused(t *testing.T, b backends.Backend, tree bt.Tree, why string) {
	t.Helper()
	var refused []diag.Diagnostic
	for _, d := range tree.Diagnostics {
		if d.Code == diag.UnsupportedManifests {
			refused = append(refused, d)
		}
	}
	if len(refused) != 1 || len(tree.Folders) > 0 {
		t.Fatalf("got %v, and want one K3001 and no folder", tree.Diagnostics)
	}
	d := refused[0]
	if d.Severity != diag.Error || !strings.HasSuffix(d.Message, why) || d.Hint == "" || len(d.Sites) != 2 || len(d.Assignments) != 1 {
		t.Errorf("%s does not say enough: %+v", b.Name(), d)
	}
}

// onlyNoBootstrap reports whether all errors are errors of Bootstrap, because kalypso has nothing
// to print.
func onlyNoBootstrap(ds []diag.Diagnostic) bool {
	return !slices.ContainsFunc(ds, func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && d.Code != diag.NoBootstrap
	})
}

// TestConformance builds a platform with every feature at once. It has each kind of manifests in
// each way that the backend delivers, a secret, values of all types, and names of maximal length.
// The tree is in a git repository, or in an OCI registry. Some reconcilers cannot pull from a
// registry.
func TestConformance(t *testing.T) {
	for _, b := range all {
		for name, gitops := range map[string]*model.GitOps{"git": bt.GitOps, "oci": bt.Registered} {
			t.Run(b.Name()+"/"+name, func(t *testing.T) {
				p := bt.Platform{Options: b.options, GitOps: gitops, Targets: deliverable(t, b)}
				tree := bt.Build(t, b, p)
				if gitops == bt.Registered && slices.Contains([]string{"ansible", "fleet"}, b.Name()) {
					checkRepository(t, tree)
				} else if diag.Errors(tree.Diagnostics) && !onlyNoBootstrap(tree.Diagnostics) {
					t.Fatalf("%v", tree.Diagnostics)
				}
				if says, prints := b.Traits().Bootstraps != "", len(tree.Bootstrap) > 0; gitops == bt.GitOps && says != prints {
					t.Errorf("Bootstraps of the traits says %v, and Bootstrap prints %v", says, prints)
				}
				if len(tree.Folders) != len(p.Targets) {
					t.Fatalf("%d folders of %d assignments", len(tree.Folders), len(p.Targets))
				}
				tree.Conforms(t)
				checkSecret(t, tree)
				checkAlone(t, b, p, tree)
			})
		}
	}
}

// Every kustomization.yaml builds, even if clusters have values of their own, and if there
// is nothing to list.
func TestKustomizations(t *testing.T) {
	one, two := bt.Value(t, `{"REGION": "west", "EMPTY": "no"}`), bt.Value(t, `{"REGION": "east", "EMPTY": ""}`)
	for _, b := range all {
		for name, gitops := range map[string]*model.GitOps{"alone": nil, "git": bt.GitOps} {
			t.Run(b.Name()+"/"+name, func(t *testing.T) {
				p := bt.Platform{Options: b.options, GitOps: gitops, Targets: deliverable(t, b)}
				bt.Build(t, b, bt.Platform{Options: b.options, GitOps: gitops})
				bt.Build(t, b, p)
				if !b.Traits().PerCluster {
					return
				}
				p.Clusters = []model.Cluster{{Name: "edge-1", Values: &one}, {Name: "edge-2", Values: &two}}
				if b.Name() == "argocd" {
					p.Options = `{"namespace": "argocd", "clusters": "inventory", "syncPolicy": {"automated": {"prune": true, "selfHeal": true}}}`
				}
				if tree := bt.Build(t, b, p); gitops != nil && len(tree.Folders) == 0 {
					t.Error("nothing is emitted")
				}
			})
		}
	}
}

// checkRepository checks that the build reports that the tree must be in a git repository, and that
// Bootstrap does not print anything that would pull it from elsewhere.
func checkRepository(t *testing.T, tree bt.Tree) {
	t.Helper()
	said := slices.ContainsFunc(tree.Diagnostics, func(d diag.Diagnostic) bool {
		return d.Code == diag.BadSpec && strings.Contains(d.Message, "is in an OCI registry") && d.Hint != ""
	})
	if !said || len(tree.Bootstrap) > 0 {
		t.Errorf("got %v\n%s", tree.Diagnostics, tree.Bootstrap)
	}
}

// secret is the secret of the values. Its key must be in the output, since no one could find it
// otherwise.
var secret = backends.Secret{Name: "DB_PASSWORD", Store: "vault", Key: "team/database-credentials"}

// deliverable are targets of all kinds and ways that the backend delivers.
func deliverable(t *testing.T, b sample) []bt.Target {
	t.Helper()
	var out []bt.Target
	for _, kind := range model.SourceKinds {
		for _, render := range ways {
			if reason(b, kind, render) != "" {
				continue
			}
			of := target(t, kind, render)
			of.Service = b.service
			of.Values = `{"REGION": "no", "PORT": "0x10", "REPLICAS": 3, "EMPTY": "", "LINES": "a\nb\n", "db": {"host": "db.example.test", "ports": [1, 2]}}`
			out = append(out, of)
		}
	}
	long := out[0]
	long.Name = strings.Repeat("w", model.MaxLabel) + "/" + strings.Repeat("t", model.MaxLabel)
	out[0].Secrets = []backends.Secret{secret}
	return append(out, long)
}

// checkSecret checks that the tree contains the reference to the secret, outside of the
// platform config. The secret's plain text is nowhere, because no one has it.
func checkSecret(t *testing.T, tree bt.Tree) {
	t.Helper()
	found := false
	for _, name := range sortedNames(tree) {
		holds := strings.Contains(string(tree.Files[name]), secret.Key)
		found = found || holds
		if holds && strings.Contains(name, "platform-config") {
			t.Errorf("%s holds the reference to a secret", name)
		}
	}
	if !found {
		t.Errorf("no file refers to %s", secret.Key)
	}
}

// checkAlone compares each folder with the folder of a platform that has no other assignments.
// Other assignments must not change it.
func checkAlone(t *testing.T, b backends.Backend, p bt.Platform, tree bt.Tree) {
	t.Helper()
	for _, target := range p.Targets {
		one := p
		one.Targets = []bt.Target{target}
		alone := bt.Build(t, b, one)
		folder := alone.Folders[0].DeploymentTarget + "/"
		for _, name := range sortedNames(alone) {
			if strings.HasPrefix(name, folder) && string(alone.Files[name]) != string(tree.Files[name]) {
				t.Errorf("%s depends on what else is assigned", name)
			}
		}
	}
}

// sortedNames are the names of the tree's files.
func sortedNames(tree bt.Tree) []string {
	var out []string
	for name := range tree.Files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
