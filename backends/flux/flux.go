// Package flux emits the objects of Flux 2 (https://fluxcd.io): for each
// assignment a source and the Kustomization or HelmRelease that applies it; for
// each cluster type, where the environment's tree is kept in git, one
// Kustomization per folder, so that a folder that fails stops no other.
//
// What Flux cannot do is a diagnostic. Objects use the stable APIs of Flux 2.9.
package flux

import (
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

type flux struct{}

// New returns the backend.
func New() backends.Backend { return flux{} }

// Name is the backend's key in #Reconciler.
func (flux) Name() string { return "flux" }

// options are the fields of #Flux.
type options struct {
	delivery.Secrets
	Interval           string
	RetryInterval      string
	Timeout            string
	fetchTimeout       string // of sources; "" for Flux's own
	Namespace          string
	Prune              bool
	Wait               bool
	ServiceAccountName string
	Rendered           string // folder, handover or apart
	Decryption         *decryptionOptions
	NamePattern        *string
}

// decryptionOptions are how Flux decrypts.
type decryptionOptions struct {
	Provider           string `json:"provider"`
	SecretRef          string `json:"secretRef,omitempty"`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// object returns the field of a Kustomization; nil for none.
func (d *decryptionOptions) object() *decryption {
	if d == nil {
		return nil
	}
	return &decryption{Provider: d.Provider, ServiceAccountName: d.ServiceAccountName, SecretRef: referenceTo(d.SecretRef)}
}

// decrypting returns the assignment as one that Flux decrypts for, if the reconciler has decryption and
// the workspace may use its secret: else whoever may read the tree could have another's ciphertext
// decrypted into a namespace of their own. Options have no decryption where it does not.
func decrypting(a *backends.Assignment, o *options) *backends.Assignment {
	if o.Decryption == nil {
		return a
	}
	if a.Bounds != nil && !a.Bounds.Secrets.Allow(o.Decryption.SecretRef) {
		o.Decryption = nil
		return a
	}
	there := *a
	there.Decrypts = true
	return &there
}

// optionsOf returns the reconciler's fields, each of a form that Flux can read.
func optionsOf(s backends.Spec) (options, []diag.Diagnostic) {
	var o options
	if err := s.Decode(&o); err != nil {
		return o, []diag.Diagnostic{diag.New(diag.BadSpec,
			"the reconciler's fields cannot be read: "+err.Error()).At(s.Ref, "")}
	}
	var ds []diag.Diagnostic
	for _, d := range []struct{ field, value string }{
		{"interval", o.Interval}, {"retryInterval", o.RetryInterval}, {"timeout", o.Timeout},
	} {
		if _, err := withoutHours(d.value); err != nil {
			ds = append(ds, diag.New(diag.BadSpec, fmt.Sprintf("%s is too long a time for Flux", d.value)).
				On("flux."+d.field).At(s.Ref.At("flux."+d.field), ""))
		}
	}
	return o.withDefaults(), ds
}

// Flux's own defaults tie both to interval: a failure would wait for it, and what
// hangs would be noticed after it.
const retryInterval, timeout = "2m", "5m"

// withDefaults returns the options with what Flux's documentation recommends in the
// place of what is not given.
func (o options) withDefaults() options {
	o.fetchTimeout, _ = withoutHours(o.Timeout) // optionsOf has checked it
	if o.Timeout == "" {
		o.Timeout = timeout
	}
	if o.RetryInterval == "" {
		o.RetryInterval = retryInterval
		if interval, err := time.ParseDuration(o.Interval); err == nil && interval < 2*time.Minute {
			o.RetryInterval = o.Interval
		}
	}
	return o
}

// Support says that Flux delivers what runs on Kubernetes.
func (flux) Support(kind model.SourceKind) backends.Support { return delivery.Support(kind) }

// Traits are those of Flux: values of single clusters reach them in their ConfigMaps.
func (flux) Traits() backends.Traits {
	return backends.Traits{
		PerCluster: true, SkipsDefinitions: true,
		Groups:      []string{"kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"},
		Bootstraps:  "a source and a Kustomization; apply them to each cluster",
		StatusNames: []string{"kustomization"},
		Webhook: &backends.Webhook{Event: "an event of Flux's notification-controller",
			Signatures: []string{"X-Signature"}},
	}
}

// Reconciled names what is in assignments.yaml.
func (flux) Reconciled(environment, clusterType string, f backends.Folder) backends.Reconciled {
	return backends.Reconciled{Object: backends.AssignmentName(environment, clusterType, f.DeploymentTarget)}
}

// Emit returns the folder with the workspace and, in reconciler.yaml, the
// workload's source and what applies it. What is rendered is in manifests.yaml
// instead, and is applied with the folder.
func (flux) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	o, ds := optionsOf(a.Reconciler)
	withheld := o.Decryption
	a = decrypting(a, &o)
	if len(a.DependsOn) > 0 && a.GitOps == nil {
		ds = append(ds, delivery.NeedsGitOps(a.Environment, "dependsOn of "+a.DeploymentTarget).At(a.Ref.At("dependsOn"), ""))
	}
	variables, problems := variablesOf(a.Clusters, a.DeploymentTarget)
	ds = append(ds, problems...)
	content := referenced
	if a.Render {
		content = rendered
	}
	folder, problems := content(a, o, variables)
	ds = append(ds, problems...)
	there := a
	if len(variables) > 0 && !diag.Errors(ds) {
		there, folder, problems = onClusters(a, folder, variables)
		ds = append(ds, problems...)
	}
	var emission backends.Emission
	if !diag.Errors(ds) {
		emission, problems = delivery.Emission(there, folder)
		ds = append(ds, problems...)
	}
	for i := range ds {
		if ds[i] = ds[i].For(a.ID()); ds[i].Code == diag.Encrypted && withheld != o.Decryption {
			ds[i] = ds[i].Hinting(fmt.Sprintf("Flux decrypts for workspaces that may use the secret: "+
				"write workspaces: %q: secrets: [%q]", a.Workspace, withheld.SecretRef))
		}
	}
	if diag.Errors(ds) {
		return backends.Emission{}, ds
	}
	emission.Shared = shared{NoWait: !o.Wait, Rendered: a.Render && len(folder.Reconciler) == 0,
		Variables: idsOf(variables), Decryption: o.Decryption}.encode()
	return emission, ds
}

// Accounts returns those of Flux's controllers, which the namespace of its objects or the
// usual one has, and the one that the reconciler names.
func (flux) Accounts(ct *backends.ClusterType) backends.Accounts {
	o, _ := optionsOf(ct.Reconciler)
	out := backends.Accounts{Namespaces: []string{o.Namespace}}
	for _, namespace := range slices.Compact([]string{defaultNamespace, o.Namespace}) {
		out.Folders = append(out.Folders, backends.Account{Namespace: namespace, Name: "kustomize-controller"})
		out.Fetched = append(out.Fetched, backends.Account{Namespace: namespace, Name: "helm-controller"})
	}
	if o.ServiceAccountName != "" {
		out.Fetched = append(out.Fetched, backends.Account{Namespace: o.Namespace, Name: o.ServiceAccountName})
	}
	return out
}

// defaultNamespace is where flux bootstrap installs the controllers.
const defaultNamespace = "flux-system"

// Central returns nothing: every cluster has a Flux of its own.
func (flux) Central(*backends.ClusterType, []string) []backends.Object { return nil }

// referenced returns the folder of a workload that Flux fetches.
func referenced(a *backends.Assignment, o options, variables []variable) (delivery.Content, []diag.Diagnostic) {
	name, ds := nameOf(a, o)
	source, problems := delivery.SourceOf(a)
	ds = append(ds, problems...)
	if diag.Errors(ds) {
		return delivery.Content{}, ds
	}
	access, problems := delivery.AccessOf(a, &o.ServiceAccountName, name, o.Namespace)
	if ds = append(ds, problems...); diag.Errors(ds) {
		return delivery.Content{}, ds
	}
	objects, problems := workload(a, o, name, source, variables)
	return delivery.Content{Reconciler: objects, Access: access}, append(ds, problems...)
}

// workload returns the objects of reconciler.yaml.
func workload(a *backends.Assignment, o options, name string, s delivery.Source,
	variables []variable) ([]kubernetes.Object, []diag.Diagnostic) {
	source, ds := sourceObject(a, o, name, s)
	if diag.Errors(ds) {
		return nil, ds
	}
	if s.Helm == nil {
		return []kubernetes.Object{source, workloadKustomization(a, o, name, source, s)}, ds
	}
	release, problems := releaseObject(a, o, name, source, s.Helm, variables)
	return []kubernetes.Object{source, release}, append(ds, problems...)
}

// nameOf returns the name of the assignment's Flux objects. It never is one of
// an object in assignments.yaml. Flux uses names as label values, so it has at
// most 63 characters.
func nameOf(a *backends.Assignment, o options) (string, []diag.Diagnostic) {
	name, ref := a.DeploymentTarget, a.Ref
	if o.NamePattern != nil {
		name, ref = *o.NamePattern, a.Reconciler.Ref.At("flux.namePattern")
	}
	switch {
	case !model.IsDNSSubdomain(name):
		return "", []diag.Diagnostic{diag.New(diag.BadSpec,
			fmt.Sprintf("%q is no name for the Flux objects of %s", name, a.DeploymentTarget)).
			On("flux.namePattern").At(ref, "").Hinting("a name has lower case letters, digits, dashes and dots")}
	case a.GitOps != nil && (delivery.Reserved(a, name) ||
		model.ShortName(name, model.MaxLabel) == clusterConfig(a.Environment, a.ClusterType)):
		return "", []diag.Diagnostic{diag.New(diag.NameCollision,
			fmt.Sprintf("the Flux objects of %s cannot be named %s, as those that bring folders to the "+
				"cluster are", a.DeploymentTarget, name)).
			At(ref, "").Hinting("give the reconciler another namePattern")}
	}
	return model.ShortName(name, model.MaxLabel), nil
}
