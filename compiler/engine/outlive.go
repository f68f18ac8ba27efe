package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// reportOutliving reports the objects of removed or changed assignments that stay on clusters
// after the last assignment that brings them. It leaves out objects that another folder of the
// same clusters brings. It also leaves out definitions that any folder of the environment brings,
// because clusters may follow that folder too, by another cluster type or class.
func (c *changes) reportOutliving(of *effect.Effect) error {
	type leftover struct{ clusterType, target, objects string }
	// the clusters that keep the objects; empty if the cluster type lists none
	clusters := map[leftover][]string{}
	var order []leftover
	var brought map[string]bool
	for _, w := range of.Ways {
		if w.From == "" || w.Leaves() || w.From == w.To && c.same(w.From) {
			continue
		}
		before, err := c.scope.record.Part(w.From,
			func(_, _ string, retains bool) bool { return retains })
		if err != nil {
			return err
		}
		if before == nil || len(before.Assignments) == 0 {
			continue
		}
		there, err := c.keptNow(w.To)
		if err != nil {
			return err
		}
		is, err := c.assignedTo(w.To)
		if err != nil {
			return err
		}
		for i := range before.Assignments {
			f := &before.Assignments[i].Folder
			left := leftOn(f, there, is[f.DeploymentTarget] == f.Namespace)
			if slices.ContainsFunc(left, isDefinition) && brought == nil {
				if brought, err = c.broughtAnywhere(); err != nil {
					return err
				}
			}
			left = slices.DeleteFunc(left,
				func(object string) bool { return isDefinition(object) && brought[object] })
			if len(left) == 0 {
				continue
			}
			key := leftover{model.TypeOfFolder(w.From), f.DeploymentTarget, strings.Join(left, "\n")}
			if _, known := clusters[key]; !known {
				order = append(order, key)
			}
			clusters[key] = append(clusters[key], w.Clusters...)
		}
	}
	for _, key := range order {
		c.reportRetained(key.clusterType, key.target, strings.Split(key.objects, "\n"), clusters[key])
	}
	return nil
}

func isDefinition(object string) bool { return strings.HasPrefix(object, definitionKind) }

// broughtAnywhere returns the objects that outlive assignments, of all folders that the
// environment will have.
func (c *changes) broughtAnywhere() (map[string]bool, error) {
	out := map[string]bool{}
	for _, ct := range c.tree.ClusterTypes {
		if tree.IsShard(ct.Name) {
			continue
		}
		kept, err := c.keptNow(ct.Name)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, kept)
	}
	return out, nil
}

// assignedTo returns the namespaces of the assignments that a folder will have, by deployment
// target. It returns an empty map for "".
func (c *changes) assignedTo(folder string) (map[string]string, error) {
	out := map[string]string{}
	if folder == "" {
		return out, nil
	}
	list, err := c.assigned(folder)
	for _, a := range list {
		out[a.DeploymentTarget] = a.Namespace
	}
	return out, err
}

// leftOn returns the objects that an assignment leaves on clusters. there are the objects that
// others bring, and stays reports whether the namespace of the assignment stays.
func leftOn(f *backends.Folder, there map[string]bool, stays bool) []string {
	return slices.DeleteFunc(slices.Clone(f.Retained), func(object string) bool {
		return there[object] || !stays && !f.Orphan && kubernetes.InNamespace(object, f.Namespace)
	})
}

// reportRetained reports the objects that an assignment leaves on clusters. If no clusters are
// listed, it names all clusters of the type.
func (c *changes) reportRetained(clusterType, target string, left, clusters []string) {
	where := "the clusters of cluster type " + clusterType
	switch n := len(clusters); {
	case n == 1:
		where = "cluster " + clusters[0]
	case n > 1:
		where = fmt.Sprintf("%d clusters of cluster type %s", n, clusterType)
	}
	hint := "remove an object by hand once nothing on the cluster uses it"
	if slices.ContainsFunc(left, isDefinition) {
		hint += "; with a CustomResourceDefinition go all objects of its kind, including those of " +
			"other workloads. To let definitions go with the assignment, build and sync it once with " +
			"crds: \"delete\" on its source before this change"
	}
	c.reports.add(diag.New(diag.RetainsObjects,
		fmt.Sprintf("%s leaves objects on %s: %s", target, where, kubernetes.Few(left))).
		Hinting(hint).
		For(c.in.Name + "/" + clusterType + "/" + target))
}

// keptNow returns the objects that a folder's assignments bring and that outlive the assignments.
// It includes all definitions.
func (c *changes) keptNow(folder string) (map[string]bool, error) {
	out := map[string]bool{}
	n, known := c.numbers[folder]
	if !known || !c.scope.builds(folder) || c.assignments.types[n].same {
		before, err := c.scope.record.Part(folder,
			func(_, _ string, retains bool) bool { return retains })
		if err != nil || before == nil || !known && c.keeper.keepReason(folder) == "" {
			return out, err
		}
		for i := range before.Assignments {
			for _, object := range before.Assignments[i].Retained {
				out[object] = true
			}
		}
		return out, nil
	}
	for _, f := range c.types[n].folders {
		for _, object := range f.Info.Retained {
			out[object] = true
		}
	}
	for i := c.in.spans[n].first; i < c.in.spans[n].next; i++ {
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
