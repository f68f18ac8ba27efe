package reconcilers

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// The labels that Fleet gives to the BundleDeployments of a bundle.
const (
	fleetCluster = "fleet.cattle.io/cluster"
	fleetCommit  = "fleet.cattle.io/commit" // of the GitRepo
)

// bundleDeployment has the fields of a BundleDeployment that count: the wanted state of a
// bundle on a cluster, and the agent's report.
type bundleDeployment struct {
	Metadata struct {
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		DeploymentID       string `json:"deploymentID"`
		Paused             bool   `json:"paused"`
		StagedDeploymentID string `json:"stagedDeploymentID"`
	} `json:"spec"`
	Status struct {
		AppliedDeploymentID string             `json:"appliedDeploymentID"`
		Ready               bool               `json:"ready"`
		NonModified         bool               `json:"nonModified"`
		Conditions          []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// judgeFleet returns the state of a BundleDeployment, as Fleet's own summaries have it
// (internal/cmd/controller/summary). Fleet does not report that an object can never become ready.
func judgeFleet(u *unstructured.Unstructured) (Judgement, error) {
	var d bundleDeployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
		return Judgement{}, err
	}
	j := Judgement{State: rollout.Progressing, At: []string{u.GetLabels()[fleetCommit]}}
	if d.Spec.Paused {
		j.Suspended = "is paused"
	}
	if d.Status.AppliedDeploymentID == d.Spec.DeploymentID &&
		d.Spec.DeploymentID == d.Spec.StagedDeploymentID {
		j.Applied = slices.Clone(j.At)
	}
	deployed, ready := condition(d.Status.Conditions, "Deployed"),
		condition(d.Status.Conditions, "Ready")
	switch {
	case d.Metadata.DeletionTimestamp != nil:
		j.Message = "is being deleted"
	case d.Status.AppliedDeploymentID != d.Spec.DeploymentID &&
		deployed.Status == metav1.ConditionFalse:
		j.State, j.Message, j.Since = rollout.Failed, "could not be deployed: "+deployed.Message,
			deployed.LastTransitionTime.Time
	case d.Status.AppliedDeploymentID != d.Spec.DeploymentID ||
		d.Spec.DeploymentID != d.Spec.StagedDeploymentID:
		j.Message = "is not deployed yet"
	case !d.Status.Ready:
		j.Message = "is not ready: " + ready.Message
	case !d.Status.NonModified:
		j.Drifted, j.Message = true, "was modified on the cluster: "+ready.Message
	default:
		j.State, j.Message, j.Since = rollout.Healthy, "is deployed", ready.LastTransitionTime.Time
	}
	return j, nil
}
