package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// definitions returns the CustomResourceDefinitions of an assignment, by name. It returns nil if
// the assignment has failed.
func (as *assignments) definitions(i int) (map[string]string, error) {
	summary, ok := decodeSummary(as.rows[i].summary)
	if !ok || as.rows[i].failed {
		return nil, nil
	}
	// most assignments have none
	if _, retained, _, err := summary.parts(); err != nil || len(retained) == 0 {
		return nil, err
	}
	with := summary
	_, err := with.decodeShared()
	return with.retention.Definitions, err
}

// shareDefinitions makes one assignment of a cluster type bring each CustomResourceDefinition
// that several bring alike. It chooses the first by name that has not failed. If a kept folder
// has the definition, it chooses that folder. The other assignments are emitted again without it.
// Otherwise the objects of two reconcilers would overwrite each other's definition again and
// again. Helm even refuses an object of another release.
func (as *assignments) shareDefinitions(ctx context.Context, scope *scope, ct int,
	collided []collision) error {
	s := as.in.spans[ct]
	failing := map[int]bool{}
	for _, c := range collided {
		for _, i := range as.losers(c) {
			failing[i] = true
		}
	}
	owned, err := as.keptDefinitions(scope, ct)
	if err != nil {
		return err
	}
	for i := s.first; i < s.next; i++ {
		definitions, err := as.definitions(i)
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
			if err := as.emitWithout(ctx, i, without); err != nil {
				return err
			}
		}
	}
	return nil
}

// keptDefinitions returns the names of the CustomResourceDefinitions in the kept folders of a
// cluster type.
func (as *assignments) keptDefinitions(scope *scope, ct int) (map[string]bool, error) {
	out := map[string]bool{}
	name := as.in.Model.ClusterTypes[ct].Name
	if scope.record == nil || !slices.ContainsFunc(scope.record.ClusterTypes,
		func(c tree.ClusterTypeEntry) bool { return c.Name == name }) {
		return out, nil
	}
	healthy := map[string]bool{}
	broken := as.in.Model.Incomplete
	for i := as.in.spans[ct].first; i < as.in.spans[ct].next; i++ {
		target := as.in.Schedule.Assignments[i].Target.FullName
		healthy[target] = !as.rows[i].failed
		broken = broken || as.rows[i].failed
	}
	if !broken {
		return out, nil
	}
	before, err := scope.record.ClusterType(name)
	if broken := (*tree.RecordError)(nil); errors.As(err, &broken) {
		return out, nil // the output stays as it is, independently of the emissions
	} else if err != nil {
		return nil, err
	}
	for _, a := range before.Assignments {
		if is, assigned := healthy[a.DeploymentTarget]; is || !assigned && !as.in.Model.Incomplete {
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

// emitWithout emits an assignment again, without definitions that another assignment brings.
func (as *assignments) emitWithout(ctx context.Context, i int, without map[string]bool) error {
	r := &as.rows[i]
	h := as.in.key("without definitions").Key(r.key)
	for _, name := range slices.Sorted(maps.Keys(without)) {
		h.String(name)
	}
	r.key, r.without = h.Sum(), without
	if summary, ok := as.tableOf(i).Get(r.key); ok {
		if decoded, good := decodeSummary(summary); good {
			r.summary, r.failed = summary, decoded.failed
			return nil
		}
	}
	_, err := as.emit(ctx, []int{i})
	return err
}

// sharedDefinition returns the CustomResourceDefinition with this id that two assignments render.
// It returns nil if they render no such definition.
func (as *assignments) sharedDefinition(c *collision, id objectDigest) (*backends.Object, error) {
	first, err := as.definitions(c.first)
	if err != nil {
		return nil, err
	}
	second, err := as.definitions(c.second)
	if err != nil {
		return nil, err
	}
	for name := range first {
		if o := kubernetes.CRD(name); second[name] != "" && objectID(o) == id {
			return &o, nil
		}
	}
	return nil, nil
}

// definitionCollision returns why two assignments cannot share a CustomResourceDefinition. It
// returns empty texts if they can.
func (as *assignments) definitionCollision(c collision) (message, hint string, err error) {
	first, err := as.definitions(c.first)
	if err != nil {
		return "", "", err
	}
	second, err := as.definitions(c.second)
	if err != nil {
		return "", "", err
	}
	name := c.object.Name
	message = fmt.Sprintf("two assignments create the %s %s", c.object.Kind, name)
	if first[name] == "" || second[name] == "" {
		return message, "one of the two is not rendered from a source: leave it out there, or set " +
			"crds: \"skip\" on the source that renders the other", nil
	}
	a, b := &as.in.Schedule.Assignments[c.first], &as.in.Schedule.Assignments[c.second]
	if first[name] != second[name] {
		return message + ", and not the same", "give both the same version of the chart, or set crds: " +
			"\"skip\" on the source of one of them, if the definition of the other fits both", nil
	}
	for _, of := range []string{a.Target.FullName, b.Target.FullName} {
		crds := a.Manifests.CRDs()
		if of == b.Target.FullName {
			crds = b.Manifests.CRDs()
		}
		if crds == model.DeleteCRDs {
			return message + ", and one would remove it from the other", "remove crds: \"delete\" from " +
				"the source of " + of + ": what several share stays on the cluster", nil
		}
	}
	return "", "", nil
}
