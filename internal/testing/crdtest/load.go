package crdtest

import (
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

//go:embed testdata/*.yaml.gz
var published embed.FS

// crd is one version of a CRD, ready to check objects.
type crd struct {
	schema     *structural.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
	namespaced bool
}

// load reads all CRDs, once.
var load = sync.OnceValues(func() (map[schema.GroupVersionKind]*crd, error) {
	files, err := fs.Glob(published, "testdata/*.gz")
	if err != nil {
		return nil, err
	}
	known := map[schema.GroupVersionKind]*crd{}
	for _, file := range files {
		if err := read(file, known); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return known, nil
})

// read adds the versions of a CRD that are served.
func read(file string, known map[schema.GroupVersionKind]*crd) error {
	f, err := published.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(unzipped)
	if err != nil {
		return err
	}
	var definition v1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &definition); err != nil {
		return err
	}
	for _, version := range definition.Spec.Versions {
		if !version.Served {
			continue
		}
		c, err := newCRD(version.Schema.OpenAPIV3Schema)
		if err != nil {
			return err
		}
		c.namespaced = definition.Spec.Scope == v1.NamespaceScoped
		known[schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name,
			Kind: definition.Spec.Names.Kind}] = c
	}
	return nil
}

func newCRD(props *v1.JSONSchemaProps) (*crd, error) {
	var internal apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, &internal, nil); err != nil {
		return nil, err
	}
	s, err := structural.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, err
	}
	return &crd{schema: s, validator: validator, rules: rulesOf(s)}, nil
}
