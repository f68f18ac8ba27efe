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

// world is where a chart is rendered again: the functions of templates that give
// something else each time give what its clock and its dice say, and so the same
// in each render.
//
// Helm has no hook for its functions. But it asks a client for what templates look
// up, and a template may call a function that it finds in an object. So templates
// are rewritten to look their unstable functions up in the world, and those that a
// text has which goes through tpl are rewritten when it does, by a function of the
// world as well. A text that never goes through tpl stays as it is.
type world struct {
	now time.Time
	// high is whether dice fall high, and not low.
	high bool
	// arrange gives an order to what has none, and gets it sorted.
	arrange func([]string)
	// called are the functions that were called, and inTexts those that were called
	// by texts that went through tpl.
	called, inTexts map[string]bool
}

// worlds returns worlds that differ in all that a chart could make up.
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

// The three orders of worlds have something else in each place.

func sorted([]string) {}

func reversed(s []string) {
	slices.Reverse(s)
	// In the middle stands what stood there before.
	if n := len(s); n%2 == 1 && n > 1 {
		s[n/2], s[n/2+1] = s[n/2+1], s[n/2]
	}
}

func rotated(s []string) {
	if len(s) > 0 {
		copy(s, append(s[1:len(s):len(s)], s[0]))
	}
}

// ordered reports whether a function was called that gives something in any order.
func (w *world) ordered() bool { return w.called["keys"] || w.called["values"] || w.called["shuffle"] }

// What a rewritten template looks up: the apiVersion says that it is one, the kind
// is the name of the function, and the name of the object says who calls it. The
// object has the function under the key.
const (
	functionVersion = "kalypso function"
	functionKey     = "function"
	byTemplate      = "template"
	byText          = "text"
)

// lookedUp is what to write in a template for a function of the world.
func lookedUp(function, by string) string {
	return fmt.Sprintf(`call (index (lookup %q %q "" %q) %q)`, functionVersion, function, by, functionKey)
}

// GetClientFor is what Helm calls to look something up: functions are there, and no
// objects of any cluster.
func (w *world) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
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

// List finds nothing.
func (o object) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, notFound
}

// notFound is what Helm takes for an answer.
var notFound = apierrors.NewNotFound(schema.GroupResource{}, "")
