package engine

import (
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// clusterTypeFacts identifies the inputs that the emissions of all assignments of a cluster type
// share.
func (p *Inputs) clusterTypeFacts(ct *model.ClusterType) cache.Key {
	return p.hashType(p.key("assignments"), ct).Sum()
}

// hashType adds the environment and a cluster type with its reconciler and its clusters. It adds
// all their fields, so that a new field counts. TestKeys lists the exceptions.
func (p *Inputs) hashType(h *cache.Hash, ct *model.ClusterType) *cache.Hash {
	e, of := p.Model.Settings, *ct
	e.Description, e.After, e.Rings, e.MaxRemovals, e.RemovedClusters = "", nil, nil, "", nil
	of.KubernetesVersion, of.APIVersions, of.Clusters, of.Digest = "", nil, nil, ""
	h.String(p.Name).Bytes(model.Encode(e)).Bytes(model.Encode(of)).Bytes(
		model.Encode(p.reconciler(ct)))
	// Add the declarations of the type's clusters.
	clusters := p.clusters[ct.Name]
	h.Int(len(clusters))
	for i := range clusters {
		h.String(string(clusters[i].Digest))
	}
	return h
}

// capabilities identifies the Kubernetes version and the APIs that charts see on a cluster type.
func capabilities(ct *model.ClusterType) cache.Key {
	return hashStrings(cache.NewHash("capabilities").String(ct.KubernetesVersion),
		ct.APIVersions).Sum()
}

// key begins the key of a result in the cache. It adds the inputs that all results share: the
// compiler's identity and its settings.
func (p *Inputs) key(kind string) *cache.Hash { return p.begin(cache.NewHash(""), kind) }

// begin is key with an existing Hash, which it resets.
func (p *Inputs) begin(h *cache.Hash, kind string) *cache.Hash {
	h.Reset(kind).Key(p.request.Meter.identity)
	if p.Model.PlaintextFails {
		h.String("plaintext fails")
	}
	return h
}

// strict turns warnings about plaintext secrets into errors if the environment requires that. It
// changes ds in place.
func (p *Inputs) strict(ds []diag.Diagnostic) []diag.Diagnostic {
	for i := range ds {
		if p.Model.PlaintextFails && ds[i].Code == diag.Plaintext {
			ds[i].Severity = diag.Error
		}
	}
	return ds
}

// workspaceDigest identifies the bounds of a workload. It returns "" if its workspace has errors.
func (p *Inputs) workspaceDigest(w *model.Workload) string {
	if of, _ := p.Model.WorkspaceOf(w); of != nil {
		return string(of.Digest)
	}
	return ""
}

// indexKey begins the key of a result that depends on a whole cluster type.
func (p *Inputs) indexKey(kind string, ct *model.ClusterType) *cache.Hash {
	return p.hashType(p.key(kind), ct).Bytes(p.Plan.Shared[ct.Name].AppendBinary(nil))
}
