package kubernetes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// AccessFile has the service account as which a reconciler applies what it fetches for an
// assignment, and what that may do.
const AccessFile = "access.yaml"

// Access is what a service account may do.
type Access struct {
	// Account and Namespace name the service account, as does each role and binding.
	Account, Namespace string

	stays         bool     // on the cluster, when the assignment goes
	namespaces    []string // that it may work in
	namespaced    []rule
	clusterScoped []rule
}

// rule is a rule of a Role (https://kubernetes.io/docs/reference/access-authn-authz/rbac).
type rule struct {
	APIGroups []string `yaml:"apiGroups"`
	Resources []string `yaml:"resources"`
	Verbs     []string `yaml:"verbs"`
	Names     []string `yaml:"resourceNames,omitempty"`
}

// workloadSuffix ends the names of the service accounts of assignments. No service account of
// Kubernetes or of a reconciler has such a name: a workload cannot be named so that it acts as
// one of them.
const workloadSuffix = ".workload"

// Confined says whether a workspace works in some namespaces alone.
func Confined(w *model.Workspace) bool { return w != nil && !slices.Contains(w.Namespaces, "*") }

// listed returns the namespaces that patterns allow, and the patterns that no Role can list.
func listed(namespaces model.Patterns) (names, bad []string) {
	for _, p := range namespaces {
		switch {
		case strings.HasPrefix(p, "!"): // of names, those that are taken away are left out
		case strings.Contains(p, "*"):
			bad = append(bad, p)
		case namespaces.Allow(p):
			names = append(names, p)
		}
	}
	return names, bad
}

// AccessOf returns what the service account that is named after an assignment's workload
// may do in a namespace of the reconciler's objects, so that what is fetched has the bounds
// of its workspace. It is nil where the workspace may work in all namespaces: then the
// reconciler has its own rights. What a Role cannot express is an error; but the namespaces of
// what is rendered, which the build has seen: then it is nil too.
func AccessOf(a *backends.Assignment, name, namespace string) (*Access, []diag.Diagnostic) {
	if !Confined(a.Bounds) {
		return nil, nil
	}
	names, unlisted := listed(a.Bounds.Namespaces)
	if len(unlisted) > 0 {
		if a.Render {
			return nil, nil
		}
		return nil, []diag.Diagnostic{unsaid(a, "namespaces", unlisted).
			Hinting(fmt.Sprintf("name namespaces in full; name a service account that may do what the "+
				"workspace allows: workspaces: %q: reconciler: serviceAccount; or render the manifests: set "+
				"render: true on the deployment target", a.Workspace))}
	}
	out := &Access{Account: name + workloadSuffix, Namespace: namespace,
		namespaces: append([]string{a.Namespace}, names...)}
	var bad []string
	out.namespaced, bad = rulesOf(a.Bounds.Objects.Namespaced, func(string, string) bool { return true })
	clusterScoped, worse := rulesOf(a.Bounds.Objects.ClusterScoped, ofCluster)
	for _, r := range clusterScoped {
		if slices.Equal(r.APIGroups, []string{""}) && slices.Equal(r.Resources, []string{"namespaces"}) {
			// No Role says which may be made. One that is there is changed by name.
			r.Verbs = []string{"create", "get", "list", "watch"}
			out.clusterScoped = append(out.clusterScoped,
				rule{r.APIGroups, r.Resources, []string{"delete", "patch", "update"}, out.namespaces})
		}
		out.clusterScoped = append(out.clusterScoped, r)
	}
	if bad = append(bad, worse...); len(bad) > 0 {
		way := "name kinds in full, as apps/Deployment, or all of a group, as apps/*"
		if !a.Render {
			way += "; or render the manifests: set render: true on the deployment target"
		}
		return nil, []diag.Diagnostic{unsaid(a, "objects", bad).Hinting(way)}
	}
	// A reconciler that finds no service account removes nothing of what it applied as that.
	// All of it goes with the namespace, unless it is elsewhere or the namespace stays.
	deletion, _ := a.NamespaceService.Value.Lookup("deletion")
	out.stays = deletion.Text() == "orphan" || len(out.namespaces) > 1 || len(out.clusterScoped) > 0
	// What reconcilers look at to see whether all is ready, and where Helm keeps releases.
	out.namespaced = append(out.namespaced,
		rule{[]string{"", "apps", "batch"}, []string{"daemonsets", "deployments", "events", "jobs",
			"persistentvolumeclaims", "pods", "replicasets", "services", "statefulsets"},
			[]string{"get", "list", "watch"}, nil})
	if a.Manifests.Helm != nil && !a.Render {
		out.namespaced = append(out.namespaced, rule{[]string{""}, []string{"secrets"}, changing, nil})
	}
	return out, nil
}

// unsaid reports patterns of a field of a workspace that no Role of Kubernetes says.
func unsaid(a *backends.Assignment, field string, patterns []string) diag.Diagnostic {
	kind := string(a.Manifests.Kind())
	return diag.New(diag.Bounds,
		fmt.Sprintf("what the reconciler %s fetches for %s cannot be held to the bounds of workspace "+
			"%s: no Role of Kubernetes says %s", a.Reconciler.Ref.Name, a.DeploymentTarget, a.Workspace,
			Few(patterns))).
		On("manifests."+kind).At(a.Ref.At("manifests."+kind),
		"").At(model.Ref{Collection: "workspaces", Name: a.Workspace, Path: field}, "").For(a.ID())
}

// changing are the verbs with which a reconciler applies objects. Those that give more rights
// than one has, such as bind, are not among them.
var changing = []string{"create", "delete", "get", "list", "patch", "update", "watch"}

// ofCluster says whether a rule for a kind concerns objects without a namespace alone: one in
// a ClusterRole would allow others in all namespaces.
func ofCluster(group, kind string) bool {
	return kind != "*" && (clusterScoped(group, kind) || isCustom(group))
}

// rulesOf returns the rules that allow the kinds of patterns, and the patterns that no rule
// expresses, or that do not fit.
func rulesOf(patterns model.Patterns, fits func(group, kind string) bool) (rules []rule, bad []string) {
	for _, p := range patterns {
		group, kind, found := strings.Cut(p, "/")
		if !found {
			group, kind = "", p
		}
		exact := !strings.ContainsAny(group, "*!") && (kind == "*" || !strings.ContainsAny(kind, "*!"))
		if p == "*" {
			group, kind, exact = "*", "*", true
		}
		if !exact || !fits(group, kind) {
			bad = append(bad, p)
			continue
		}
		resources := []string{"*"}
		if kind != "*" {
			resources = resourcesOf(kind)
		}
		rules = append(rules, rule{[]string{group}, resources, changing, nil})
	}
	return rules, bad
}

// resourcesOf returns what a kind is called where it is a resource, as API servers make such
// names; of gateways and such apimachinery does not know it.
func resourcesOf(kind string) []string {
	plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	if s := singular.Resource; len(s) > 1 && s[len(s)-1] == 'y' && strings.ContainsRune("aeo", rune(s[len(s)-2])) {
		return []string{s + "s"}
	}
	return []string{plural.Resource}
}

// File returns AccessFile, with the identities of its objects.
func (c *Access) File(a *backends.Assignment) (backends.File, []backends.Object) {
	docs := []any{struct {
		Object    `yaml:",inline"`
		Automount bool `yaml:"automountServiceAccountToken"`
	}{Object{APIVersion: "v1", Kind: "ServiceAccount", Metadata: c.meta(a, c.Namespace)}, false}}
	ids := []backends.Object{{Kind: "ServiceAccount", Namespace: c.Namespace, Name: c.Account}}
	for _, namespace := range c.namespaces {
		docs, ids = c.role(a, docs, ids, namespace, c.namespaced)
	}
	if len(c.clusterScoped) > 0 {
		docs, ids = c.role(a, docs, ids, "", c.clusterScoped)
	}
	return backends.File{Path: AccessFile, Data: yaml.Must(docs...)}, ids
}

func (c *Access) meta(a *backends.Assignment, namespace string) Metadata {
	m := Meta(a, c.Account, namespace)
	if c.stays {
		maps.Copy(m.Annotations, orphaned)
	}
	return m
}

// role adds a role in a namespace, "" for the whole cluster, and what binds the account to it.
func (c *Access) role(a *backends.Assignment, docs []any, ids []backends.Object, namespace string,
	rules []rule) ([]any, []backends.Object) {
	type accountRef struct {
		Kind      string `yaml:"kind"`
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	}
	kind := "Role"
	if namespace == "" {
		kind = "ClusterRole"
	}
	object := func(kind string) Object {
		return Object{APIVersion: rbacGroup + "/v1", Kind: kind, Metadata: c.meta(a, namespace)}
	}
	docs = append(docs,
		struct {
			Object `yaml:",inline"`
			Rules  []rule `yaml:"rules"`
		}{object(kind), rules},
		struct {
			Object   `yaml:",inline"`
			Subjects []accountRef `yaml:"subjects"`
			RoleRef  roleRef      `yaml:"roleRef"`
		}{object(kind + "Binding"), []accountRef{{"ServiceAccount", c.Account, c.Namespace}},
			roleRef{rbacGroup, kind, c.Account}})
	return docs, append(ids, object(kind).Identity(), object(kind+"Binding").Identity())
}
