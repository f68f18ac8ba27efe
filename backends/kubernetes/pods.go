package kubernetes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/json"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// podTemplate is what an object of Kubernetes' own kinds has about the pods that it asks for.
type podTemplate struct {
	object string // kind and name
	pod    corev1.Pod
	count  int64 // how many there are at once, where nothing goes wrong
	// claims are what each pod gets a volume for.
	claims []corev1.PersistentVolumeClaimSpec
}

// counted are the fields that say how many pods Kubernetes' own kinds ask for at once.
var counted = map[string]string{
	"Deployment": "replicas", "StatefulSet": "replicas", "ReplicaSet": "replicas", "ReplicationController": "replicas",
	"Job": "parallelism", "CronJob": "parallelism", "DaemonSet": "",
}

// podTemplates returns the pod templates of objects, those of other kinds than Kubernetes' own
// too where they have one in the same place. An object of one of its kinds that has another
// type somewhere than Kubernetes has for it is unreadable, by kind and name.
func podTemplates(objects []model.Projected) (out []podTemplate, unreadable []string) {
	most := scaled(objects)
	for _, o := range objects {
		kind, of := text(o.Value, "kind"), group(text(o.Value, "apiVersion"))
		t := podTemplate{object: kind + " " + text(o.Value, "metadata", "name"), count: 1}
		var own, ok bool
		if kind == "Pod" && of == "" {
			own, ok = true, decode(o.Value, &t.pod)
		} else {
			_, known := counted[kind]
			own = known && (of == "apps" || of == "batch" || of == "")
			ok = t.read(o.Value, kind)
			t.count = max(t.count, most[t.object], 0)
			if isCronJob(o.Value) {
				t.count *= max(overlap(o.Value), 1)
			}
		}
		switch {
		case !ok && own:
			unreadable = append(unreadable, t.object)
		case ok && len(t.pod.Spec.Containers) > 0:
			out = append(out, t)
		}
	}
	return out, unreadable
}

// read reads what an object of a kind has about its pods. It is not ok where that has another
// type than Kubernetes has for it. What Kubernetes does not read is not looked at.
func (t *podTemplate) read(v model.Value, kind string) bool {
	spec, _ := v.Lookup("spec")
	if kind == "CronJob" {
		spec, _ = lookup(spec, "jobTemplate", "spec")
	}
	field := func(name string, into any) bool {
		value, found := spec.Lookup(name)
		return !found || decode(value, into)
	}
	var template corev1.PodTemplateSpec
	var count *int64
	var claims []corev1.PersistentVolumeClaim
	counts, known := counted[kind]
	if !known {
		counts = "replicas"
	}
	ok := field("template", &template) && (counts == "" || field(counts, &count)) &&
		(kind != "StatefulSet" || field("volumeClaimTemplates", &claims))
	t.pod.ObjectMeta, t.pod.Spec = template.ObjectMeta, template.Spec
	if count != nil {
		t.count = *count
	}
	for _, claim := range claims {
		t.claims = append(t.claims, claim.Spec)
	}
	return ok
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
			target := scaler.Spec.ScaleTargetRef.Kind + " " + scaler.Spec.ScaleTargetRef.Name
			out[target] = max(out[target], scaler.Spec.MaxReplicas)
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
	templates, _ := podTemplates(Items(p.Objects))
	for _, t := range templates {
		if class := t.pod.Spec.PriorityClassName; strings.HasPrefix(class, systemPriority) {
			out = append(out, t.object+": "+class)
		}
	}
	return out
}

// Insecure returns the pods of a projection of which it is not known that they meet a pod
// security standard, as "Kind name: why".
func Insecure(p *model.Projection, level string) []string {
	of := api.Level(level)
	if of == api.LevelPrivileged {
		return nil
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic("kubernetes: the checks of pod security: " + err.Error()) // they are fixed
	}
	templates, unreadable := podTemplates(Items(p.Objects))
	var out []string
	for _, object := range unreadable {
		out = append(out, object+": a field has another type than Kubernetes has for it")
	}
	for _, t := range templates {
		results := evaluator.EvaluatePod(api.LevelVersion{Level: of, Version: api.LatestVersion()},
			&t.pod.ObjectMeta, &t.pod.Spec)
		if all := policy.AggregateCheckResults(results); !all.Allowed {
			out = append(out, t.object+": "+all.ForbiddenDetail())
		}
	}
	return out
}
