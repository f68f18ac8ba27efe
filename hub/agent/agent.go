// Package agent writes the Kubernetes manifests that let a cluster report to a hub. They contain a
// pod that runs kalypso observe, and only the permission to list the reported objects. For Flux
// they also contain an alert, which sends events to the hub at once.
package agent

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/template"

	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

// Options describes the cluster, its reconciler and the hub.
type Options struct {
	Hub string // the address
	// Cluster is the cluster's name. If it is "", the manifests are the same for all clusters of a
	// type, and each cluster has its name in the Secret kalypso-hub.
	Cluster   string
	Namespace string // of the reconciler
	// Groups are the API groups of the reconciler's objects.
	Groups []string
	Image  string // that has kalypso
}

// Check returns an error if clusters cannot use hub as the address of a hub.
func Check(hub string) error {
	u, err := url.Parse(hub)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return fmt.Errorf(
			"%q is no address of a hub that clusters can reach, such as https://hub.example.com", hub)
	}
	return nil
}

// Manifests returns a YAML stream. It returns false if the cluster has no objects to list, because
// the reconciler keeps no Kubernetes objects there.
func Manifests(o Options) ([]byte, bool) {
	type rule struct {
		Group     string
		Resources []string
	}
	var rules []rule
	// the kinds that kalypso observe lists
	for _, k := range reconcilers.InGroups(o.Groups) {
		rules = append(rules, rule{k.Resource.Group, []string{k.Resource.Resource}})
	}
	slices.SortFunc(rules, func(a, b rule) int { return strings.Compare(a.Group, b.Group) })
	if len(rules) == 0 {
		return nil, false
	}
	flux := slices.Contains(o.Groups, reconcilers.Kustomizations.Resource.Group)
	if flux {
		rules = append(rules,
			rule{"source.toolkit.fluxcd.io", []string{"gitrepositories", "ocirepositories"}})
	}
	var b bytes.Buffer
	err := manifests.Execute(&b, map[string]any{
		"Hub": strings.TrimSuffix(o.Hub, "/"), "Cluster": o.Cluster, "Namespace": o.Namespace,
		"Rules": rules,
		"Image": o.Image, "Flux": flux,
	})
	if err != nil {
		panic(err) // the template is fixed
	}
	return b.Bytes(), true
}

var functions = template.FuncMap{
	"quote": func(s string) string { return fmt.Sprintf("%q", s) },
	"list":  func(all []string) string { return `"` + strings.Join(all, `", "`) + `"` },
}

// manifests is the template of the stream. If the options do not name the cluster, Flux events do
// not either, because an Alert can add only fixed metadata. The hub then uses the cluster of the
// token.
var manifests = template.Must(template.New("").Funcs(functions).Parse(`{{if .Cluster -}}
# What reports to the hub. It needs the cluster's token, which is made once:
#
#   kalypso hub token create --role cluster --cluster {{.Cluster}} > token
#   kubectl -n {{.Namespace}} create secret generic kalypso-hub --from-file=token=token \
#     --from-literal=headers="Authorization: Bearer $(cat token)"
{{- else -}}
# What reports to the hub. It is the same for all clusters of the type: each cluster needs a Secret
# with its own name and token, which are made once for each:
#
#   CLUSTER=store-17
#   kalypso hub token create --role cluster --cluster "$CLUSTER" > token
#   kubectl -n {{.Namespace}} create secret generic kalypso-hub --from-file=token=token \
#     --from-literal=cluster="$CLUSTER" --from-literal=headers="Authorization: Bearer $(cat token)"
{{- if .Flux}}
#
# The events of Flux do not name the cluster. The hub takes the cluster of the token.
{{- end}}
{{- end}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: kalypso-observe
  namespace: {{.Namespace}}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: kalypso-observe
rules:
{{- range .Rules}}
  - apiGroups: [{{quote .Group}}]
    resources: [{{list .Resources}}]
    verbs: ["list"]
{{- end}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: kalypso-observe
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: kalypso-observe
subjects:
  - kind: ServiceAccount
    name: kalypso-observe
    namespace: {{.Namespace}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: kalypso-observe
  namespace: {{.Namespace}}
  labels: {app.kubernetes.io/name: kalypso-observe}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector:
    matchLabels: {app.kubernetes.io/name: kalypso-observe}
  template:
    metadata:
      labels: {app.kubernetes.io/name: kalypso-observe}
    spec:
      serviceAccountName: kalypso-observe
      automountServiceAccountToken: true
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: observe
          image: {{quote .Image}}
          args:
            - observe
            - --from=in-cluster
            - --cluster={{or .Cluster "$(CLUSTER)"}}
            - --hub={{.Hub}}
            - --token-file=/var/run/secrets/kalypso-hub/token
            - --every=1m
{{- if not .Cluster}}
          env:
            - name: CLUSTER
              valueFrom:
                secretKeyRef: {name: kalypso-hub, key: cluster}
{{- end}}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: ["ALL"]}
          resources:
            requests: {cpu: 10m, memory: 64Mi}
            limits: {memory: 256Mi}
          volumeMounts:
            - name: hub
              mountPath: /var/run/secrets/kalypso-hub
              readOnly: true
      volumes:
        - name: hub
          secret:
            secretName: kalypso-hub
            items: [{key: token, path: token}]
            defaultMode: 0440
{{- if .Flux}}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata:
  name: kalypso-hub
  namespace: {{.Namespace}}
spec:
  type: generic
  address: {{.Hub}}/v1/ingest/flux
  secretRef: {name: kalypso-hub}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata:
  name: kalypso-hub
  namespace: {{.Namespace}}
spec:
  providerRef: {name: kalypso-hub}
{{- if .Cluster}}
  eventMetadata: {cluster: {{quote .Cluster}}}
{{- end}}
  eventSources:
    - kind: Kustomization
      name: "*"
{{- end}}
`))
