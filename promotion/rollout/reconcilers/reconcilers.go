// Package reconcilers reads the objects of reconcilers: the objects of Flux
// (https://fluxcd.io/flux/components), of Argo CD
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/application.yaml) and of Fleet
// (https://fleet.rancher.io). It does not know the wanted assignments.
package reconcilers

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// Kind is a kind of object that applies folders or workloads to clusters.
type Kind struct {
	Resource schema.GroupVersionResource
	Name     string // for messages
	judge    func(*unstructured.Unstructured) (Judgement, error)
}

// The kinds.
var (
	Kustomizations = Kind{schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io",
		Version: "v1", Resource: "kustomizations"}, "Kustomization", judgeFlux}
	HelmReleases = Kind{schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io",
		Version: "v2", Resource: "helmreleases"}, "HelmRelease", judgeFlux}
	Applications = Kind{schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1",
		Resource: "applications"}, "Application", judgeArgoCD}
	BundleDeployments = Kind{schema.GroupVersionResource{Group: "fleet.cattle.io", Version: "v1alpha1",
		Resource: "bundledeployments"}, "BundleDeployment", judgeFleet}
)

// InGroups returns the kinds of objects in API groups, as the Traits of a backend have them.
// These objects apply the folder of an assignment.
func InGroups(groups []string) []Kind {
	var out []Kind
	for _, k := range []Kind{Kustomizations, HelmReleases, Applications} {
		if slices.Contains(groups, k.Resource.Group) {
			out = append(out, k)
		}
	}
	return out
}

// AssignmentAnnotation is on every object that kalypso emits.
const AssignmentAnnotation = "kalypso.io/assignment"

// Judgement is the result of an object's status.
type Judgement struct {
	State   rollout.State // Healthy, Progressing or Failed
	Drifted bool          // it is progressing because somebody changed what it had applied
	// Suspended describes how somebody has suspended the reconciler, so that it does not follow other
	// commits: it is progressing then. It is "" for an object that follows its branch, and for a
	// failure.
	Suspended string
	Message   string
	// At are the commits that the state is about, if the object applies a folder. The first is the
	// most specific.
	At []string
	// Again is true if At is being applied, maybe once more. The object may lack the result of the
	// previous attempt.
	Again bool
	// Applied are the commits that were applied last, if the state may be about others. It is
	// empty if they are not known.
	Applied []string
	// Origin is the source of the folder, if the object applies one.
	Origin origin.Origin
	// Any is true if the state is about any wanted commit, because nothing can be applied.
	Any bool
	// Before is a commit that was applied, and ready, until another one started. If both have the
	// same content, nothing changes.
	Before string
	// Last is the commit that was applied last, with any result, while At is not applied yet. The
	// objects report the state of that commit.
	Last  string
	Since time.Time // zero if the object does not report it
}

// Concerns reports whether the state is about one of some commits.
func (j *Judgement) Concerns(commits map[string]bool) bool {
	return j.Any || slices.ContainsFunc(j.At, func(commit string) bool { return commits[commit] })
}

// Judge returns the judgement of an object of the kind, by the object and the sources
// of its server.
func (k Kind) Judge(o *unstructured.Unstructured, of Sources) Judgement {
	j, err := k.judge(o)
	if err != nil {
		return Judgement{State: rollout.Progressing,
			Message: "has a status that cannot be read: " + err.Error()}
	}
	from, suspended := k.origin(o, of)
	j.Origin, j.Suspended = from, cmp.Or(j.Suspended, suspended)
	none := func(commit string) bool { return commit == "" }
	j.At, j.Applied = slices.DeleteFunc(j.At, none), slices.DeleteFunc(j.Applied, none)
	switch {
	case j.State == rollout.Failed || o.GetDeletionTimestamp() != nil:
		j.Suspended = ""
	case j.Suspended != "":
		j.State, j.Drifted, j.Message = rollout.Progressing, false, j.Suspended+": it "+j.Message
	}
	return j
}

// Title returns the kind, namespace and name of an object, for messages.
func (k Kind) Title(o *unstructured.Unstructured) string {
	return k.Name + " " + o.GetNamespace() + "/" + o.GetName()
}

// InCluster is Argo CD's name for the cluster that it runs on, and inCluster is the address
// of a cluster for its own pods.
const (
	InCluster = "in-cluster"
	inCluster = "https://kubernetes.default.svc"
)

// Destination returns the cluster that an object is for. This is the cluster that has the object,
// unless the object names another one. It returns "" if the object has only the address of the
// other cluster.
func (k Kind) Destination(o *unstructured.Unstructured, on string) string {
	switch k.Name {
	case BundleDeployments.Name:
		return terminal.Line(o.GetLabels()[fleetCluster])
	case Applications.Name:
		name, _, _ := unstructured.NestedString(o.Object, "spec", "destination", "name")
		switch server := Server(o); {
		case name != "" && name != InCluster:
			return terminal.Line(name)
		case server != "" && server != inCluster:
			return ""
		}
	}
	return on
}

// Server returns the address of the API server that an Application is for, or "".
func Server(o *unstructured.Unstructured) string {
	server, _, _ := unstructured.NestedString(o.Object, "spec", "destination", "server")
	return server
}
