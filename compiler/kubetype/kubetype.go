// Package kubetype checks Kubernetes objects as API servers decode them. Its input is an
// object. Its output is the fields whose values do not fit the Go type of its kind, such as
// a number in the data of a ConfigMap.
//
// It knows the kinds of Kubernetes itself, in the versions that client-go has, and
// CustomResourceDefinitions. For other kinds it checks the metadata. It accepts fields that
// the type does not have, since newer versions of Kubernetes may have them. Except for
// images, it does not repeat the validation that API servers do after they have decoded an
// object.
package kubetype

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Field is a field that an API server refuses.
type Field struct {
	// Path is the path of the field in the object, in the form of model.Ref.
	Path string
	// Problem follows the path in a sentence: "is true, which is not a string: quote it".
	Problem string
	// Image reports whether the field is an image without a valid name.
	Image bool
}

// Error is why an API server refuses an object.
type Error struct {
	Object string // kind and name
	Fields []Field
}

// maxNamed is the largest number of fields that an Error names.
const maxNamed = 8

// Error names the first fields and the object.
func (e *Error) Error() string {
	var b strings.Builder
	for i, f := range e.Fields[:min(len(e.Fields), maxNamed)] {
		switch i {
		case 0:
			fmt.Fprintf(&b, "%s of %s %s", f.Path, e.Object, f.Problem)
		default:
			fmt.Fprintf(&b, "; %s %s", f.Path, f.Problem)
		}
	}
	if more := len(e.Fields) - maxNamed; more > 0 {
		fmt.Fprintf(&b, "; and %d more fields", more)
	}
	return b.String()
}

// Hint describes how the author of a template or a manifest can fix the error.
func (e *Error) Hint() string {
	if slices.ContainsFunc(e.Fields, func(f Field) bool { return f.Image }) {
		return `quote a number in the values that is a text, tag: "3108617": Helm prints large ones with an exponent; ` +
			`in a template, quote writes a string`
	}
	return "give the field a value of its type: in a template, quote writes a string and int a " +
		"whole number"
}

// Check returns the errors of an API server about an object, or about the items of a list.
// It returns nil if there are no errors. Its messages do not show values of Secrets.
func Check(object model.Value) *Error {
	if items, ok := object.Lookup("items"); ok && strings.HasSuffix(text(object, "kind"), "List") {
		for _, item := range items.Elems() {
			if err := Check(item); err != nil {
				return err
			}
		}
		return nil
	}
	metadata, _ := object.Lookup("metadata")
	c := checker{
		secret:    text(object, "apiVersion") == "v1" && text(object, "kind") == "Secret",
		encrypted: Encrypted(object),
	}
	if t := typeOf(text(object, "apiVersion"), text(object, "kind")); t != nil {
		c.value("", object, t)
	} else {
		c.value("metadata", metadata, reflect.TypeFor[metav1.ObjectMeta]())
	}
	if len(c.found) == 0 {
		return nil
	}
	return &Error{strings.TrimSpace(text(object, "kind") + " " + text(metadata, "name")), c.found}
}

func text(v model.Value, field string) string {
	if of, _ := v.Lookup(field); of.Kind() == model.String {
		return of.Text()
	}
	return ""
}

// types are the kinds that are known.
var types = sync.OnceValue(func() map[schema.GroupVersionKind]reflect.Type {
	known := maps.Clone(scheme.Scheme.AllKnownTypes())
	definition := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	known[definition] = reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]()
	return known
})

// typeOf returns the type of a kind. It returns nil if the kind is unknown.
func typeOf(apiVersion, kind string) reflect.Type {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	return types()[gv.WithKind(kind)]
}

type checker struct {
	found             []Field
	secret, encrypted bool
}

func (c *checker) refuse(path, format string, args ...any) {
	c.found = append(c.found, Field{Path: path, Problem: fmt.Sprintf(format, args...)})
}

// replaced matches placeholders: another program replaces a part of such a text before an
// API server gets the object. These are variables of Zarf and of Flux, and placeholders of
// plugins of Argo CD.
var replaced = lazyregexp.New(`###ZARF_|\$\{|<[^<>]+>`)

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// value checks a value against the type that it is decoded into. Null leaves any as it is.
func (c *checker) value(path string, v model.Value, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case v.Kind() == model.Null:
		return
	case v.Kind() == model.String && t.Kind() != reflect.String &&
		(replaced.MatchString(v.Text()) || c.encrypted && strings.HasPrefix(v.Text(), "ENC[")):
		return
	case reflect.PointerTo(t).Implements(unmarshaler):
		c.unmarshal(path, v, t)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		c.structure(path, v, t)
	case reflect.Map:
		if c.is(path, v, model.Struct, "mapping") {
			for _, f := range v.Fields() {
				c.value(model.JoinPath(path, model.Label(f.Name)), f.Value, t.Elem())
			}
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			c.bytes(path, v)
		} else if c.is(path, v, model.List, "list") {
			for i, e := range v.Elems() {
				c.value(fmt.Sprintf("%s[%d]", path, i), e, t.Elem())
			}
		}
	case reflect.String:
		c.is(path, v, model.String, "string")
	case reflect.Bool:
		c.is(path, v, model.Bool, "bool")
	case reflect.Int32, reflect.Int64, reflect.Int:
		c.integer(path, v, t)
	case reflect.Float32, reflect.Float64:
		if v.Kind() != model.Int {
			c.is(path, v, model.Float, "number")
		}
	}
}

// is refuses a value of another kind.
func (c *checker) is(path string, v model.Value, kind model.Kind, name string) bool {
	if v.Kind() == kind {
		return true
	}
	hint := ""
	switch {
	case kind == model.String && v.IsScalar():
		hint = ": quote it"
	case kind == model.Bool && v.Kind() == model.String:
		hint = ": write true or false, without quotes"
	}
	c.refuse(path, "is %s, which is no %s%s", c.show(v), name, hint)
	return false
}

// show writes a value for a message. It does not show values of Secrets.
func (c *checker) show(v model.Value) string {
	const most = 60
	if s := v.String(); v.IsScalar() && !c.secret && len(s) <= most {
		return s
	}
	switch kind := v.Kind(); kind {
	case model.Int, model.Float:
		return "a number"
	default:
		return "a " + kind.String()
	}
}

// structure checks the fields of a type. API servers distinguish fields by case.
func (c *checker) structure(path string, v model.Value, t reflect.Type) {
	if !c.is(path, v, model.Struct, "mapping") {
		return
	}
	fields := fieldsOf(t)
	for _, f := range v.Fields() {
		of, known := fields[f.Name]
		if !known {
			continue
		}
		at := model.JoinPath(path, model.Label(f.Name))
		c.value(at, f.Value, of.t)
		if of.image && f.Value.Kind() == model.String {
			c.image(at, f.Value.Text())
		}
	}
}

type field struct {
	t     reflect.Type
	image bool // it names an image that a pod runs
}

// fields are the fields of types, by their names in JSON: reflect.Type to
// map[string]field.
var fields sync.Map

func fieldsOf(t reflect.Type) map[string]field {
	if known, ok := fields.Load(t); ok {
		return known.(map[string]field)
	}
	out := map[string]field{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			maps.Copy(out, fieldsOf(f.Type))
		case name != "" && name != "-":
			container := t == reflect.TypeFor[corev1.Container]() ||
				t == reflect.TypeFor[corev1.EphemeralContainerCommon]()
			out[name] = field{f.Type, name == "image" && container}
		}
	}
	fields.Store(t, out)
	return out
}

// image refuses a text that a kubelet cannot read as the name of an image. API servers
// accept such a text, but its pods never run.
func (c *checker) image(path, image string) {
	if image == "" || replaced.MatchString(image) {
		return // a pod template may leave it to others
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		problem := fmt.Sprintf("is %q, which is no image: %s", image, err)
		c.found = append(c.found, Field{Path: path, Image: true, Problem: problem})
	}
}

// bytes refuses a text that is not Base64.
func (c *checker) bytes(path string, v model.Value) {
	if !c.is(path, v, model.String, "string") {
		return
	}
	if _, err := base64.StdEncoding.DecodeString(v.Text()); err != nil {
		hint := ""
		if c.secret {
			hint = ": write the text itself below stringData"
		}
		c.refuse(path, "is a string that is no Base64%s", hint)
	}
}

// integer refuses a value that is not a whole number, or is too large for its type. A
// number with a point or an exponent may be whole: readers of YAML read 1e3 as an integer.
func (c *checker) integer(path string, v model.Value, t reflect.Type) {
	if v.Kind() != model.Int && v.Kind() != model.Float {
		hint := ""
		if _, err := model.NumberOf(v.Text()); v.Kind() == model.String && err == nil {
			hint = ": write it without quotes"
		}
		c.refuse(path, "is %s, which is no whole number%s", c.show(v), hint)
		return
	}
	limit := new(big.Float).SetMantExp(big.NewFloat(1), t.Bits()-1)
	n, _, err := big.ParseFloat(v.Text(), 10, 128, big.ToZero)
	switch {
	case err != nil || !n.IsInt():
		c.refuse(path, "is %s, which is no whole number", c.show(v))
	case n.Cmp(limit) >= 0 || n.Cmp(limit.Neg(limit)) < 0:
		c.refuse(path, "is %s, which has more than %d bits", c.show(v), t.Bits())
	}
}

// forms are the types that read their own JSON, as users know them.
var forms = map[string]string{
	"Quantity":    "quantity, such as 500m or 1Gi",
	"Time":        "time, such as 2026-01-31T12:00:00Z",
	"MicroTime":   "time, such as 2026-01-31T12:00:00.000000Z",
	"Duration":    "duration, such as 1h30m",
	"IntOrString": "whole number or string",
}

// unmarshal lets a type read a value as it does on an API server. Numbers have the form
// that readers of YAML give them.
func (c *checker) unmarshal(path string, v model.Value, t reflect.Type) {
	data := v.AppendJSON(nil)
	if v.Kind() != model.String {
		var plain any
		if err := json.Unmarshal(data, &plain); err != nil {
			c.refuse(path, "cannot be read: %s", err)
			return
		}
		data, _ = json.Marshal(plain) // it was JSON
	}
	err := reflect.New(t).Interface().(json.Unmarshaler).UnmarshalJSON(data)
	if err == nil {
		return
	}
	if form := forms[t.Name()]; form != "" {
		c.refuse(path, "is %s, which is no %s", c.show(v), form)
		return
	}
	c.refuse(path, "is %s, which is no %s: %s", c.show(v), t.Name(), err)
}
