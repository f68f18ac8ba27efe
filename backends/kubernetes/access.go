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

// AccessFile holds the service account that a reconciler uses to apply the objects it fetches for
// an assignment, together with the account's roles and role bindings.
const AccessFile = "access.yaml"

// Access is a service account and its permissions on a cluster.
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

// Confined reports whether a workspace may work only in some namespaces.
func Confined(w *model.Workspace) bool { return w != nil && !slices.Contains(w.Namespaces, "*") }

// listed returns the namespaces that patterns allow, and the patterns that no Role can list.
func listed(namespaces model.Patterns) (names, bad []string) {
	for _, p := range namespaces {
		switch {
		// Excluded names are left out.
		case strings.HasPrefix(p, "!"):
		case strings.Contains(p, "*"):
			bad = append(bad, p)
		case namespaces.Allow(p):
			names = append(names, p)
		}
	}
	return names, bad
}

// AccessOf returns the permissions of the service account that is named after an assignment's
// workload, in a namespace of the reconciler's objects. They apply the bounds of the workspace to
// fetched objects. AccessOf returns nil if the workspace may work in all namespaces: the reconciler
// then uses its own rights. It returns an error for bounds that a Role cannot express. If the build
// renders the manifests, it has already checked their namespaces, so AccessOf returns nil instead.
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
	out.namespaced,
		bad = rulesOf(a.Bounds.Objects.Namespaced, func(string, string) bool { return true })
	clusterScoped, worse := rulesOf(a.Bounds.Objects.ClusterScoped, ofCluster)
	for _, r := range clusterScoped {
		if slices.Equal(r.APIGroups, []string{""}) && slices.Equal(r.Resources, []string{"namespaces"}) {
			// A role cannot restrict the names of new objects. It restricts changes of existing
			// ones by name.
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
	// A reconciler without its service account does not remove the objects that it applied. All of
	// them go with the namespace, unless they are in other places or the namespace stays.
	deletion, _ := a.NamespaceService.Value.Lookup("deletion")
	out.stays = deletion.Text() == "orphan" || len(out.namespaces) > 1 || len(out.clusterScoped) > 0
	// Reconcilers read these to see whether everything is ready. Helm keeps its releases in
	// Secrets.
	out.namespaced = append(out.namespaced,
		rule{[]string{"", "apps", "batch"}, []string{"daemonsets", "deployments", "events", "jobs",
			"persistentvolumeclaims", "pods", "replicasets", "services", "statefulsets"},
			[]string{"get", "list", "watch"}, nil})
	if a.Manifests.Helm != nil && !a.Render {
		out.namespaced = append(out.namespaced, rule{[]string{""}, []string{"secrets"}, changing, nil})
	}
	return out, nil
}

// unsaid reports patterns in a field of a workspace that a Role of Kubernetes cannot
// express.
func unsaid(a *backends.Assignment, field string, patterns []string) diag.Diagnostic {
	kind := string(a.Manifests.Kind())
	return diag.New(diag.Bounds,
		fmt.Sprintf("what the reconciler %s fetches for %s cannot be held to the bounds of workspace "+
			"%s: no Role of Kubernetes says %s", a.Reconciler.Ref.Name, a.DeploymentTarget, a.Workspace,
			Few(patterns))).
		On("manifests."+kind).At(a.Ref.At("manifests."+kind),
		"").At(model.Ref{Collection: "workspaces", Name: a.Workspace, Path: field}, "").For(a.ID())
}

// changing are the verbs with which a reconciler applies objects. They do not include verbs
// that grant more rights than the account has, such as bind.
var changing = []string{"create", "delete", "get", "list", "patch", "update", "watch"}

// ofCluster reports whether a rule for a kind concerns only objects without a namespace. For other
// kinds, a ClusterRole would allow the objects of all namespaces.
func ofCluster(group, kind string) bool {
	return kind != "*" && (clusterScoped(group, kind) || isCustom(group))
}

// rulesOf returns the rules that allow the kinds of patterns, and the patterns that no rule
// expresses, or that do not fit.
func rulesOf(patterns model.Patterns, fits func(group, kind string) bool) (rules []rule,
	bad []string) {
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
			// These are the resource names that API servers use for the kind. apimachinery guesses
			// wrong for gateways and similar names.
			plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
			resources[0] = plural.Resource
			if s := singular.Resource; len(s) > 1 && s[len(s)-1] == 'y' &&
				strings.ContainsRune("aeo", rune(s[len(s)-2])) {
				resources[0] = s + "s"
			}
		}
		rules = append(rules, rule{[]string{group}, resources, changing, nil})
	}
	return rules, bad
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

// role adds a role in a namespace, or for the whole cluster if it is "", and its binding to
// the account.
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

// clusterScopedKinds are the kinds whose objects have no namespace, by group. They are the kinds of
// Kubernetes (`kubectl api-resources --namespaced=false`) and of extensions that platforms often
// install. Objects of other kinds declare it with an empty metadata.namespace.
var clusterScopedKinds = map[string]string{
	"": "Namespace Node PersistentVolume ComponentStatus",
	"admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingWebhookConfiguration " +
		"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy " +
		"MutatingAdmissionPolicyBinding",
	"apiextensions.k8s.io":         "CustomResourceDefinition",
	"apiregistration.k8s.io":       "APIService",
	"certificates.k8s.io":          "CertificateSigningRequest ClusterTrustBundle",
	"flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
	"networking.k8s.io":            "IngressClass IPAddress ServiceCIDR",
	"node.k8s.io":                  "RuntimeClass",
	"policy.networking.k8s.io": "AdminNetworkPolicy BaselineAdminNetworkPolicy " +
		"ClusterNetworkPolicy",
	"rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
	"resource.k8s.io":           "DeviceClass DeviceTaintRule ResourceSlice",
	"scheduling.k8s.io":         "PriorityClass",
	"storage.k8s.io": "StorageClass CSIDriver CSINode VolumeAttachment " +
		"VolumeAttributesClass",
	"snapshot.storage.k8s.io":      "VolumeSnapshotClass VolumeSnapshotContent",
	"groupsnapshot.storage.k8s.io": "VolumeGroupSnapshotClass VolumeGroupSnapshotContent",
	"storagemigration.k8s.io":      "StorageVersionMigration",
	"internal.apiserver.k8s.io":    "StorageVersion",
	"gateway.networking.k8s.io":    "GatewayClass",

	"cert-manager.io": "ClusterIssuer",
	"cilium.io": "CiliumClusterwideNetworkPolicy CiliumClusterwideEnvoyConfig " +
		"CiliumLoadBalancerIPPool CiliumCIDRGroup",
	"crd.projectcalico.org":     "GlobalNetworkPolicy GlobalNetworkSet IPPool Tier",
	"projectcalico.org":         "GlobalNetworkPolicy GlobalNetworkSet IPPool Tier",
	"external-secrets.io":       "ClusterSecretStore ClusterExternalSecret ClusterPushSecret",
	"karpenter.sh":              "NodePool NodeClaim",
	"kueue.x-k8s.io":            "ClusterQueue ResourceFlavor AdmissionCheck",
	"kyverno.io":                "ClusterPolicy ClusterCleanupPolicy GlobalContextEntry",
	"policy.sigstore.dev":       "ClusterImagePolicy TrustRoot",
	"project.openshift.io":      "Project",
	"security.openshift.io":     "SecurityContextConstraints",
	"templates.gatekeeper.sh":   "ConstraintTemplate",
	"constraints.gatekeeper.sh": "*",
	"trust.cert-manager.io":     "Bundle",
}

// clusterScoped reports whether the objects of a kind are known to have no namespace.
func clusterScoped(group, kind string) bool {
	for known := range strings.FieldsSeq(clusterScopedKinds[group]) {
		if known == kind || known == "*" {
			return true
		}
	}
	return false
}

// The functions below read the properties of objects that a workspace may bound.

// AsksToStay reports whether an object asks a reconciler to keep it on the cluster when its
// assignment goes. It ignores kalypso's own annotation on a CustomResourceDefinition.
func AsksToStay(v model.Value) bool {
	for name, values := range staying {
		if name == policyAnnotation && IsDefinition(v) {
			continue
		}
		asked := options(Annotation(v, name))
		if slices.ContainsFunc(options(values),
			func(option string) bool { return slices.Contains(asked, option) }) {
			return true
		}
	}
	return false
}

// staying are the options in annotations that make reconcilers keep an object on a cluster,
// for ever or until a person confirms that it may go.
var staying = func() map[string]string {
	out := maps.Clone(orphaned)
	out["argocd.argoproj.io/sync-options"] += ",Prune=confirm,Delete=confirm"
	return out
}()

// HasFinalizers reports whether an object has finalizers of its own. Then the object, and
// its namespace, stay on the cluster until someone removes them.
func HasFinalizers(v model.Value) bool {
	finalizers, _ := Lookup(v, "metadata", "finalizers")
	return len(finalizers.Elems()) > 0
}

// TakesTraffic reports whether an object diverts traffic for other addresses to its pods.
// Nodes send the traffic for all externalIPs of a Service to its pods (CVE-2020-8554).
func TakesTraffic(v model.Value) bool {
	ips, _ := Lookup(v, "spec", "externalIPs")
	return len(ips.Elems()) > 0 && Text(v, "kind") == "Service" && Text(v, "apiVersion") == "v1"
}

// options returns the options in the value of an annotation, in lower case.
func options(value string) []string {
	out := strings.Split(strings.ToLower(value), ",")
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// The annotations that make an object a hook of Helm's releases or of Argo CD's syncs. Argo
// CD also runs Helm's hooks.
const (
	HelmHookAnnotation = "helm.sh/hook"
	ArgoHookAnnotation = "argocd.argoproj.io/hook"
)

var hookAnnotations = []string{HelmHookAnnotation, ArgoHookAnnotation}

// IsHook reports whether an object that was rendered is a hook.
func IsHook(o model.Projected) bool {
	return len(o.Hooks) > 0 || slices.ContainsFunc(hookAnnotations,
		func(name string) bool { return Annotation(o.Value, name) != "" })
}

// IsArgoHook reports whether a rendered object is a hook of Argo CD's syncs, and not of
// Helm. Only Argo CD knows such hooks.
func IsArgoHook(o model.Projected) bool {
	isHelm := len(o.Hooks) > 0 || Annotation(o.Value, HelmHookAnnotation) != ""
	return !isHelm && Annotation(o.Value, ArgoHookAnnotation) != ""
}

// Annotation returns an annotation of an object. It returns "" if the object does not have
// it.
func Annotation(v model.Value,
	name string) string {
	return Text(v, "metadata", "annotations", name)
}

// Lacks returns the given labels that an object does not have.
func Lacks(v model.Value, labels []string) []string {
	return slices.DeleteFunc(slices.Clone(labels),
		func(label string) bool { return Text(v, "metadata", "labels", label) != "" })
}
