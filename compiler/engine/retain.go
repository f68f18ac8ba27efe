package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// retainedOutput are the parts of the output that stay as the record describes them, because a
// selector selected them before and now selects nothing.
type retainedOutput struct {
	in    *Inputs
	scope *scope
	// folders are the folders of assignments that no policy creates any more, by cluster type and
	// deployment target.
	folders map[string]map[string]bool
	// denied are the pairs that stay denied, by cluster type.
	denied map[string][]tree.DeniedTarget
	lost   []*lostSelector // the selectors that select nothing without permission
}

// keep retains the folder of an assignment.
func (r *retainedOutput) keep(clusterType, target string) {
	if r.folders[clusterType] == nil {
		r.folders[clusterType] = map[string]bool{}
	}
	r.folders[clusterType][target] = true
}

// lostSelector is a selector that selects nothing, or a policy that cannot be read. It has the
// effect that the selector or the policy had in the record.
type lostSelector struct {
	selector string // its path; "" for a policy that cannot be read
	entity   model.Ref
	warning  diag.Diagnostic
	// assigns reports whether the policy assigned its selection. pins reports whether the policy
	// changes the deployed manifests or version.
	assigns, pins bool
	denies        bool // whether the policy denied its selection
	spares        bool // whether the policy's deny excepted its selection
	follows       bool // whether it selects nothing only because other selectors do
	concerned     []string
}

// retain finds the selectors that select nothing now and selected something in the record. Their
// previous selection stays as it is: recorded folders are kept. An assignment is not built if it
// exists only because a policy no longer denies it.
func retain(s *scope, out *reports) (*retainedOutput, error) {
	r := &retainedOutput{in: s.in, scope: s, folders: map[string]map[string]bool{},
		denied: map[string][]tree.DeniedTarget{}}
	all := r.lostSelectors()
	if s.record != nil && len(all) > 0 {
		for _, entry := range s.record.ClusterTypes {
			if !s.builds(entry.Name) {
				continue
			}
			ct, err := s.record.ClusterType(entry.Name)
			if err != nil {
				return nil, err
			}
			r.retainOf(ct, all)
		}
	}
	r.lost = all
	// Drop the warnings that retained folders have no assignment.
	targets := map[string]bool{}
	for clusterType, folders := range r.folders {
		out.drop(diag.EmptyClusterType,
			model.Ref{Collection: "clusterTypes", Name: model.TypeOfFolder(clusterType)}.String())
		for target := range folders {
			targets[target] = true
		}
	}
	for i := range r.in.Model.Workloads {
		w := &r.in.Model.Workloads[i]
		for j := range w.Targets {
			if targets[w.Targets[j].FullName] {
				out.drop(diag.Unassigned, w.TargetRef(w.Targets[j].Name).String())
			}
		}
	}
	for _, l := range all {
		switch {
		case len(l.concerned) > 0:
			r.reportLost(l, out)
		case l.follows:
			out.drop(diag.SelectsNothing, l.selector)
		}
	}
	r.followHidden(out)
	return r, nil
}

// followHidden marks warnings about empty cluster selectors as consequences of errors, if errors
// hide clusters.
func (r *retainedOutput) followHidden(out *reports) {
	if !r.in.Model.HidesClusters() {
		return
	}
	var causes []string
	for ref := range r.in.Model.Invalid {
		if ref.Collection == clusters {
			causes = append(causes, ref.Entity().String())
		}
	}
	for i := range r.in.Model.Inventories {
		causes = append(causes,
			model.Ref{Collection: "inventories", Name: r.in.Model.Inventories[i].Name}.String())
	}
	slices.Sort(causes)
	for i := range out.all {
		if d := &out.all[i]; (d.Code == diag.SelectsNothing || d.Code == diag.SelectsNoMore) &&
			strings.HasSuffix(d.Path, ".clusters") {
			d.Because = causes
		}
	}
}

// lostSelectors returns the selectors that select nothing without permission, and the unreadable
// policies. They are sorted by entity.
func (r *retainedOutput) lostSelectors() []*lostSelector {
	var out []*lostSelector
	add := func(l *lostSelector, allowed bool) {
		l.selector = l.warning.Path
		if !allowed && !r.mayBeEmpty(l.entity) {
			out = append(out, l)
		}
	}
	for _, s := range r.in.Schedule.Empty() {
		p := s.Policy
		if r.in.Model.Incomplete && !p.Deny && !s.Except && p.Pin == nil {
			continue // nothing is removed, and errors may be the cause
		}
		add(&lostSelector{
			entity: model.Ref{Collection: "schedulingPolicies", Name: p.Name}, warning: s.Warning,
			assigns: !p.Deny && !s.Except, pins: p.Pin != nil && !s.Except,
			denies: p.Deny != s.Except, spares: p.Deny && s.Except,
		}, p.AllowEmpty)
	}
	for _, s := range r.in.Plan.Empty {
		add(&lostSelector{entity: s.Ref, warning: s.Warning}, s.Allowed)
	}
	for ref := range r.in.Model.Invalid {
		if ref.Collection == "schedulingPolicies" && ref.Path == "" {
			out = append(out,
				&lostSelector{entity: ref, assigns: true, pins: true, denies: true, spares: true})
		}
	}
	slices.SortStableFunc(out,
		func(a, b *lostSelector) int { return strings.Compare(a.entity.String(), b.entity.String()) })
	return out
}

// mayBeEmpty reports whether the request allows the selectors of an entity to select nothing.
func (r *retainedOutput) mayBeEmpty(ref model.Ref) bool {
	return slices.ContainsFunc(r.in.request.AllowEmpty, func(name string) bool {
		return name == AllEmpty || name == ref.Name || name == ref.Collection+"."+ref.Name
	})
}

// retainOf retains the previous selections of lost selectors in a cluster type.
func (r *retainedOutput) retainOf(ct *tree.ClusterTypeRecord, all []*lostSelector) {
	gone := !slices.ContainsFunc(r.in.Model.ClusterTypes,
		func(t model.ClusterType) bool { return t.Name == ct.Name })
	if gone && ct.Name != model.TypeOfFolder(ct.Name) && r.retainClass(ct, all) {
		return
	}
	known := true // whether the record has the policies of its assignments
	for i := range ct.Assignments {
		a := &ct.Assignments[i]
		known = known && len(a.Policies) > 0
		number, assigned := r.in.Schedule.Index(ct.Name, a.DeploymentTarget)
		for _, l := range all {
			switch selected := l.selected(a); {
			case !selected:
			case !assigned && l.selector != "" && (l.assigns || l.spares):
				r.keep(ct.Name, a.DeploymentTarget)
				l.concern(r.in.Name, ct.Name, a.DeploymentTarget)
			case assigned && (l.pins || l.isConfig()):
				r.in.Plan.Failed[number] = true
				l.concern(r.in.Name, ct.Name, a.DeploymentTarget)
			case assigned && l.selector != "" && l.assigns && len(a.Policies) > 0:
				l.concern(r.in.Name, ct.Name, a.DeploymentTarget)
			}
		}
	}
	for i := range ct.Assignments {
		a := &ct.Assignments[i]
		for _, l := range all {
			l.follows = l.follows || l.isConfig() && r.folders[ct.Name][a.DeploymentTarget] && l.selected(a)
		}
	}
	for _, d := range ct.Denied {
		r.retainDenied(ct.Name, d, all)
	}
	if !known {
		r.retainUnknown(ct, all)
	}
	if gone && r.folders[ct.Name] != nil {
		for i := range ct.Assignments { // the files that list them are not made again
			r.keep(ct.Name, ct.Assignments[i].DeploymentTarget)
		}
	}
}

// retainClass retains a class that has no clusters any more because a selector of clusters
// selects none. It reports whether that is the cause.
func (r *retainedOutput) retainClass(ct *tree.ClusterTypeRecord,
	all []*lostSelector) (retains bool) {
	for _, l := range all {
		selected := slices.ContainsFunc(ct.Assignments,
			func(a tree.AssignmentRecord) bool { return l.selected(&a) }) ||
			l.denies && slices.ContainsFunc(ct.Denied,
				func(d tree.DeniedTarget) bool { return slices.Contains(d.Policies, l.entity.Name) })
		if !selected || !strings.HasSuffix(l.selector, ".clusters") {
			continue
		}
		for i := range ct.Assignments {
			r.keep(ct.Name, ct.Assignments[i].DeploymentTarget)
			l.concern(r.in.Name, ct.Name, ct.Assignments[i].DeploymentTarget)
		}
		retains = true
	}
	return retains
}

// selected reports whether the selector selected an assignment in the record. It returns true if
// the record does not have the assignment's policies.
func (l *lostSelector) selected(a *tree.AssignmentRecord) bool {
	by := a.Policies
	switch {
	case len(a.Policies) == 0:
		return l.selector != "" // an unreadable policy makes the environment uncertain anyway
	case l.entity.Collection == "configs":
		by = a.Configs
	case l.entity.Collection == "configSchemas":
		by = a.ConfigSchemas
	case l.spares && slices.Contains(a.SparedBy, l.entity.Name):
		return true
	case !l.assigns:
		return false
	}
	return slices.Contains(by, l.entity.Name)
}

func (l *lostSelector) isConfig() bool { return l.entity.Collection != "schedulingPolicies" }

func (l *lostSelector) concern(environment, clusterType, target string) {
	l.concerned = append(l.concerned, environment+"/"+clusterType+"/"+target)
}

// retainDenied keeps a pair denied if the policies that denied it select nothing now.
func (r *retainedOutput) retainDenied(clusterType string, d tree.DeniedTarget,
	all []*lostSelector) {
	var by []string
	for _, l := range all {
		if !l.denies || !slices.Contains(d.Policies, l.entity.Name) ||
			slices.Contains(by, l.entity.Name) {
			continue
		}
		by = append(by, l.entity.Name)
		if number, assigned := r.in.Schedule.Index(clusterType, d.DeploymentTarget); assigned {
			r.in.Plan.Failed[number] = true
			l.concern(r.in.Name, clusterType, d.DeploymentTarget)
		}
	}
	if len(by) > 0 {
		r.denied[clusterType] = append(r.denied[clusterType],
			tree.DeniedTarget{DeploymentTarget: d.DeploymentTarget, Policies: by})
	}
}

// retainUnknown prevents new assignments if the record does not say whether a policy denied them.
// It does so only for policies with deny selectors that select nothing now.
func (r *retainedOutput) retainUnknown(ct *tree.ClusterTypeRecord, all []*lostSelector) {
	for _, l := range all {
		if !l.denies || l.selector == "" {
			continue
		}
		for i := range r.in.Schedule.Assignments {
			a := &r.in.Schedule.Assignments[i]
			if a.ClusterType.Name == ct.Name && ct.Assignment(a.Target.FullName) == nil {
				r.in.Plan.Failed[i] = true
				l.concern(r.in.Name, ct.Name, a.Target.FullName)
			}
		}
	}
}

// reportLost reports a selector that selects nothing any more. This replaces the warning that the
// selector selects nothing. For an unreadable policy, reportLost reports that the policy did more
// than assign.
func (r *retainedOutput) reportLost(l *lostSelector, out *reports) {
	kind := map[string]string{"schedulingPolicies": "policy", "configs": "config",
		"configSchemas": "config schema"}[l.entity.Collection]
	if l.selector == "" {
		d := diag.New(diag.SelectsNoMore,
			fmt.Sprintf("policy %s has errors, and says more of these assignments than that they are there",
				l.entity.Name))
		out.add(d.At(l.entity, "").On(l.entity.String()).For(l.concerned...))
		return
	}
	out.drop(diag.SelectsNothing, l.selector)
	d := l.warning
	d.Code, d.Severity = diag.SelectsNoMore, diag.SelectsNoMore.Severity()
	d.Message += ", and selected something before"
	way := fmt.Sprintf("what it had selected stays as it is; if it may select nothing, write "+
		"allowEmpty: true on the %s, build once with --allow-empty %s, or remove the %s", kind,
		l.entity.Name, kind)
	if d.Hint != "" {
		way = d.Hint + "; " + way
	}
	out.add(d.Hinting(way).For(l.concerned...))
}

// deniedOf returns the pairs that are denied on a cluster type, sorted by deployment target.
func (r *retainedOutput) deniedOf(clusterType string) []tree.DeniedTarget {
	var out []tree.DeniedTarget
	first, _ := slices.BinarySearchFunc(r.in.Schedule.Denied, clusterType,
		func(d schedule.Denial, name string) int { return strings.Compare(d.ClusterType, name) })
	for _, d := range r.in.Schedule.Denied[first:] {
		if d.ClusterType != clusterType {
			break
		}
		out = append(out, tree.DeniedTarget{DeploymentTarget: d.DeploymentTarget, Policies: d.Policies})
	}
	for _, d := range r.denied[clusterType] {
		i, found := slices.BinarySearchFunc(out, d.DeploymentTarget,
			func(d tree.DeniedTarget, name string) int {
				return strings.Compare(d.DeploymentTarget, name)
			})
		if !found {
			out = slices.Insert(out, i, d)
			continue
		}
		out[i].Policies = slices.Compact(
			slices.Sorted(slices.Values(slices.Concat(out[i].Policies, d.Policies))))
	}
	return out
}

// lostClusters finds the clusters that the record lists and that errors hide, by cluster type.
// The shared files of a cluster type, such as an inventory or a list of destinations, would
// remove the deployments of these clusters. So the clusters stay in the cluster type, as the
// record describes them. If the record does not describe them, the cluster type stays as it is.
// The errors themselves are reported already. The diagnostics of lostClusters describe their
// effect.
func lostClusters(s *scope, out *reports) (map[string]*lostType, error) {
	if s.beside == nil && s.record != nil {
		s.beside = s.record.ClusterType
	}
	if s.beside == nil || !s.in.Model.HidesClusters() {
		return nil, nil
	}
	all := map[string]*lostType{}
	for n := range s.in.spans {
		ct := &s.in.Model.ClusterTypes[n]
		if !s.builds(ct.Name) || ct.Entries == model.ClusterEntries { // their entries stay
			continue
		}
		r, err := s.beside(ct.Name)
		if err != nil {
			return nil, err
		}
		if r == nil {
			continue
		}
		l := &lostType{facts: r.Facts}
		for _, name := range r.Clusters {
			if s.lost(ct.Name, name) {
				l.clusters = append(l.clusters, name)
			}
		}
		if len(l.clusters) == 0 {
			continue
		}
		all[ct.Name] = l
		if l.held = l.facts == nil; l.held {
			s.in.hold(n)
			d := hidden(unrecordedFacts, subject{clusterType: ct.Name, clusters: l.clusters}, ct)
			for i := s.in.spans[n].first; i < s.in.spans[n].next; i++ {
				d.Assignments = append(d.Assignments, s.in.id(i))
			}
			slices.Sort(d.Assignments)
			out.add(d)
			continue
		}
		s.addLost(ct, r, l.clusters)
		out.add(hidden(recordedClusters, subject{clusterType: ct.Name, clusters: l.clusters}, ct))
		out.add(s.takesNew(n, r, l.clusters)...)
	}
	return all, nil
}

// addLost adds recorded clusters to the clusters of a cluster type.
func (s *scope) addLost(ct *model.ClusterType, r *tree.ClusterTypeRecord, names []string) {
	all := slices.Clone(s.in.clusters[ct.Name])
	for _, name := range names {
		f := r.FactsOf(name)
		c := model.Cluster{Name: name, ClusterType: ct.TypeName(), Folder: ct.Name, Address: f.Address,
			Labels: f.Labels, Values: f.Values, Composed: f.Composed}
		text, _ := f.Encode() // in the encoding of the record
		c.Digest = model.DigestBytes(append([]byte("recorded "), text...))
		if n, there := slices.BinarySearchFunc(all, name,
			func(c model.Cluster, name string) int { return strings.Compare(c.Name, name) }); !there {
			all = slices.Insert(all, n, c)
		}
	}
	s.in.clusters[ct.Name] = all
}

// takesNew fails the assignments of a cluster type that take new values from each cluster,
// compared with the record. It removes the new values from the clusters, because those of lost
// clusters are not known.
func (s *scope) takesNew(n int, r *tree.ClusterTypeRecord, lost []string) (ds []diag.Diagnostic) {
	ct := &s.in.Model.ClusterTypes[n]
	before := map[string]map[string]bool{} // names of values by deployment target
	for i := range r.Facts {
		for target, values := range r.Facts[i].Composed {
			if before[target] == nil {
				before[target] = map[string]bool{}
			}
			for _, f := range values.Fields() {
				before[target][f.Name] = true
			}
		}
	}
	added := map[string]string{} // the first new value of a deployment target
	all := s.in.clusters[ct.Name]
	for i := range all {
		for target, values := range all[i].Composed {
			is := func(f model.Field) bool { return !before[target][f.Name] }
			n := slices.IndexFunc(values.Fields(), is)
			if n < 0 {
				continue
			}
			if name, found := added[target]; !found || values.Fields()[n].Name < name {
				added[target] = values.Fields()[n].Name
			}
			all[i].Composed = maps.Clone(all[i].Composed)
			all[i].Composed[target] = model.StructOf(slices.DeleteFunc(slices.Clone(values.Fields()), is)...)
			all[i].Digest = model.DigestBytes(
				[]byte(string(all[i].Digest) + " without what is new in " + target))
		}
	}
	for _, target := range slices.Sorted(maps.Keys(added)) {
		i, assigned := s.in.Schedule.Index(ct.Name, target)
		if !assigned {
			continue
		}
		s.in.Plan.Failed[i] = true
		ds = append(ds, hidden(newValue, subject{clusterType: ct.Name, clusters: lost,
			targets: []string{target}, value: added[target]}, ct).For(s.in.id(i)))
	}
	return ds
}

// hidden returns a diagnostic about clusters of a cluster type that errors hide.
func hidden(why reason, s subject, ct *model.ClusterType) diag.Diagnostic {
	d := why.diagnostic(s)
	for _, name := range s.clusters[:min(len(s.clusters), 3)] {
		d = d.At(model.Ref{Collection: clusters, Name: name}, "")
	}
	return d.On(ct.Ref().String())
}
