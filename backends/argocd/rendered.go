package argocd

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Annotations that Argo CD reads off objects.
const (
	waveAnnotation    = "argocd.argoproj.io/sync-wave"
	hookAnnotation    = "argocd.argoproj.io/hook"
	optionsAnnotation = "argocd.argoproj.io/sync-options"
	weightAnnotation  = "helm.sh/hook-weight"
)

// rendered returns the folder of a workload that was rendered, and how the
// folder's Application syncs it. Custom resources whose CRD is among the objects
// need no wave: Argo CD applies CRDs first, and tries nothing out that they define.
func rendered(a *backends.Assignment, o options) (delivery.Content, shared, []diag.Diagnostic) {
	applied, left := kubernetes.Split(delivery.Rendered(a), func(o model.Projected) bool { return len(o.Hooks) == 0 || slices.ContainsFunc(o.Hooks, runsHook) })
	ds := delivery.Hooks(a, nil, left)
	objects, workspace, problems := inOrder(a, applied)
	for i := range objects {
		objects[i].Value = kept(serverSide(objects[i].Value))
	}
	content := delivery.Content{Manifests: objects, NamespaceAnnotations: workspace, ConfigAnnotations: workspace}
	return content, shared{Rendered: &syncing{SyncOptions: o.SyncOptions, IgnoreDifferences: o.IgnoreDifferences}}, append(ds, problems...)
}

// runsHook says whether Argo CD runs hooks of Helm for an event
// (https://argo-cd.readthedocs.io/en/stable/user-guide/helm/#helm-hooks).
func runsHook(event string) bool {
	switch event {
	case "pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-delete", "post-delete", "crd-install":
		return true
	}
	return false
}

// beforeSync says whether Argo CD runs an object before all others.
func beforeSync(o model.Projected) bool {
	return slices.Contains(o.Hooks, "pre-install") || slices.Contains(o.Hooks, "pre-upgrade")
}

// inOrder returns the objects with the annotations that let hooks before the
// installation find the workspace, and those that the workspace needs for it.
//
// Argo CD would run these hooks before it creates anything of the folder, its
// namespace included, and no sync would ever succeed. So they run as hooks of the
// sync itself, in negative waves: first the workspace and CRDs, then the hooks by
// their weights, then, in wave 0, the rest.
func inOrder(a *backends.Assignment, objects []model.Projected) ([]model.Projected, map[string]string, []diag.Diagnostic) {
	least, most := math.MaxInt32, math.MinInt32
	for _, o := range objects {
		if !beforeSync(o) {
			continue
		}
		weight, ok := weightOf(o.Value)
		if !ok {
			text := delivery.Annotation(o.Value, weightAnnotation)
			d := diag.New(diag.NotRendered, "a hook among the rendered manifests of "+a.DeploymentTarget+" has the weight "+strconv.Quote(text)+", which is no number of 16 bits").
				On("manifests").At(a.Ref.At("manifests"), "")
			return nil, nil, []diag.Diagnostic{d}
		}
		least, most = min(least, weight), max(most, weight)
	}
	if least > most {
		return objects, nil, nil
	}
	first := strconv.Itoa(least - most - 2)
	out := slices.Clone(objects)
	for i, o := range out {
		if isCRD(o.Value) {
			out[i].Value = delivery.Annotate(o.Value, waveAnnotation, first)
		} else if beforeSync(o) {
			weight, _ := weightOf(o.Value)
			hook := delivery.Annotate(o.Value, hookAnnotation, phases(o.Hooks))
			out[i].Value = delivery.Annotate(hook, waveAnnotation, strconv.Itoa(weight-most-1))
		}
	}
	return out, map[string]string{waveAnnotation: first}, nil
}

// phases returns when Argo CD runs a hook that also runs before the installation:
// its own annotation takes the place of Helm's, with all events.
func phases(events []string) string {
	var out []string
	for _, event := range events {
		switch event {
		case "pre-install", "pre-upgrade":
			out = append(out, "Sync")
		case "post-install", "post-upgrade":
			out = append(out, "PostSync")
		case "pre-delete":
			out = append(out, "PreDelete")
		case "post-delete":
			out = append(out, "PostDelete")
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

// weightOf returns the weight of a hook, 0 where it has none.
func weightOf(hook model.Value) (int, bool) {
	text := delivery.Annotation(hook, weightAnnotation)
	if text == "" {
		return 0, true
	}
	weight, err := strconv.ParseInt(text, 10, 16)
	return int(weight), err == nil
}

// mostClientSide is how large an object's JSON is, in bytes, that Argo CD applies
// as kubectl does: it keeps the object in an annotation, and annotations hold 256
// KiB together (TotalAnnotationSizeLimitB in k8s.io/apimachinery). The rest is for
// the object's own annotations and for kalypso's.
const mostClientSide = 240 << 10

// serverSide lets the API server merge a CRD, which others add versions and
// conversions to, and an object that is too large for Argo CD to do so.
func serverSide(object model.Value) model.Value {
	if !isCRD(object) && len(object.AppendJSON(nil)) <= mostClientSide {
		return object
	}
	return withOptions(object, "ServerSideApply=true")
}

// kept keeps an object that is to stay from being pruned, and from going with the
// Application.
func kept(object model.Value) model.Value {
	if !kubernetes.Keeps(object) {
		return object
	}
	return withOptions(object, "Prune=false", "Delete=false")
}

// withOptions adds sync options to an object, each in the place of another value of
// it.
func withOptions(object model.Value, options ...string) model.Value {
	var all []string
	for option := range strings.SplitSeq(delivery.Annotation(object, optionsAnnotation), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(option), "=")
		if name != "" && !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, name+"=") }) {
			all = append(all, strings.TrimSpace(option))
		}
	}
	return delivery.Annotate(object, optionsAnnotation, strings.Join(append(all, options...), ","))
}

func isCRD(object model.Value) bool {
	kind, _ := object.Lookup("kind")
	return kind.Kind() == model.String && kind.Text() == "CustomResourceDefinition"
}
