package fleet

import (
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// The labels that tell Fleet which clusters are of a cluster type, unless the
// reconciler says others. The first two are also on every bundle.
const (
	environmentLabel = "kalypso.io/environment"
	clusterTypeLabel = "kalypso.io/cluster-type"
)

// localNamespace is Fleet's workspace of the management cluster itself
// (https://fleet.rancher.io/namespaces).
const localNamespace = "fleet-local"

// options are the fields of #Fleet.
type options struct {
	delivery.Secrets
	Namespace       string
	ClusterSelector *map[string]string
	PollingInterval string
	CorrectDrift    bool
	ServiceAccount  string
}

func optionsOf(s backends.Spec) (options, []diag.Diagnostic) {
	var o options
	if err := s.Decode(&o); err != nil {
		return o, []diag.Diagnostic{diag.New(diag.BadSpec,
			"the reconciler's fields cannot be read: "+err.Error()).At(s.Ref, "")}
	}
	if o.ClusterSelector != nil && len(*o.ClusterSelector) == 0 {
		return o, []diag.Diagnostic{diag.New(diag.BadSpec, "a clusterSelector without labels selects "+
			"every cluster of the Fleet workspace").
			On("fleet.clusterSelector").At(s.Ref.At("fleet.clusterSelector"), "").
			Hinting("name the labels of the cluster type's clusters, or leave clusterSelector out")}
	}
	return o, nil
}

// selector returns what selects the clusters of a cluster type. The environment is
// a part of it: another one may have a cluster type of the same name.
func (o options) selector(environment, clusterType string) *selector {
	if o.ClusterSelector != nil {
		return &selector{*o.ClusterSelector}
	}
	return &selector{map[string]string{environmentLabel: environment, clusterTypeLabel: clusterType}}
}

func (o options) drift() *correctDrift {
	if !o.CorrectDrift {
		return nil
	}
	return &correctDrift{Enabled: true}
}

// local says whether the repository is a path, which to Fleet is one of the pod
// that looks for it.
func local(repo string) bool { return strings.HasPrefix(repo, "file://") }

// pattern says whether Fleet would read a path as a pattern for several
// (path/filepath.Match).
func pattern(path string) bool { return strings.ContainsAny(path, `*?[\`) }
