package helm

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// checkStable renders a chart again, with what was made up in the first render
// made up differently, and refuses it where the outputs differ.
//
// A function that is called is no reason to refuse a chart: many make a password
// up and then take the one of the values.
func checkStable(req Request, first *rendered) error {
	for i, w := range worlds() {
		second, err := render(req, w)
		if err != nil {
			// A function that is called otherwise may give what the template cannot use.
			if refused := (*refusal.Error)(nil); errors.As(err, &refused) && refused.Code == diag.Render {
				return unstableAt(first, w, named(first, refused.Message))
			}
			return err
		}
		if name, differs := difference(first.files, second.files); differs {
			return unstableAt(first, w, name)
		}
		if len(w.called) == 0 || i > 0 && !w.ordered() {
			break
		}
	}
	return nil
}

// difference returns the first template whose outputs differ.
func difference(a, b map[string]string) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			return name, true
		}
	}
	return "", false
}

// named returns the first template whose name a message has.
func named(r *rendered, message string) string {
	for _, name := range slices.Sorted(maps.Keys(templates(r.chart))) {
		if strings.Contains(message, name) {
			return name
		}
	}
	return ""
}

func unstableAt(r *rendered, w *world, template string) error {
	message := "chart " + r.name + " renders to something else each time"
	if template != "" {
		message += ": see " + template
	}
	if functions := culprits(r, w, template); len(functions) > 0 {
		message += ", which uses " + strings.Join(functions, ", ")
	}
	return refusal.New(diag.Unstable, "give the chart as a value what it makes up, such as a password by reference to a secret, or let the reconciler render the chart", "%s", message)
}

// culprits returns the functions by which a template's output may differ, those of
// the templates that it includes and of texts that go through tpl among them.
func culprits(r *rendered, w *world, template string) []string {
	functions := called(r.chart).reachable(template)
	if functions["tpl"] {
		maps.Copy(functions, w.inTexts)
	}
	among := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !functions[name] })
	}
	found := among(unstable)
	if len(found) == 0 {
		found = among(unordered)
	}
	// What formats the time is only to blame where nothing tells the time.
	if slices.Contains(found, "now") {
		found = slices.DeleteFunc(found, func(name string) bool {
			return strings.HasPrefix(strings.ToLower(name), "date") || strings.HasPrefix(name, "html")
		})
	}
	return found
}
