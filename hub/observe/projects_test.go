package observe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// A real Argo CD applies and deletes objects within the projects of assignments. It deletes every
// object that an assignment no longer has. That includes objects from the time when the projects of
// an earlier release permitted everything.
func TestSlowArgoCDPrunesWithinProjects(t *testing.T) {
	isolated.Long(t, "runs Argo CD")
	c := startConsumers(t, "argocd")
	if c == nil {
		return // make test-long says so
	}
	p := &projects{removals: &removals{consumers: c, dir: t.TempDir()}, pattern: "one", workspace: "wide", roles: true}
	p.prepare()
	p.run("kubectl", "create", "namespace", "shared")

	p.tree(true, "web", "fetched", "old")
	p.bootstrap("edge")
	p.eventually("the earlier release", p.are("ClusterRole svc-web", "ConfigMap shared/svc-web", "Namespace one-web", "Namespace extra-web",
		"ConfigMap extra-web/web", "PriorityClass web", "ConfigMap one-fetched/fetched", "ClusterRole svc-old", "ConfigMap shared/svc-old", "Namespace one-old"))
	p.tree(false, "web", "fetched")
	p.eventually("an upgrade, and a removal", p.are("ClusterRole svc-web", "ConfigMap shared/svc-web", "Namespace one-web", "Namespace extra-web",
		"ConfigMap extra-web/web", "PriorityClass web", "ConfigMap one-fetched/fetched"))
	p.narrow("prod.edge.web-main")

	p.pattern = "two"
	p.tree(false, "web", "fetched")
	p.eventually("another pattern", p.are("ClusterRole svc-web", "ConfigMap shared/svc-web", "Namespace two-web", "Namespace extra-web",
		"ConfigMap extra-web/web", "PriorityClass web", "ConfigMap two-fetched/fetched"))
	p.roles = false
	p.tree(false, "web", "fetched")
	p.eventually("no objects of the namespace service", p.are("Namespace two-web", "Namespace extra-web", "ConfigMap extra-web/web", "PriorityClass web", "ConfigMap two-fetched/fetched"))
	p.commit("apps", "main", map[string]string{"web/object.yaml": configMap("web")})
	p.tree(false, "web", "fetched")
	p.eventually("no objects elsewhere", p.are("Namespace two-web", "ConfigMap two-web/web", "ConfigMap two-fetched/fetched"))
	p.workspace = "narrow"
	p.tree(false, "web", "fetched")
	p.eventually("another workspace", p.are("Namespace two-web", "ConfigMap two-web/web", "ConfigMap two-fetched/fetched"))
	p.tree(false, "fetched")
	p.eventually("a removal", p.are("ConfigMap two-fetched/fetched"))
}

// projects is a platform whose assignments have objects outside their namespaces.
type projects struct {
	*removals
	pattern, workspace string
	roles              bool
}

func (p *projects) prepare() {
	p.Helper()
	elsewhere := configMap("web") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: extra-web}\n---\n" +
		strings.Replace(configMap("web"), "{name: web", "{namespace: extra-web, name: web", 1) +
		"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: web}\nvalue: 7\n"
	p.commit("apps", "main", map[string]string{"web/object.yaml": elsewhere, "fetched/object.yaml": configMap("fetched"), "old/object.yaml": configMap("old")})
	p.run("git", "init", "-q", "--bare", filepath.Join(p.tmp, "tree.git"))
	p.write("cue.mod/module.cue", `module: "consumers.example/platform@v0"
language: version: "v0.17.0"
deps: "kalypso.io@v0": v: "v0.1.0"
`)
	p.write("platform.cue", `package platform

import (
	"kalypso.io/schema"
	"kalypso.io/stdlib/workspace"
)

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
workloads:          schema.#Workloads
workspaces:         schema.#Workspaces
namespaceServices:  schema.#NamespaceServices
schedulingPolicies: schema.#SchedulingPolicies
reconcilers:        schema.#Reconcilers

environments: prod: gitops: {repo: "`+gitops+`", branch: "prod"}
clusterTypes: edge: reconciler: "main"
reconcilers: main: argocd: {}
workspaces: {
	wide: workspace.#Tenant & {namespaces: ["extra-*"], objects: clusterScoped: ["Namespace", "scheduling.k8s.io/PriorityClass"]}
	narrow: workspace.#Tenant
}
workloads: [Name=string]: deploymentTargets: main: {
	environment: "prod"
	manifests: git: {repo: "`+apps+`", branch: "main", path: "./\(Name)"}
}
schedulingPolicies: edge: {deploymentTargets: {}, clusterTypes: {}}
`)
}

// tree commits the tree of workloads to the GitOps branch. It has the projects of an earlier
// release, or those of this one.
func (p *projects) tree(earlier bool, workloads ...string) {
	p.Helper()
	text := "package platform\n\n"
	for _, name := range workloads {
		workspace := "narrow"
		if name == "web" {
			workspace = p.workspace
		}
		text += fmt.Sprintf("workloads: %q: {workspace: %q, deploymentTargets: main: render: %v}\n", name, workspace, name != "fetched")
	}
	manifests := ""
	if p.roles {
		manifests = `{apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: name: "svc-\(#assignment.workload)", rules: []},
		{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "svc-\(#assignment.workload)", namespace: "shared"}},`
	}
	p.write("workloads.cue", text)
	p.write("service.cue", `package platform

import "kalypso.io/schema"

namespaceServices: default: {
	#assignment: schema.#Assignment
	pattern: "`+p.pattern+`-\(#assignment.workload)"
	namespaces: ["shared"]
	objects: clusterScoped: ["rbac.authorization.k8s.io/ClusterRole"]
	manifests: [`+manifests+`]
}
`)
	tree, work := filepath.Join(p.tmp, "tree.git"), p.TempDir()
	p.run("kalypso", "lock", "--update-all", "-C", p.dir)
	p.run("kalypso", "build", "prod", "-C", p.dir, "--git", tree, "--allow-removals")
	p.run("git", "clone", "-q", "-b", "prod", tree, work)
	if earlier {
		file := filepath.Join(work, "edge", "assignments.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			p.Fatal(err)
		}
		wide := "destinations:\n  - {server: \"*\", namespace: \"*\"}\n  clusterResourceWhitelist:\n  - {group: \"*\", kind: \"*\"}\n  namespaceResourceWhitelist:"
		text = regexp.MustCompile(`(?s)destinations:\n.*?namespaceResourceWhitelist:`).ReplaceAll(text, []byte(wide))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			p.Fatal(err)
		}
	}
	p.run("git", "-C", work, "commit", "-q", "-a", "--allow-empty", "-m", "Projects")
	p.run("git", "-C", work, "push", "-q", "-f", p.repository("gitops"), "HEAD:prod")
}

// are returns "" once all Applications are synced and the cluster has exactly these objects of the
// assignments. It checks the kinds that assignments may have outside their namespaces, and the
// ConfigMaps of their namespaces.
func (p *projects) are(wanted ...string) func() string {
	slices.Sort(wanted)
	return func() string {
		for name, o := range p.named() {
			if s := o.Status; s.Sync.Status != "Synced" || s.Health.Status != "Healthy" {
				return fmt.Sprintf("%s: %+v", name, s)
			}
		}
		var have []string
		for _, kind := range []string{"Namespace", "ClusterRole", "PriorityClass", "ConfigMap"} {
			const columns = `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}`
			for object := range strings.Lines(p.run("kubectl", "get", kind, "-A", "-o", columns)) {
				object = strings.TrimPrefix(strings.TrimSuffix(object, "\n"), "/")
				if kind == "Namespace" && object != "shared" || strings.HasSuffix(object, "svc-web") || strings.HasSuffix(object, "svc-old") || strings.HasSuffix(object, "/web") || object == "web" || strings.HasSuffix(object, "/fetched") {
					have = append(have, kind+" "+object)
				}
			}
		}
		for _, object := range wanted {
			if !slices.Contains(have, object) {
				return fmt.Sprintf("%s is not there; there are %q", object, have)
			}
		}
		for _, object := range have {
			_, namespace, _ := strings.Cut(strings.Split(object, "/")[0], " ")
			known := slices.Contains(wanted, object) || slices.Contains(wanted, "Namespace "+namespace) && strings.HasPrefix(object, "ConfigMap ")
			ours := !strings.HasPrefix(object, "Namespace ") || regexp.MustCompile(`^(one|two|extra)-`).MatchString(namespace) && !strings.HasSuffix(namespace, "-fetched")
			if !known && ours {
				return fmt.Sprintf("%s is still there", object)
			}
		}
		return ""
	}
}

// narrow fails unless a project permits less than everything.
func (p *projects) narrow(project string) {
	p.Helper()
	spec := p.run("kubectl", "-n", "argocd", "get", "appprojects.argoproj.io", project, "-o", "jsonpath={.spec.destinations}{.spec.clusterResourceWhitelist}")
	if strings.Contains(spec, `"*"`) || !strings.Contains(spec, "ClusterRole") || !strings.Contains(spec, "extra-*") {
		p.Errorf("%s permits %s", project, spec)
	}
}
