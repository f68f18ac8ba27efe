package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// requests returns what an assignment requests of its workspace's quota; nil where that has
// none.
func (e *emitter) requests(w *model.Workload, a *backends.Assignment) kubernetes.Requests {
	of, _ := e.in.Model.WorkspaceOf(w)
	if of == nil || of.Quota == nil {
		return nil
	}
	out := kubernetes.Requests{}
	if a.Projection != nil {
		out = kubernetes.RequestsOf(a.Projection)
	} else {
		out.Add(kubernetes.QuotaOf(a.NamespaceService.Value))
	}
	out.Add(kubernetes.Requests{"assignments": *resource.NewQuantity(1, resource.DecimalSI)})
	return out
}

// overQuota fails the assignments with which a workspace requests more than its quota. They
// count in the order of their deployment targets and cluster types, so that which of them
// fail follows from the platform, and not from what was there before.
func (as *assignments) overQuota(s *scope) (ds []diag.Diagnostic, err error) {
	if !slices.ContainsFunc(as.in.Model.Workspaces, func(w model.Workspace) bool { return w.Quota != nil }) {
		return nil, nil
	}
	as.requested = map[string]kubernetes.Requests{}
	for _, i := range as.byTarget() {
		a := &as.in.Schedule.Assignments[i]
		of, _ := as.in.Model.WorkspaceOf(a.Workload)
		if of == nil || of.Quota == nil || as.rows[i].failed || !s.has(i) {
			continue
		}
		summary, _ := decodeSummary(as.rows[i].summary)
		requests, err := summary.decodeRequests()
		if err != nil {
			return nil, err
		}
		sum := kubernetes.Requests{}
		sum.Add(as.requested[of.Name])
		sum.Add(requests)
		over := overOf(sum, of.Quota)
		if len(over) == 0 {
			as.requested[of.Name] = sum
			continue
		}
		as.rows[i].failed = true
		ref := model.Ref{Collection: "workspaces", Name: of.Name, Path: "quota"}
		ds = append(ds, diag.New(diag.Bounds,
			fmt.Sprintf("with %s on cluster type %s, workspace %s requests more than its quota: %s",
				a.Target.FullName, a.ClusterType.Name, of.Name, strings.Join(over, ", "))).
			At(a.Workload.TargetRef(a.Target.Name), "").At(ref, "").For(as.in.id(i)).
			Hinting("let the workspace's workloads request less, or raise the quota"))
	}
	return ds, nil
}

// Requested returns what the assignments of a workspace with a quota request of it together,
// after Build, as far as they are within it.
func (e *Environment) Requested(workspace string) kubernetes.Requests {
	return e.assignments.requested[workspace]
}

// byTarget returns the numbers of the assignments by deployment target and cluster type.
func (as *assignments) byTarget() []int {
	out := make([]int, len(as.in.Schedule.Assignments))
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, func(i, j int) int {
		a, b := &as.in.Schedule.Assignments[i], &as.in.Schedule.Assignments[j]
		if c := strings.Compare(a.Target.FullName, b.Target.FullName); c != 0 {
			return c
		}
		return strings.Compare(a.ClusterType.Name, b.ClusterType.Name)
	})
	return out
}

// overOf returns what is requested beyond a quota, sorted.
func overOf(requests kubernetes.Requests, quota map[string]model.Value) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(quota)) {
		most, err := resource.ParseQuantity(quota[name].Text())
		if is := requests[name]; err == nil && is.Cmp(most) > 0 {
			out = append(out, fmt.Sprintf("%s of %s %s", is.String(), most.String(), name))
		}
	}
	return out
}
