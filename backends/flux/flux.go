// Package flux emits the objects of Flux 2 (https://fluxcd.io). Each assignment gets a source, and
// the Kustomization or HelmRelease that applies it. If the environment's tree is in git, each
// cluster type gets one Kustomization per folder, so that a folder that fails does not stop another
// one.
//
// Package flux reports a diagnostic for each request that Flux cannot fulfill. Objects use the
// stable APIs of Flux 2.9.
//
// An example, from examples/hello-world: the deployment target performance-test has
//
//	manifests: git: {repo: "https://git.example.com/hello/app", branch: "dev", path: "./performance-test"}
//
// On the cluster type large in dev, reconciler.yaml then has a GitRepository and a
// Kustomization, both called hello-world-performance-test in flux-system:
//
//	spec: {url: https://git.example.com/hello/app, ref: {branch: dev}, interval: 1m, secretRef: {name: gitops}}
//	spec: {path: ./performance-test, targetNamespace: dev-large-hello-world-performance-test, ...}
package flux

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const backend = "flux"

type flux struct{}

// New returns the backend.
func New() backends.Backend { return flux{} }

// Name is the backend's key in #Reconciler.
func (flux) Name() string { return backend }

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

// object returns the field decryption of a Kustomization. It returns nil if d is nil.
func (d *decryptionOptions) object() *decryption {
	if d == nil {
		return nil
	}
	return &decryption{Provider: d.Provider, ServiceAccountName: d.ServiceAccountName,
		SecretRef: referenceTo(d.SecretRef)}
}

// decrypting returns the assignment as one that Flux decrypts for, if the reconciler has decryption
// and the workspace may use its secret. Otherwise it removes the decryption from the options. A
// person who may read the tree could otherwise have another team's ciphertext decrypted into a
// namespace of their own.
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
	ds := s.Fields(&o)
	if diag.Errors(ds) {
		return o, ds
	}
	for _, d := range []struct{ field, value string }{
		{"interval", o.Interval}, {"retryInterval", o.RetryInterval}, {"timeout", o.Timeout},
	} {
		if _, err := withoutHours(d.value); err != nil {
			ds = append(ds, diag.New(diag.BadSpec, fmt.Sprintf("%s is too long a time for Flux", d.value)).
				On("flux."+d.field).At(s.Ref.At("flux."+d.field), ""))
		}
	}
	o.fetchTimeout, _ = withoutHours(o.Timeout)
	// Flux's own defaults use interval for both. A failed sync would wait for it, and Flux
	// would notice a sync that hangs only after it. These are the defaults of its
	// documentation.
	o.Timeout = cmp.Or(o.Timeout, "5m")
	if o.RetryInterval == "" {
		o.RetryInterval = "2m"
		if interval, err := time.ParseDuration(o.Interval); err == nil && interval < 2*time.Minute {
			o.RetryInterval = o.Interval
		}
	}
	return o, ds
}

// Support reports that Flux delivers everything that runs on Kubernetes.
func (flux) Support(kind model.SourceKind) backends.Support {
	s := delivery.Support(kind)
	s.Images = true
	return s
}

// Traits returns the traits of Flux: values of single clusters reach them in their ConfigMaps.
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

// Reconciled returns the name of the object in assignments.yaml.
func (flux) Reconciled(environment, clusterType string, f backends.Folder) backends.Reconciled {
	return backends.Reconciled{Object: backends.AssignmentName(environment, clusterType,
		f.DeploymentTarget)}
}

// Emit returns the folder with the workspace and, in reconciler.yaml, the workload's source and the
// object that applies it. A rendered workload is in manifests.yaml instead, and is applied with the
// folder.
func (flux) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	o, ds := optionsOf(a.Reconciler)
	withheld := o.Decryption
	a = decrypting(a, &o)
	if len(a.DependsOn) > 0 && a.GitOps == nil {
		ds = append(ds,
			delivery.NeedsGitOps(a.Environment, "dependsOn of "+a.DeploymentTarget).At(a.Ref.At("dependsOn"),
				""))
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
	for i, d := range ds {
		if d.Code == diag.Encrypted && withheld != o.Decryption {
			ds[i] = d.Hinting(fmt.Sprintf("Flux decrypts for workspaces that may use the secret: "+
				"write workspaces: %q: secrets: [%q]", a.Workspace, withheld.SecretRef))
		}
	}
	share := indexInput{NoWait: !o.Wait, Rendered: a.Render && len(folder.Reconciler) == 0,
		Decryption: o.Decryption}
	for _, v := range variables {
		share.Variables = append(share.Variables, v.id())
	}
	slices.Sort(share.Variables)
	return delivery.Finish(a, emission, share, ds)
}

// Accounts returns the accounts of Flux's controllers, in the namespace of its objects and in the
// usual one, and the account that the reconciler names.
func (flux) Accounts(ct *backends.ClusterType) backends.Accounts {
	o, _ := optionsOf(ct.Reconciler)
	out := backends.Accounts{Namespaces: []string{o.Namespace}}
	for _, namespace := range slices.Compact([]string{defaultNamespace, o.Namespace}) {
		out.Folders = append(out.Folders,
			backends.Account{Namespace: namespace, Name: "kustomize-controller"})
		out.Fetched = append(out.Fetched, backends.Account{Namespace: namespace, Name: "helm-controller"})
	}
	if o.ServiceAccountName != "" {
		out.Fetched = append(out.Fetched,
			backends.Account{Namespace: o.Namespace, Name: o.ServiceAccountName})
	}
	return out
}

// defaultNamespace is the namespace in which flux bootstrap installs the controllers.
const defaultNamespace = "flux-system"

// Central returns nil, because every cluster has a Flux of its own.
func (flux) Central(*backends.ClusterType, []string) []backends.Object { return nil }

// referenced returns the folder of a workload that Flux fetches.
func referenced(a *backends.Assignment, o options, variables []variable) (delivery.Content,
	[]diag.Diagnostic) {
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
	fetching, problems := sourceObject(a, o, name, source)
	if ds = append(ds, problems...); diag.Errors(ds) {
		return delivery.Content{}, ds
	}
	var applying kubernetes.Object
	if source.Helm == nil {
		applying = workloadKustomization(a, o, name, fetching, source)
		ds = append(ds, untagged(a)...)
	} else {
		applying, problems = releaseObject(a, o, name, fetching, source.Helm, variables)
		ds = append(ds, problems...)
	}
	return delivery.Content{Reconciler: []kubernetes.Object{fetching, applying}, Access: access}, ds
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
			On("flux.namePattern").At(ref,
			"").Hinting("a name has lower case letters, digits, dashes and dots")}
	case a.GitOps != nil && (delivery.Reserved(a, name) ||
		model.ShortName(name, model.MaxLabel) == clusterConfig(a.Environment, a.ClusterType)):
		return "", []diag.Diagnostic{diag.New(diag.NameCollision,
			fmt.Sprintf("the Flux objects of %s cannot be named %s, as those that bring folders to the "+
				"cluster are", a.DeploymentTarget, name)).
			At(ref, "").Hinting("give the reconciler another namePattern")}
	}
	return model.ShortName(name, model.MaxLabel), nil
}

// indexInput is the data of a folder that Index needs. It contains only differences from the usual
// case, because the provenance record contains it once per assignment.
type indexInput struct {
	// NoWait says that the folder's workload counts as ready once Flux has applied it.
	NoWait bool `json:"noWait,omitempty"`
	// Rendered says that the folder contains the workload itself.
	Rendered bool `json:"rendered,omitempty"`
	// Variables are the names of the values that the folder gets from the cluster that
	// applies it, sorted; none if it gets no values.
	Variables []string `json:"variables,omitempty"`
	// Decryption is how Flux decrypts the folder; nil if it does not.
	Decryption *decryptionOptions `json:"decryption,omitempty"`
}

// Needs returns the values that a folder needs from the entry of each cluster.
func (flux) Needs(raw json.RawMessage) []string {
	var out []string
	for _, id := range sharedOf(backends.Folder{Backend: backend, Shared: raw}).Variables {
		_, name, found := strings.Cut(id, "/")
		if !found {
			name = id
		}
		out = append(out, name)
	}
	return out
}

// sharedOf returns the data that Emit shared of a folder. It is zero if another backend made the
// folder.
func sharedOf(f backends.Folder) indexInput { return delivery.SharedOf[indexInput](f, backend) }
