package build

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// reportOutliving names what stays of each cluster type that is not as it was, and
// nothing brings any more, of assignments that are gone or have changed.
func (c *changes) reportOutliving(changed []changedType) error {
	for _, t := range changed {
		if !slices.ContainsFunc(t.before.Assignments, func(a tree.AssignmentRecord) bool { return len(a.Retained) > 0 }) {
			continue
		}
		there, err := c.keptNow(t)
		if err != nil {
			return err
		}
		for i := range t.before.Assignments {
			a := &t.before.Assignments[i]
			c.reportRetained(t.before.Name, &a.Folder, there, t.namespaces[a.DeploymentTarget] == a.Namespace)
		}
	}
	return nil
}

// reportRetained names what an assignment leaves on the clusters; there is what others
// bring now, and stays says that its namespace is not removed.
func (c *changes) reportRetained(clusterType string, f *backends.Folder, there map[string]bool, stays bool) {
	left := slices.DeleteFunc(slices.Clone(f.Retained), func(object string) bool {
		return there[object] || !stays && !f.Orphan && kubernetes.InNamespace(object, f.Namespace)
	})
	if len(left) == 0 {
		return
	}
	hint := "remove by hand what nobody needs"
	if slices.ContainsFunc(left, func(object string) bool { return strings.HasPrefix(object, definitionKind) }) {
		hint += "; with a CustomResourceDefinition go all objects of its kind. To let definitions go with the assignment, build and sync it once with crds: \"delete\" on its source before this change"
	}
	c.reports.add(diag.New(diag.RetainsObjects, fmt.Sprintf("%s leaves objects on the clusters of cluster type %s: %s", f.DeploymentTarget, clusterType, kubernetes.Few(left))).
		Hinting(hint).
		For(c.Name + "/" + clusterType + "/" + f.DeploymentTarget))
}

// keptNow returns the objects of a cluster type's assignments that outlive them, and
// all definitions.
func (c *changes) keptNow(t changedType) (map[string]bool, error) {
	out := map[string]bool{}
	if !t.there {
		return out, nil
	}
	for _, f := range c.types[t.number].folders {
		for _, object := range f.Info.Retained {
			out[object] = true
		}
	}
	for i := c.spans[t.number].first; i < c.spans[t.number].next; i++ {
		summary, ok := decodeSummary(c.assignments.rows[i].summary)
		if !ok || c.assignments.rows[i].failed {
			continue
		}
		if _, err := summary.decodeShared(); err != nil {
			return nil, err
		}
		for _, object := range summary.retention.Kept {
			out[object] = true
		}
		for name := range summary.retention.Definitions {
			out[definitionKind+name] = true
		}
	}
	return out, nil
}
