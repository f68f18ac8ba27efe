package crdtest

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
)

// builtin are the kinds that Kubernetes itself defines, as far as a namespace
// service or a bootstrap may hold them.
var builtin = func() *runtime.Scheme {
	s := runtime.NewScheme()
	groups := runtime.NewSchemeBuilder(
		appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme,
	)
	if err := groups.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}()

// checkBuiltin decodes an object as strictly as an API server with fieldValidation=Strict, and
// checks its metadata. It does not know whether the kind has a namespace. The API server does not
// publish its checks of single fields.
func checkBuiltin(gvk schema.GroupVersionKind, text []byte) error {
	object, err := builtin.New(gvk)
	if err != nil {
		return err
	}
	if err := decodeStrict(text, object); err != nil {
		return err
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("%s is no object to apply: %w", gvk.Kind, err)
	}
	name := apivalidation.NameIsDNSSubdomain
	if gvk.Group == rbacv1.GroupName {
		name = func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	}
	return apivalidation.ValidateObjectMetaAccessor(m, m.GetNamespace() != "", name,
		field.NewPath("metadata")).ToAggregate()
}

var kustomizationKind = schema.GroupVersionKind{Group: "kustomize.config.k8s.io",
	Version: "v1beta1", Kind: "Kustomization"}

// checkKustomization checks a kustomization.yaml, which kustomize reads itself and has no CRD
// for. Kustomize refuses unknown fields and an empty file, so resources are required, at least as
// an empty list.
func checkKustomization(text []byte) error {
	var k struct {
		APIVersion string    `json:"apiVersion"`
		Kind       string    `json:"kind"`
		Resources  *[]string `json:"resources"`
	}
	if err := decodeStrict(text, &k); err != nil {
		return err
	}
	if k.Resources == nil {
		return errors.New("resources: required")
	}
	return nil
}

// decodeStrict decodes JSON; unknown fields are errors, and so are fields in
// another case.
func decodeStrict(text []byte, into any) error {
	unknown, err := json.UnmarshalStrict(text, into)
	return errors.Join(append(unknown, err)...)
}
