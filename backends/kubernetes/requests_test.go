package kubernetes

import (
	"maps"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// RequestsOf counts pods and volumes as a cluster does, and no object makes room for another.
func TestRequestsOf(t *testing.T) {
	deployment := func(replicas, spec string) string {
		return `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": ` + replicas + `, "template": {"spec": ` + spec + `}}}`
	}
	for name, c := range map[string]struct {
		object string
		want   map[string]string
	}{
		"requests": {deployment("3", `{"containers": [{"resources": {"requests": {"cpu": "500m"}}}]}`), map[string]string{"requests.cpu": "1500m", "pods": "3"}},
		"a limit alone": {deployment("2", `{"containers": [{"resources": {"limits": {"cpu": "4", "memory": "1Gi"}, "requests": {"memory": "1Mi"}}}]}`),
			map[string]string{"requests.cpu": "8", "limits.cpu": "8", "requests.memory": "2Mi", "limits.memory": "2Gi", "pods": "2"}},
		"negative replicas":  {deployment("-9", `{"containers": [{"resources": {"requests": {"cpu": "1"}}}]}`), map[string]string{"requests.cpu": "0", "pods": "0"}},
		"a negative request": {deployment("1", `{"overhead": {"cpu": "-7"}, "containers": [{"resources": {"requests": {"cpu": "3"}}}, {"resources": {"requests": {"cpu": "-2"}, "limits": {"cpu": "-1"}}}]}`), map[string]string{"requests.cpu": "3", "pods": "1"}},
		"a volume of each pod": {deployment("2", `{"containers": [{}], "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}}}]}`),
			map[string]string{"requests.storage": "2Gi", "persistentvolumeclaims": "2", "pods": "2"}},
		"runs at once": {`{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {
			"activeDeadlineSeconds": 240, "parallelism": 2, "template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "500m"}}}]}}}}}}`,
			map[string]string{"requests.cpu": "4", "pods": "8"}},
		"a negative claim": {`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}, "spec": {"resources": {"requests": {"storage": "-1Gi"}}}}`,
			map[string]string{"persistentvolumeclaims": "1"}},
	} {
		got := map[string]string{}
		for name, q := range RequestsOf(&model.Projection{Objects: []model.Projected{{Value: value(t, c.object)}}}) {
			got[name] = q.String()
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
