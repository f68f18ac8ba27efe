package reconcilers

import (
	"cmp"
	"slices"
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
		ManagedFields     []struct {
			Subresource string         `json:"subresource"`
			Time        metav1.Time    `json:"time"`
			FieldsV1    map[string]any `json:"fieldsV1"`
		} `json:"managedFields"`
	} `json:"metadata"`
	Spec struct {
		Suspend bool `json:"suspend"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
		// "<branch>@sha1:<commit>" for git; the origin's is the revision of the commit from
		// which an artifact of an OCI registry was made.
		LastAppliedRevision       string `json:"lastAppliedRevision"`
		LastAppliedOriginRevision string `json:"lastAppliedOriginRevision"`
		LastAttemptedRevision     string `json:"lastAttemptedRevision"`
		// Failures and LastAttemptedGeneration are a HelmRelease's: the number of failures of the
		// last attempt, and its generation.
		Failures                int64 `json:"failures"`
		LastAttemptedGeneration int64 `json:"lastAttemptedGeneration"`
		// History is a Kustomization's, newest first: how applying a content ended. Failures to
		// fetch and to build one are not in it.
		History []struct {
			FirstReconciled      metav1.Time `json:"firstReconciled"`
			LastReconciled       metav1.Time `json:"lastReconciled"`
			LastReconciledStatus string      `json:"lastReconciledStatus"`
			Metadata             struct {
				Revision string `json:"revision"`
			} `json:"metadata"`
		} `json:"history"`
	} `json:"status"`
}

// waiting are reasons of a Ready that is false only until something else is done.
var waiting = map[string]bool{"DependencyNotReady": true, "SourceNotReady": true,
	"HealthCheckCanceled": true}

// judgeFlux returns the state of a Kustomization or HelmRelease. Ready is its newest condition,
// and covers everything that it waits for. It is Unknown for a moment in each interval while Flux
// applies the same content again, and while Flux retries an attempt that failed. judgeFlux then
// returns the result of the previous attempt.
func judgeFlux(u *unstructured.Unstructured) (Judgement, error) {
	var o fluxObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return Judgement{}, err
	}
	s := &o.Status
	ready, stalled := condition(s.Conditions, "Ready"), condition(s.Conditions, "Stalled")
	applied := []string{commitOf(s.LastAppliedRevision), commitOf(s.LastAppliedOriginRevision)}
	j := Judgement{Applied: slices.Clone(applied)}
	if o.Spec.Suspend {
		j.Suspended = "is suspended"
	}
	// The last attempted revision is the one that failed; "" before any.
	attempted, none := []string{commitOf(s.LastAttemptedRevision)}, s.LastAttemptedRevision == ""
	if s.LastAttemptedRevision == s.LastAppliedRevision {
		attempted = applied
	}
	j.State, j.At = rollout.Progressing, slices.Concat(attempted, applied)
	again := ready.Status != metav1.ConditionFalse &&
		s.LastAppliedRevision == s.LastAttemptedRevision && o.succeeded()
	// Flux writes conditions before all else: Ready is then about a revision that is not the applied
	// one yet.
	written := s.LastAppliedRevision == "" || s.LastAttemptedRevision == "" ||
		s.LastAppliedRevision == s.LastAttemptedRevision
	reason, since := o.failure()
	// A Kustomization's observed generation is the last one that was applied.
	looked := s.ObservedGeneration >= o.Metadata.Generation ||
		ready.Status == metav1.ConditionFalse && ready.ObservedGeneration >= o.Metadata.Generation
	switch {
	case o.Metadata.DeletionTimestamp != nil:
		j.Message = "is being deleted"
	case ready.Status == metav1.ConditionUnknown && reason != "":
		j.State, j.Message, j.Again, j.At, j.Since = rollout.Failed, reason, true, attempted, since
	case !looked && !o.Spec.Suspend: // suspended objects are skipped
		j.Message = "was changed, and Flux has not looked at it since"
	case stalled.Status == metav1.ConditionTrue:
		j.State, j.Message, j.At, j.Any = rollout.Failed, "is stalled: "+stalled.Message, attempted, none
		j.Since = stalled.LastTransitionTime.Time
	case ready.Status == metav1.ConditionTrue && written || again:
		j.State, j.Message = rollout.Healthy, "is at "+shortRevision(s.LastAppliedRevision)
		j.At, j.Since = applied, o.readySince(ready)
	case ready.Status == metav1.ConditionFalse && !waiting[ready.Reason]:
		if reason == "" {
			since = ready.LastTransitionTime.Time
		}
		j.State, j.Message = rollout.Failed, ready.Reason+": "+ready.Message
		j.At, j.Any, j.Since = attempted, none, since
	default:
		j.Message = cmp.Or(ready.Message, "is not ready yet")
		j.Again = ready.Status == metav1.ConditionUnknown
		// health is checked when all is applied
		if j.Again && condition(s.Conditions, "Healthy").Status != metav1.ConditionUnknown {
			j.Last = cmp.Or(append([]string{o.last()}, applied...)...)
		}
		if ready.Status != metav1.ConditionFalse && o.succeeded() {
			j.Before = cmp.Or(applied...)
		}
	}
	return j, nil
}

// succeeded reports whether the newest entry of the object's history is a success.
func (o *fluxObject) succeeded() bool {
	h := o.Status.History
	return len(h) > 0 && h[0].LastReconciledStatus == "ReconciliationSucceeded"
}

// failure returns the reason why the last attempt at the present revision failed, and the time
// since which such attempts fail. It returns "" if the attempt did not fail, or if no condition
// reports it.
func (o *fluxObject) failure() (reason string, since time.Time) {
	s := &o.Status
	if h := s.History; len(h) > 0 && h[0].LastReconciledStatus != "" {
		same := h[0].Metadata.Revision != "" && h[0].Metadata.Revision == s.LastAttemptedRevision
		if o.succeeded() || !same || s.ObservedGeneration < o.Metadata.Generation &&
			!h[0].LastReconciled.After(o.specified()) {
			return "", time.Time{}
		}
		return h[0].LastReconciledStatus + ": failed, and is tried again", o.steadySince()
	}
	if s.Failures == 0 || s.LastAttemptedGeneration != o.Metadata.Generation {
		return "", time.Time{}
	}
	for _, kind := range []string{"Released", "TestSuccess"} {
		if c := condition(s.Conditions, kind); c.Status == metav1.ConditionFalse {
			return c.Reason + ": " + c.Message, c.LastTransitionTime.Time
		}
	}
	return "", time.Time{}
}

// specified returns the time of the last change of the spec. If it is not known, the time is in
// the far future.
func (o *fluxObject) specified() time.Time {
	var last time.Time
	for _, e := range o.Metadata.ManagedFields {
		if _, spec := e.FieldsV1["f:spec"]; spec && e.Subresource == "" {
			last = later(last, e.Time.Time)
		}
	}
	if last.IsZero() {
		return time.Unix(1<<40, 0)
	}
	return last
}

// last returns the commit of the newest entry of the object's history, or "".
func (o *fluxObject) last() string {
	if len(o.Status.History) == 0 {
		return ""
	}
	return commitOf(o.Status.History[0].Metadata.Revision)
}

// readySince returns since when the object has been ready. Ready itself is renewed in each
// interval.
func (o *fluxObject) readySince(ready metav1.Condition) time.Time {
	if !o.succeeded() {
		return ready.LastTransitionTime.Time
	}
	return o.steadySince()
}

// steadySince returns the time since which the content and the result of the newest entry of the
// history are the present ones, without others in between.
func (o *fluxObject) steadySince() time.Time {
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
// "sha1:<commit>", or "".
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
