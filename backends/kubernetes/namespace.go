package kubernetes

import (
	"maps"
	"slices"

	"k8s.io/pod-security-admission/api"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// orphaned are the annotations that keep reconcilers from deleting an object:
// Flux, when it leaves the folder or the Kustomization goes
// (https://fluxcd.io/flux/components/kustomize/kustomizations/#prune), Argo CD,
// when it leaves the folder (Prune) or the Application goes (Delete;
// https://argo-cd.readthedocs.io/en/stable/user-guide/sync-options/), and those
// that make a folder a release of Helm's, as Fleet does, in both cases
// (https://helm.sh/docs/howto/charts_tips_and_tricks).
var orphaned = map[string]string{
	"kustomize.toolkit.fluxcd.io/prune": "disabled",
	"argocd.argoproj.io/sync-options":   "Prune=false,Delete=false",
	"helm.sh/resource-policy":           "keep",
}

func (w *workspace) namespace() {
	a := w.assignment
	meta := w.metaIn(a.Namespace, "")
	maps.Copy(meta.Labels, placeOf(a.Environment, a.ClusterType, a.Workspace))
	meta.Labels["workload"] = model.ShortName(a.Workload, model.MaxLabel)
	meta.Labels["deploymentTarget"] = model.ShortName(a.DeploymentTarget, model.MaxLabel)
	if level := w.service.PodSecurity; level != "" {
		for _, label := range []string{api.EnforceLevelLabel, api.AuditLevelLabel, api.WarnLevelLabel} {
			meta.Labels[label] = level
		}
	}
	if w.service.Deletion == "orphan" {
		maps.Copy(meta.Annotations, orphaned)
	}
	w.merge(meta.Labels, w.service.Labels, "labels")
	w.merge(meta.Annotations, w.service.Annotations, "annotations")
	w.add(Object{APIVersion: "v1", Kind: "Namespace", Metadata: meta}, "")
}

func (w *workspace) resourceQuota() {
	if len(w.service.Quota) == 0 {
		return
	}
	type spec struct {
		Hard map[string]quantity `yaml:"hard"`
	}
	w.add(Object{"v1", "ResourceQuota", w.meta("quota"), spec{w.service.Quota}}, "quota")
}

// limitRangeItem is an item of a LimitRange.
type limitRangeItem struct {
	Type                 string              `yaml:"type"`
	Default              map[string]quantity `yaml:"default,omitempty"`
	DefaultRequest       map[string]quantity `yaml:"defaultRequest,omitempty"`
	Max                  map[string]quantity `yaml:"max,omitempty"`
	Min                  map[string]quantity `yaml:"min,omitempty"`
	MaxLimitRequestRatio map[string]quantity `yaml:"maxLimitRequestRatio,omitempty"`
}

func (w *workspace) limitRange() {
	var items []limitRangeItem
	for _, kind := range sortedKeys(w.service.Limits) {
		l := w.service.Limits[kind]
		path := "limits." + kind
		// What API servers refuse (Kubernetes' ValidateLimitRange).
		if kind == "Pod" && len(l.Default)+len(l.DefaultRequest) > 0 {
			w.misfit(path, "a pod has no default limits and requests of its own: give them to Container")
		}
		if kind == "PersistentVolumeClaim" && l.Min["storage"] == "" && l.Max["storage"] == "" {
			w.misfit(path, "limits of persistent volume claims need min or max of storage")
		}
		items = append(items, limitRangeItem{kind, l.Default, l.DefaultRequest, l.Max, l.Min, l.MaxLimitRequestRatio})
	}
	if len(items) == 0 {
		return
	}
	type spec struct {
		Limits []limitRangeItem `yaml:"limits"`
	}
	w.add(Object{"v1", "LimitRange", w.meta("limits"), spec{items}}, "limits")
}

// localReference refers to an object of the same namespace.
type localReference struct {
	Name string `yaml:"name"`
}

func (w *workspace) serviceAccount() {
	account := w.service.ServiceAccount
	name := account.Name
	if name == "" {
		name = w.assignment.Workload
	}
	if !model.IsDNSSubdomain(name) {
		w.misfit("serviceAccount.name", "%q cannot be the name of a service account: use lower case "+
			"letters, digits, '-' and '.'", name)
		return
	}
	meta := w.meta(name)
	w.merge(meta.Annotations, account.Annotations, "serviceAccount.annotations")
	var pullSecrets []localReference
	for _, secret := range account.ImagePullSecrets {
		pullSecrets = append(pullSecrets, localReference{secret})
	}
	w.add(struct {
		Object           `yaml:",inline"`
		Automount        bool             `yaml:"automountServiceAccountToken"`
		ImagePullSecrets []localReference `yaml:"imagePullSecrets,omitempty"`
	}{Object{APIVersion: "v1", Kind: "ServiceAccount", Metadata: meta}, account.AutomountToken,
		pullSecrets}, "serviceAccount")
}

// roleRef names a role, and subject who gets it.
type roleRef struct {
	APIGroup string `yaml:"apiGroup"`
	Kind     string `yaml:"kind"`
	Name     string `yaml:"name"`
}
type subject = roleRef

const rbacGroup = "rbac.authorization.k8s.io"

func (w *workspace) roleBindings() {
	for _, name := range sortedKeys(w.service.RBAC) {
		binding := w.service.RBAC[name]
		role := roleRef{rbacGroup, "Role", binding.Role}
		if binding.ClusterRole != "" {
			role = roleRef{rbacGroup, "ClusterRole", binding.ClusterRole}
		}
		var subjects []subject
		for _, group := range binding.Groups {
			subjects = append(subjects, subject{rbacGroup, "Group", group})
		}
		w.add(struct {
			Object   `yaml:",inline"`
			Subjects []subject `yaml:"subjects"`
			RoleRef  roleRef   `yaml:"roleRef"`
		}{Object{APIVersion: rbacGroup + "/v1", Kind: "RoleBinding", Metadata: w.meta(name)}, subjects,
			role}, "rbac."+model.Label(name))
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
