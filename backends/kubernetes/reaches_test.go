package kubernetes

import (
	"slices"
	"testing"
)

// Whatever an object of Prometheus names a file in, it is a file of the pods that act on the object.
func TestFilesOf(t *testing.T) {
	monitoring := func(kind, spec string) string {
		return `{"apiVersion": "monitoring.coreos.com/v1", "kind": "` + kind + `", "metadata": {"name": "a"}, "spec": ` + spec + `}`
	}
	for object, want := range map[string][]string{
		monitoring("ServiceMonitor", `{"endpoints": [{"bearerTokenFile": "/a"}, {"tlsConfig": {"caFile": "/a", "certFile": "/b", "keyFile": "/c"}}]}`): {
			"bearerTokenFile", "caFile", "certFile", "keyFile"},
		monitoring("ServiceMonitor", `{"endpoints": [{"tlsConfig": {"caFile": "", "ca": {"secret": {"name": "a", "key": "caFile"}}}}]}`):               nil,
		monitoring("PodMonitor", `{"podMetricsEndpoints": [{"oauth2": {"tlsConfig": {"keyFile": "/c"}}}]}`):                                            {"keyFile"},
		monitoring("Probe", `{"tlsConfig": {"caFile": "/a"}, "targets": {"staticConfig": {"labels": {"aFile": "b"}}}}`):                                {"caFile"},
		monitoring("ScrapeConfig", `{"fileSDConfigs": [{"files": ["/a.json"]}], "kubernetesSDConfigs": [{"tlsConfig": {"certFile": "/a"}}]}`):          {"certFile", "fileSDConfigs"},
		monitoring("Prometheus", `{"remoteWrite": [{"url": "https://a", "authorization": {"credentialsFile": "/a"}, "tlsConfig": {"caFile": "/a"}}]}`): {"caFile", "credentialsFile"},
		monitoring("Prometheus", `{"queryLogFile": "/a", "externalLabels": {"aFile": "b"}}`):                                                           nil,
		monitoring("Alertmanager", `{"web": {"tlsConfig": {"clientCAFile": "/a"}}}`):                                                                   {"clientCAFile"},
		monitoring("AlertmanagerConfig", `{"receivers": [{"telegramConfigs": [{"botTokenFile": "/a"}]}]}`):                                             {"botTokenFile"},
		monitoring("PrometheusRule", `{"groups": [{"rules": [{"annotations": {"runbookFile": "/a"}}]}]}`):                                              nil,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "spec": {"caFile": "/a"}}`:                                               nil,
	} {
		if got := FilesOf(value(t, object)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
}
