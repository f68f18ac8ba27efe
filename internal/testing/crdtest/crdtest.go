// Package crdtest checks whether their consumers would accept the objects that kalypso emits. It
// checks custom resources against published CRDs with the API server's own code;
// testdata/README.md lists the CRDs. It checks Kubernetes' own kinds by strict decoding into
// their Go types, and kustomization.yaml by the fields that kalypso uses. The input is a stream
// of YAML. Several goroutines may use the package at once.
package crdtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Check returns the number of objects in a YAML stream, and an error if some of them are invalid.
// An object of a kind that this package does not know is an error, like an object without a CRD
// on a cluster.
func Check(stream []byte) (objects int, err error) {
	docs, err := Split(stream)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, doc := range docs {
		if err := check(doc); err != nil {
			errs = append(errs, fmt.Errorf("%w\n%s", err, doc))
		}
	}
	return len(docs), errors.Join(errs...)
}

// Split returns the documents of a YAML stream that hold anything.
func Split(stream []byte) ([][]byte, error) {
	var docs [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(stream)))
	for {
		doc, err := reader.Read()
		switch {
		case err == io.EOF:
			return docs, nil
		case err != nil:
			return nil, err
		case len(bytes.TrimSpace(doc)) > 0:
			docs = append(docs, slices.Clone(doc))
		}
	}
}

// check checks one document. A field given twice is an error.
func check(doc []byte) error {
	text, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return err
	}
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(text, &header); err != nil {
		return err
	}
	gv, err := schema.ParseGroupVersion(header.APIVersion)
	if err != nil || header.Kind == "" || header.APIVersion == "" {
		return fmt.Errorf("no object: apiVersion %q, kind %q", header.APIVersion, header.Kind)
	}
	gvk := gv.WithKind(header.Kind)
	switch {
	case gvk == kustomizationKind:
		return checkKustomization(text)
	case builtin.Recognizes(gvk):
		return checkBuiltin(gvk, text)
	}
	known, err := load()
	if err != nil {
		return err
	}
	crd, ok := known[gvk]
	if !ok {
		return fmt.Errorf("no CRD here serves %s %s", header.APIVersion, header.Kind)
	}
	var object map[string]any // with the types that the API server uses
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	return crd.check(object)
}

// check makes the same checks of a new object as the API server: unknown fields, defaults,
// metadata, schema, list types and CEL rules, in this order.
func (c *crd) check(object map[string]any) error {
	var errs field.ErrorList
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(object,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return err
	}
	if meta == nil {
		return field.Required(field.NewPath("metadata"), "")
	}
	unknown = append(unknown, pruning.PruneWithOptions(object, c.schema, true,
		structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	for _, path := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(path), "", "unknown field"))
	}
	errs = append(errs, apivalidation.ValidateObjectMeta(meta, c.namespaced,
		apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	defaulting.Default(object, c.schema)
	errs = append(errs, validation.ValidateCustomResource(nil, object, c.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.schema, object)...)
	if len(errs) == 0 && c.rules != nil {
		broken, _ := c.rules.Validate(context.Background(), nil, c.schema, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return errs.ToAggregate()
}

// rulesOf returns the CEL rules of a schema, or nil.
func rulesOf(s *structural.Structural) *cel.Validator {
	return cel.NewValidator(s, true, celconfig.PerCallLimit)
}
