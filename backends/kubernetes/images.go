package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/json"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Image is a container image, or any other artifact of an OCI registry.
type Image struct {
	// Name is its reference in full, with the registry and a tag, a digest or both:
	// docker.io/library/nginx:1.29.
	Name string
	// Pinned says that the name has a digest.
	Pinned bool
}

// BadImage is an image of an object with a reference that no registry can resolve.
type BadImage struct {
	Object string // kind and name
	Path   string // in the object
	Why    string
}

// Images returns the images that pods of the objects run, each once, sorted by name. It finds the
// images of containers, init containers, ephemeral containers and image volumes at any depth, and
// therefore in custom resources with pod templates. It also finds the images in fields of
// customImages. It does not find an image that an operator makes up, or that an operator reads from
// an argument, a variable or a struct of repository and tag. CustomResourceDefinitions do not run
// images.
//
// A container of Kubernetes' own kinds needs an image. A container of a custom resource may have no
// image, since it may be a patch of another one.
func Images(objects []model.Value) ([]Image, []BadImage) {
	f := &imageFinder{found: map[string]Image{}}
	for _, o := range objects {
		f.object(o)
	}
	images := make([]Image, 0, len(f.found))
	for _, image := range f.found {
		images = append(images, image)
	}
	slices.SortFunc(images, func(a, b Image) int { return strings.Compare(a.Name, b.Name) })
	return images, f.bad
}

// ParseImage returns an image by its reference, and completes the reference as Docker does. A name
// without a registry belongs to docker.io, and a single name there is an official image. Without a
// tag and a digest, the tag is latest.
func ParseImage(text string) (Image, error) {
	for _, mark := range []string{"{{", "${", "$(", "###"} {
		if strings.Contains(text, mark) {
			return Image{}, fmt.Errorf("%q is a template", text)
		}
	}
	if text == "" {
		return Image{}, fmt.Errorf("the image is empty")
	}
	named, err := reference.ParseNormalizedNamed(strings.TrimPrefix(text, "oci://"))
	if err != nil {
		return Image{}, fmt.Errorf("%q is no image: %w", text, err)
	}
	_, pinned := named.(reference.Digested)
	return Image{Name: reference.TagNameOnly(named).String(), Pinned: pinned}, nil
}

// injected is the image of a container that Istio replaces when it injects its
// proxy (https://istio.io/latest/docs/setup/additional-setup/gateway).
const injected = "auto"

// shape describes the fields with images, except pod templates, in the objects of an API group.
type shape struct {
	lists   []string // fields that are lists of structs with an image
	structs []string // fields that are structs with an image
	paths   []string // of the images of an object, with dots
}

// customImages are well-known custom resources that name images outside of pod
// templates, by API group, as their own references describe them.
var customImages = map[string]shape{
	"argoproj.io":           {lists: []string{"sidecars"}, structs: []string{"container", "script"}},
	"kubevirt.io":           {structs: []string{"containerDisk"}},
	"monitoring.coreos.com": {paths: []string{"spec.image"}},
	"opentelemetry.io":      {paths: []string{"spec.image"}},
	"pkg.crossplane.io":     {paths: []string{"spec.package"}},
	"postgresql.cnpg.io":    {lists: []string{"images"}, paths: []string{"spec.imageName"}},
	"tekton.dev":            {lists: []string{"steps", "sidecars"}},
}

// containerLists are the fields with containers in a pod's spec.
var containerLists = []string{"containers", "initContainers", "ephemeralContainers"}

type imageFinder struct {
	found  map[string]Image
	bad    []BadImage
	name   string // of the object
	native bool   // the object's kind is one of Kubernetes
	shape  shape
}

// object looks for images in an object, or in the objects of a list.
func (f *imageFinder) object(o model.Value) {
	kind := Text(o, "kind")
	if items, ok := o.Lookup("items"); ok && strings.HasSuffix(kind, "List") &&
		items.Kind() == model.List {
		for _, item := range items.Elems() {
			f.object(item)
		}
		return
	}
	if kind == "CustomResourceDefinition" {
		return
	}
	of := group(Text(o, "apiVersion"))
	f.name = strings.TrimSpace(cmp.Or(kind, "an object") + " " + Text(o, "metadata", "name"))
	f.native = of == "" || of == "apps" || of == "batch"
	f.shape = customImages[of]
	for _, path := range f.shape.paths {
		if image, ok := Lookup(o, strings.Split(path, ".")...); ok && image.Kind() == model.String {
			f.image(image, path)
		}
	}
	f.walk(o, "")
}

// walk looks for images in a value and in everything below it.
func (f *imageFinder) walk(v model.Value, path string) {
	for i, elem := range v.Elems() {
		f.walk(elem, fmt.Sprintf("%s[%d]", path, i))
	}
	if v.Kind() != model.Struct {
		return
	}
	for _, field := range v.Fields() {
		at := model.JoinPath(path, model.Label(field.Name))
		switch {
		case slices.Contains(containerLists, field.Name):
			f.containers(field.Value, at, f.native)
		case slices.Contains(f.shape.lists, field.Name):
			f.containers(field.Value, at, false)
		case slices.Contains(f.shape.structs, field.Name):
			f.imageOf(field.Value, at, "image")
		case field.Name == "volumes":
			for i, volume := range field.Value.Elems() {
				image, _ := volume.Lookup("image")
				f.imageOf(image, fmt.Sprintf("%s[%d].image", at, i), "reference")
			}
		}
		f.walk(field.Value, at)
	}
}

// containers adds the images of a list of containers. The elements of other lists do not
// have a name and an image.
func (f *imageFinder) containers(list model.Value, path string, imageNeeded bool) {
	for i, c := range list.Elems() {
		at := fmt.Sprintf("%s[%d]", path, i)
		_, hasName := c.Lookup("name")
		_, hasImage := c.Lookup("image")
		switch {
		case hasImage:
			f.imageOf(c, at, "image")
		case hasName && imageNeeded:
			f.bad = append(f.bad, BadImage{Object: f.name, Path: at, Why: "the container has no image"})
		}
	}
}

// imageOf adds the image in a field of a struct, if the struct has the field.
func (f *imageFinder) imageOf(of model.Value, path, field string) {
	if of.Kind() != model.Struct {
		return
	}
	if image, ok := of.Lookup(field); ok {
		f.image(image, path+"."+field)
	}
}

func (f *imageFinder) image(v model.Value, path string) {
	if v.Kind() != model.String {
		if f.native {
			f.bad = append(f.bad, BadImage{Object: f.name, Path: path, Why: "the image is no string"})
		}
		return
	}
	if v.Text() == injected {
		return
	}
	image, err := ParseImage(v.Text())
	if err != nil {
		f.bad = append(f.bad, BadImage{Object: f.name, Path: path, Why: err.Error()})
		return
	}
	f.found[image.Name] = image
}

// podTemplate is the pod template of an object of one of Kubernetes' own kinds.
type podTemplate struct {
	object string // kind and name
	pod    corev1.Pod
	count  int64 // the number of pods at once, if nothing goes wrong
	// claims are the volume claims of each pod: every pod gets a volume for each of them.
	claims []corev1.PersistentVolumeClaimSpec
}

// counted are the fields with the number of pods at once, by kinds of Kubernetes. An empty field
// means that the kind has no such number.
var counted = map[string]string{
	"Deployment": "replicas", "StatefulSet": "replicas", "ReplicaSet": "replicas",
	"ReplicationController": "replicas",
	"Job":                   "parallelism", "CronJob": "parallelism", "DaemonSet": "",
}

// podTemplates returns the pod templates of objects. Objects of other kinds count if they
// have a template in the same place as Kubernetes' own kinds. unreadable lists objects of
// Kubernetes' own kinds with a field of a wrong type, by kind and name.
func podTemplates(objects []model.Projected) (out []podTemplate, unreadable []string) {
	most := scaled(objects)
	for _, o := range objects {
		kind, of := Text(o.Value, "kind"), group(Text(o.Value, "apiVersion"))
		t := podTemplate{object: kind + " " + Text(o.Value, "metadata", "name"), count: 1}
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

// read reads the pods of an object of a kind. It reports whether all fields that it reads have the
// types that Kubernetes expects. It ignores fields that Kubernetes does not read.
func (t *podTemplate) read(v model.Value, kind string) bool {
	spec, _ := v.Lookup("spec")
	if kind == "CronJob" {
		spec, _ = Lookup(spec, "jobTemplate", "spec")
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
		if Text(o.Value, "kind") == "HorizontalPodAutoscaler" && decode(o.Value, &scaler) {
			target := scaler.Spec.ScaleTargetRef.Kind + " " + scaler.Spec.ScaleTargetRef.Name
			out[target] = max(out[target], scaler.Spec.MaxReplicas)
		}
	}
	return out
}

// decode reads an object as API servers do: the case of field names matters.
func decode(v model.Value, into any) bool {
	return json.UnmarshalCaseSensitivePreserveInts(v.AppendJSON(nil), into) == nil
}

// systemPriority is the prefix of the names of system priority classes. On a full node, their pods
// replace any other pods (k8s.io/kubernetes/pkg/apis/scheduling).
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

// Insecure returns the pods of a projection that may not meet a pod security standard, as "Kind
// name: why".
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

// Requests are quantities by their names in a ResourceQuota, such as requests.cpu, limits.memory
// and pods.
type Requests map[string]resource.Quantity

// Add adds other requests to r, name by name.
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

// RequestsOf returns the sum of the requests of all pods and volume claims of a projection.
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
		if Text(o.Value, "kind") == "PersistentVolumeClaim" && decode(o.Value, &c) {
			claim(c.Spec, 1)
		}
	}
	return out
}

// asRequested changes the requests of a pod as a cluster counts them. A container that has a limit
// and no request requests the limit. A negative request, which every cluster refuses, counts as
// zero: otherwise it would make room for other pods.
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
	maps.DeleteFunc(list,
		func(_ corev1.ResourceName, q resource.Quantity) bool { return q.Sign() < 0 })
}

// QuotaOf returns the quota of a namespace service as Requests.
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
