package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// whole is what the cache has of a cluster type in which nothing failed, and about whose
// assignments there is nothing to say.
type whole struct {
	Digest      model.Digest      `json:"digest"`                // as tree.ClusterType has it
	Lists       []string          `json:"lists,omitempty"`       // what Graph.Lists returns, of all tuples
	Diagnostics []diag.Diagnostic `json:"diagnostics,omitempty"` // about the files at its root, unresolved
}

// knownType is what is known of a cluster type before anything of it is built.
type knownType struct {
	whole
	key cache.Key // of whole; zero where something needs a look at its assignments
	// same says that the folder is as the record says, so that its assignments have no rows.
	same bool

	mu       sync.Mutex
	complete bool // whether it has rows all the same, because somebody asked for its content
}

// wholes is the table of the cluster types.
func (as *assignments) wholes() table {
	return as.in.request.Meter.table(cache.Assignment, as.in.request.Platform.Module+" "+as.in.Name)
}

// recall looks up a cluster type. Of one that is the same as in the record nothing is built:
// neither its tuples nor its assignments.
func (as *assignments) recall(s *scope, r *retained, ct int) (same bool) {
	known, of := &as.known[ct], &as.in.Model.ClusterTypes[ct]
	key, ok := as.wholeKey(s, r, ct)
	if !ok {
		return false
	}
	known.key = key
	text, ok := as.wholes().Get(key)
	if !ok || json.Unmarshal(text, &known.whole) != nil || s.record == nil {
		return false
	}
	known.same = known.Digest != "" && slices.ContainsFunc(s.record.ClusterTypes,
		func(e tree.ClusterTypeEntry) bool { return e.Name == of.Name && e.Digest == known.Digest })
	if known.same {
		as.in.request.Meter.count(cache.Assignment, 0, as.in.spans[ct].next-as.in.spans[ct].first)
	}
	return known.same
}

// wholeKey identifies the planned input of a cluster type's folder and record. There is no key
// if errors or quotas concern its assignments, or if a part of the former folder is kept.
func (as *assignments) wholeKey(s *scope, r *retained, ct int) (key cache.Key, ok bool) {
	of, at := &as.in.Model.ClusterTypes[ct], as.in.spans[ct]
	if as.in.Model.Incomplete || !as.in.Reconciled(of) || r.folders[of.Name] != nil || s.lostClusters[of.Name] != nil ||
		slices.ContainsFunc(as.in.Model.Workspaces, func(w model.Workspace) bool { return w.Quota != nil }) {
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
		if a.Failed || as.in.Plan.Failed[i] || content && as.emitter.lacks(a) {
			return key, false
		}
		tuple := &as.in.Plan.Tuples[as.in.Plan.TupleOf[i]]
		h.Key(tuple.Digest).Key(as.targetFacts(a, content)).String(a.Version).String(as.in.Plan.Namespaces[i]).Int(a.Wave)
		for _, names := range [][]string{a.DependsOn, a.Policies, a.SparedBy} {
			hashStrings(h, names)
		}
		specs = as.in.Plan.AppendSpecs(specs[:0], i, model.Digest(tuple.Digest[:]))
		h.Bytes(specs)
	}
	return h.Sum(), true
}

// rememberWhole remembers a cluster type that was built, unless there is something to say
// about one of its assignments.
func (as *assignments) rememberWhole(ct int, digest model.Digest, ds []diag.Diagnostic) {
	if as.known[ct].key == (cache.Key{}) {
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
	text, err := json.Marshal(whole{Digest: digest, Lists: slices.Sorted(maps.Keys(lists.paths)), Diagnostics: ds})
	if err == nil {
		as.wholes().Put(as.known[ct].key, text)
	}
}

// leftOutTuples returns the tuples of the cluster types that are the same, by number, of which
// those that nobody else needs are not resolved, and the lists of all of them.
func (as *assignments) leftOutTuples() (leftOut []bool, lists lists) {
	leftOut, lists = make([]bool, len(as.tuples.all)), newLists()
	for ct := range as.known {
		if !as.known[ct].same {
			continue
		}
		for _, list := range as.known[ct].Lists {
			lists.paths[list] = true
		}
		as.in.request.Meter.count(cache.Tuple, 0, as.unresolved(ct, leftOut))
	}
	return leftOut, lists
}

// unresolved marks the tuples of a cluster type that are not resolved, by number, and counts
// those that were not marked.
func (as *assignments) unresolved(ct int, marks []bool) (count int) {
	for i := as.in.spans[ct].first; i < as.in.spans[ct].next; i++ {
		if n := as.in.Plan.TupleOf[i]; !marks[n] && !as.tuples.all[n].isClaimed() {
			marks[n] = true
			count++
		}
	}
	return count
}

// complete makes the rows of a cluster type of which nothing was built, from what the cache
// has of its assignments.
func (as *assignments) complete(ctx context.Context, s *scope, ct int) error {
	known := &as.known[ct]
	known.mu.Lock()
	defer known.mu.Unlock()
	if !known.same || known.complete {
		return nil
	}
	// They were counted, and are counted once more by what follows.
	as.in.request.Meter.count(cache.Tuple, 0, -as.unresolved(ct, make([]bool, len(as.tuples.all))))
	as.in.request.Meter.count(cache.Assignment, 0, as.in.spans[ct].first-as.in.spans[ct].next)
	if _, err := as.buildType(ctx, s, ct, as.in.Plan.NewComposer()); err != nil {
		return err
	}
	for i := as.in.spans[ct].first; i < as.in.spans[ct].next; i++ {
		if as.rows[i].failed {
			// The content of a source has gone since: nothing else fails now and not before.
			return fmt.Errorf("%s was built, and cannot be built once more: build again", as.in.id(i))
		}
	}
	known.complete = true
	return nil
}
