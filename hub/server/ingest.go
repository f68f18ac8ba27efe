package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/observe"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

// sender is a program that reports to the hub by webhooks.
type sender struct {
	kind       string   // the key of its Secrets, and the last element of its path
	event      string   // one of its events, with the article
	accepted   int      // the status of the answer to an event that the hub takes
	signatures []string // headers that may have the HMAC of the body, the first one first
	// the header with the key itself, without a signature; "" if there is no such header
	token  string
	handle func(s receiver, w http.ResponseWriter, r *http.Request, body []byte)
}

// receiver serves the webhooks. It checks the key or the signature of an event, turns the event
// into a report, and sends the report to the hub. It has no state of its own, so it is a value.
type receiver struct{ *server }

// reconcilerHandlers handle the events of the reconcilers whose Traits have a Webhook.
var reconcilerHandlers = map[string]func(receiver, http.ResponseWriter, *http.Request, []byte){
	"flux": receiver.flux, "argocd": receiver.argocd,
}

// senders returns the reconcilers with webhooks, in the order of the backends, and then the forge.
func senders() []sender {
	var out []sender
	for _, b := range all.List() {
		hook := b.Traits().Webhook
		if hook == nil {
			continue
		}
		handle := reconcilerHandlers[b.Name()]
		if handle == nil { // found when the routes are made, so by every test of the server
			panic("hub: reconcilerHandlers lacks " + b.Name() + ", whose Traits have a Webhook")
		}
		out = append(out, sender{kind: b.Name(), event: hook.Event, accepted: http.StatusNoContent,
			signatures: hook.Signatures, handle: handle})
	}
	return append(out,
		sender{kind: "forge", event: "a push event of a forge: branches are read at once",
			accepted:   http.StatusAccepted,
			signatures: []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature"},
			token:      "X-Gitlab-Token", // GitLab does not sign its events
			handle:     receiver.forge})
}

// Senders returns the keys of Options.Secrets: the kinds of webhook senders that a hub accepts.
func Senders() []string {
	var out []string
	for _, from := range senders() {
		out = append(out, from.kind)
	}
	return out
}

// receive checks the signature of a sender's event, and handles the event. If the signature is
// missing or wrong, it answers with an error. It accepts the same signature again, because a report
// that arrives twice changes nothing.
func (s receiver) receive(from sender, w http.ResponseWriter, r *http.Request) {
	if body, ok := s.signed(from, w, r); ok {
		from.handle(s, w, r, body)
	}
}

// signed returns the body of an event with the sender's key or signature, or from an identity that
// may report. For other events it answers with an error. An event with the sender's key itself has
// no body here, because the key does not cover it.
func (s receiver) signed(from sender, w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if token := r.Header.Get(from.token); token != "" {
		for _, key := range s.Secrets[from.kind] {
			if hmac.Equal([]byte(key), []byte(token)) {
				return nil, true
			}
		}
	}
	i := who(r.Context())
	known := i != nil && reports(i) // it came with a token, or from this machine
	if !known && len(s.Secrets[from.kind]) == 0 {
		problem(w, http.StatusNotFound,
			"this hub takes no webhooks of "+from.kind+": it has no key for them")
		return nil, false
	}
	body, err := io.ReadAll(r.Body)
	if errors.Is(err, errWebhooks) {
		w.Header().Set("Retry-After", "5")
		problem(w, http.StatusServiceUnavailable, err.Error())
		return nil, false
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		problem(w, http.StatusRequestEntityTooLarge, "the body is too large")
		return nil, false
	}
	if err != nil {
		problem(w, http.StatusBadRequest, "the body cannot be read")
		return nil, false
	}
	if known {
		return body, true
	}
	for _, header := range from.signatures {
		given, err := hex.DecodeString(strings.TrimPrefix(r.Header.Get(header), "sha256="))
		if err != nil || len(given) == 0 {
			continue
		}
		for _, key := range s.Secrets[from.kind] {
			mac := hmac.New(sha256.New, []byte(key))
			_, _ = mac.Write(body)
			if hmac.Equal(mac.Sum(nil), given) {
				return body, true
			}
		}
	}
	problem(w, http.StatusUnauthorized, "the signature is not that of the body")
	return nil, false
}

// fluxEvent is an event of notification-controller: Event of github.com/fluxcd/pkg/apis/event.
type fluxEvent struct {
	InvolvedObject struct {
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"involvedObject"`
	Severity  string            `json:"severity"`
	Timestamp time.Time         `json:"timestamp"`
	Message   string            `json:"message"`
	Reason    string            `json:"reason"`
	Metadata  map[string]string `json:"metadata"`
}

// revision matches a revision of Flux: <branch>@sha1:<commit>, or only the commit.
var revision = regexp.MustCompile(`(?:^|:)([0-9a-f]{40}|[0-9a-f]{64})$`)

// commitOf returns the commit of a revision, or "" if the revision has no commit.
func commitOf(text string) string {
	if m := revision.FindStringSubmatch(strings.ToLower(text)); m != nil {
		return m[1]
	}
	return ""
}

// meta returns a value of an event's metadata, by its name. The controller adds the name of the
// object's group as a prefix to the names that its own sources set.
func (e *fluxEvent) meta(name string) string {
	if value := e.Metadata[name]; value != "" {
		return value
	}
	for key, value := range e.Metadata {
		if strings.HasSuffix(key, "/"+name) {
			return value
		}
	}
	return ""
}

// flux handles an event of Flux. The Alert that sends it has the cluster in its eventMetadata, or
// the token belongs to the cluster.
func (s receiver) flux(w http.ResponseWriter, r *http.Request, body []byte) {
	e := &fluxEvent{}
	if err := json.Unmarshal(body, e); err != nil {
		problem(w, http.StatusUnprocessableEntity, "the body is no event of Flux")
		return
	}
	cluster := e.meta("cluster")
	if i := who(r.Context()); cluster == "" && i != nil {
		cluster = i.Cluster
	}
	if cluster == "" {
		problem(w, http.StatusUnprocessableEntity,
			"the event names no cluster: set eventMetadata.cluster in the Alert, "+
				"or send it with the token of the cluster")
		return
	}
	commit := commitOf(e.meta("originRevision"))
	if commit == "" {
		commit = commitOf(e.meta("revision"))
	}
	if e.InvolvedObject.Kind != "Kustomization" || commit == "" {
		w.WriteHeader(http.StatusNoContent) // it is not about the folder of an assignment
		return
	}
	item := state.Item{Object: e.InvolvedObject.Name, Commit: commit, State: fluxState(e),
		Message: message(e.Reason + ": " + e.Message), Since: e.Timestamp}
	at := e.Timestamp
	// the times are whole seconds, and in each it progresses before it ends
	if item.State != state.ReportedProgressing {
		at = at.Add(time.Millisecond)
	}
	s.event(w, r, &state.Report{Cluster: cluster, At: at, By: "Flux", Items: []state.Item{item}})
}

func fluxState(e *fluxEvent) state.ReportedState {
	switch {
	case e.Severity == "error" && e.Reason == "DependencyNotReady":
		return state.ReportedProgressing
	case e.Severity == "error":
		return state.ReportedFailed
	case e.Reason == "ReconciliationSucceeded" || e.Reason == "Healthy":
		return state.ReportedOK
	}
	return state.ReportedProgressing
}

func message(text string) string {
	text = terminal.Line(strings.Trim(text, ": "))
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}

// event sends the report of a webhook to the hub.
func (s receiver) event(w http.ResponseWriter, r *http.Request, report *state.Report) {
	if i := who(r.Context()); i != nil {
		if i.May(access.Cluster) && i.Cluster != report.Cluster {
			problem(w, http.StatusForbidden, "the token is that of cluster "+i.Cluster)
			return
		}
		report.Environments = scope(i)
	}
	report.Received = s.Hub.Now()
	if _, err := s.give(r.Context(), report); err != nil {
		var status huma.StatusError
		if !errors.As(err, &status) {
			problem(w, http.StatusInternalServerError, "the event could not be taken")
			return
		}
		if headers := (interface{ GetHeaders() http.Header })(nil); errors.As(err, &headers) {
			for name, values := range headers.GetHeaders() {
				w.Header()[name] = values
			}
		}
		problem(w, status.GetStatus(), status.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// forge handles a push event of a forge. The hub then reads the wanted state from git.
func (s receiver) forge(w http.ResponseWriter, _ *http.Request, _ []byte) {
	if s.Moved != nil {
		s.Moved()
	}
	w.WriteHeader(http.StatusAccepted)
}

// argoEvent is the body that Argo CD's notifications send with the template of docs/hub.md. Null
// fields are absent from the template, and the hub ignores them.
type argoEvent struct {
	Application string `json:"application"`
	Namespace   string `json:"namespace"`
	Assignment  string `json:"assignment"`
	// Cluster and Server are the name and the address of the destination. Argo CD's own cluster has
	// neither, or the name and address that Argo CD gives it.
	Cluster string `json:"cluster"`
	Server  string `json:"server"`
	Path    string `json:"path"`
	// Repository and Branch are the source's repoURL and targetRevision. Automated is the automated
	// sync of the spec. It is null if the spec has no automated sync, and absent if the template
	// does not send it.
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

// object returns the Application of an event, as far as the event has its fields.
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
			"sync": object{"status": e.Sync, "revision": strings.ToLower(e.Revision),
				"revisions": e.Revisions},
			"health": object{"status": e.Health, "lastTransitionTime": set(e.Changed)},
			"operationState": object{
				"phase": e.Phase, "message": e.Message, "startedAt": set(e.StartedAt),
				"finishedAt": set(e.FinishedAt), "retryCount": e.Retries,
				"syncResult": object{"revision": strings.ToLower(e.SyncedRevision),
					"revisions": e.SyncedRevisions},
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

// argocd handles a notification of Argo CD.
func (s receiver) argocd(w http.ResponseWriter, r *http.Request, body []byte) {
	e := &argoEvent{}
	if err := json.Unmarshal(body, e); err != nil {
		problem(w, http.StatusUnprocessableEntity,
			"the body is no notification of Argo CD as docs/hub.md has it")
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
	at, _ := time.Parse(time.RFC3339, e.At) // the zero Time means the time of arrival
	s.event(w, r, &state.Report{Cluster: cluster, At: at, By: "Argo CD", Items: []state.Item{item}})
}

// knows reports whether the commit of an item belongs to its environment's GitOps branch.
func (s receiver) knows(it *state.Item) bool {
	environment, _, _ := strings.Cut(it.Assignment, "/")
	for _, w := range s.Hub.Fleet().Environments() {
		if w.Environment == environment {
			return slices.ContainsFunc(w.Commits, func(c state.Commit) bool { return c.ID == it.Commit })
		}
	}
	return false
}
