package kubernetes

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func TestWorkspace(t *testing.T) {
	for _, test := range []struct {
		name    string
		service string
		change  func(*backends.Assignment)
		want    string // namespace.yaml
	}{
		{"plain", plainService, nil, `
apiVersion: v1
kind: Namespace
metadata:
  name: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
    clusterType: large
    deploymentTarget: hello-test
    environment: dev
    workload: hello
    workspace: app-team
  annotations:
    kalypso.io/assignment: dev/large/hello-test
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: hello
  namespace: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
automountServiceAccountToken: false
`},
		{"long names", plainService, func(a *backends.Assignment) {
			a.DeploymentTarget = strings.Repeat("a", 60) + "-" + strings.Repeat("b", 60)
		}, "deploymentTarget: " + model.ShortName(strings.Repeat("a", 60)+"-"+strings.Repeat("b", 60), 63) + "\n"},
		{"labels and security", `{"labels": {"some-label": "true", "environment": "dev"}, "annotations": {"a": "b"}, "podSecurity": "restricted"}`, nil, `
    environment: dev
    pod-security.kubernetes.io/audit: restricted
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
    some-label: "true"
    workload: hello
    workspace: app-team
  annotations:
    a: b
    kalypso.io/assignment: dev/large/hello-test
`},
		{"orphan", `{"deletion": "orphan"}`, nil, `
  annotations:
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
    helm.sh/resource-policy: keep
    kalypso.io/assignment: dev/large/hello-test
    kustomize.toolkit.fluxcd.io/prune: disabled
`},
		{"quota", `{"quota": {"requests.cpu": "4", "pods": 10, "requests.memory": "8Gi"}}`, nil, `
spec:
  hard:
    pods: "10"
    requests.cpu: "4"
    requests.memory: 8Gi
`},
		{"limits", `{"limits": {"Pod": {"max": {"cpu": 2}}, "Container": {"default": {"cpu": "500m"}, "defaultRequest": {"cpu": "0.1"}, "maxLimitRequestRatio": {"cpu": "10"}}}}`, nil, `
spec:
  limits:
  - type: Container
    default:
      cpu: 500m
    defaultRequest:
      cpu: "0.1"
    maxLimitRequestRatio:
      cpu: "10"
  - type: Pod
    max:
      cpu: "2"
`},
		{"isolated", `{"networkPolicy": "isolated"}`, nil, `
spec:
  podSelector: {}
  policyTypes:
  - Ingress
  - Egress
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: allow-same-namespace
  namespace: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
spec:
  podSelector: {}
  policyTypes:
  - Ingress
  - Egress
  ingress:
  - from:
    - podSelector: {}
  egress:
  - to:
    - podSelector: {}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: allow-dns
  namespace: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
spec:
  podSelector: {}
  policyTypes:
  - Egress
  egress:
  - to:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: kube-system
    ports:
    - protocol: UDP
      port: 53
    - protocol: TCP
      port: 53
---
apiVersion: v1
kind: ServiceAccount
`},
		{"peers", `{"networkPolicy": {
			"ingressFrom": [{"namespaceLabels": {"team": "edge"}, "podLabels": {"app": "gateway"}, "ports": [{"port": "http", "protocol": "TCP"}]}, {"namespaceLabels": {}}],
			"egressTo": [{"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"], "ports": [{"port": 5432, "protocol": "TCP"}]}]}}`, nil, `
  ingress:
  - from:
    - namespaceSelector:
        matchLabels:
          team: edge
      podSelector:
        matchLabels:
          app: gateway
    ports:
    - protocol: TCP
      port: http
  - from:
    - namespaceSelector: {}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: allow-egress
  namespace: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
spec:
  podSelector: {}
  policyTypes:
  - Egress
  egress:
  - to:
    - ipBlock:
        cidr: 10.0.0.0/8
        except:
        - 10.1.0.0/16
    ports:
    - protocol: TCP
      port: 5432
`},
		{"service account", `{"serviceAccount": {"name": "app", "annotations": {"id": "x"}, "imagePullSecrets": ["a", "b"], "automountToken": true}}`, nil, `
  name: app
  namespace: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    id: x
    kalypso.io/assignment: dev/large/hello-test
automountServiceAccountToken: true
imagePullSecrets:
- name: a
- name: b
`},
		{"role bindings", `{"rbac": {"viewers": {"clusterRole": "view", "groups": ["a", "b"]}, "deployers": {"role": "deploy", "groups": ["c"]}}}`, nil, `
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: c
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: deploy
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: viewers
  namespace: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: a
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: b
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: view
`},
		{"manifests", `{"manifests": [
			{"kind": "ConfigMap", "data": {"y": "no"}, "apiVersion": "v1", "metadata": {"labels": {"a": "b"}, "name": "c", "finalizers": ["x"]}},
			{"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "c"}, "rules": []},
			{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c", "namespace": "other"}},
			{"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w", "namespace": ""}}]}`, nil, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  namespace: dev-large-hello-test
  labels:
    a: b
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
  finalizers:
  - x
data:
  "y": "no"
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: c
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
rules: []
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  namespace: other
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
---
apiVersion: example.com/v1
kind: Widget
metadata:
  name: w
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
`},
		{"manifests by key", `{"manifests": {"b": {"kind": "B", "apiVersion": "v1", "metadata": {"name": "b"}}, "a": {"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}}}}`,
			nil, "kind: A\nmetadata:\n  name: a\n  namespace: dev-large-hello-test\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := assignment(t, test.service)
			if test.change != nil {
				test.change(a)
			}
			files, objects, ds := Workspace(a)
			if len(ds) > 0 {
				t.Fatal(ds)
			}
			if len(files) != 2 || files[0].Path != NamespaceFile || files[1].Path != PlatformConfigFile {
				t.Fatalf("files: %v", files)
			}
			got := string(files[0].Data)
			if !strings.Contains("\n"+got, test.want) {
				t.Errorf("got:\n%s\nwant in it:\n%s", got, test.want)
			}
			if test.name == "plain" && got != strings.TrimPrefix(test.want, "\n") {
				t.Errorf("there is more than a namespace and a service account:\n%s", got)
			}
			checkObjects(t, files, objects)
		})
	}
}

func TestIdentities(t *testing.T) {
	_, got, _ := Workspace(assignment(t, `{"rbac": {"viewers": {"clusterRole": "view", "groups": ["a"]}}}`))
	const namespace = "dev-large-hello-test"
	want := []backends.Object{
		{Kind: "Namespace", Name: namespace},
		{Kind: "ServiceAccount", Namespace: namespace, Name: "hello"},
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding", Namespace: namespace, Name: "viewers"},
		{Kind: "ConfigMap", Namespace: namespace, Name: "platform-config"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestBadServices(t *testing.T) {
	for _, test := range []struct {
		service string
		code    diag.Code
		path    string // below the namespace service
		message string
	}{
		{`{"labels": {"environment": "prod"}}`, diag.BadSpec, "labels.environment", "kalypso's own"},
		{`{"labels": {"app.kubernetes.io/managed-by": "me"}}`, diag.BadSpec, `labels."app.kubernetes.io/managed-by"`, "kalypso's own"},
		{`{"labels": {"pod-security.kubernetes.io/enforce": "privileged"}, "podSecurity": "restricted"}`, diag.BadSpec, `labels."pod-security.kubernetes.io/enforce"`, "restricted"},
		{`{"deletion": "orphan", "annotations": {"argocd.argoproj.io/sync-options": "Prune=true"}}`, diag.BadSpec, `annotations."argocd.argoproj.io/sync-options"`, "Prune=false,Delete=false"},
		{`{"limits": {"Pod": {"default": {"cpu": 1}}}}`, diag.BadSpec, "limits.Pod", "Container"},
		{`{"limits": {"PersistentVolumeClaim": {"max": {"cpu": 1}}}}`, diag.BadSpec, "limits.PersistentVolumeClaim", "storage"},
		{`{"networkPolicy": {"ingressFrom": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}}`, diag.BadSpec, "networkPolicy.ingressFrom[0]", "everybody"},
		{`{"networkPolicy": {"egressTo": [{"cidr": "10.0.0.0/8", "podLabels": {}}]}}`, diag.BadSpec, "networkPolicy.egressTo[0]", "either"},
		{`{"networkPolicy": {"egressTo": [{"podLabels": {}, "except": ["10.0.0.0/8"]}]}}`, diag.BadSpec, "networkPolicy.egressTo[0]", "not given"},
		{`{"networkPolicy": {"egressTo": [{"cidr": "10.0.0.0/33"}]}}`, diag.BadSpec, "networkPolicy.egressTo[0].cidr", "10.0.0.0/33"},
		{`{"networkPolicy": {"egressTo": [{"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}]}}`, diag.BadSpec, "networkPolicy.egressTo[0].except[0]", "not inside"},
		{`{"networkPolicy": {"egressTo": [{"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}]}}`, diag.BadSpec, "networkPolicy.egressTo[0].except[0]", "not inside"},
		{`{"networkPolicy": {"egressTo": [{"cidr": "10.0.0.0/8", "except": ["::1/128"]}]}}`, diag.BadSpec, "networkPolicy.egressTo[0].except[0]", "not inside"},
		{`{"serviceAccount": {"name": "My App", "automountToken": false}}`, diag.BadSpec, "serviceAccount.name", "My App"},
		{`{"manifests": [{"kind": "A", "metadata": {"name": "a"}}]}`, diag.NotAnObject, "manifests[0]", "apiVersion"},
		{`{"manifests": {"x y": {"apiVersion": "v1", "metadata": {"name": "a"}}}}`, diag.NotAnObject, `manifests."x y"`, "kind"},
		{`{"manifests": [{"apiVersion": "v1", "kind": "A"}]}`, diag.NotAnObject, "manifests[0]", "metadata.name"},
		{`{"manifests": [{"apiVersion": "v1", "kind": "A", "metadata": {"name": ""}}]}`, diag.NotAnObject, "manifests[0]", "metadata.name"},
		{`{"manifests": [{"apiVersion": "v1", "kind": 3, "metadata": {"name": "a"}}]}`, diag.NotAnObject, "manifests[0]", "kind"},
		{`{"manifests": [{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "namespace": 1}}]}`, diag.NotAnObject, "manifests[0].metadata.namespace", "string"},
		{`{"manifests": [{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": {"x": true}}}]}`, diag.NotAnObject, "manifests[0].metadata.labels.x", "quote it"},
		{`{"manifests": [{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": []}}]}`, diag.NotAnObject, "manifests[0].metadata.labels", "no mapping"},
		{`{"manifests": {"env": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"DEBUG": true}}}}`, diag.NotAnObject, "manifests.env.data.DEBUG", "data.DEBUG of the manifest is true, which is no string: quote it"},
		{`{"manifests": [{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "annotations": {"kalypso.io/assignment": "x"}}}]}`, diag.BadSpec, `manifests[0].metadata.annotations."kalypso.io/assignment"`, "kalypso's own"},
		{`{"manifests": [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "hello"}}]}`, diag.BadSpec, "manifests[0]", "twice"},
		{`{"quota": {"pods": []}, "labels": 3}`, diag.BadSpec, "", "cannot be read"},
	} {
		_, _, ds := Workspace(assignment(t, test.service))
		ref := model.Ref{Collection: "namespaceServices", Name: "default", Path: test.path}
		if len(ds) != 1 || ds[0].Code != test.code || ds[0].Path != ref.String() || len(ds[0].Sites) != 1 || ds[0].Sites[0].Ref != ref ||
			!strings.Contains(ds[0].Message, test.message) || len(ds[0].Assignments) != 1 || ds[0].Environment != "dev" {
			t.Errorf("%s\ngot %+v", test.service, ds)
		}
	}
}
