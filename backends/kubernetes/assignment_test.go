package kubernetes

import (
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// assignment returns an assignment with a namespace service from JSON.
func assignment(t testing.TB, service string) *backends.Assignment {
	t.Helper()
	return &backends.Assignment{
		Environment:      "dev",
		ClusterType:      "large",
		Workspace:        "app-team",
		Application:      "hello",
		Workload:         "hello",
		Target:           "test",
		DeploymentTarget: "hello-test",
		Namespace:        "dev-large-hello-test",
		ConfigFormat:     model.ConfigMap,
		Values:           model.StructOf(),
		NamespaceService: backends.Spec{
			Ref:   model.Ref{Collection: "namespaceServices", Name: "default"},
			Value: value(t, service),
		},
		Ref: model.Ref{Collection: "workloads", Name: "hello", Path: "deploymentTargets.test"},
	}
}

// plainService is a namespace service without fields, after the schema has added its defaults.
const plainService = `{"name": "default", "deletion": "delete", "networkPolicy": "none", "serviceAccount": {"automountToken": false}}`

func value(t testing.TB, text string) model.Value {
	t.Helper()
	var v model.Value
	if err := v.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
