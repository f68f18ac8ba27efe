// Program webhooks sends a hub the messages of Flux and Argo CD. One is an event of Flux's own
// type. The other is the result of Argo CD's own notifications for an Application. It is a module
// of its own, so that no other program has their libraries.
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/argoproj/notifications-engine/pkg/api"
	"github.com/argoproj/notifications-engine/pkg/services"
	event "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// request is the input of the program: the message to send, and its destination.
type request struct {
	URL, Key, Token string // the hub's address, the key of its webhooks, and the token of a cluster or an operator
	Commit          string
	// Flux is the name of an event, or "". At is its time, and Cluster the one that it is of.
	Flux, Cluster string
	At            time.Time
	// ConfigMap is argocd-notifications-cm, and Applications are the applications of Argo CD.
	ConfigMap    map[string]string
	Applications []map[string]any
}

func main() {
	var r request
	err := json.NewDecoder(os.Stdin).Decode(&r)
	if err == nil && r.Flux != "" {
		err = r.flux()
	}
	if err == nil && r.ConfigMap != nil {
		err = r.argo()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// events are the events of kustomize-controller about prod-hello-main.
var events = map[string]event.Event{
	"failed": {Severity: event.EventSeverityError, Reason: meta.HealthCheckFailedReason,
		Message: "timeout waiting for: [Deployment/x/hello status: 'InProgress']"},
	"progressing": {Severity: event.EventSeverityInfo, Reason: meta.ProgressingReason,
		Message: "Deployment/x/hello configured"},
	"ok": {Severity: event.EventSeverityInfo, Reason: meta.ReconciliationSucceededReason,
		Message: "Reconciliation finished in 1s, next run in 10m0s"},
}

// flux sends an event as notification-controller does.
func (r *request) flux() error {
	e, there := events[r.Flux]
	if !there {
		return fmt.Errorf("there is no event %s", r.Flux)
	}
	e.InvolvedObject = corev1.ObjectReference{APIVersion: "kustomize.toolkit.fluxcd.io/v1",
		Kind: "Kustomization", Namespace: "flux-system", Name: "prod-hello-main"}
	e.Timestamp, e.ReportingController = metav1.NewTime(r.At), "kustomize-controller"
	e.Metadata = map[string]string{event.MetaRevisionKey: "prod@sha1:" + r.Commit, "cluster": r.Cluster}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, r.URL+"/v1/ingest/flux", bytes.NewReader(body))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, []byte(r.Key))
	mac.Write(body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Gotk-Component", e.ReportingController)
	req.Header.Set("X-Signature", fmt.Sprintf("sha256=%x", mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s", res.Status, text)
	}
	return nil
}

// argo notifies of applications as Argo CD does.
func (r *request) argo() error {
	data := maps.Clone(r.ConfigMap)
	for name, text := range data {
		data[name] = strings.ReplaceAll(text, "https://hub.example.com", r.URL)
	}
	config, err := api.ParseConfig(&corev1.ConfigMap{Data: data},
		&corev1.Secret{Data: map[string][]byte{"kalypso-token": []byte(r.Token)}})
	if err != nil {
		return err
	}
	// Argo CD gives expressions these, and some others.
	notifications, err := api.NewAPI(*config, func(app map[string]any, _ services.Destination) map[string]any {
		return map[string]any{"app": app, "time": map[string]any{"Now": time.Now}}
	})
	if err != nil {
		return err
	}
	sent := map[string]bool{} // as the controller keeps it in an annotation of the Application
	for _, app := range r.Applications {
		name, _, _ := unstructured.NestedString(app, "metadata", "name")
		destinations := config.GetGlobalDestinations(nil)
		for _, trigger := range slices.Sorted(maps.Keys(destinations)) {
			results, err := notifications.RunTrigger(trigger, app)
			if err != nil {
				return err
			}
			for _, result := range results {
				once := name + trigger + result.Key + result.OncePer
				if result.Triggered && result.OncePer == "" {
					return fmt.Errorf("%s: oncePer has no value", trigger) // it is in the log
				}
				if result.Triggered && sent[once] {
					fmt.Printf("%s was sent\n", trigger)
					continue
				}
				sent[once] = result.Triggered
				for _, destination := range destinations[trigger] {
					if !result.Triggered {
						fmt.Printf("%s is not triggered\n", trigger)
					} else if err := notifications.Send(app, result.Templates, destination); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}
