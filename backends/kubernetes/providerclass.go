package kubernetes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The spec of a SecretProviderClass (secrets-store.csi.x-k8s.io/v1).
type providerClassSpec struct {
	Provider      string            `yaml:"provider"`
	Parameters    map[string]string `yaml:"parameters"`
	SecretObjects []secretObject    `yaml:"secretObjects"`
}

type secretObject struct {
	SecretName string             `yaml:"secretName"`
	Type       string             `yaml:"type"`
	Data       []secretObjectData `yaml:"data"`
}

// secretObjectData puts a file that the provider mounts under a Secret's key.
type secretObjectData struct {
	ObjectName string `yaml:"objectName"`
	Key        string `yaml:"key"`
}

// secretProviderClasses adds one SecretProviderClass for each store. The driver makes a
// Secret from only one class. If there are several stores, each class therefore has a Secret
// of its own, and the store is at the end of its name.
func (w *workspace) secretProviderClasses(how secretProviderClass, secrets []backends.Secret) {
	names := stores(secrets)
	for _, store := range names {
		name := secretName
		if len(names) > 1 {
			name = model.ShortName(secretName+"-"+store, model.MaxLabel)
		}
		var its []backends.Secret
		for _, s := range secrets {
			if s.Store == store {
				its = append(its, s)
			}
		}
		w.secretProviderClass(how, name, store, its)
	}
}

func (w *workspace) secretProviderClass(how secretProviderClass, name, store string,
	secrets []backends.Secret) {
	const path = "secrets.secretProviderClass"
	parameters := map[string]string{}
	for key, value := range how.Parameters {
		parameters[key] = strings.ReplaceAll(value, "$(store)", store)
	}
	objects, text := w.providerObjects(how.Provider, store, secrets)
	if _, ok := parameters[objects]; ok {
		w.misfit(path+".parameters."+objects, "%s is made from the secrets that configs refer to, and "+
			"cannot be given", objects)
		return
	}
	parameters[objects] = text
	var data []secretObjectData
	for _, s := range secrets {
		data = append(data, secretObjectData{ObjectName: s.Name, Key: s.Name})
	}
	w.add(Object{"secrets-store.csi.x-k8s.io/v1", "SecretProviderClass", w.meta(name),
		providerClassSpec{
			Provider:      how.Provider,
			Parameters:    parameters,
			SecretObjects: []secretObject{{SecretName: name, Type: "Opaque", Data: data}},
		}}, path)
}

// providerObjects returns the name and the text of the parameter that lists the objects for
// a provider to mount. Every secret is in a file with its own name.
func (w *workspace) providerObjects(provider, store string, secrets []backends.Secret) (parameter,
	text string) {
	parameter = "objects"
	var objects any
	switch provider {
	case "azure":
		objects = w.azureObjects(secrets)
	case "vault":
		objects = w.vaultObjects(secrets)
	case "aws":
		objects = awsObjects(secrets)
	case "gcp":
		parameter, objects = "secrets", gcpSecrets(store, secrets)
	}
	return parameter, w.yamlText(objects)
}

// yamlText returns v as YAML text, for a provider that reads YAML inside of a string.
func (w *workspace) yamlText(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		w.misfit("secrets.secretProviderClass", "the provider's objects cannot be written: %v", err)
	}
	return string(text)
}

// azureObjects is a mapping with a list of strings, each of them YAML again
// (https://azure.github.io/secrets-store-csi-driver-provider-azure/docs/getting-started/usage/).
func (w *workspace) azureObjects(secrets []backends.Secret) any {
	type object struct {
		Name    string `yaml:"objectName"`
		Type    string `yaml:"objectType"`
		Alias   string `yaml:"objectAlias"`
		Version string `yaml:"objectVersion,omitempty"`
	}
	var array []string
	for _, s := range secrets {
		if s.Property != "" {
			w.undeliverable(s, s.Name+" refers to the property "+s.Property+" of a secret, and Azure's "+
				"provider mounts secrets as a whole",
				"remove property, or deliver secrets by an externalSecret")
		}
		array = append(array, w.yamlText(object{s.Key, "secret", s.Name, s.Version}))
	}
	return yaml.Mapping{{Key: "array", Value: array}}
}

// vaultObjects is a list. A key is a path of Vault's API, such as
// secret/data/db, and a version goes into its query
// (https://developer.hashicorp.com/vault/docs/platform/k8s/csi/configurations).
func (w *workspace) vaultObjects(secrets []backends.Secret) any {
	type object struct {
		Name string `yaml:"objectName"`
		Path string `yaml:"secretPath"`
		Key  string `yaml:"secretKey"`
	}
	var objects []object
	for _, s := range secrets {
		if s.Property == "" {
			w.undeliverable(s, s.Name+" refers to all of a secret, and Vault's provider would mount the "+
				"whole response of its API",
				"name the field of the secret by property")
		}
		path := s.Key
		if s.Version != "" {
			path += "?version=" + s.Version
		}
		objects = append(objects, object{s.Name, path, s.Property})
	}
	return objects
}

// gcpSecrets returns a list. A key is the name of a secret in the project of the store's
// name, or its whole resource name
// (https://github.com/GoogleCloudPlatform/secrets-store-csi-driver-provider-gcp).
func gcpSecrets(store string, secrets []backends.Secret) any {
	type secret struct {
		Resource string `yaml:"resourceName"`
		Path     string `yaml:"path"`
		JSONKey  string `yaml:"extractJSONKey,omitempty"`
	}
	var out []secret
	for _, s := range secrets {
		resource := s.Key
		if !strings.HasPrefix(resource, "projects/") {
			resource = "projects/" + store + "/secrets/" + resource
		}
		if !strings.Contains(resource, "/versions/") {
			resource += "/versions/" + cmp.Or(s.Version, "latest")
		}
		out = append(out, secret{resource, s.Name, s.Property})
	}
	return out
}

// awsObject is an object of AWS Secrets Manager
// (https://github.com/aws/secrets-store-csi-driver-provider-aws#secretproviderclass-options).
type awsObject struct {
	Name         string    `yaml:"objectName"`
	Type         string    `yaml:"objectType,omitempty"`
	Alias        string    `yaml:"objectAlias,omitempty"`
	Version      string    `yaml:"objectVersion,omitempty"`
	VersionLabel string    `yaml:"objectVersionLabel,omitempty"`
	JMESPath     []awsPath `yaml:"jmesPath,omitempty"`
}

type awsPath struct {
	Path  string `yaml:"path"`
	Alias string `yaml:"objectAlias"`
}

// awsObjects returns a list of objects. The provider refuses to read one object twice unless each
// entry has an alias. The properties of one secret are therefore paths of one object. A secret that
// is mounted as a whole is an object of its own.
func awsObjects(secrets []backends.Secret) any {
	type object struct{ key, version string }
	var out []*awsObject
	split := map[object]*awsObject{}
	for _, s := range secrets {
		o := &awsObject{Name: s.Key}
		if !strings.HasPrefix(s.Key, "arn:") { // the type is in an ARN
			o.Type = "secretsmanager"
		}
		// Identifiers of versions have 32 to 64 characters, labels such as
		// AWSPREVIOUS are short words.
		if len(s.Version) >= 32 {
			o.Version = s.Version
		} else {
			o.VersionLabel = s.Version
		}
		if s.Property == "" {
			o.Alias = s.Name
			out = append(out, o)
			continue
		}
		id := object{s.Key, s.Version}
		if split[id] == nil {
			split[id] = o
			out = append(out, o)
		}
		// A JMESPath expression consists of identifiers with dots between them. Other names
		// must be quoted (https://jmespath.org/specification.html).
		path := s.Property
		if slices.ContainsFunc(strings.Split(path, "."),
			func(part string) bool { return !variableName(part) }) {
			path = string(model.AppendJSONString(nil, path))
		}
		split[id].JMESPath = append(split[id].JMESPath, awsPath{path, s.Name})
	}
	// A secret with split properties is also mounted as a whole. The file has the secret's
	// name, unless another version of the secret has that name.
	taken := map[string]bool{}
	for _, o := range out {
		if o.Alias == "" && taken[o.Name] {
			o.Alias = o.JMESPath[0].Alias + ".json"
		}
		taken[o.Name] = true
	}
	return out
}
