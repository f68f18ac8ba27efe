package engine

import (
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
)

// keys makes the keys of a cluster type's assignments, one after the other.
type keys struct {
	hash        *cache.Hash
	clusterType cache.Key // what all of them share
	// capabilities is what the charts among them that are rendered share.
	capabilities cache.Key
	specs        []byte
}

// indexKey begins the key of something that is made of a cluster type.
func (p *Inputs) indexKey(kind string, ct *model.ClusterType) *cache.Hash {
	return p.hashType(p.key(kind), ct).Bytes(p.Plan.Shared[ct.Name].AppendBinary(nil))
}

// clusterTypeFacts identifies what the emissions of a cluster type's assignments
// are made of that is the same in all of them.
func (p *Inputs) clusterTypeFacts(ct *model.ClusterType) cache.Key {
	return p.hashType(p.key("assignments"), ct).Sum()
}

// hashType adds the environment, and a cluster type with its reconciler and its clusters: all
// their fields, so that a new field counts. TestKeys lists the exceptions.
func (p *Inputs) hashType(h *cache.Hash, ct *model.ClusterType) *cache.Hash {
	e, of := p.Model.Settings, *ct
	e.Description, e.After, e.Rings, e.MaxRemovals, e.RemovedClusters = "", nil, nil, "", nil
	of.KubernetesVersion, of.APIVersions, of.Clusters, of.Digest = "", nil, nil, ""
	h.String(p.Name).Bytes(model.Encode(e)).Bytes(model.Encode(of)).Bytes(model.Encode(p.reconciler(ct)))
	p.hashClusters(h, ct.Name)
	return h
}

// capabilities identifies what charts find on the clusters of a cluster type.
func capabilities(ct *model.ClusterType) cache.Key {
	return hashStrings(cache.NewHash("capabilities").String(ct.KubernetesVersion), ct.APIVersions).Sum()
}

// hashClusters adds what the clusters of a cluster type say.
func (p *Inputs) hashClusters(h *cache.Hash, clusterType string) {
	clusters := p.clusters[clusterType]
	h.Int(len(clusters))
	for i := range clusters {
		h.String(string(clusters[i].Digest))
	}
}

// assignmentKey identifies all that the emission of an assignment is made of;
// values is the digest of its composed values.
func (as *assignments) assignmentKey(k *keys, i int, a *schedule.Assignment, values model.Digest) cache.Key {
	content := as.in.needsContent(a)
	h := k.hash.Reset("assignment").Key(k.clusterType).Key(as.targetFacts(a, content))
	if content && a.Manifests.Helm != nil {
		h.Key(k.capabilities)
	}
	h.String(a.Version).String(as.in.Plan.Namespaces[i]).Int(a.Wave)
	hashStrings(hashStrings(h, a.DependsOn), a.Policies) // which workspaces bound
	k.specs = as.in.Plan.AppendSpecs(k.specs[:0], i, values)
	return h.String(string(values)).Bytes(k.specs).Sum()
}

// targetFacts identifies the input that a deployment target's assignments share on all cluster
// types: the workload and the target with all their fields. TestKeys lists the exceptions.
// Pins are not part of it, and the lock's entry counts only if the content of the source is
// needed.
func (as *assignments) targetFacts(a *schedule.Assignment, content bool) cache.Key {
	known, _ := as.targets.Load(a.Target)
	others, _ := known.(*deployed)
	for d := others; d != nil; d = d.other {
		if d.content == content && d.manifests == a.Manifests {
			return d.facts
		}
	}
	w, t := *a.Workload, *a.Target
	w.Targets, w.Requires, w.Digest = nil, nil, ""
	t.Version, t.Manifests, t.Requires, t.AllowEmpty, t.DependsOn, t.Digest = "", a.Manifests, nil, false, nil, ""
	if a.Manifests.Helm == nil {
		w.Chart, t.Chart = model.ChartValues{}, model.ChartValues{}
	}
	h := cache.NewHash("deployment target").Bytes(model.Encode(w)).Bytes(model.Encode(t)).
		String(as.in.workspaceDigest(a.Workload))
	if source, ok := dependency.SourceOf(a.Manifests); ok && content {
		entry, _ := as.in.request.Library.Lock.Find(source)
		h.Bytes(model.Encode(entry))
	}
	d := &deployed{a.Manifests, content, h.Sum(), others}
	as.targets.Store(a.Target, d)
	return d.facts
}

// deployed is what a deployment target deploys; the manifests are pointers that the schedule
// shares.
type deployed struct {
	manifests model.Manifests
	content   bool      // whether that of the source is needed
	facts     cache.Key // of both and the target
	other     *deployed // what it deploys elsewhere; nil for nothing
}
