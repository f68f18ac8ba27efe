// Package crdtest tells tests whether an API server would accept an object: it
// checks YAML against the CRDs that Flux and Argo CD publish (testdata/README.md
// says which) with the API server's own code. In are streams of YAML, out are
// errors. It may be used by several goroutines at once.
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

// Check returns what is wrong with the objects of a YAML stream, and how many
// there are. An object of a group that Kubernetes itself defines is only read;
// one of any other kind without a CRD is an error, as it would be on a cluster.
func Check(stream []byte) (objects int, err error) {
	docs, err := Split(stream)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, doc := range docs {
		object, err := decode(doc)
		if err == nil {
			err = check(object)
		}
		if err != nil {
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

// decode reads an object with the types that the API server uses. A field given
// twice is an error.
func decode(doc []byte) (map[string]any, error) {
	text, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	return object, json.Unmarshal(text, &object)
}

func check(object map[string]any) error {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || kind == "" || apiVersion == "" {
		return fmt.Errorf("no object: apiVersion %q, kind %q", apiVersion, kind)
	}
	if gv.Group == "" {
		return nil
	}
	known, err := load()
	if err != nil {
		return err
	}
	crd, ok := known[gv.WithKind(kind)]
	if !ok {
		return fmt.Errorf("no CRD here serves %s %s", apiVersion, kind)
	}
	return crd.check(object)
}

// check does to a new object what the API server does: unknown fields, defaults,
// metadata, schema, list types and CEL rules, in this order.
func (c *crd) check(object map[string]any) error {
	var errs field.ErrorList
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return err
	}
	unknown = append(unknown, pruning.PruneWithOptions(object, c.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	for _, path := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(path), "", "unknown field"))
	}
	errs = append(errs, apivalidation.ValidateObjectMeta(meta, c.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	defaulting.Default(object, c.schema)
	errs = append(errs, validation.ValidateCustomResource(nil, object, c.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.schema, object)...)
	if len(errs) == 0 && c.rules != nil {
		broken, _ := c.rules.Validate(context.Background(), nil, c.schema, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return errs.ToAggregate()
}

// rulesOf returns the CEL rules of a schema, nil for none.
func rulesOf(s *structural.Structural) *cel.Validator {
	return cel.NewValidator(s, true, celconfig.PerCallLimit)
}
