package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// calls collects calls of functions, each once, with the assignments that make it.
type calls struct {
	list []evaluate.Call
	who  [][]int
	keys []string
	at   map[string]int
}

func (c *calls) add(key string, call evaluate.Call, assignment int) {
	if c.at == nil {
		c.at = map[string]int{}
	}
	n, seen := c.at[key]
	if !seen {
		n = len(c.list)
		c.at[key] = n
		c.list, c.who, c.keys = append(c.list, call), append(c.who, nil), append(c.keys, key)
	}
	c.who[n] = append(c.who[n], assignment)
}

// apply makes the calls, and reports what goes wrong in them.
func (c *composer) apply(calls calls) ([]evaluate.Outcome, error) {
	if len(calls.list) == 0 {
		return nil, nil
	}
	out, err := c.functions.Apply(c.ctx, calls.list)
	if err != nil {
		return nil, err
	}
	for n, o := range out {
		for _, d := range o.Diagnostics {
			c.report(d, calls.who[n]...)
		}
	}
	return out, nil
}

// applyConfigs evaluates the configs that are functions of the assignment.
func (c *composer) applyConfigs() error {
	var todo calls
	for i := range c.assignments {
		for _, n := range c.configs[i] {
			config := &c.env.Configs[n]
			if config.Facts == nil || config.Sick {
				continue
			}
			ref := model.Ref{Collection: "configs", Name: config.Name}
			todo.add(c.callKey(config.Name, config.Facts, i), evaluate.Call{Entity: ref, Facts: c.facts[i].of(config.Facts)}, i)
		}
	}
	out, err := c.apply(todo)
	c.applied = map[string]evaluate.Outcome{}
	for n, o := range out {
		c.applied[todo.keys[n]] = o
	}
	return err
}

// service returns the namespace service of an assignment; nil where it is sick.
func (c *composer) service(i int) *model.NamespaceService {
	return find(c.env.NamespaceServices, c.assignments[i].ClusterType.NamespaceService, func(s *model.NamespaceService) string { return s.Name })
}

func (c *composer) reconciler(i int) *model.Reconciler {
	return c.reconcilerNamed(c.assignments[i].ClusterType.Reconciler)
}

// reconcilerNamed returns a reconciler; nil where it is sick.
func (c *composer) reconcilerNamed(name string) *model.Reconciler {
	return find(c.env.Reconcilers, name, func(r *model.Reconciler) string { return r.Name })
}

func find[T any](sorted []T, name string, nameOf func(*T) string) *T {
	i, ok := slices.BinarySearchFunc(sorted, name, func(e T, name string) int {
		switch n := nameOf(&e); {
		case n < name:
			return -1
		case n > name:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return &sorted[i]
}

// namespaces names the namespace of every assignment.
func (c *composer) namespaces() error {
	var todo calls
	for i := range c.assignments {
		a, s := &c.assignments[i], c.service(i)
		switch {
		case s == nil:
			c.out[i].Failed = true // its error is reported where it stands
		case !s.HasPattern:
			c.out[i].Namespace = c.env.Name + "-" + a.ClusterType.Name + "-" + a.Target.FullName
		case s.PatternFacts == nil && s.Spec != nil:
			pattern, _ := s.Spec.Lookup("pattern")
			c.out[i].Namespace = pattern.Text()
		default:
			ref := model.Ref{Collection: "namespaceServices", Name: s.Name}
			todo.add(c.callKey(s.Name, s.PatternFacts, i), evaluate.Call{Entity: ref, Field: "pattern", Facts: c.facts[i].of(s.PatternFacts)}, i)
		}
	}
	out, err := c.apply(todo)
	if err != nil {
		return err
	}
	for n, o := range out {
		for _, i := range todo.who[n] {
			c.out[i].Namespace = o.Spec.Text()
		}
	}
	c.checkNamespaces()
	return nil
}

// isReserved says whether a namespace is one that Kubernetes makes: an assignment
// that goes would take it along.
func isReserved(name string) bool { return name == "default" || strings.HasPrefix(name, "kube-") }

// checkNamespaces shortens the names, and reports those that cannot be, and
// those that two assignments of one cluster type share.
func (c *composer) checkNamespaces() {
	type key struct{ clusterType, namespace string }
	owners := map[key][]int{}
	var order []key
	for i := range c.out {
		if c.service(i) == nil || c.out[i].Namespace == "" {
			continue // its error is reported
		}
		name := c.out[i].Namespace
		if !model.IsDNSLabel(name) {
			ref := model.Ref{Collection: "namespaceServices", Name: c.assignments[i].ClusterType.NamespaceService, Path: "pattern"}
			c.report(diag.New(diag.BadNamespace, fmt.Sprintf("the namespace %q is not a DNS label", name)).At(ref, "").On(ref.String()).
				Hinting("use lower case letters, digits and dashes"), i)
			continue
		}
		if isReserved(name) {
			ref := model.Ref{Collection: "namespaceServices", Name: c.assignments[i].ClusterType.NamespaceService, Path: "pattern"}
			c.report(diag.New(diag.BadNamespace, fmt.Sprintf("the namespace %s belongs to Kubernetes itself", name)).At(ref, "").On(ref.String()).
				Hinting("let the pattern give a name of the platform's own"), i)
			continue
		}
		c.out[i].Namespace = model.ShortName(name, model.MaxLabel)
		c.facts[i].known["namespace"] = model.StringOf(c.out[i].Namespace)
		k := key{c.assignments[i].ClusterType.Name, c.out[i].Namespace}
		if owners[k] == nil {
			order = append(order, k)
		}
		owners[k] = append(owners[k], i)
	}
	for _, k := range order {
		if len(owners[k]) < 2 {
			continue
		}
		ref := model.Ref{Collection: "namespaceServices", Name: c.assignments[owners[k][0]].ClusterType.NamespaceService, Path: "pattern"}
		d := diag.New(diag.NamespaceCollision, fmt.Sprintf("%d assignments of cluster type %s share the namespace %s", len(owners[k]), k.clusterType, k.namespace)).
			At(ref, "").On(ref.String()).Hinting("let the pattern use what tells them apart: #assignment.deploymentTarget")
		for _, i := range owners[k] {
			a := &c.assignments[i]
			d = d.At(a.Workload.TargetRef(a.Target.Name), a.Target.FullName)
		}
		c.report(d, owners[k]...)
	}
}

// sharedSpecs evaluates, for each cluster type, what its assignments share of a
// reconciler that is a function. Where that fails, all of them do.
func (c *composer) sharedSpecs() error {
	c.shared = map[string]model.Value{}
	on := map[string][]int{}
	for i := range c.assignments {
		on[c.assignments[i].ClusterType.Name] = append(on[c.assignments[i].ClusterType.Name], i)
	}
	for n := range c.env.ClusterTypes {
		ct := &c.env.ClusterTypes[n]
		r := c.reconcilerNamed(ct.Reconciler)
		if r == nil {
			continue
		}
		if r.Facts == nil {
			c.shared[ct.Name] = r.Spec
			continue
		}
		facts := model.StructOf(
			model.Field{Name: "environment", Value: model.StringOf(c.env.Name)},
			model.Field{Name: "clusterType", Value: model.StringOf(ct.Name)},
		)
		call := evaluate.Call{Entity: model.Ref{Collection: "reconcilers", Name: r.Name}, Facts: facts, Shared: true}
		out, err := c.functions.Apply(c.ctx, []evaluate.Call{call})
		if err != nil {
			return err
		}
		for _, d := range out[0].Diagnostics {
			c.report(d, on[ct.Name]...)
		}
		if !diag.Errors(out[0].Diagnostics) {
			c.shared[ct.Name] = out[0].Spec
		}
	}
	return nil
}

// specs evaluates namespace services and reconcilers that are functions of the
// assignment.
func (c *composer) specs() error {
	var services, reconcilers calls
	for i := range c.assignments {
		if c.out[i].Failed {
			continue
		}
		c.facts[i].known["values"] = c.out[i].Graph.Values
		s, r := c.service(i), c.reconciler(i)
		if r == nil {
			c.out[i].Failed = true // its error is reported where it stands
			continue
		}
		if s.Spec != nil {
			c.out[i].NamespaceService = *s.Spec
		} else {
			ref := model.Ref{Collection: "namespaceServices", Name: s.Name}
			services.add(c.callKey(s.Name, s.Facts, i), evaluate.Call{Entity: ref, Facts: c.facts[i].of(s.Facts)}, i)
		}
		if r.Facts == nil {
			c.out[i].Reconciler = r.Spec
		} else {
			ref := model.Ref{Collection: "reconcilers", Name: r.Name}
			reconcilers.add(c.callKey(r.Name, r.Facts, i), evaluate.Call{Entity: ref, Facts: c.facts[i].of(r.Facts)}, i)
		}
	}
	out, err := c.apply(services)
	if err != nil {
		return err
	}
	for n, o := range out {
		for _, i := range services.who[n] {
			c.out[i].NamespaceService = o.Spec
		}
	}
	if out, err = c.apply(reconcilers); err != nil {
		return err
	}
	for n, o := range out {
		for _, i := range reconcilers.who[n] {
			c.out[i].Reconciler, _ = o.Spec.Lookup(c.reconciler(i).Backend)
		}
	}
	return nil
}
