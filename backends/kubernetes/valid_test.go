package kubernetes

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
)

// kinds are the Go types that objects of Kubernetes' own kinds are decoded into,
// strictly: an unknown field or a wrong type is an error.
var kinds = map[string]func() any{
	"Namespace":      func() any { return new(corev1.Namespace) },
	"ResourceQuota":  func() any { return new(corev1.ResourceQuota) },
	"LimitRange":     func() any { return new(corev1.LimitRange) },
	"NetworkPolicy":  func() any { return new(networkingv1.NetworkPolicy) },
	"ServiceAccount": func() any { return new(corev1.ServiceAccount) },
	"RoleBinding":    func() any { return new(rbacv1.RoleBinding) },
	"ClusterRole":    func() any { return new(rbacv1.ClusterRole) },
	"ConfigMap":      func() any { return new(corev1.ConfigMap) },
}

// definitions are the files of the CRDs that other objects are checked against.
var definitions = map[string]string{
	"ExternalSecret":      "external-secrets.io_externalsecrets.yaml.gz",
	"SecretProviderClass": "secrets-store.csi.x-k8s.io_secretproviderclasses.yaml.gz",
}

// checkObjects checks that an API server would accept the objects of the files,
// that the identities are theirs, in order, and that each says whose it is.
func checkObjects(t *testing.T, files []backends.File, identities []backends.Object) {
	t.Helper()
	var found []backends.Object
	for _, f := range files {
		for _, doc := range bytes.Split(f.Data, []byte("\n---\n")) {
			var header struct {
				APIVersion string   `json:"apiVersion"`
				Kind       string   `json:"kind"`
				Metadata   Metadata `json:"metadata"`
			}
			if err := yaml.Unmarshal(doc, &header); err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			o := Object{APIVersion: header.APIVersion, Kind: header.Kind, Metadata: header.Metadata}
			found = append(found, o.Identity())
			if o.Metadata.Labels[managedByLabel] != "kalypso" || o.Metadata.Annotations[assignmentAnnotation] == "" {
				t.Errorf("%s %s does not say whose it is", o.Kind, o.Metadata.Name)
			}
			if err := checkObject(o.Kind, doc); err != nil {
				t.Errorf("%v in\n%s", err, doc)
			}
		}
	}
	if fmt.Sprint(found) != fmt.Sprint(identities) {
		t.Errorf("the files hold %v\nthe identities are %v", found, identities)
	}
}

func checkObject(kind string, doc []byte) error {
	if typed, ok := kinds[kind]; ok {
		return yaml.UnmarshalStrict(doc, typed())
	}
	if file, ok := definitions[kind]; ok {
		return checkCRD(file, doc)
	}
	return nil // a kind of the test's own
}

// checkCRD checks an object against the first version of a CRD, unknown fields
// included.
func checkCRD(file string, doc []byte) error {
	data, err := unzip(filepath.Join("testdata", file))
	if err != nil {
		return err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &definition); err != nil {
		return err
	}
	var props apiextensions.JSONSchemaProps
	given := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(given, &props, nil); err != nil {
		return err
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return err
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return err
	}
	var object map[string]any
	if err := yaml.UnmarshalStrict(doc, &object); err != nil {
		return err
	}
	if want := definition.Spec.Group + "/" + definition.Spec.Versions[0].Name; object["apiVersion"] != want {
		return fmt.Errorf("apiVersion is not %s", want)
	}
	unknown := pruning.PruneWithOptions(object, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return fmt.Errorf("unknown fields %v", unknown)
	}
	return validation.ValidateCustomResource(nil, object, validator).ToAggregate()
}

func unzip(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// TestChecksFail shows that the checks above can fail.
func TestChecksFail(t *testing.T) {
	for name, doc := range map[string]string{
		"ServiceAccount":      "apiVersion: v1\nkind: ServiceAccount\nautomount: false\n",
		"ResourceQuota":       "apiVersion: v1\nkind: ResourceQuota\nspec:\n  hard: 3\n",
		"ExternalSecret":      "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nspec:\n  datas: []\n",
		"SecretProviderClass": "apiVersion: secrets-store.csi.x-k8s.io/v1\nkind: SecretProviderClass\nspec:\n  parameters: {a: 3}\n",
	} {
		if err := checkObject(name, []byte(doc)); err == nil {
			t.Errorf("a wrong %s passes", name)
		}
	}
}
