package helm

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// stable returns the objects of a chart. It renders the chart again in other worlds, where
// every made-up value is a different one. It refuses the chart if the objects differ that an
// installation or an upgrade applies.
//
// A call of an unstable function is no reason to refuse a chart: many charts make up a password
// and then use the one in the values. A hook that may be left out, such as a test, is no reason
// either. It is returned as the first world renders it, which is the same each time, with
// Unstable.
func stable(req Request, files []*loader.BufferedFile, first *renderOutput) ([]model.Projected,
	error) {
	var objects []chartObject
	unstable := map[string]string{} // messages, by source
	var failed error                // the first output that is not an object, if nothing is made up
	for i, w := range worlds() {
		second, err := render(req, files, w)
		if err != nil {
			// With another result of a function, a template can fail.
			if refused := (*refusal.Error)(nil); errors.As(err, &refused) && refused.Code == diag.Render {
				return nil, refuse(unstableAt(first, w, named(first, refused.Message)))
			}
			return nil, err
		}
		others, err := second.objects()
		if template, differs := difference(first.files, second.files); differs {
			ours, unread := first.objects()
			if err != nil || unread != nil {
				return nil, refuse(unstableAt(first, w, template))
			}
			if applied := differing(ours, others, true); len(applied) > 0 {
				return nil, refuse(unstableAt(first, w, applied[0]))
			}
			for _, source := range differing(ours, others, false) {
				unstable[source] = unstableAt(first, w, source)
			}
		}
		if refused := (*refusal.Error)(nil); errors.As(err, &refused) &&
			refused.Code == diag.NotRendered {
			failed = cmp.Or(failed, err)
		} else if err != nil {
			return nil, err
		}
		if i == 0 {
			objects = others
		}
		if len(w.called) == 0 || i > 0 && !w.ordered() {
			break
		}
	}
	if failed != nil {
		return nil, failed
	}
	out := make([]model.Projected, len(objects))
	for i, o := range objects {
		if out[i] = o.Projected; !o.Applied() {
			out[i].Unstable = unstable[o.source]
		}
	}
	return out, nil
}

// difference returns the first template whose outputs differ. It returns false if all
// outputs are equal.
func difference(a, b map[string]string) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			return name, true
		}
	}
	return "", false
}

// differing returns the sources, sorted, whose objects differ between two renders. It looks
// only at applied objects, or only at the others.
func differing(a, b []chartObject, applied bool) []string {
	bySource := map[string][2][]model.Projected{}
	for i, all := range [2][]chartObject{a, b} {
		for _, o := range all {
			if o.Applied() == applied {
				of := bySource[o.source]
				of[i] = append(of[i], o.Projected)
				bySource[o.source] = of
			}
		}
	}
	maps.DeleteFunc(bySource, func(_ string, of [2][]model.Projected) bool {
		return slices.EqualFunc(of[0], of[1], func(x, y model.Projected) bool {
			return x.Value.Equal(y.Value) && slices.Equal(x.Hooks, y.Hooks)
		})
	})
	return slices.Sorted(maps.Keys(bySource))
}

// named returns the first template that a message names, or "".
func named(r *renderOutput, message string) string {
	for _, name := range slices.Sorted(maps.Keys(templates(r.chart))) {
		if strings.Contains(message, name) {
			return name
		}
	}
	return ""
}

// unstableAt returns the message that a template has another output each time. With "", the
// message is about the chart.
func unstableAt(r *renderOutput, w *world, template string) string {
	message := "chart " + r.name + " renders to something else each time"
	if template != "" {
		message += ": see " + template
	}
	if functions := culprits(r, w, template); len(functions) > 0 {
		message += ", which uses " + strings.Join(functions, ", ")
	}
	return message
}

func refuse(message string) error {
	return refusal.New(diag.Unstable, "give the chart as a value what it makes up, such as a "+
		"password by reference to a secret, or let the reconciler render the chart", "%s", message)
}

// culprits returns the functions that may make a template's output differ. It includes the
// functions of the templates that it includes, and of texts that go through tpl.
func culprits(r *renderOutput, w *world, template string) []string {
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
	// Functions that format the time are culprits only if no function returns the time.
	if slices.Contains(found, "now") {
		found = slices.DeleteFunc(found, func(name string) bool {
			return strings.HasPrefix(strings.ToLower(name), "date") || strings.HasPrefix(name, "html")
		})
	}
	return found
}
