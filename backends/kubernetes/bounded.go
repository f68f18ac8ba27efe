package kubernetes

import (
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// What follows reads from objects what a workspace may bound.

// AsksToStay says whether an object tells a reconciler to leave it on the cluster when its
// assignment goes. A CustomResourceDefinition stays because kalypso says so.
func AsksToStay(v model.Value) bool {
	for name, values := range staying {
		if name == policyAnnotation && isDefinition(v) {
			continue
		}
		asked := options(annotation(v, name))
		if slices.ContainsFunc(options(values), func(option string) bool { return slices.Contains(asked, option) }) {
			return true
		}
	}
	return false
}

// staying are the options in annotations with which reconcilers leave an object on a cluster,
// or until somebody confirms that it may go.
var staying = func() map[string]string {
	out := maps.Clone(orphaned)
	out["argocd.argoproj.io/sync-options"] += ",Prune=confirm,Delete=confirm"
	return out
}()

// HasFinalizers says whether an object stays on the cluster, and its namespace with it, until
// somebody takes finalizers away that it brings.
func HasFinalizers(v model.Value) bool {
	finalizers, _ := lookup(v, "metadata", "finalizers")
	return len(finalizers.Elems()) > 0
}

// TakesTraffic says whether an object has addresses of others lead to its pods: with a Service's
// externalIPs, whatever they are, the nodes send there what is for them (CVE-2020-8554).
func TakesTraffic(v model.Value) bool {
	ips, _ := lookup(v, "spec", "externalIPs")
	return len(ips.Elems()) > 0 && text(v, "kind") == "Service" && text(v, "apiVersion") == "v1"
}

// options returns the options in the value of an annotation, in lower case.
func options(value string) []string {
	out := strings.Split(strings.ToLower(value), ",")
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// The annotations that make an object a hook: of Helm's releases, and of Argo CD's syncs, to
// which those of Helm are hooks too.
const (
	HelmHookAnnotation = "helm.sh/hook"
	ArgoHookAnnotation = "argocd.argoproj.io/hook"
)

var hookAnnotations = []string{HelmHookAnnotation, ArgoHookAnnotation}

// IsHook says whether an object that was rendered is a hook.
func IsHook(o model.Projected) bool {
	return len(o.Hooks) > 0 || slices.ContainsFunc(hookAnnotations,
		func(name string) bool { return annotation(o.Value, name) != "" })
}

// IsArgoHook says whether an object that was rendered is a hook of Argo CD's syncs, and none
// of Helm's: only Argo CD knows it.
func IsArgoHook(o model.Projected) bool {
	isHelm := len(o.Hooks) > 0 || annotation(o.Value, HelmHookAnnotation) != ""
	return !isHelm && annotation(o.Value, ArgoHookAnnotation) != ""
}

func annotation(v model.Value, name string) string { return text(v, "metadata", "annotations", name) }

// Lacks returns those of some labels that an object does not have.
func Lacks(v model.Value, labels []string) []string {
	return slices.DeleteFunc(slices.Clone(labels),
		func(label string) bool { return text(v, "metadata", "labels", label) != "" })
}
