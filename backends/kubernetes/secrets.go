package kubernetes

import (
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// secretName is the Secret in which an application finds the secrets that its
// configs refer to, each under its value's path.
const secretName = "platform-secrets"

// secrets adds what delivers the assignment's secrets, as the service says.
func (w *workspace) secrets() {
	how := w.service.Secrets
	var deliverable []backends.Secret
	for _, s := range w.assignment.Secrets {
		switch {
		case how == nil || how.ExternalSecret == nil && how.SecretProviderClass == nil:
			w.undeliverable(s, s.Name+" refers to a secret, and the namespace service does not say how secrets are delivered",
				"give the namespace service secrets: externalSecret: {} or secrets: secretProviderClass: {...}")
		case !validKey(s.Name):
			w.undeliverable(s, s.Name+" cannot be a key of a Secret", "name the value with letters, digits, '-' and '_' only")
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

// remoteRef says which secret. The strategies are the operator's defaults,
// written out because the API server adds them to the items of a list, which
// Argo CD without server-side diffs takes for a drift that it can never repair.
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

// externalSecret adds one ExternalSecret for the secrets of all stores. The one
// store that there usually is stands at its head.
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
	w.add(Object{"external-secrets.io/v1", "ExternalSecret", w.meta(secretName), spec}, "secrets.externalSecret")
}
