package compose

import (
	"context"
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// namespaces names the namespace of every assignment.
func (p *Plan) namespaces(ctx context.Context) error {
	var calls []call
	var of []int // calls -> assignment
	for i := range p.assignments {
		a, s := &p.assignments[i], p.service(i)
		switch {
		case s == nil:
			p.Failed[i] = true // its error is reported where it stands
		case !s.HasPattern:
			p.Namespaces[i] = p.env.Name + "-" + a.ClusterType.TypeName() + "-" + a.Target.FullName
		case s.PatternFacts == nil && s.Spec != nil:
			pattern, _ := s.Spec.Lookup("pattern")
			p.Namespaces[i] = pattern.Text()
		default:
			ref := model.Ref{Collection: "namespaceServices", Name: s.Name}
			calls = append(calls, newCall(function.Call{Entity: ref, Field: "pattern", Facts: p.facts(i, s.PatternFacts, nil)}))
			of = append(of, i)
		}
	}
	made, err := p.functions.apply(ctx, calls)
	if err != nil {
		return err
	}
	for assignments, o := range made.each(calls, of) {
		for _, d := range o.Diagnostics {
			p.report(d, assignments...)
		}
		for _, i := range assignments {
			p.Namespaces[i] = o.Spec.Text()
		}
	}
	p.checkNamespaces()
	return nil
}

// isReserved says whether a namespace is one that Kubernetes makes: an assignment
// that goes would take it along.
func isReserved(name string) bool { return name == "default" || strings.HasPrefix(name, "kube-") }

// checkNamespaces shortens the names, and reports those that cannot be, and
// those that two assignments of one cluster type share.
func (p *Plan) checkNamespaces() {
	first := map[string]int{} // of the cluster type at hand, by namespace
	owners := map[int][]int{} // of namespaces that are shared, by the first
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
		if isReserved(name) {
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
			At(ref, "").On(ref.String()).Hinting("let the pattern use what tells them apart: #assignment.deploymentTarget")
		for _, i := range owners[k] {
			a := &p.assignments[i]
			d = d.At(a.Workload.TargetRef(a.Target.Name), a.Target.FullName)
		}
		p.report(d, owners[k]...)
	}
}
