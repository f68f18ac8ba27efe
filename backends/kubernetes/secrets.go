package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/kubetype"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// secretName is the name of the Secret with the secrets that an application's configs refer
// to. The key of each is its value's path.
const secretName = "platform-secrets"

// secrets adds the objects that deliver the assignment's secrets, as the namespace service says.
func (w *workspace) secrets() {
	how := w.service.Secrets
	var deliverable []backends.Secret
	for _, s := range w.assignment.Secrets {
		switch {
		case how == nil || how.ExternalSecret == nil && how.SecretProviderClass == nil:
			w.undeliverable(s,
				s.Name+" refers to a secret, and the namespace service does not say how secrets are delivered",
				"give the namespace service secrets: externalSecret: {} or secrets: secretProviderClass: {...}")
		case !validKey(s.Name):
			w.undeliverable(s, s.Name+" cannot be a key of a Secret",
				"name the value with letters, digits, '-' and '_' only")
		default:
			deliverable = append(deliverable, s)
		}
	}
	switch {
	case len(deliverable) == 0:
	case how.ExternalSecret != nil:
		w.externalSecret(*how.ExternalSecret, deliverable)
	default:
		w.secretProviderClasses(*how.SecretProviderClass, deliverable)
	}
}

// undeliverable reports a secret at its value.
func (w *workspace) undeliverable(s backends.Secret, message, hint string) {
	w.ds = append(w.ds, diag.New(diag.UndeliverableSecret, message).
		On(s.Name).
		At(w.assignment.NamespaceService.Ref.At("secrets"), "how the namespace service delivers secrets").
		Hinting(hint))
}

// stores returns the stores of secrets, sorted.
func stores(secrets []backends.Secret) []string {
	var names []string
	for _, s := range secrets {
		names = append(names, s.Store)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// The spec of an ExternalSecret (external-secrets.io/v1).
type externalSecretSpec struct {
	RefreshInterval string               `yaml:"refreshInterval"`
	SecretStoreRef  *storeRef            `yaml:"secretStoreRef,omitempty"`
	Target          externalSecretTarget `yaml:"target"`
	Data            []externalSecretData `yaml:"data"`
}

type storeRef struct {
	Kind string `yaml:"kind"`
	Name string `yaml:"name"`
}

type externalSecretTarget struct {
	Name           string `yaml:"name"`
	CreationPolicy string `yaml:"creationPolicy"`
}

type externalSecretData struct {
	SecretKey string     `yaml:"secretKey"`
	RemoteRef remoteRef  `yaml:"remoteRef"`
	SourceRef *sourceRef `yaml:"sourceRef,omitempty"`
}

// remoteRef identifies a secret in its store. The strategies are the operator's defaults. They are
// written out because the API server adds them to the items of a list. Without server-side diffs,
// Argo CD would report them as drift that it can never repair.
type remoteRef struct {
	Key                string `yaml:"key"`
	Property           string `yaml:"property,omitempty"`
	Version            string `yaml:"version,omitempty"`
	ConversionStrategy string `yaml:"conversionStrategy"`
	DecodingStrategy   string `yaml:"decodingStrategy"`
	MetadataPolicy     string `yaml:"metadataPolicy"`
}

type sourceRef struct {
	StoreRef storeRef `yaml:"storeRef"`
}

// externalSecret adds one ExternalSecret for the secrets of all stores. If there is only one store,
// which is the usual case, spec.secretStoreRef names it.
func (w *workspace) externalSecret(how externalSecret, secrets []backends.Secret) {
	spec := externalSecretSpec{
		RefreshInterval: how.RefreshInterval,
		Target:          externalSecretTarget{Name: secretName, CreationPolicy: "Owner"},
	}
	names := stores(secrets)
	if len(names) == 1 {
		spec.SecretStoreRef = &storeRef{how.StoreKind, names[0]}
	}
	for _, s := range secrets {
		data := externalSecretData{
			SecretKey: s.Name,
			RemoteRef: remoteRef{s.Key, s.Property, s.Version, "Default", "None", "None"},
		}
		if len(names) > 1 {
			data.SourceRef = &sourceRef{storeRef{how.StoreKind, s.Store}}
		}
		spec.Data = append(spec.Data, data)
	}
	w.add(Object{"external-secrets.io/v1", "ExternalSecret", w.meta(secretName), spec},
		"secrets.externalSecret")
}

// Encrypted reports objects in a document that SOPS has encrypted and that no one decrypts: the
// cluster would use the ciphertext as the value. It accepts custom resources, since an operator may
// decrypt them on the cluster. The diagnostics have no position. The assignment is nil for a
// document that does not belong to a single assignment.
func Encrypted(a *backends.Assignment, doc model.Value) []diag.Diagnostic {
	if items, isList := listItems(doc); isList {
		var ds []diag.Diagnostic
		for _, item := range items {
			ds = append(ds, Encrypted(a, item)...)
		}
		return ds
	}
	name := strings.TrimSpace(cmp.Or(Text(doc, "kind"), "an object") + " " +
		Text(doc, "metadata", "name"))
	report := func(hint, format string, args ...any) []diag.Diagnostic {
		return []diag.Diagnostic{diag.New(diag.Encrypted, fmt.Sprintf(format, args...)).Hinting(hint)}
	}
	const instead = "let the manifests refer to a Secret that exists, or to a secret store"
	switch {
	case !kubetype.Encrypted(doc):
		if path := kubetype.Ciphertext(doc); path != "" {
			return report(instead+"; Flux decrypts only whole objects that sops has encrypted",
				"%s of %s is encrypted by SOPS, and without the metadata of SOPS nothing can decrypt it", path,
				name)
		}
		return nil
	case isCustom(group(Text(doc, "apiVersion"))):
		return nil
	case a == nil || !a.Decrypts:
		return report(
			`let Flux decrypt it, with flux: decryption: {provider: "sops", secretRef: "NAME"}; or `+instead+
				"; or, of a workload, remove render: true if a plugin of the reconciler decrypts what it "+
				"fetches",
			"%s is encrypted by SOPS, and nothing decrypts it", name)
	case strings.EqualFold(Text(doc, "metadata", "annotations", decryptAnnotation), "disabled"):
		return report("remove the annotation",
			"%s is encrypted by SOPS, and its annotation %s keeps Flux from decrypting it",
			name, decryptAnnotation)
	case Text(doc, "sops", "encrypted_comment_regex")+
		Text(doc, "sops", "unencrypted_comment_regex") != "":
		return report(dataOnly, "SOPS has encrypted %s by its comments, which a render does not keep",
			name)
	case Text(doc, "sops", "mac") != "" && encryptsMetadata(doc):
		return report(dataOnly, "SOPS has encrypted the metadata of %s, and could not decrypt what "+
			"kalypso adds to them", name)
	}
	return nil
}

// encryptsMetadata reports whether SOPS would treat kalypso's label and annotation as
// encrypted.
func encryptsMetadata(doc model.Value) bool {
	return kubetype.Encrypts(doc, "metadata", "namespace") ||
		kubetype.Encrypts(doc, "metadata", "labels", managedByLabel) ||
		kubetype.Encrypts(doc, "metadata", "annotations", assignmentAnnotation)
}

// decryptAnnotation keeps Flux from decrypting an object, with disabled.
const decryptAnnotation = "kustomize.toolkit.fluxcd.io/decrypt"

// dataOnly is how to encrypt an object so that its metadata stay readable.
const dataOnly = "encrypt nothing else than its data: sops encrypt --encrypted-regex " +
	"'^(data|stringData)$'"
