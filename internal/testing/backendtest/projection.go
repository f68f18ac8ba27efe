package backendtest

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Projected returns objects as a projection of rendered manifests. Each object is JSON. If it is
// a hook of Helm, the text has the events before it, comma-separated: "pre-install,pre-upgrade
// {...}".
func Projected(t testing.TB, objects ...string) *model.Projection {
	t.Helper()
	p := &model.Projection{Revision: "1.2.3"}
	for _, text := range objects {
		var hooks []string
		if events, json, isHook := strings.Cut(text, " {"); isHook && !strings.HasPrefix(text, "{") {
			hooks, text = strings.Split(events, ","), "{"+json
		}
		p.Objects = append(p.Objects, model.Projected{Value: Value(t, text), Hooks: hooks})
	}
	return p
}

// Rendered are the objects of a chart: a CRD with an object of its kind, objects
// with and without a namespace, cluster-scoped ones, and hooks.
var Rendered = []string{
	`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "shops.example.test"},
		"spec": {"group": "example.test", "scope": "Cluster", "names": {"kind": "Shop", "plural": "shops"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`,
	`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "labels": {"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "app-1.2.3"}},
		"data": {"run.sh": "#!/bin/sh\nexec app --home ${HOME} --port $PORT\n", "enabled": "yes"}}`,
	`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "app"}, "rules": [{"apiGroups": ["example.test"], "resources": ["shops"], "verbs": ["get"]}]}`,
	`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "app", "namespace": "kube-system"},
		"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}}`,
	`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "app"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "app"}},
		"template": {"metadata": {"labels": {"app": "app"}}, "spec": {"containers": [{"name": "app", "image": "registry.example.test/app:1.2.3"}]}}}}`,
	`{"apiVersion": "example.test/v1", "kind": "Shop", "metadata": {"name": "app"}, "spec": {"open": true}}`,
}

// Hooks are hooks of a chart: for installations, deletions and tests.
var Hooks = []string{
	`pre-install,pre-upgrade {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate", "annotations": {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": "5"}},
		"spec": {"template": {"spec": {"restartPolicy": "Never", "serviceAccountName": "app", "containers": [{"name": "migrate", "image": "registry.example.test/app:1.2.3"}]}}}}`,
	`pre-install {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "migrate", "annotations": {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "-5"}}, "data": {"a": "b"}}`,
	`post-install {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "announce", "annotations": {"helm.sh/hook": "post-install"}},
		"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "announce", "image": "registry.example.test/app:1.2.3"}]}}}}`,
	`pre-delete {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "drain", "annotations": {"helm.sh/hook": "pre-delete"}},
		"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "drain", "image": "registry.example.test/app:1.2.3"}]}}}}`,
	`post-rollback {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "undo", "annotations": {"helm.sh/hook": "post-rollback"}}}`,
	`test {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "test", "annotations": {"helm.sh/hook": "test"}}, "spec": {"containers": [{"name": "t", "image": "busybox"}]}}`,
}
