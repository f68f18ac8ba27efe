package kubernetes

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// fluxObject is what Kustomizations and HelmReleases have alike
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
		// "<branch>@sha1:<commit>" for git; the origin's is that of the commit that an
		// artifact of an OCI registry was made of.
		LastAppliedRevision       string `json:"lastAppliedRevision"`
		LastAppliedOriginRevision string `json:"lastAppliedOriginRevision"`
		LastAttemptedRevision     string `json:"lastAttemptedRevision"`
	} `json:"status"`
}

// waiting are reasons of a Ready that is false only until something else is done.
var waiting = map[string]bool{"DependencyNotReady": true, "SourceNotReady": true}

// judgeFlux judges a Kustomization or HelmRelease. Ready is the newest word about the
// whole: Flux sets it once all that it waits for is healthy. That it is working on the
// object again, which it does each interval, makes it no worse.
func judgeFlux(u *unstructured.Unstructured, commits map[string]bool) (judgement, error) {
	var o fluxObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return judgement{}, err
	}
	s := &o.Status
	j := judgement{state: rollout.Progressing, current: commits[commitOf(s.LastAppliedRevision)] || commits[commitOf(s.LastAppliedOriginRevision)]}
	ready, stalled, reconciling := condition(s.Conditions, "Ready"), condition(s.Conditions, "Stalled"), condition(s.Conditions, "Reconciling")
	// What was tried last is what failed: where that is another commit, the wanted one
	// has yet to come.
	attempted := commitOf(s.LastAttemptedRevision)
	tried := attempted == "" || j.current || commits[attempted]
	switch {
	case o.Metadata.DeletionTimestamp != nil:
		j.message = "is being deleted"
	case s.ObservedGeneration < o.Metadata.Generation || ready.ObservedGeneration < o.Metadata.Generation && ready.ObservedGeneration > 0:
		j.message = "was changed, and Flux has not looked at it since"
	case stalled.Status == metav1.ConditionTrue:
		j.state, j.message, j.since = rollout.Failed, "is stalled: "+stalled.Message, stalled.LastTransitionTime.Time
	case ready.Status == metav1.ConditionTrue:
		j.state, j.since = rollout.Healthy, ready.LastTransitionTime.Time
		if !j.current {
			j.message = fmt.Sprintf("is at %s", shortRevision(s.LastAppliedRevision))
		}
	case ready.Status == metav1.ConditionFalse && !waiting[ready.Reason] && tried:
		j.state, j.message, j.since = rollout.Failed, ready.Reason+": "+ready.Message, ready.LastTransitionTime.Time
	default:
		j.message = strings.TrimPrefix(cmp.Or(ready.Message, reconciling.Message), " ")
	}
	if o.Spec.Suspend && j.state == rollout.Progressing {
		j.message = "is suspended; " + j.message
	}
	return j, nil
}

func condition(all []metav1.Condition, kind string) metav1.Condition {
	for _, c := range all {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// commitOf returns the commit of a revision as Flux writes it, "main@sha1:<commit>" or
// "sha1:<commit>"; "" for none.
func commitOf(revision string) string {
	i := strings.LastIndex(revision, "sha1:")
	if i < 0 || i > 0 && revision[i-1] != '@' {
		return ""
	}
	return revision[i+len("sha1:"):]
}

// shortRevision cuts a revision for a message.
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
