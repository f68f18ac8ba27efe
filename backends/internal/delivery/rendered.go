package delivery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Rendered returns the objects that the assignment's manifests render to.
func Rendered(a *backends.Assignment) []model.Projected {
	if a.Projection == nil {
		return nil
	}
	return kubernetes.Items(a.Projection.Objects)
}

// Twice returns an error for each object that the namespace service makes and the
// manifests render as well: kustomize refuses a folder that has it twice.
func Twice(a *backends.Assignment, workspace, rendered []backends.Object) []diag.Diagnostic {
	made := map[backends.Object]bool{}
	for _, o := range workspace {
		made[o] = true
	}
	var ds []diag.Diagnostic
	for _, o := range rendered {
		if !made[o] {
			continue
		}
		hint := "leave it out of one of them, or give it another name in one of them"
		if o.Kind == "ServiceAccount" {
			hint = "let the manifests use the one of the namespace service, or give that another name with serviceAccount: name"
		}
		d := diag.New(diag.NameCollision,
			fmt.Sprintf("the namespace service and the rendered manifests of %s both create %s %s",
				a.DeploymentTarget, o.Kind, o.Name)).
			At(a.Ref.At("manifests"), "").At(a.NamespaceService.Ref, "").Hinting(hint).For(a.ID())
		ds = append(ds, d)
	}
	return ds
}

// Hooks returns a warning that names the hooks of Helm and of Argo CD among what was
// rendered: those that are applied as ordinary objects, and those that are left out. It
// is nothing where there are none.
func Hooks(a *backends.Assignment, ordinary, left []model.Projected) []diag.Diagnostic {
	var parts []string
	if names := hooksAmong(ordinary); len(names) > 0 {
		parts = append(parts, "applied as ordinary objects: "+kubernetes.Few(names))
	}
	if names := hooksAmong(left); len(names) > 0 {
		parts = append(parts, "left out: "+kubernetes.Few(names))
	}
	if parts == nil {
		return nil
	}
	var hints []string
	argo, others := kubernetes.Split(slices.Concat(ordinary, left), kubernetes.IsArgoHook)
	if slices.ContainsFunc(others, kubernetes.IsHook) {
		hints = append(hints, "let the reconciler fetch the chart where its hooks matter: remove "+
			"render: true from the deployment target")
	}
	if len(argo) > 0 {
		hints = append(hints,
			"only Argo CD runs its own hooks: deliver the workload with it, or remove "+kubernetes.ArgoHookAnnotation)
	}
	return []diag.Diagnostic{diag.New(diag.Hook,
		"hooks among the rendered manifests of "+a.DeploymentTarget+" are "+strings.Join(parts, "; ")).
		On("manifests").At(a.Ref.At("manifests"), "").
		Hinting(strings.Join(hints, "; ")).For(a.ID())}
}

func hooksAmong(objects []model.Projected) []string {
	var out []string
	for _, o := range objects {
		if !kubernetes.IsHook(o) {
			continue
		}
		events := strings.Join(o.Hooks, ", ")
		if events == "" {
			events = Annotation(o.Value, kubernetes.HelmHookAnnotation)
		}
		if events == "" {
			events = Annotation(o.Value, kubernetes.ArgoHookAnnotation)
		}
		kind, name := textAt(o.Value, "kind"), textAt(o.Value, "metadata", "name")
		out = append(out, fmt.Sprintf("%s %s (%s)", kind, name, events))
	}
	return out
}

// SameOnAll warns that a rendered chart holds the platform's values as composed,
// where clusters have values of their own: those reach the platform config alone.
func SameOnAll(a *backends.Assignment) []diag.Diagnostic {
	own := slices.ContainsFunc(a.Clusters,
		func(c model.Cluster) bool { return len(c.ValuesOf(a.DeploymentTarget).Fields()) > 0 })
	if h := a.Manifests.Helm; !a.Render || h == nil || h.PlatformValues == "" || !own {
		return nil
	}
	const field = "manifests.helm.platformValues"
	return []diag.Diagnostic{diag.New(diag.NoEffect, "a rendered chart is the same on all clusters: "+
		"their own values reach the platform config alone").
		On(field).At(a.Ref.At(field), "").Hinting("let the reconciler install the chart: remove " +
		"render: true from the deployment target")}
}
