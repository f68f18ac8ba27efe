package compiler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// retention is what of a rendered workload outlives its assignment, and what others
// may bring as well.
type retention struct {
	// Kept are the objects that stay on the cluster, as kubernetes.KeptOf returns them.
	Kept []string `json:"kept,omitempty"`
	// Definitions are the CustomResourceDefinitions by name, each as a digest of what
	// it defines.
	Definitions map[string]string `json:"definitions,omitempty"`
}

// definitionKind begins a CustomResourceDefinition in Kept.
const definitionKind = "CustomResourceDefinition "

func retentionOf(backend backends.Backend, a *backends.Assignment) retention {
	if !a.Render {
		return retention{}
	}
	r := retention{Kept: kubernetes.KeptOf(a), Definitions: kubernetes.DefinitionsOf(a.Projection)}
	if backend.Traits().KeepsDefinitions {
		for name := range r.Definitions {
			r.Kept = append(r.Kept, definitionKind+name)
		}
		slices.Sort(r.Kept)
		r.Kept = slices.Compact(r.Kept)
	}
	return r
}

// encode returns the JSON of r, nothing for the zero value.
func (r retention) encode() []byte {
	if len(r.Kept)+len(r.Definitions) == 0 {
		return nil
	}
	b, _ := json.Marshal(r) // of strings, with sorted keys
	return b
}

// definitions returns the CustomResourceDefinitions of an assignment.
func (e *Environment) definitions(i int) (map[string]string, error) {
	head, ok := decodeHead(e.rows[i].head)
	if !ok || e.rows[i].failed {
		return nil, nil
	}
	_, err := head.decodeShared()
	return head.retention.Definitions, err
}

// shareDefinitions lets one assignment of a cluster type bring each
// CustomResourceDefinition that several bring alike: the first by name that has not
// failed. Two reconcilers' objects that apply one object would take it from one
// another for ever, and Helm refuses what another release has. The others are
// emitted once more without it. Where a folder that is kept has it, that one does.
func (e *Environment) shareDefinitions(ctx context.Context, ct int, collided []collision) error {
	s := e.spans[ct]
	failing := map[int]bool{}
	for _, c := range collided {
		failing[c.first], failing[c.second] = true, true
	}
	owned, err := e.keptDefinitions(ct)
	if err != nil {
		return err
	}
	for i := s.first; i < s.next; i++ {
		definitions, err := e.definitions(i)
		if err != nil {
			return err
		}
		if len(definitions) == 0 || failing[i] {
			continue
		}
		without := map[string]bool{}
		for name := range definitions {
			if owned[name] {
				without[name] = true
			}
			owned[name] = true
		}
		if len(without) > 0 {
			if err := e.emitWithout(ctx, i, without); err != nil {
				return err
			}
		}
	}
	return nil
}

// keptDefinitions returns the names of the CustomResourceDefinitions in folders of a
// cluster type that stay as they were.
func (e *Environment) keptDefinitions(ct int) (map[string]bool, error) {
	out := map[string]bool{}
	name := e.Model.ClusterTypes[ct].Name
	if e.record == nil || !slices.ContainsFunc(e.record.ClusterTypes, func(c tree.ClusterTypeEntry) bool { return c.Name == name }) {
		return out, nil
	}
	healthy := map[string]bool{}
	broken := e.Model.Incomplete
	for i := e.spans[ct].first; i < e.spans[ct].next; i++ {
		target := e.Schedule.Assignments[i].Target.FullName
		healthy[target] = !e.rows[i].failed
		broken = broken || e.rows[i].failed
	}
	if !broken {
		return out, nil
	}
	before, err := e.record.ClusterType(name)
	if broken := (*tree.RecordError)(nil); errors.As(err, &broken) {
		return out, nil // the output stays as it is, whatever is emitted
	} else if err != nil {
		return nil, err
	}
	for _, a := range before.Assignments {
		if is, assigned := healthy[a.DeploymentTarget]; is || !assigned && !e.Model.Incomplete {
			continue
		}
		for _, object := range a.Folder.Retained {
			if definition, ok := strings.CutPrefix(object, definitionKind); ok {
				out[definition] = true
			}
		}
	}
	return out, nil
}

// emitWithout emits an assignment once more, without definitions that another
// brings.
func (e *Environment) emitWithout(ctx context.Context, i int, without map[string]bool) error {
	r := &e.rows[i]
	h := e.key("without definitions").Key(r.key)
	for _, name := range slices.Sorted(maps.Keys(without)) {
		h.String(name)
	}
	r.key, r.without = h.Sum(), without
	if head, ok := e.assignmentTable(e.Schedule.Assignments[i].ClusterType.Name).Head(r.key); ok {
		if decoded, good := decodeHead(head); good {
			r.head, r.failed = head, decoded.failed
			return nil
		}
	}
	_, err := e.emit(ctx, []int{i})
	return err
}

// definitionCollision says why two assignments cannot share a
// CustomResourceDefinition; nothing where they can.
func (e *Environment) definitionCollision(c collision) (message, hint string, err error) {
	first, err := e.definitions(c.first)
	if err != nil {
		return "", "", err
	}
	second, err := e.definitions(c.second)
	if err != nil {
		return "", "", err
	}
	name := c.object.Name
	message = fmt.Sprintf("two assignments create the %s %s", c.object.Kind, name)
	if first[name] == "" || second[name] == "" {
		return message, "one of the two is not rendered from a source: leave it out there, or set crds: \"skip\" on the source that renders the other", nil
	}
	a, b := &e.Schedule.Assignments[c.first], &e.Schedule.Assignments[c.second]
	if first[name] != second[name] {
		return message + ", and not the same", "give both the same version of the chart, or set crds: \"skip\" on the source of one of them, if the definition of the other fits both", nil
	}
	for _, of := range []string{a.Target.FullName, b.Target.FullName} {
		crds := a.Manifests.CRDs()
		if of == b.Target.FullName {
			crds = b.Manifests.CRDs()
		}
		if crds == model.DeleteCRDs {
			return message + ", and one would remove it from the other", "remove crds: \"delete\" from the source of " + of + ": what several share stays on the cluster", nil
		}
	}
	return "", "", nil
}

// withoutEffect warns of what a source says about CustomResourceDefinitions where
// the reconciler cannot do it.
func withoutEffect(backend backends.Backend, a *backends.Assignment) []diag.Diagnostic {
	crds := a.Manifests.CRDs()
	var why, hint string
	switch {
	case crds == "" || crds == model.KeepCRDs:
		return nil
	case a.Render && crds == model.DeleteCRDs && backend.Traits().KeepsDefinitions && len(kubernetes.DefinitionsOf(a.Projection)) > 0:
		why, hint = "Argo CD never deletes CustomResourceDefinitions", "remove them by hand when nobody needs them any more: a build that lets the assignment go names them"
	case a.Render:
		return nil
	case crds == model.SkipCRDs && a.Manifests.Helm != nil && backend.Traits().SkipsDefinitions:
		return nil
	default:
		why, hint = "the reconciler fetches the manifests", "render them: set render: true on the deployment target"
	}
	field := "manifests." + string(a.Manifests.Kind()) + ".crds"
	return []diag.Diagnostic{diag.New(diag.NoEffect, fmt.Sprintf("crds: %q of %s has no effect: %s", crds, a.DeploymentTarget, why)).
		On(field).At(a.Ref.At(field), "").Hinting(hint)}
}

// reportOutliving names what stays of each cluster type that is not as it was, and
// nothing brings any more, of assignments that are gone or have changed.
func (e *Environment) reportOutliving(k *keeper, outcomes []clusterType) error {
	changed, err := e.changed(k, outcomes)
	if err != nil {
		return err
	}
	for _, c := range changed {
		if !slices.ContainsFunc(c.before.Assignments, func(a tree.AssignmentRecord) bool { return len(a.Retained) > 0 }) {
			continue
		}
		var there map[string]bool
		namespaces := map[string]string{}
		if c.there {
			if there, err = e.keptNow(c.number, outcomes[c.number].folders); err != nil {
				return err
			}
			namespaces = e.namespaces(c.number, outcomes[c.number].folders)
		}
		for i := range c.before.Assignments {
			a := &c.before.Assignments[i]
			e.reportRetained(c.before.Name, &a.Folder, there, namespaces[a.DeploymentTarget] == a.Namespace)
		}
	}
	return nil
}

// reportRetained names what an assignment leaves on the clusters; there is what others
// bring now, and stays says that its namespace is not removed.
func (e *Environment) reportRetained(clusterType string, f *backends.Folder, there map[string]bool, stays bool) {
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
	e.report(diag.New(diag.RetainsObjects, fmt.Sprintf("%s leaves objects on the clusters of cluster type %s: %s", f.DeploymentTarget, clusterType, kubernetes.Few(left))).
		Hinting(hint).
		For(e.Name + "/" + clusterType + "/" + f.DeploymentTarget))
}

// keptNow returns the objects of a cluster type's assignments that outlive them, and
// all definitions.
func (e *Environment) keptNow(n int, folders []tree.Folder) (map[string]bool, error) {
	out := map[string]bool{}
	for _, f := range folders {
		for _, object := range f.Info.Retained {
			out[object] = true
		}
	}
	for i := e.spans[n].first; i < e.spans[n].next; i++ {
		head, ok := decodeHead(e.rows[i].head)
		if !ok || e.rows[i].failed {
			continue
		}
		if _, err := head.decodeShared(); err != nil {
			return nil, err
		}
		for _, object := range head.retention.Kept {
			out[object] = true
		}
		for name := range head.retention.Definitions {
			out[definitionKind+name] = true
		}
	}
	return out, nil
}
