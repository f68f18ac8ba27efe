package compose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// call is a call of a function, and the key that identifies it.
type call struct {
	function.Call
	key string
}

// newCall returns a call with its key.
func newCall(c function.Call) call {
	b := append([]byte(c.Entity.Name), 0)
	b = append(b, c.Entity.Collection...)
	b = append(append(append(b, 0), c.Field...), 0)
	if c.Shared {
		b = append(b, 1)
	}
	return call{c, string(c.Facts.AppendBinary(b))}
}

// outcomes are the outcomes of calls, by key.
type outcomes map[string]function.Outcome

func (o outcomes) of(c call) function.Outcome { return o[c.key] }

// maxOutcomes is the maximum number of remembered outcomes. Most functions use facts that many
// assignments share. If each assignment has its own fact, the function is called once for each of
// them, and its outcomes need not be remembered.
const maxOutcomes = 20_000

// functions makes calls and remembers their outcomes. Several goroutines may use it.
type functions struct {
	Functions

	mu     sync.Mutex
	memory outcomes
}

// apply makes the calls, all at once, except those whose outcomes it remembers.
func (f *functions) apply(ctx context.Context, calls []call) (outcomes, error) {
	out := outcomes{}
	if len(calls) == 0 {
		return out, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var todo []function.Call
	var keys []string
	for _, c := range calls {
		if _, seen := out[c.key]; seen {
			continue
		}
		o, known := f.memory[c.key]
		if out[c.key] = o; !known {
			todo, keys = append(todo, c.Call), append(keys, c.key)
		}
	}
	if len(todo) == 0 {
		return out, nil
	}
	made, err := f.Apply(ctx, todo)
	if err != nil {
		return nil, err
	}
	for n, o := range made {
		out[keys[n]] = o
		if len(f.memory) < maxOutcomes {
			f.memory[keys[n]] = o
		}
	}
	return out, nil
}

// specs are the objects that a cluster type refers to; nil if they have errors.
type specs struct {
	service    *model.NamespaceService
	reconciler *model.Reconciler
}

// service returns the namespace service of an assignment; nil if it has errors.
func (p *Plan) service(i int) *model.NamespaceService {
	return p.specs[p.assignments[i].ClusterType].service
}

// reconciler returns the reconciler of an assignment; nil if it has errors.
func (p *Plan) reconciler(i int) *model.Reconciler {
	return p.specs[p.assignments[i].ClusterType].reconciler
}

// find returns the element with a name; nil if there is no such element.
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

// sharedSpecs evaluates, for each cluster type, the shared options of a reconciler that is a
// function of the assignment. If that fails, all assignments of the cluster type fail.
func (p *Plan) sharedSpecs(ctx context.Context) error {
	p.Shared = map[string]model.Value{}
	var calls []call
	var types []string
	for n := range p.env.ClusterTypes {
		ct := &p.env.ClusterTypes[n]
		r := p.specs[ct].reconciler
		switch {
		case r == nil:
		case r.Facts == nil:
			p.Shared[ct.Name] = r.Spec
		default:
			facts := model.StructOf(
				model.Field{Name: "environment", Value: model.StringOf(p.env.Name)},
				model.Field{Name: "clusterType", Value: model.StringOf(ct.TypeName())},
			)
			calls = append(calls, newCall(function.Call{Entity: model.Ref{Collection: "reconcilers",
				Name: r.Name}, Facts: facts, Shared: true}))
			types = append(types, ct.Name)
		}
	}
	made, err := p.functions.apply(ctx, calls)
	if err != nil {
		return err
	}
	for n, c := range calls {
		o := made.of(c)
		for _, d := range o.Diagnostics {
			p.report(d, p.assignmentsOn(types[n])...)
		}
		if !diag.Errors(o.Diagnostics) {
			p.Shared[types[n]] = o.Spec
		}
	}
	return nil
}

// assignmentsOn returns the assignments of a cluster type, by number.
func (p *Plan) assignmentsOn(clusterType string) []int {
	var out []int
	for i := range p.assignments {
		if p.assignments[i].ClusterType.Name == clusterType {
			out = append(out, i)
		}
	}
	return out
}

// Specs are the namespace service and the reconciler of an assignment, with the fields of the
// schema. The reconciler has only the fields of its backend.
type Specs struct {
	NamespaceService, Reconciler model.Value
	// Diagnostics explain why the specs are missing, as unresolved references.
	Diagnostics []diag.Diagnostic
	Failed      bool
}

// SpecsOf evaluates the specs of assignments, which must not have failed. late has the facts of
// each assignment that are known only now.
func (p *Plan) SpecsOf(ctx context.Context, assignments []int, late []Late) ([]Specs, error) {
	var calls []call
	for n, i := range assignments {
		service, reconciler := p.specCalls(i, &late[n])
		for _, c := range []*call{service, reconciler} {
			if c != nil {
				calls = append(calls, *c)
			}
		}
	}
	made, err := p.functions.apply(ctx, calls)
	if err != nil {
		return nil, err
	}
	out := make([]Specs, len(assignments))
	for n, i := range assignments {
		s := &out[n]
		r := p.reconciler(i)
		if r == nil {
			s.Failed = true // its error is reported elsewhere, at its source
			continue
		}
		service, reconciler := p.specCalls(i, &late[n])
		if service == nil {
			s.NamespaceService = *p.service(i).Spec
		} else {
			o := made.of(*service)
			s.NamespaceService, s.Diagnostics = o.Spec, append(s.Diagnostics, o.Diagnostics...)
		}
		if reconciler == nil {
			s.Reconciler = r.Spec
		} else {
			o := made.of(*reconciler)
			s.Reconciler, _ = o.Spec.Lookup(r.Backend)
			s.Diagnostics = append(s.Diagnostics, o.Diagnostics...)
		}
		s.Failed = diag.Errors(s.Diagnostics)
	}
	return out, nil
}

// specCalls returns the calls for the specs that are functions; nil for the others.
func (p *Plan) specCalls(i int, late *Late) (service, reconciler *call) {
	if s := p.service(i); s.Spec == nil {
		ref := model.Ref{Collection: "namespaceServices", Name: s.Name}
		c := newCall(function.Call{Entity: ref, Facts: p.facts(i, s.Facts, late)})
		service = &c
	}
	if r := p.reconciler(i); r != nil && r.Facts != nil {
		ref := model.Ref{Collection: "reconcilers", Name: r.Name}
		c := newCall(function.Call{Entity: ref, Facts: p.facts(i, r.Facts, late)})
		reconciler = &c
	}
	return service, reconciler
}

// AppendSpecs appends a key for the specs of an assignment without evaluating them. The assignment
// must not have failed. values identifies its composed values. The caller must identify the
// rendered manifests.
func (p *Plan) AppendSpecs(b []byte, i int, values model.Digest) []byte {
	facts := func(names []string) {
		b = p.facts(i, names, &Late{Values: model.StringOf(string(values))}).AppendBinary(b)
	}
	s, r := p.service(i), p.reconciler(i)
	b = append(b, s.Digest...)
	if s.Spec == nil {
		facts(s.Facts)
	}
	if r == nil {
		return b
	}
	b = append(b, r.Digest...)
	if r.Facts != nil {
		facts(r.Facts)
	}
	return b
}

// namespaces computes the namespace of every assignment.
func (p *Plan) namespaces(ctx context.Context) error {
	var calls []call
	var of []int // calls -> assignment
	for i := range p.assignments {
		a, s := &p.assignments[i], p.service(i)
		switch {
		case s == nil:
			p.Failed[i] = true // its error is reported elsewhere, at its source
		case !s.HasPattern:
			p.Namespaces[i] = p.env.Name + "-" + a.ClusterType.TypeName() + "-" + a.Target.FullName
		case s.PatternFacts == nil && s.Spec != nil:
			pattern, _ := s.Spec.Lookup("pattern")
			p.Namespaces[i] = pattern.Text()
		default:
			ref := model.Ref{Collection: "namespaceServices", Name: s.Name}
			calls = append(calls,
				newCall(function.Call{Entity: ref, Field: "pattern", Facts: p.facts(i, s.PatternFacts, nil)}))
			of = append(of, i)
		}
	}
	made, err := p.functions.apply(ctx, calls)
	if err != nil {
		return err
	}
	assignments := map[string][]int{} // by the key of their call
	var order []string
	for n, c := range calls {
		if assignments[c.key] == nil {
			order = append(order, c.key)
		}
		assignments[c.key] = append(assignments[c.key], of[n])
	}
	for _, key := range order {
		for _, d := range made[key].Diagnostics {
			p.report(d, assignments[key]...)
		}
		for _, i := range assignments[key] {
			p.Namespaces[i] = made[key].Spec.Text()
		}
	}
	p.checkNamespaces()
	return nil
}

// checkNamespaces shortens the names. It reports names that cannot be shortened, and names that two
// assignments of one cluster type share.
func (p *Plan) checkNamespaces() {
	first := map[string]int{} // of the current cluster type, by namespace
	owners := map[int][]int{} // of shared namespaces, by the first
	var order []int
	for i := range p.Namespaces {
		if i > 0 && p.assignments[i].ClusterType != p.assignments[i-1].ClusterType {
			clear(first)
		}
		if p.service(i) == nil || p.Namespaces[i] == "" {
			continue // its error is reported
		}
		name := p.Namespaces[i]
		if !model.IsDNSLabel(name) {
			ref := model.Ref{Collection: "namespaceServices",
				Name: p.assignments[i].ClusterType.NamespaceService, Path: "pattern"}
			p.report(diag.New(diag.BadNamespace,
				fmt.Sprintf("the namespace %q is not a DNS label", name)).At(ref, "").On(ref.String()).
				Hinting("use lower case letters, digits and dashes"), i)
			continue
		}
		if name == "default" || strings.HasPrefix(name, "kube-") {
			ref := model.Ref{Collection: "namespaceServices",
				Name: p.assignments[i].ClusterType.NamespaceService, Path: "pattern"}
			p.report(diag.New(diag.BadNamespace, fmt.Sprintf("the namespace %s belongs to Kubernetes itself",
				name)).At(ref, "").On(ref.String()).
				Hinting("let the pattern give a name of the platform's own"), i)
			continue
		}
		p.Namespaces[i] = model.ShortName(name, model.MaxLabel)
		owner, taken := first[p.Namespaces[i]]
		if !taken {
			first[p.Namespaces[i]] = i
			continue
		}
		if owners[owner] == nil {
			owners[owner] = []int{owner}
			order = append(order, owner)
		}
		owners[owner] = append(owners[owner], i)
	}
	for _, k := range order {
		ct := p.assignments[k].ClusterType
		ref := model.Ref{Collection: "namespaceServices", Name: ct.NamespaceService, Path: "pattern"}
		d := diag.New(diag.NamespaceCollision,
			fmt.Sprintf("%d assignments of cluster type %s share the namespace %s", len(owners[k]), ct.Name,
				p.Namespaces[k])).
			At(ref, "").On(ref.String()).Hinting(
			"let the pattern use what tells them apart: #assignment.deploymentTarget")
		for _, i := range owners[k] {
			a := &p.assignments[i]
			d = d.At(a.Workload.TargetRef(a.Target.Name), a.Target.FullName)
		}
		p.report(d, owners[k]...)
	}
}
