package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// anyNamespace stands for one of which nobody has thought: it is allowed where about all are.
const anyNamespace = "any"

// rendered reports the objects of a projection that a workspace does not allow; namespace is
// the assignment's.
func (b *bounds) rendered(p *model.Projection, namespace string) {
	items := kubernetes.Items(p.Objects)
	var namespaced, clusterScoped, unknown, elsewhere, reaching, secrets, traffic, files, fluxed,
		unlabelled, kept, hooks []string
	for i, o := range kubernetes.Identities(p, namespace) {
		kind := o.Kind
		if o.Group != "" {
			kind = o.Group + "/" + o.Kind
		}
		name := kind + " " + o.Name
		switch {
		case o.Namespace == "" && !b.of.Objects.ClusterScoped.Allow(kind):
			clusterScoped = append(clusterScoped, name)
		case o.Namespace != "" && !b.of.Objects.Namespaced.Allow(kind):
			namespaced = append(namespaced, name)
		case o.Guessed && !b.of.Objects.ClusterScoped.Allow(kind) && !withoutAny(b.of.Objects.Namespaced).Allow(kind):
			unknown = append(unknown, name)
		}
		foreign := func(other string) bool { return other != "" && other != namespace && !b.of.Namespaces.Allow(other) }
		if foreign(o.Given) {
			elsewhere = append(elsewhere, fmt.Sprintf("%s in %s", name, o.Given))
		}
		if kind == "Namespace" && foreign(o.Name) { // which is there or goes with all that is in it
			elsewhere = append(elsewhere, name)
		}
		if others := slices.DeleteFunc(kubernetes.Reaches(items[i].Value),
			func(other string) bool { return !foreign(other) }); len(others) > 0 {
			reaching = append(reaching, fmt.Sprintf("%s to %s", name, kubernetes.Few(others)))
		}
		if others := without(b.of.Secrets, kubernetes.SecretsOf(items[i].Value)); len(others) > 0 {
			secrets = append(secrets, fmt.Sprintf("%s to %s", name, kubernetes.Few(others)))
		}
		if lacks := kubernetes.Lacks(items[i].Value, b.of.RequiredLabels); len(lacks) > 0 {
			unlabelled = append(unlabelled, name+" ("+strings.Join(lacks, ", ")+")")
		}
		anywhere := b.of.Namespaces.Allow(anyNamespace)
		if kubernetes.TakesTraffic(items[i].Value) && !anywhere {
			traffic = append(traffic, name)
		}
		if kubernetes.ActsAsFlux(items[i].Value) && !anywhere {
			fluxed = append(fluxed, name)
		}
		if fields := kubernetes.FilesOf(items[i].Value); len(fields) > 0 && !anywhere {
			files = append(files, fmt.Sprintf("%s by %s", name, strings.Join(fields, ", ")))
		}
		if kubernetes.AsksToStay(items[i].Value) || kubernetes.HasFinalizers(items[i].Value) {
			kept = append(kept, name)
		}
		if kubernetes.IsHook(items[i]) {
			hooks = append(hooks, name)
		}
	}
	b.reportAll(b.manifests, "objects.clusterScoped", "may not bring objects for the whole cluster: ", clusterScoped)
	b.reportAll(b.manifests, "objects.namespaced", "may not bring objects of kinds that may be for "+
		"the whole cluster, unless it says which: ", unknown)
	b.reportAll(b.manifests, "objects.namespaced", "may not bring ", namespaced)
	b.reportAll(b.manifests, "namespaces", "may not bring objects to other namespaces: ", elsewhere)
	b.reportAll(b.manifests, "namespaces", "may not refer to other namespaces: ", reaching)
	b.reportAll(b.manifests, "secrets", "may not refer to secrets: ", secrets)
	b.reportAll(b.manifests, "namespaces", "may not take the traffic of other namespaces by externalIPs: ", traffic)
	b.reportAll(b.manifests, "namespaces", "may not have Prometheus or Alertmanager use their own files: ", files)
	b.reportAll(b.manifests, "namespaces", "may not have Flux fetch and apply as itself, without a "+
		"serviceAccountName: ", fluxed)
	b.reportAll(b.manifests, "requiredLabels", "may not bring objects without its labels: ", unlabelled)
	if !*b.of.Reconciler.Keep {
		b.reportAll(b.manifests, "reconciler.keep", "may not keep what it brings when its assignment goes: ", kept)
	}
	if !*b.of.Reconciler.Hooks {
		b.reportAll(b.manifests, "reconciler.hooks", "may not have the hooks ", hooks)
	}
	if b.of.Quota != nil {
		b.overlapping(kubernetes.Overlapping(p))
	}
	if b.of.PodSecurity != "privileged" {
		b.reportAll(b.manifests, "podSecurity", "may not have pods that take the place of others: ", kubernetes.Preempting(p))
	}
	b.reportAll(b.manifests, "podSecurity",
		"may not have pods beyond the standard "+b.of.PodSecurity+": ", kubernetes.Insecure(p, b.of.PodSecurity))
}

// overlapping reports CronJobs of which nobody knows how much of a quota they take.
func (b *bounds) overlapping(cronJobs []string) {
	if len(cronJobs) == 0 {
		return
	}
	b.report(b.manifests, "quota", "with a quota may not have CronJobs whose runs add up: "+kubernetes.Few(cronJobs))
	last := &b.ds[len(b.ds)-1]
	last.Hint = "write concurrencyPolicy: Forbid, or spec.jobTemplate.spec.activeDeadlineSeconds, which ends each run"
}

// withoutAny returns the patterns but for the one that allows everything.
func withoutAny(patterns model.Patterns) model.Patterns {
	return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return p == "*" })
}
