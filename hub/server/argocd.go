package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/observe"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

// argoEvent is what the template of docs/hub.md makes Argo CD's notifications send. Fields that a
// template does not send are null, and mean nothing.
type argoEvent struct {
	Application string `json:"application"`
	Namespace   string `json:"namespace"`
	Assignment  string `json:"assignment"`
	// Cluster and Server are the name and the address of the destination: the cluster that Argo CD
	// runs on has neither, or those that Argo CD gives it.
	Cluster string `json:"cluster"`
	Server  string `json:"server"`
	Path    string `json:"path"`
	// Repository and Branch are the source's repoURL and targetRevision. Automated is the automated sync of
	// the spec, null for none; absent from templates that do not send it.
	Repository string          `json:"repository"`
	Branch     string          `json:"branch"`
	Automated  json.RawMessage `json:"automated"`
	Manual     string          `json:"manual"`   // the value of reconcilers.SyncAnnotation
	Revision   string          `json:"revision"` // that the live objects were compared with
	Revisions  []string        `json:"revisions"`
	Sync       string          `json:"sync"`
	Compared   string          `json:"reconciledAt"`
	Health     string          `json:"health"`
	Changed    string          `json:"healthChangedAt"`
	// Of the last sync.
	Phase           string   `json:"phase"`
	Message         string   `json:"message"`
	StartedAt       string   `json:"startedAt"`
	FinishedAt      string   `json:"finishedAt"`
	Retries         int64    `json:"retries"`
	SyncedRevision  string   `json:"syncedRevision"`
	SyncedRevisions []string `json:"syncedRevisions"`
	At              string   `json:"at"` // when it was sent
}

// object returns the Application that an event is about, as far as the event has it.
func (e *argoEvent) object() *unstructured.Unstructured {
	type object = map[string]any
	set := func(text string) any { // a time is never ""
		if text == "" {
			return nil
		}
		return text
	}
	var automated any = object{}
	if len(e.Automated) > 0 {
		_ = json.Unmarshal(e.Automated, &automated) // it is JSON, as a part of it
	}
	o := &unstructured.Unstructured{Object: object{
		"spec": object{
			"destination": object{"name": e.Cluster, "server": e.Server},
			"source":      object{"path": e.Path, "repoURL": e.Repository, "targetRevision": e.Branch},
			"syncPolicy":  object{"automated": automated},
		},
		"status": object{
			"reconciledAt": set(e.Compared),
			"sync":         object{"status": e.Sync, "revision": strings.ToLower(e.Revision), "revisions": e.Revisions},
			"health":       object{"status": e.Health, "lastTransitionTime": set(e.Changed)},
			"operationState": object{
				"phase": e.Phase, "message": e.Message, "startedAt": set(e.StartedAt),
				"finishedAt": set(e.FinishedAt), "retryCount": e.Retries,
				"syncResult": object{"revision": strings.ToLower(e.SyncedRevision), "revisions": e.SyncedRevisions},
			},
		},
	}}
	o.SetName(e.Application)
	o.SetNamespace(e.Namespace)
	annotations := map[string]string{reconcilers.SyncAnnotation: e.Manual}
	if e.Assignment != "" {
		annotations[reconcilers.AssignmentAnnotation] = e.Assignment
	}
	o.SetAnnotations(annotations)
	return o
}

// argocd takes a notification of Argo CD.
func (s *server) argocd(w http.ResponseWriter, r *http.Request) {
	body, ok := s.signed(w, r, "argocd", "X-Signature", "X-Hub-Signature-256")
	if !ok {
		return
	}
	e := &argoEvent{}
	if err := json.Unmarshal(body, e); err != nil {
		problem(w, http.StatusUnprocessableEntity, "the body is no notification of Argo CD as docs/hub.md has it")
		return
	}
	on := reconcilers.InCluster
	if i := who(r.Context()); i != nil && i.May(access.Cluster) {
		on = i.Cluster
	}
	cluster, said, sure := observe.Event(reconcilers.Applications, e.object(), on)
	if e.Application == "" && e.Assignment == "" {
		problem(w, http.StatusUnprocessableEntity, "the notification lacks the application")
		return
	}
	item, err := itemOf(&said)
	if err != nil {
		problem(w, http.StatusUnprocessableEntity, "the notification: "+err.Error())
		return
	}
	if _, listed := s.Hub.Fleet().News(cluster); cluster == reconcilers.InCluster && !listed {
		problem(w, http.StatusUnprocessableEntity,
			fmt.Sprintf("the notification is about the cluster that Argo CD runs on: send the token of "+
				"that cluster, or write its name instead of %q into the template", cluster))
		return
	}
	if !sure && !s.knows(&item) {
		w.WriteHeader(http.StatusNoContent) // it is about the workload's own repository
		return
	}
	at, _ := time.Parse(time.RFC3339, e.At) // the zero Time is when it arrives
	s.event(w, r, &state.Report{Cluster: cluster, At: at, By: "Argo CD", Items: []state.Item{item}})
}

// knows reports whether the commit of an item is one of its environment's GitOps branch.
func (s *server) knows(it *state.Item) bool {
	environment, _, _ := strings.Cut(it.Assignment, "/")
	for _, w := range s.Hub.Fleet().Environments() {
		if w.Environment == environment {
			return slices.ContainsFunc(w.Commits, func(c state.Commit) bool { return c.ID == it.Commit })
		}
	}
	return false
}
