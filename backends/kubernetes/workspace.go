package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/pod-security-admission/api"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The files that Workspace returns.
const (
	NamespaceFile      = "namespace.yaml"
	PlatformConfigFile = "platform-config.yaml"
)

// Workspace returns the files of the assignment's workspace, sorted, and the identities of their
// objects, in the order of the files. namespace.yaml contains all objects of the namespace service,
// and platform-config.yaml contains the ConfigMap "platform-config".
//
// If the namespace service or the values ask for something that Kubernetes does not allow,
// Workspace returns a diagnostic about the assignment. With a diagnostic of severity error, the
// files are incomplete.
func Workspace(a *backends.Assignment) (files []backends.File, objects []backends.Object,
	ds []diag.Diagnostic) {
	return AnnotatedWorkspace(a, nil, nil)
}

// AnnotatedWorkspace is Workspace with further annotations, which the namespace service
// cannot replace. namespaceFile are annotations of the objects in namespace.yaml, and
// platformConfig are annotations of the platform config.
func AnnotatedWorkspace(a *backends.Assignment, namespaceFile,
	platformConfig map[string]string) (files []backends.File, objects []backends.Object,
	ds []diag.Diagnostic) {
	w := &workspace{assignment: a, annotations: namespaceFile}
	if w.decode() {
		w.namespaceService()
		files = append(files, w.file(NamespaceFile))
		w.annotations = platformConfig
		w.platformConfig()
		files = append(files, w.file(PlatformConfigFile))
	}
	return files, w.objects, w.diagnostics()
}

// Namespace returns only the file namespace.yaml of Workspace.
func Namespace(a *backends.Assignment) (file backends.File, objects []backends.Object,
	ds []diag.Diagnostic) {
	w := &workspace{assignment: a}
	if w.decode() {
		w.namespaceService()
		file = w.file(NamespaceFile)
	}
	return file, w.objects, w.diagnostics()
}

// PlatformConfig returns only the file platform-config.yaml of Workspace.
func PlatformConfig(a *backends.Assignment) (file backends.File, objects []backends.Object,
	ds []diag.Diagnostic) {
	w := &workspace{assignment: a}
	w.platformConfig()
	return w.file(PlatformConfigFile), w.objects, w.diagnostics()
}

func (w *workspace) decode() bool {
	err := w.assignment.NamespaceService.Decode(&w.service)
	if err != nil {
		w.misfit("", "the namespace service cannot be read: %v", err)
	}
	return err == nil
}

// namespaceService adds all objects of the namespace service.
func (w *workspace) namespaceService() {
	a := w.assignment
	meta := w.metaIn(a.Namespace, "")
	maps.Copy(meta.Labels, workspaceLabels(a.Environment, a.ClusterType, a.Workspace))
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
	w.resourceQuota()
	w.limitRange()
	w.networkPolicies()
	w.serviceAccount()
	w.roleBindings()
	w.secrets()
	// Add the service's own objects, a list or a struct of them, in its order.
	manifests, _ := w.assignment.NamespaceService.Value.Lookup("manifests")
	for i, m := range manifests.Elems() {
		w.manifest(m, fmt.Sprintf("manifests[%d]", i))
	}
	for _, f := range manifests.Fields() {
		w.manifest(f.Value, "manifests."+model.Label(f.Name))
	}
}

// file returns a file with the objects that were added since the last one.
func (w *workspace) file(path string) backends.File {
	data, err := yaml.Marshal(w.docs...)
	if err != nil {
		w.misfit("", "%s cannot be written: %v", path, err)
	}
	w.docs = nil
	return backends.File{Path: path, Data: data}
}

// workspace collects the objects of an assignment's workspace.
type workspace struct {
	assignment  *backends.Assignment
	annotations map[string]string // of the objects that are added
	service     service
	docs        []any
	objects     []backends.Object
	ds          []diag.Diagnostic
}

// object is a document with an identity.
type object interface{ Identity() backends.Object }

// add appends an object that the service requests at a path. Two objects with the same
// identity are a diagnostic, because kustomize refuses a folder with both.
func (w *workspace) add(o object, path string) {
	id := o.Identity()
	if slices.Contains(w.objects, id) {
		w.misfit(path, "the namespace service makes %s %s twice", id.Kind, id.Name)
		return
	}
	w.objects = append(w.objects, id)
	w.docs = append(w.docs, o)
}

// meta returns the metadata of an object in the assignment's namespace.
func (w *workspace) meta(name string) Metadata {
	return w.metaIn(model.ShortName(name, model.MaxLabel), w.assignment.Namespace)
}

// metaIn returns the metadata of an object in a namespace. The namespace is "" for a cluster-scoped
// object.
func (w *workspace) metaIn(name, namespace string) Metadata {
	meta := Meta(w.assignment, name, namespace)
	maps.Copy(meta.Annotations, w.annotations)
	return meta
}

// merge adds the service's labels or annotations to kalypso's own, and reports those that would
// replace one. path is their place in the service.
func (w *workspace) merge(own, theirs map[string]string, path string) {
	for _, key := range sortedKeys(theirs) {
		if mine, ok := own[key]; ok && mine != theirs[key] {
			w.misfit(model.JoinPath(path, model.Label(key)), "%s is kalypso's own here: it is %q, and "+
				"cannot be %q", key, mine, theirs[key])
			continue
		}
		own[key] = theirs[key]
	}
}

// misfit reports fields of the namespace service that do not fit together.
func (w *workspace) misfit(path, format string, args ...any) {
	w.report(diag.BadSpec, path, format, args...)
}

// report reports something about the namespace service's value at a path.
func (w *workspace) report(code diag.Code, path, format string, args ...any) {
	ref := w.assignment.NamespaceService.Ref.At(path)
	w.ds = append(w.ds, diag.New(code, fmt.Sprintf(format, args...)).On(ref.String()).At(ref, ""))
}

// diagnostics returns the reported diagnostics, assigned to the assignment.
func (w *workspace) diagnostics() []diag.Diagnostic {
	for i := range w.ds {
		w.ds[i] = w.ds[i].For(w.assignment.ID())
		w.ds[i].Environment = w.assignment.Environment
	}
	return w.ds
}

// orphaned are the annotations that keep reconcilers from deleting an object. Flux keeps it when it
// leaves the folder or the Kustomization goes
// (https://fluxcd.io/flux/components/kustomize/kustomizations/#prune). Argo CD keeps it when it
// leaves the folder (Prune) or the Application goes (Delete;
// https://argo-cd.readthedocs.io/en/stable/user-guide/sync-options/). Reconcilers that make a
// folder a release of Helm, as Fleet does, keep it in both cases
// (https://helm.sh/docs/howto/charts_tips_and_tricks).
var orphaned = map[string]string{
	"kustomize.toolkit.fluxcd.io/prune": "disabled",
	"argocd.argoproj.io/sync-options":   "Prune=false,Delete=false",
	"helm.sh/resource-policy":           "keep",
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
		// API servers refuse these (Kubernetes' ValidateLimitRange).
		if kind == "Pod" && len(l.Default)+len(l.DefaultRequest) > 0 {
			w.misfit(path, "a pod has no default limits and requests of its own: give them to Container")
		}
		if kind == "PersistentVolumeClaim" && l.Min["storage"] == "" && l.Max["storage"] == "" {
			w.misfit(path, "limits of persistent volume claims need min or max of storage")
		}
		items = append(items,
			limitRangeItem{kind, l.Default, l.DefaultRequest, l.Max, l.Min, l.MaxLimitRequestRatio})
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
	name := cmp.Or(account.Name, w.assignment.Workload)
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

// maxStarts is the number of starts of a schedule that kalypso checks. It is more than the
// starts of a week at one a minute, and of several years at one a day.
const maxStarts = 12_000

// Overlapping returns the CronJobs of a projection whose runs may pile up without a limit, as "Kind
// name", in the order of the objects. They allow several runs at once, and it is not known how many
// start before the first has to end.
func Overlapping(p *model.Projection) []string {
	var out []string
	for _, o := range Items(p.Objects) {
		if isCronJob(o.Value) && overlap(o.Value) == 0 {
			out = append(out, "CronJob "+Text(o.Value, "metadata", "name"))
		}
	}
	return out
}

func isCronJob(v model.Value) bool {
	return Text(v, "kind") == "CronJob" && group(Text(v, "apiVersion")) == "batch"
}

// overlap returns the number of runs of a CronJob at once if each starts in time. It returns 0 if
// the number is not known. Kubernetes allows several runs unless the CronJob says otherwise. It
// ends each run after the activeDeadlineSeconds of its Job, whatever its pods do.
func overlap(cronJob model.Value) int64 {
	var spec batchv1.CronJobSpec
	if v, found := cronJob.Lookup("spec"); found && !decode(v, &spec) {
		return 0
	}
	if spec.ConcurrencyPolicy == batchv1.ForbidConcurrent ||
		spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent {
		return 1
	}
	schedule, err := cron.ParseStandard(spec.Schedule) // Kubernetes uses the same library
	deadline := spec.JobTemplate.Spec.ActiveDeadlineSeconds
	if err != nil || deadline == nil {
		return 0
	}
	return starts(schedule, time.Duration(*deadline)*time.Second)
}

// starts returns the most starts of a schedule within a time; 0 if they are more than are
// looked at.
func starts(schedule cron.Schedule, within time.Duration) int64 {
	most := int64(1)
	var recent []time.Time // the starts within the time before the next one
	next := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for range maxStarts {
		if next = schedule.Next(next); next.IsZero() { // such as on 30 February
			return most
		}
		for len(recent) > 0 && next.Sub(recent[0]) >= within {
			recent = recent[1:]
		}
		recent = append(recent, next)
		most = max(most, int64(len(recent)))
	}
	if most >= maxStarts {
		return 0
	}
	return most
}
