package argocd

import (
	"maps"

	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const (
	api = "argoproj.io/v1alpha1"

	// inCluster is the API server of the cluster that Argo CD runs on, and inClusterName is Argo
	// CD's name for that cluster.
	inCluster     = "https://kubernetes.default.svc"
	inClusterName = "in-cluster"

	// Without the finalizer, deleted Applications leave their objects behind. Projects can
	// then go before their Applications, which cannot be deleted any more.
	finalizer = "resources-finalizer.argocd.argoproj.io"
)

// application is the spec of an Application
// (https://argo-cd.readthedocs.io/en/stable/user-guide/application-specification).
type application struct {
	Project           string             `yaml:"project"`
	Source            source             `yaml:"source"`
	Destination       destination        `yaml:"destination"`
	SyncPolicy        *syncPolicy        `yaml:"syncPolicy,omitempty"`
	IgnoreDifferences []ignoreDifference `yaml:"ignoreDifferences,omitempty"`
}

// The annotation of Applications that people sync, because the platform says so. Observers
// do not report such an Application as suspended.
const (
	syncAnnotation = "kalypso.io/sync"
	manualSync     = "manual"
)

func applicationObject(meta kubernetes.Metadata, spec application) kubernetes.Object {
	if spec.SyncPolicy.byHand() {
		meta.Annotations = maps.Clone(meta.Annotations)
		if meta.Annotations == nil {
			meta.Annotations = map[string]string{}
		}
		meta.Annotations[syncAnnotation] = manualSync
	}
	meta.Finalizers = []string{finalizer}
	return kubernetes.Object{APIVersion: api, Kind: "Application", Metadata: meta, Spec: spec}
}

// source is the place of manifests. It has either a Path or a Chart.
type source struct {
	RepoURL        string           `yaml:"repoURL"`
	TargetRevision string           `yaml:"targetRevision"`
	Path           string           `yaml:"path,omitempty"`
	Chart          string           `yaml:"chart,omitempty"`
	Helm           *helmSource      `yaml:"helm,omitempty"`
	Kustomize      *kustomizeSource `yaml:"kustomize,omitempty"`
}

// kustomizeSource has the changes to an overlay.
type kustomizeSource struct {
	NamePrefix string   `yaml:"namePrefix,omitempty"`
	Images     []string `yaml:"images,omitempty"`
	Patches    []patch  `yaml:"patches,omitempty"`
}

type patch struct {
	Patch  string            `yaml:"patch"`
	Target map[string]string `yaml:"target,omitempty"`
}

type helmSource struct {
	ReleaseName  string       `yaml:"releaseName"`
	SkipCRDs     bool         `yaml:"skipCrds,omitempty"`
	Values       string       `yaml:"values,omitempty"` // instead of ValuesObject
	ValuesObject *model.Value `yaml:"valuesObject,omitempty"`
}

// destination is a namespace of a cluster. Either Server or Name identifies the cluster.
type destination struct {
	Server    string `json:"server,omitempty" yaml:"server,omitempty"`
	Name      string `json:"name,omitempty" yaml:"name,omitempty"`
	Namespace string `json:"-" yaml:"namespace"`
}

func (d destination) inNamespace(namespace string) destination {
	d.Namespace = namespace
	return d
}

// remote reports whether the destination is not Argo CD's own cluster.
func (d destination) remote() bool { return d.Server != inCluster && d.Name != inClusterName }

type syncPolicy struct {
	Automated   *automation `yaml:"automated,omitempty"`
	SyncOptions []string    `yaml:"syncOptions,omitempty"`
	Retry       *retry      `yaml:"retry,omitempty"`
}

// byHand reports whether people sync, by a policy that may be nil.
func (p *syncPolicy) byHand() bool { return p == nil || p.Automated == nil }

type automation struct {
	Prune      bool  `yaml:"prune"`
	SelfHeal   bool  `yaml:"selfHeal"`
	AllowEmpty *bool `yaml:"allowEmpty,omitempty"`
}

type retry struct {
	Limit   *int     `yaml:"limit,omitempty"`
	Refresh bool     `json:"-" yaml:"refresh,omitempty"`
	Backoff *backoff `yaml:"backoff,omitempty"`
}

type backoff struct {
	Duration    string `yaml:"duration,omitempty"`
	Factor      int    `yaml:"factor,omitempty"`
	MaxDuration string `yaml:"maxDuration,omitempty"`
}

type ignoreDifference struct {
	Group                 string   `json:"group,omitempty" yaml:"group,omitempty"`
	Kind                  string   `json:"kind" yaml:"kind"`
	Name                  string   `json:"name,omitempty" yaml:"name,omitempty"`
	Namespace             string   `json:"namespace,omitempty" yaml:"namespace,omitempty"`
	JSONPointers          []string `json:"jsonPointers,omitempty" yaml:"jsonPointers,omitempty"`
	JQPathExpressions     []string `json:"jqPathExpressions,omitempty" yaml:"jqPathExpressions,omitempty"`
	ManagedFieldsManagers []string `json:"managedFieldsManagers,omitempty" yaml:"managedFieldsManagers,omitempty"`
}

// appProject is the spec of an AppProject
// (https://argo-cd.readthedocs.io/en/stable/user-guide/projects). An absent list of
// cluster-scoped objects permits none of them. An absent list of namespaced kinds permits
// all of them.
type appProject struct {
	Description                string          `yaml:"description"`
	SourceRepos                []string        `yaml:"sourceRepos"`
	Destinations               []destination   `yaml:"destinations"`
	ClusterResourceWhitelist   []clusterObject `yaml:"clusterResourceWhitelist,omitempty"`
	ClusterResourceBlacklist   []clusterObject `yaml:"clusterResourceBlacklist,omitempty"`
	NamespaceResourceWhitelist []groupKind     `yaml:"namespaceResourceWhitelist,omitempty"`
	NamespaceResourceBlacklist []groupKind     `yaml:"namespaceResourceBlacklist,omitempty"`
}

// clusterObject is a kind of cluster-scoped object, or one object of it: projects
// permit objects by name since Argo CD 3.2.
type clusterObject struct {
	Group string `json:"group,omitempty" yaml:"group"`
	Kind  string `json:"kind" yaml:"kind"`
	Name  string `json:"name" yaml:"name,omitempty"`
}

type groupKind struct {
	Group string `json:"group,omitempty" yaml:"group"`
	Kind  string `json:"kind" yaml:"kind"`
}

func projectObject(meta kubernetes.Metadata, spec appProject) kubernetes.Object {
	meta.Finalizers = []string{finalizer}
	return kubernetes.Object{APIVersion: api, Kind: "AppProject", Metadata: meta, Spec: spec}
}
