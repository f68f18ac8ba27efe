package build

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

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
func (p *Planned) indexKey(kind string, ct *model.ClusterType) *cache.Hash {
	h := p.key(kind).String(p.Name).String(ct.Name).String(ct.Description).String(ct.Reconciler).Bytes(p.gitOps())
	if r := p.reconciler(ct); r != nil {
		h.String(r.Backend)
	}
	p.hashClusters(h, ct.Name)
	h.String(string(ct.Entries))
	return h.Bytes(p.Plan.Shared[ct.Name].AppendBinary(nil))
}

// clusterTypeFacts identifies what the emissions of a cluster type's assignments
// are made of that is the same in all of them.
func (p *Planned) clusterTypeFacts(ct *model.ClusterType) cache.Key {
	h := p.key("assignments")
	if r := p.reconciler(ct); r != nil {
		h.String(r.Backend)
	}
	h.String(p.Name).String(ct.Name).String(string(ct.ConfigFormat)).
		String(ct.NamespaceService).String(ct.Reconciler).Bytes(p.gitOps())
	hashLabels(h, ct.Labels)
	p.hashClusters(h, ct.Name)
	return h.Sum()
}

// capabilities identifies what charts find on the clusters of a cluster type.
func capabilities(ct *model.ClusterType) cache.Key {
	h := cache.NewHash("capabilities").String(ct.KubernetesVersion).Int(len(ct.APIVersions))
	for _, api := range ct.APIVersions {
		h.String(api)
	}
	return h.Sum()
}

func hashLabels(h *cache.Hash, labels map[string]string) {
	h.Int(len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		h.String(name).String(labels[name])
	}
}

// hashClusters adds what the clusters of a cluster type say.
func (p *Planned) hashClusters(h *cache.Hash, clusterType string) {
	clusters := p.clusters[clusterType]
	h.Int(len(clusters))
	for i := range clusters {
		h.String(string(clusters[i].Digest))
	}
}

// assignmentKey identifies all that the emission of an assignment is made of;
// values is the digest of its composed values.
func (as *assignments) assignmentKey(k *keys, i int, a *schedule.Assignment, values model.Digest) cache.Key {
	content := as.needsContent(a)
	h := k.hash.Reset("assignment").Key(k.clusterType).Key(as.targetFacts(a, content))
	if content && a.Manifests.Helm != nil {
		h.Key(k.capabilities)
	}
	h.String(a.Version).String(as.Plan.Namespaces[i])
	h.Int(a.Wave).Int(len(a.DependsOn))
	for _, target := range a.DependsOn {
		h.String(target)
	}
	hashStrings(h, a.Policies) // which workspaces bound
	k.specs = as.Plan.AppendSpecs(k.specs[:0], i, values)
	return h.String(string(values)).Bytes(k.specs).Sum()
}

// targetFacts identifies what the emissions of a deployment target's assignments
// are made of that is the same on all cluster types, but for those of pins. What
// kalypso.lock says counts only where the content of the source is needed.
func (as *assignments) targetFacts(a *schedule.Assignment, content bool) cache.Key {
	known, _ := as.targets.Load(a.Target)
	others, _ := known.(*deployed)
	for d := others; d != nil; d = d.other {
		if d.content == content && d.manifests == a.Manifests {
			return d.facts
		}
	}
	h := cache.NewHash("deployment target")
	h.String(a.Workload.Name).String(a.Workload.Workspace).String(as.workspaceDigest(a.Workload)).String(a.Workload.Application).String(a.Workload.Registration)
	h.String(a.Target.Name).String(a.Target.FullName)
	hashLabels(h, a.Target.Labels)
	manifests, _ := json.Marshal(a.Manifests) // of strings and Values, which always have JSON
	h.Bytes(manifests)
	if a.Manifests.Helm != nil {
		h.Bytes(model.Encode([]model.ChartValues{a.Workload.Chart, a.Target.Chart}))
	}
	h.String(strconv.FormatBool(a.Target.Render)).String(strconv.FormatBool(a.Target.RestartOnConfigChange))
	if source, ok := dependency.SourceOf(a.Manifests); ok && content {
		entry, _ := as.request.Library.Lock.Find(source)
		h.String(string(entry.Content)).String(entry.Revision)
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
