package kubernetes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/json"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// podTemplate is what an object of Kubernetes' own kinds says of the pods that it asks for.
type podTemplate struct {
	object string // kind and name
	pod    corev1.Pod
	count  int64 // how many there are at once, where nothing goes wrong
	// claims are what each pod gets a volume for.
	claims []corev1.PersistentVolumeClaimSpec
}

// workload is what podTemplates reads of an object.
type workload struct {
	Spec struct {
		Replicas             *int64                         `json:"replicas"`
		Parallelism          *int64                         `json:"parallelism"`
		Template             corev1.PodTemplateSpec         `json:"template"`
		VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
		JobTemplate          struct {
			Spec struct {
				Parallelism *int64                 `json:"parallelism"`
				Template    corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
}

// podTemplates returns the pod templates of objects. What has another type than Kubernetes
// has for it is left out, as API servers refuse it.
func podTemplates(objects []model.Projected) []podTemplate {
	most := scaled(objects)
	var out []podTemplate
	for _, o := range objects {
		kind, of := text(o.Value, "kind"), group(text(o.Value, "apiVersion"))
		t := podTemplate{object: kind + " " + text(o.Value, "metadata", "name"), count: 1}
		var w workload
		switch {
		case kind == "Pod" && of == "":
			if !decode(o.Value, &t.pod) {
				continue
			}
			out = append(out, t)
			continue
		case of != "apps" && of != "batch" && (of != "" || kind != "ReplicationController"), !decode(o.Value, &w):
			continue
		}
		template := w.Spec.Template
		for _, n := range []*int64{w.Spec.Replicas, w.Spec.Parallelism} {
			if n != nil {
				t.count = *n
			}
		}
		if kind == "CronJob" {
			template = w.Spec.JobTemplate.Spec.Template
			if n := w.Spec.JobTemplate.Spec.Parallelism; n != nil {
				t.count = *n
			}
		}
		t.count = max(t.count, most[t.object], 0)
		t.pod.ObjectMeta, t.pod.Spec = template.ObjectMeta, template.Spec
		for _, claim := range w.Spec.VolumeClaimTemplates {
			t.claims = append(t.claims, claim.Spec)
		}
		if len(t.pod.Spec.Containers) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// scaled returns how many pods objects may have that HorizontalPodAutoscalers scale, by kind
// and name.
func scaled(objects []model.Projected) map[string]int64 {
	out := map[string]int64{}
	for _, o := range objects {
		var scaler struct {
			Spec struct {
				MaxReplicas    int64 `json:"maxReplicas"`
				ScaleTargetRef struct {
					Kind string `json:"kind"`
					Name string `json:"name"`
				} `json:"scaleTargetRef"`
			} `json:"spec"`
		}
		if text(o.Value, "kind") == "HorizontalPodAutoscaler" && decode(o.Value, &scaler) {
			out[scaler.Spec.ScaleTargetRef.Kind+" "+scaler.Spec.ScaleTargetRef.Name] = scaler.Spec.MaxReplicas
		}
	}
	return out
}

// decode reads an object as API servers do: fields are told apart by case.
func decode(v model.Value, into any) bool {
	return json.UnmarshalCaseSensitivePreserveInts(v.AppendJSON(nil), into) == nil
}

// systemPriority is what the names of the classes begin with whose pods take the place of any
// others on a full node (k8s.io/kubernetes/pkg/apis/scheduling).
const systemPriority = "system-"

// Preempting returns the pods of a projection with a priority of Kubernetes' own parts, as
// "Kind name: class", in the order of the objects.
func Preempting(p *model.Projection) []string {
	var out []string
	for _, t := range podTemplates(Items(p.Objects)) {
		if class := t.pod.Spec.PriorityClassName; strings.HasPrefix(class, systemPriority) {
			out = append(out, t.object+": "+class)
		}
	}
	return out
}

// Insecure returns the pods of a projection that do not meet a pod security standard, as
// "Kind name: why", in the order of the objects.
func Insecure(p *model.Projection, level string) []string {
	of := api.Level(level)
	if of == api.LevelPrivileged {
		return nil
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic("kubernetes: the checks of pod security: " + err.Error()) // they are fixed
	}
	var out []string
	for _, t := range podTemplates(Items(p.Objects)) {
		results := evaluator.EvaluatePod(api.LevelVersion{Level: of, Version: api.LatestVersion()}, &t.pod.ObjectMeta, &t.pod.Spec)
		if all := policy.AggregateCheckResults(results); !all.Allowed {
			out = append(out, t.object+": "+all.ForbiddenDetail())
		}
	}
	return out
}
