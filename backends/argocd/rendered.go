package argocd

import (
	"fmt"
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
	hookAnnotation    = kubernetes.ArgoHookAnnotation
	optionsAnnotation = "argocd.argoproj.io/sync-options"
	weightAnnotation  = "helm.sh/hook-weight"
)

// rendered returns the folder of a rendered workload, and how the folder's Application syncs
// it. Custom resources whose CRD is among the objects need no wave. Argo CD applies CRDs
// first, and does not dry-run objects of their kinds.
func rendered(a *backends.Assignment, o options) (delivery.Content, indexInput, []diag.Diagnostic) {
	applied, left := kubernetes.Split(delivery.Rendered(a), func(o model.Projected) bool {
		return len(phasesOf(o)) > 0 // it knows no tests and rollbacks
	})
	ds := delivery.Hooks(a, nil, left)
	objects, workspace, problems := inOrder(a, applied)
	for i, o := range objects {
		// The API server merges a CRD, because other people add versions and conversions to
		// it. It also merges an object that is too large for Argo CD.
		if kubernetes.IsDefinition(o.Value) || len(o.Value.AppendJSON(nil)) > maxClientSide {
			objects[i].Value = withOptions(objects[i].Value, "ServerSideApply=true")
		}
		// Argo CD does not prune it, and does not delete it with the Application.
		if kubernetes.Keeps(o.Value) {
			objects[i].Value = withOptions(objects[i].Value, "Prune=false", "Delete=false")
		}
	}
	content := delivery.Content{Manifests: objects, NamespaceAnnotations: workspace,
		ConfigAnnotations: workspace}
	return content, indexInput{Rendered: &syncFields{SyncOptions: o.SyncOptions,
		IgnoreDifferences: o.IgnoreDifferences}}, append(ds, problems...)
}

// preSync is the phase of a sync before anything else is applied, and inSync is the phase of all
// objects that are not hooks.
const (
	preSync = "PreSync"
	inSync  = "Sync"
)

// phaseOf are the phases in which Argo CD runs Helm's hooks, by their events
// (https://argo-cd.readthedocs.io/en/stable/user-guide/helm/#helm-hooks).
var phaseOf = map[string]string{
	"pre-install": preSync, "pre-upgrade": preSync, "post-install": "PostSync",
	"post-upgrade": "PostSync",
	"pre-delete":   "PreDelete", "post-delete": "PostDelete", "crd-install": inSync,
}

// phasesOf returns the phases in which Argo CD applies an object, including Skip. It returns nil if
// Argo CD never applies it. In a sync, Argo CD's own annotation replaces Helm's. For deletions,
// both annotations apply (gitops-engine/pkg/sync/hook and controller/hook.go of Argo CD).
func phasesOf(o model.Projected) []string {
	var own, helm, deletions []string
	events, given := o.Hooks, listOf(o.Value, hookAnnotation)
	if len(events) == 0 {
		events = listOf(o.Value, kubernetes.HelmHookAnnotation)
	}
	if len(events)+len(given) == 0 {
		return []string{inSync}
	}
	for _, phase := range given {
		switch phase {
		case preSync, inSync, "PostSync", "SyncFail", "Skip":
			own = append(own, phase)
		case "PreDelete", "PostDelete":
			deletions = append(deletions, phase)
		}
	}
	for _, event := range events {
		switch phase := phaseOf[event]; phase {
		case "":
		case "PreDelete", "PostDelete":
			deletions = append(deletions, phase)
		default:
			helm = append(helm, phase)
		}
	}
	if len(own) == 0 {
		own = helm
	}
	return append(own, deletions...)
}

// listOf returns the items of the list in an annotation.
func listOf(object model.Value, annotation string) []string {
	var out []string
	for item := range strings.SplitSeq(kubernetes.Annotation(object, annotation), ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// waveOf returns the sync wave of an object as Argo CD reads it. The weight of a Helm hook is also
// a wave. Text that is not a number is ignored (gitops-engine/pkg/sync/syncwaves).
func waveOf(object model.Value) int {
	for _, name := range []string{waveAnnotation, weightAnnotation} {
		if wave, err := strconv.Atoi(kubernetes.Annotation(object, name)); err == nil {
			return wave
		}
	}
	return 0
}

// inOrder returns the objects, and the annotations of the workspace, in an order that lets
// early objects find the workspace. Early objects are hooks before the sync, and objects in
// negative waves.
//
// Argo CD would run hooks of PreSync before it creates anything of the folder, even its
// namespace, and a sync would never succeed. They therefore run as hooks of the sync itself.
// First come the workspace and CRDs, then these hooks by their waves, then the rest in its
// own waves. A hook that also runs in other phases is in the same wave there, because an
// object has only one.
func inOrder(a *backends.Assignment, objects []model.Projected) ([]model.Projected,
	map[string]string, []diag.Diagnostic) {
	rest := 0                                   // the first wave of the others
	least, most := math.MaxInt32, math.MinInt32 // waves of the hooks
	for _, o := range objects {
		phases, wave := phasesOf(o), waveOf(o.Value)
		early := slices.Contains(phases, preSync)
		if kubernetes.IsDefinition(o.Value) || !early &&
			(wave >= rest || !slices.Contains(phases, inSync)) {
			continue
		}
		if wave < math.MinInt32 || wave > math.MaxInt32 {
			const text = "an object among the rendered manifests of %s is in the sync wave %d, which is " +
				"no number of 32 bits"
			d := diag.New(diag.NotRendered, fmt.Sprintf(text, a.DeploymentTarget, wave))
			return nil, nil, []diag.Diagnostic{d.On("manifests").At(a.Ref.At("manifests"), "").
				Hinting("give it a smaller number in the annotation " + waveAnnotation)}
		}
		if early {
			least, most = min(least, wave), max(most, wave)
		} else {
			rest = wave
		}
	}
	first := rest - 1
	if least <= most {
		first -= most - least + 1
	} else if rest == 0 {
		return objects, nil, nil
	}
	out := slices.Clone(objects)
	for i, o := range out {
		phases := phasesOf(o)
		if kubernetes.IsDefinition(o.Value) {
			out[i].Value = kubernetes.Annotate(o.Value, waveAnnotation, strconv.Itoa(first))
		} else if early := slices.Index(phases, preSync); early >= 0 {
			for ; early < len(phases); early++ {
				if phases[early] == preSync {
					phases[early] = inSync
				}
			}
			slices.Sort(phases)
			hook := kubernetes.Annotate(o.Value, hookAnnotation, strings.Join(slices.Compact(phases), ","))
			out[i].Value = kubernetes.Annotate(hook, waveAnnotation,
				strconv.Itoa(waveOf(o.Value)-most+rest-1))
		}
	}
	return out, map[string]string{waveAnnotation: strconv.Itoa(first)}, nil
}

// maxClientSide is the maximum size, in bytes, of the JSON of an object that Argo CD applies as
// kubectl does. It keeps the object in an annotation, and all annotations together have at most 256
// KiB (TotalAnnotationSizeLimitB in k8s.io/apimachinery). The rest is for the object's own
// annotations and for kalypso's.
const maxClientSide = 240 << 10

// withOptions adds sync options to an object. Each replaces another value of the same
// option.
func withOptions(object model.Value, options ...string) model.Value {
	var all []string
	for option := range strings.SplitSeq(kubernetes.Annotation(object, optionsAnnotation), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(option), "=")
		if name != "" &&
			!slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, name+"=") }) {
			all = append(all, strings.TrimSpace(option))
		}
	}
	return kubernetes.Annotate(object, optionsAnnotation, strings.Join(append(all, options...), ","))
}
