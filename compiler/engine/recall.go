package engine

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// cachedTypes returns the table of cachedType values.
func (as *assignments) cachedTypes() table {
	return as.in.request.Meter.table(cache.Assignment, as.in.request.Platform.Module+" "+as.in.Name)
}

// recall looks up a cluster type in the cache. If it equals the recorded one, same is true and
// the build skips its tuples and its assignments.
func (as *assignments) recall(s *scope, r *retainedOutput, ct int) (same bool) {
	known, of := &as.types[ct], &as.in.Model.ClusterTypes[ct]
	key, ok := as.typeKey(s, r, ct)
	if !ok {
		return false
	}
	known.key = key
	text, ok := as.cachedTypes().Get(key)
	if !ok || json.Unmarshal(text, &known.cachedType) != nil || s.record == nil {
		return false
	}
	known.same = known.Digest != "" && slices.ContainsFunc(s.record.ClusterTypes,
		func(e tree.ClusterTypeEntry) bool { return e.Name == of.Name && e.Digest == known.Digest })
	if known.same {
		as.in.request.Meter.count(cache.Assignment, 0, as.in.spans[ct].next-as.in.spans[ct].first)
	}
	return known.same
}

// typeKey identifies the planned input of a cluster type's folder and record. There is no key
// if errors or quotas concern its assignments, or if a part of the former folder is kept.
func (as *assignments) typeKey(s *scope, r *retainedOutput, ct int) (key cache.Key, ok bool) {
	of, at := &as.in.Model.ClusterTypes[ct], as.in.spans[ct]
	if as.in.Model.Incomplete || !as.in.Reconciled(of) || r.folders[of.Name] != nil ||
		s.lostClusters[of.Name] != nil ||
		slices.ContainsFunc(as.in.Model.Workspaces,
			func(w model.Workspace) bool { return w.Quota != nil }) {
		return key, false
	}
	h := as.in.indexKey("whole cluster type", of).Key(as.in.clusterTypeFacts(of)).Key(capabilities(of))
	for _, d := range r.deniedOf(of.Name) {
		hashStrings(h.String(d.DeploymentTarget), d.Policies)
	}
	var specs []byte
	backend := as.in.backend(of)
	for i := at.first; i < at.next; i++ {
		a := &as.in.Schedule.Assignments[i]
		content := needsContent(backend, a)
		if a.Failed || as.in.Plan.Failed[i] || content && as.emitter.lacksSource(a) {
			return key, false
		}
		tuple := &as.in.Plan.Tuples[as.in.Plan.TupleOf[i]]
		h.Key(tuple.Digest).Key(as.targetFacts(a, content)).String(a.Version).String(
			as.in.Plan.Namespaces[i]).Int(a.Wave)
		for _, names := range [][]string{a.DependsOn, a.Policies, a.SparedBy} {
			hashStrings(h, names)
		}
		specs = as.in.Plan.AppendSpecs(specs[:0], i, model.Digest(tuple.Digest[:]))
		h.Bytes(specs)
	}
	return h.Sum(), true
}

// cacheType caches a built cluster type, unless there are diagnostics about its assignments.
func (as *assignments) cacheType(ct int, digest model.Digest, ds []diag.Diagnostic) {
	if as.types[ct].key == (cache.Key{}) {
		return
	}
	lists := newLists()
	for i := as.in.spans[ct].first; i < as.in.spans[ct].next; i++ {
		t := as.tuples.summary(i)
		if len(t.diagnostics) > 0 || as.rows[i].summary[0]&summaryDiagnostics != 0 {
			return
		}
		lists.add(t.lists)
	}
	text, err := json.Marshal(
		cachedType{Digest: digest, Lists: slices.Sorted(maps.Keys(lists.paths)), Diagnostics: ds})
	if err == nil {
		as.cachedTypes().Put(as.types[ct].key, text)
	}
}
