package reconcilers

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// fluxObject has the fields that Kustomizations and HelmReleases share
// (https://fluxcd.io/flux/components/kustomize/kustomizations/#kustomization-status).
type fluxObject struct {
	Metadata struct {
		Generation        int64        `json:"generation"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Suspend bool `json:"suspend"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
		// "<branch>@sha1:<commit>" for git; the origin's is that of the commit from which
		// an artifact of an OCI registry was made.
		LastAppliedRevision       string     `json:"lastAppliedRevision"`
		LastAppliedOriginRevision string     `json:"lastAppliedOriginRevision"`
		LastAttemptedRevision     string     `json:"lastAttemptedRevision"`
		History                   []struct { // newest first
			FirstReconciled      metav1.Time `json:"firstReconciled"`
			LastReconciled       metav1.Time `json:"lastReconciled"`
			LastReconciledStatus string      `json:"lastReconciledStatus"`
		} `json:"history"`
	} `json:"status"`
}

// waiting are reasons of a Ready that is false only until something else is done.
var waiting = map[string]bool{"DependencyNotReady": true, "SourceNotReady": true}

// judgeFlux returns the state of a Kustomization or HelmRelease. Ready is its newest
// condition, and covers everything that it waits for. It is Unknown for a moment in each
// interval, while the same content is applied again: then the state is that of the history.
func judgeFlux(u *unstructured.Unstructured) (Judgement, error) {
	var o fluxObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return Judgement{}, err
	}
	s := &o.Status
	ready, stalled := condition(s.Conditions, "Ready"), condition(s.Conditions, "Stalled")
	applied := []string{commitOf(s.LastAppliedRevision), commitOf(s.LastAppliedOriginRevision)}
	// The last attempted revision is the one that failed; "" before any.
	attempted, none := []string{commitOf(s.LastAttemptedRevision)}, s.LastAttemptedRevision == ""
	if s.LastAttemptedRevision == s.LastAppliedRevision {
		attempted = applied
	}
	progressing := func(message string) (Judgement, error) {
		return Judgement{State: rollout.Progressing, Message: message, At: append(attempted, applied...)}, nil
	}
	again := ready.Status != metav1.ConditionFalse && s.LastAppliedRevision == s.LastAttemptedRevision && o.succeeded()
	switch {
	case o.Metadata.DeletionTimestamp != nil:
		return progressing("is being deleted")
	case s.ObservedGeneration < o.Metadata.Generation:
		return progressing(o.suspended() + "was changed, and Flux has not looked at it since")
	case stalled.Status == metav1.ConditionTrue:
		return Judgement{State: rollout.Failed, Message: "is stalled: " + stalled.Message, At: attempted, Any: none, Since: stalled.LastTransitionTime.Time}, nil
	case ready.Status == metav1.ConditionTrue || again:
		return Judgement{State: rollout.Healthy, Message: o.suspended() + "is at " + shortRevision(s.LastAppliedRevision), At: applied, Since: o.since(ready)}, nil
	case ready.Status == metav1.ConditionFalse && !waiting[ready.Reason]:
		return Judgement{State: rollout.Failed, Message: ready.Reason + ": " + ready.Message, At: attempted, Any: none, Since: ready.LastTransitionTime.Time}, nil
	}
	j, err := progressing(o.suspended() + cmp.Or(ready.Message, "is not ready yet"))
	if ready.Status != metav1.ConditionFalse && o.succeeded() {
		j.Before = cmp.Or(applied...)
	}
	return j, err
}

func (o *fluxObject) suspended() string {
	if o.Spec.Suspend {
		return "is suspended, and "
	}
	return ""
}

// succeeded reports whether the newest entry of the object's history is a success.
func (o *fluxObject) succeeded() bool {
	h := o.Status.History
	return len(h) > 0 && h[0].LastReconciledStatus == "ReconciliationSucceeded"
}

// since returns since when the object has been ready. Its newest history entry has that of
// the present content and result, and no other was ready since. Ready itself is renewed in
// each interval.
func (o *fluxObject) since(ready metav1.Condition) time.Time {
	if !o.succeeded() {
		return ready.LastTransitionTime.Time
	}
	h := o.Status.History
	first := h[0].FirstReconciled.Time
	for _, other := range h[1:] {
		first = later(first, other.LastReconciled.Time)
	}
	return first
}

func condition(all []metav1.Condition, kind string) metav1.Condition {
	for _, c := range all {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// commitOf returns the commit of a revision of Flux, "main@sha1:<commit>" or
// "sha1:<commit>"; "" for none.
func commitOf(revision string) string {
	i := strings.LastIndex(revision, "sha1:")
	if i < 0 || i > 0 && revision[i-1] != '@' {
		return ""
	}
	return revision[i+len("sha1:"):]
}

// shortRevision shortens a revision for a message.
func shortRevision(revision string) string {
	const most = 80
	if revision == "" {
		return "no revision"
	}
	return revision[:min(len(revision), most)]
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
