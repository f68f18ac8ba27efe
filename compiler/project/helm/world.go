package helm

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// world is a controlled surrounding for another render of a chart. The functions of templates
// whose results differ each time use its clock and its dice instead. So their results are the
// same in each render.
//
// Helm has no hook for its functions. But it asks a client for the objects that templates look
// up, and a template may call a function that it finds in an object. So each template is
// rewritten to look up its unstable functions in the world. A text that passes through tpl is
// rewritten at that moment, by another function of the world. A text that never passes through
// tpl stays unchanged.
type world struct {
	now time.Time
	// high is whether dice fall high, and not low.
	high bool
	// arrange puts an unordered result in an order. It gets the result sorted.
	arrange func([]string)
	// called are the called functions, and inTexts are the functions that texts called
	// which went through tpl.
	called, inTexts map[string]bool
}

// worlds returns worlds that differ in everything that a chart could make up.
func worlds() []*world {
	past := time.Date(2001, 2, 3, 4, 5, 6, 7, time.Local)
	future := time.Date(2187, 11, 29, 17, 48, 59, 987654321, time.Local)
	made := []*world{{now: past, arrange: sorted}, {now: future, high: true, arrange: reversed},
		{now: future, high: true, arrange: rotated}}
	for _, w := range made {
		w.called, w.inTexts = map[string]bool{}, map[string]bool{}
	}
	return made
}

// No two of the three orders of worlds have the same element at the same place.

func sorted([]string) {}

func reversed(s []string) {
	slices.Reverse(s)
	// The element in the middle must not stay at its place.
	if n := len(s); n%2 == 1 && n > 1 {
		s[n/2], s[n/2+1] = s[n/2+1], s[n/2]
	}
}

func rotated(s []string) {
	if len(s) > 0 {
		copy(s, append(s[1:len(s):len(s)], s[0]))
	}
}

// ordered reports whether a function was called whose result may have any order.
func (w *world) ordered() bool {
	return w.called["keys"] || w.called["values"] ||
		w.called["shuffle"]
}

// A rewritten template looks up an object. Its apiVersion marks it as a function, its kind is
// the name of the function, and its name is the kind of caller. The object has the function
// under the key.
const (
	functionVersion = "kalypso function"
	functionKey     = "function"
	byTemplate      = "template"
	byText          = "text"
)

// lookedUp returns the text that calls a function of the world in a template.
func lookedUp(function, by string) string {
	return fmt.Sprintf(`call (index (lookup %q %q "" %q) %q)`, functionVersion, function, by,
		functionKey)
}

// GetClientFor returns the client with which Helm looks objects up. The client finds functions,
// but no objects of any cluster.
func (w *world) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool,
	error) {
	o := object{world: w}
	if apiVersion == functionVersion {
		o.function = kind
	}
	return o, false, nil
}

// object is a function, or an object that does not exist.
type object struct {
	dynamic.NamespaceableResourceInterface // nobody calls its other methods
	world                                  *world
	function                               string
}

// Get returns the function.
func (o object) Get(_ context.Context, by string, _ metav1.GetOptions,
	_ ...string) (*unstructured.Unstructured, error) {
	function := o.world.functions()[o.function]
	switch {
	case o.function == "tpl":
		function = func(text string) string { return rewrite(text, byText) }
	case function == nil:
		return nil, notFound
	default:
		o.world.called[o.function] = true
		if by == byText {
			o.world.inTexts[o.function] = true
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{functionKey: function}}, nil
}

// List finds no objects.
func (o object) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, notFound
}

// notFound is the error that Helm accepts as the answer for a missing object.
var notFound = apierrors.NewNotFound(schema.GroupResource{}, "")
