package kubernetes

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Requests are quantities by what a ResourceQuota calls them: requests.cpu, limits.memory,
// pods.
type Requests map[string]resource.Quantity

// Add adds what others request.
func (r Requests) Add(others Requests) {
	for name, q := range others {
		sum := r[name]
		sum.Add(q)
		r[name] = sum
	}
}

func (r Requests) add(prefix string, list corev1.ResourceList, times int64) {
	for name, q := range list {
		q = q.DeepCopy()
		q.Mul(times)
		r.Add(Requests{prefix + string(name): q})
	}
}

func (r Requests) count(name string, n int64) {
	r.Add(Requests{name: *resource.NewQuantity(n, resource.DecimalSI)})
}

// RequestsOf returns what the pods and volume claims of a projection request together.
func RequestsOf(p *model.Projection) Requests {
	out := Requests{}
	items := Items(p.Objects)
	claim := func(spec corev1.PersistentVolumeClaimSpec, times int64) {
		dropNegative(spec.Resources.Requests)
		out.add("requests.", spec.Resources.Requests, times)
		out.count("persistentvolumeclaims", times)
	}
	templates, _ := podTemplates(items)
	for _, t := range templates {
		asRequested(&t.pod.Spec)
		out.add("requests.", helpers.PodRequests(&t.pod, helpers.PodResourcesOptions{}), t.count)
		out.add("limits.", helpers.PodLimits(&t.pod, helpers.PodResourcesOptions{}), t.count)
		out.count("pods", t.count)
		for _, spec := range t.claims {
			claim(spec, t.count)
		}
		for _, v := range t.pod.Spec.Volumes {
			if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
				claim(v.Ephemeral.VolumeClaimTemplate.Spec, t.count)
			}
		}
	}
	for _, o := range items {
		var c corev1.PersistentVolumeClaim
		if text(o.Value, "kind") == "PersistentVolumeClaim" && decode(o.Value, &c) {
			claim(c.Spec, 1)
		}
	}
	return out
}

// asRequested changes what a pod requests to what counts on a cluster. A container that has a
// limit and no request requests the limit. Less than nothing, which no cluster takes, is
// nothing: it would make room for others.
func asRequested(pod *corev1.PodSpec) {
	dropNegative(pod.Overhead)
	if pod.Resources != nil {
		withLimits(pod.Resources)
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			withLimits(&containers[i].Resources)
		}
	}
}

func withLimits(r *corev1.ResourceRequirements) {
	dropNegative(r.Limits)
	requests := r.Limits.DeepCopy()
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	maps.Copy(requests, r.Requests)
	dropNegative(requests)
	r.Requests = requests
}

func dropNegative(list corev1.ResourceList) {
	maps.DeleteFunc(list, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.Sign() < 0 })
}

// QuotaOf returns the quota of a namespace service, as of what may be requested.
func QuotaOf(namespaceService model.Value) Requests {
	out := Requests{}
	quota, _ := namespaceService.Lookup("quota")
	for _, f := range quota.Fields() {
		name := f.Name
		if name == "cpu" || name == "memory" {
			name = "requests." + name // as API servers read it
		}
		if q, err := resource.ParseQuantity(f.Value.Text()); err == nil {
			out[name] = q
		}
	}
	return out
}
