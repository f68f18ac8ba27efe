package reconcilers

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// application has the fields of an Application that count
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/application.yaml). Its status
// refers to revisions, and not to generations.
type application struct {
	Metadata struct {
		DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
		Annotations       map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		SyncPolicy struct {
			Automated *struct {
				Enabled *bool `json:"enabled"` // true if it is absent
			} `json:"automated"`
		} `json:"syncPolicy"`
	} `json:"spec"`
	Status struct {
		Health struct {
			Status             string      `json:"status"`
			Message            string      `json:"message"`
			LastTransitionTime metav1.Time `json:"lastTransitionTime"`
		} `json:"health"`
		Sync struct { // the live objects, compared with a revision
			Status    string   `json:"status"`
			Revision  string   `json:"revision"`
			Revisions []string `json:"revisions"`
		} `json:"sync"`
		// when the last comparison began that looked for a new revision
		ReconciledAt   metav1.Time `json:"reconciledAt"`
		OperationState struct {
			Phase      string      `json:"phase"`
			Message    string      `json:"message"`
			StartedAt  metav1.Time `json:"startedAt"`
			FinishedAt metav1.Time `json:"finishedAt"`
			RetryCount int64       `json:"retryCount"` // attempts that failed
			SyncResult struct {
				Revision  string   `json:"revision"`
				Revisions []string `json:"revisions"`
			} `json:"syncResult"`
		} `json:"operationState"`
		History []struct { // of syncs that succeeded, the newest last
			Revision  string   `json:"revision"`
			Revisions []string `json:"revisions"`
		} `json:"history"`
		Conditions []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// judgeArgoCD returns the state of an Application. An Application is healthy if it is synced,
// healthy, and not syncing again. An error in its conditions is a failure if it is about the
// spec. Other errors, such as an unreachable repository, may pass.
func judgeArgoCD(u *unstructured.Unstructured) (Judgement, error) {
	var a application
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &a); err != nil {
		return Judgement{}, err
	}
	s, operation := &a.Status, &a.Status.OperationState
	j := Judgement{
		State: rollout.Progressing, At: append([]string{s.Sync.Revision}, s.Sync.Revisions...),
		Applied: a.applied(),
	}
	if a.suspended() && operation.Phase != "Running" {
		j.Suspended = "has no automated sync"
	}
	switch {
	case a.Metadata.DeletionTimestamp != nil:
		j.Message = "is being deleted"
	case a.problem("InvalidSpecError") != "":
		j.State, j.Message, j.Any = rollout.Failed, a.problem("InvalidSpecError"), true
	// it is tried again; a first attempt may have been too early
	case operation.Phase == "Running" && operation.RetryCount > 1:
		j.State, j.Message = rollout.Failed, "could not be synced: "+operation.Message
	case operation.Phase == "Running" || operation.Phase == "Terminating":
		j.Message = "is being synced: " + operation.Message
	case (operation.Phase == "Failed" || operation.Phase == "Error") && a.tried():
		j.State, j.Message, j.Since = rollout.Failed, "could not be synced: "+operation.Message,
			operation.FinishedAt.Time
	case s.Sync.Status == "OutOfSync" && a.synced() && !a.refreshed():
		j.Message = "was synced, and is not compared again yet"
	case s.Sync.Status != "Synced":
		j.Drifted, j.Message = a.drifted(), cmp.Or(a.problem("Error"), "is "+stated(s.Sync.Status))
	case s.Health.Status == "Degraded":
		j.State, j.Message, j.Since = rollout.Failed, "is degraded: "+s.Health.Message,
			s.Health.LastTransitionTime.Time
	case s.Health.Status != "Healthy":
		j.Message = "is " + stated(s.Health.Status) + ": " + s.Health.Message
	default:
		j.State, j.Message = rollout.Healthy, "is at "+shortRevision(s.Sync.Revision)
		if !s.Health.LastTransitionTime.IsZero() {
			j.Since = later(s.Health.LastTransitionTime.Time, operation.FinishedAt.Time)
		}
	}
	return j, nil
}

// SyncAnnotation is on the Applications that kalypso emits without automated sync. Its value is
// ManualSync, because people have to sync them.
const (
	SyncAnnotation = "kalypso.io/sync"
	ManualSync     = "manual"
)

// suspended reports whether somebody has switched the Application's automated sync off.
func (a *application) suspended() bool {
	automated := a.Spec.SyncPolicy.Automated
	return (automated == nil || automated.Enabled != nil && !*automated.Enabled) &&
		a.Metadata.Annotations[SyncAnnotation] != ManualSync
}

// applied returns the commits of the last successful sync. It returns none if they are not known.
func (a *application) applied() []string {
	if h := a.Status.History; len(h) > 0 {
		last := h[len(h)-1]
		return append([]string{last.Revision}, last.Revisions...)
	}
	if result := a.Status.OperationState.SyncResult; a.Status.OperationState.Phase == "Succeeded" {
		return append([]string{result.Revision}, result.Revisions...)
	}
	return nil
}

// tried reports whether the last sync was of the current revision, with which the live
// objects are compared, or of one that was not resolved.
func (a *application) tried() bool {
	compared, result := &a.Status.Sync, &a.Status.OperationState.SyncResult
	if result.Revision == "" && len(result.Revisions) == 0 {
		return true
	}
	return result.Revision == compared.Revision && slices.Equal(result.Revisions, compared.Revisions)
}

// synced reports whether the current revision was synced.
func (a *application) synced() bool {
	operation := &a.Status.OperationState
	return operation.Phase == "Succeeded" &&
		(operation.SyncResult.Revision != "" || len(operation.SyncResult.Revisions) > 0) && a.tried()
}

// refreshed reports whether Argo CD has compared the live objects after the last sync. Argo CD
// first writes the result of a sync, and a moment later the result of the comparison after it.
// Until then the objects still differ as before. The times are whole seconds. If a sync began and
// ended in the second of a comparison, refreshed assumes that the comparison was before the sync.
// The next comparison happens without any action.
func (a *application) refreshed() bool {
	compared, operation := a.Status.ReconciledAt, &a.Status.OperationState
	return compared.IsZero() || !compared.Before(&operation.FinishedAt) &&
		operation.StartedAt.Before(&compared)
}

// drifted reports whether the live objects differ from the current revision, which was synced:
// somebody changed them since.
func (a *application) drifted() bool { return a.Status.Sync.Status == "OutOfSync" && a.synced() }

// problem returns the first of the Application's conditions whose type ends in suffix, as
// text, or "".
func (a *application) problem(suffix string) string {
	for _, c := range a.Status.Conditions {
		if strings.HasSuffix(c.Type, suffix) {
			return "reports " + c.Type + ": " + c.Message
		}
	}
	return ""
}

// stated returns a status as a part of a sentence.
func stated(status string) string {
	if status == "" {
		return "in no state yet"
	}
	return status
}
