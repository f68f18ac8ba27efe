package argocd

import (
	"encoding/json"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// options are the fields of #ArgoCD.
type options struct {
	Project     string
	Namespace   string
	Destination *destination
	Clusters    string // "inventory", or "" for Destination
	SyncPolicy  struct {
		Automated automationOption
		Retry     *retry
	}
	SyncOptions       []string
	IgnoreDifferences []ignoreDifference
}

// automationOption is an automation, or false if syncs are not automatic.
type automationOption struct{ *automation }

// UnmarshalJSON reads false or the fields of an automation.
func (a *automationOption) UnmarshalJSON(b []byte) error {
	if string(b) == "false" {
		a.automation = nil
		return nil
	}
	return json.Unmarshal(b, &a.automation)
}

func optionsOf(s backends.Spec) (options, []diag.Diagnostic) {
	var o options
	if ds := s.Fields(&o); diag.Errors(ds) {
		return o, ds
	}
	if d := o.Destination; d != nil && (d.Server == "") == (d.Name == "") {
		return o, []diag.Diagnostic{diag.New(diag.BadSpec, "a destination has either a server or a name").
			On("argocd.destination").At(s.Ref.At("argocd.destination"), "")}
	}
	if o.Destination != nil && o.Clusters != "" {
		return o, []diag.Diagnostic{diag.New(diag.BadSpec,
			"the manifests go either to a destination or to clusters").
			On("argocd.clusters").At(s.Ref.At("argocd.clusters"), "").At(s.Ref.At("argocd.destination"),
			"").Hinting("keep one of them")}
	}
	return o, nil
}

func (o options) destination() destination {
	if o.Destination == nil {
		return destination{Server: inCluster}
	}
	return *o.Destination
}

// eachCluster reports whether the manifests go to each cluster of the cluster type.
func (o options) eachCluster() bool { return o.Clusters != "" }

// remote reports whether the manifests go elsewhere than Argo CD's own objects.
func (o options) remote() bool { return o.eachCluster() || o.destination().remote() }

// again retries a failed sync, always with the newest revision. Argo CD's own default gives up
// after five attempts, and then waits for a commit.
func again(limit int) *retry {
	return &retry{Limit: &limit, Refresh: true,
		Backoff: &backoff{Duration: "5s", Factor: 2, MaxDuration: "3m"}}
}

// retry returns how Argo CD retries a failed sync. It retries for an hour, because the sync may
// start before its namespace or the definitions of its objects exist. The retries end, because Argo
// CD does not delete an Application before the last attempt (processAppOperationQueueItem in
// controller/appcontroller.go).
func (o options) retry() *retry {
	if given := o.SyncPolicy.Retry; given != nil {
		return given
	}
	return again(24)
}

// workloadSync returns how workloads are synced; nil for Argo CD's defaults.
func (o options) workloadSync() *syncPolicy {
	p := &syncPolicy{Automated: o.SyncPolicy.Automated.automation, SyncOptions: o.SyncOptions,
		Retry: o.SyncPolicy.Retry}
	if p.Automated != nil {
		p.Retry = o.retry()
	}
	if p.Automated == nil && len(p.SyncOptions) == 0 && p.Retry == nil {
		return nil
	}
	return p
}

// folderSync returns how folders are synced. It is always automated: syncs by
// hand are for workloads.
func (o options) folderSync() *syncPolicy {
	p := &syncPolicy{Automated: &automation{Prune: true, SelfHeal: true}, Retry: o.retry()}
	if given := o.SyncPolicy.Automated.automation; given != nil {
		p.Automated.Prune, p.Automated.SelfHeal = given.Prune, given.SelfHeal
	}
	return p
}

// syncOf returns how Argo CD syncs a folder. A folder with the workload itself is synced as
// workloads are, which may be by hand.
func (o options) syncOf(f indexInput) *syncPolicy {
	if f.Rendered == nil {
		return o.folderSync()
	}
	return &syncPolicy{Automated: o.SyncPolicy.Automated.automation,
		SyncOptions: f.Rendered.SyncOptions, Retry: o.retry()}
}

// rootSync returns how Argo CD syncs the cluster type's folder. It differs from the sync of other
// folders in two ways. Argo CD retries it for ever, because it fails while an Application that
// others depend on is degraded. The folder may also become empty, when the last assignment goes.
func (o options) rootSync() *syncPolicy {
	p := o.folderSync()
	if o.SyncPolicy.Retry == nil {
		p.Retry = again(-1)
	}
	if p.Automated.Prune {
		yes := true
		p.Automated.AllowEmpty = &yes
	}
	return p
}
