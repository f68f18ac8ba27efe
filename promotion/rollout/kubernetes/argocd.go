package kubernetes

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// application is what counts of an Application
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/application.yaml). Its
// status says of what it is by revisions, and not by generations.
type application struct {
	Metadata struct {
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
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
		OperationState struct {
			Phase      string      `json:"phase"`
			Message    string      `json:"message"`
			FinishedAt metav1.Time `json:"finishedAt"`
			SyncResult struct {
				Revision  string   `json:"revision"`
				Revisions []string `json:"revisions"`
			} `json:"syncResult"`
		} `json:"operationState"`
		Conditions []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// judgeArgoCD judges an Application: healthy is what is synced, healthy, and not
// being synced again. What is not at a wanted commit has failed only if Argo CD cannot
// make anything of it.
func judgeArgoCD(u *unstructured.Unstructured, commits map[string]bool) (judgement, error) {
	var a application
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &a); err != nil {
		return judgement{}, err
	}
	s, operation := &a.Status, &a.Status.OperationState
	j := judgement{state: rollout.Progressing, current: among(commits, s.Sync.Revision, s.Sync.Revisions)}
	// The workload's own Application is of another repository, and no wanted commit:
	// its last sync has failed for what it is to be if it was of the same revision.
	tried := operation.SyncResult.Revision == s.Sync.Revision || among(commits, operation.SyncResult.Revision, operation.SyncResult.Revisions)
	switch problem := invalid(&a); {
	case a.Metadata.DeletionTimestamp != nil:
		j.message = "is being deleted"
	case problem != "":
		j.state, j.message = rollout.Failed, problem
	case operation.Phase == "Running" || operation.Phase == "Terminating":
		j.message = "is being synced: " + operation.Message
	case (operation.Phase == "Failed" || operation.Phase == "Error") && tried:
		j.state, j.message, j.since = rollout.Failed, "could not be synced: "+operation.Message, operation.FinishedAt.Time
	case s.Sync.Status != "Synced":
		j.message = fmt.Sprintf("is %s", stated(s.Sync.Status))
	case s.Health.Status == "Degraded":
		j.state, j.message, j.since = rollout.Failed, "is degraded: "+s.Health.Message, s.Health.LastTransitionTime.Time
	case s.Health.Status != "Healthy":
		j.message = fmt.Sprintf("is %s: %s", stated(s.Health.Status), s.Health.Message)
	default:
		j.state = rollout.Healthy
		if !s.Health.LastTransitionTime.IsZero() {
			j.since = later(s.Health.LastTransitionTime.Time, operation.FinishedAt.Time)
		}
		if !j.current {
			j.message = "is at " + shortRevision(s.Sync.Revision)
		}
	}
	return j, nil
}

// invalid returns why Argo CD cannot make anything of an Application: its conditions of
// the types that end in Error, but for that of syncing, which the operation says more of.
func invalid(a *application) string {
	for _, c := range a.Status.Conditions {
		if strings.HasSuffix(c.Type, "Error") && c.Type != "SyncError" {
			return c.Type + ": " + c.Message
		}
	}
	return ""
}

func among(commits map[string]bool, revision string, revisions []string) bool {
	for _, r := range append([]string{revision}, revisions...) {
		if commits[r] {
			return true
		}
	}
	return false
}

// stated returns a status in a sentence.
func stated(status string) string {
	if status == "" {
		return "in no state yet"
	}
	return status
}

