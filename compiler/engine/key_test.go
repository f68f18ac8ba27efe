package engine

import (
	"context"
	"maps"
	"testing"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/testing/fieldtest"
)

// input is all inputs of one assignment, except its composed values.
type input struct {
	Environment      string
	Settings         model.Settings
	Workspace        model.Workspace
	NamespaceService model.NamespaceService
	Reconciler       model.Reconciler
	Cluster          model.Cluster
	Assignment       schedule.Assignment
	Lock             dependency.Entry
}

func newInput() *input {
	return &input{
		Environment:      "dev",
		NamespaceService: model.NamespaceService{Spec: &model.Value{}},
		Reconciler:       model.Reconciler{Backend: "flux"},
		Assignment: schedule.Assignment{
			Workload:    &model.Workload{},
			Target:      &model.DeploymentTarget{FullName: "shop-test", Render: true},
			ClusterType: &model.ClusterType{Name: "small"},
			Manifests:   model.Manifests{Helm: &model.Helm{}},
		},
	}
}

// noFunctions stands for functions of the assignment. Their digests identify them.
type noFunctions struct{}

func (noFunctions) Apply(_ context.Context, calls []function.Call) ([]function.Outcome, error) {
	return make([]function.Outcome, len(calls)), nil
}

// assignments returns the assignment as the only one of a build.
func (in *input) assignments(t *testing.T) *assignments {
	a := in.Assignment
	in.Workspace.Name, in.NamespaceService.Name = a.Workload.Workspace, a.ClusterType.NamespaceService
	in.Reconciler.Name = a.ClusterType.Reconciler
	in.Lock.Source, _ = dependency.SourceOf(a.Manifests)
	m := &model.Environment{
		Name: in.Environment, Settings: in.Settings,
		ClusterTypes:      []model.ClusterType{*a.ClusterType},
		Clusters:          []model.Cluster{in.Cluster},
		Workspaces:        []model.Workspace{in.Workspace},
		NamespaceServices: []model.NamespaceService{in.NamespaceService},
		Reconcilers:       []model.Reconciler{in.Reconciler},
	}
	for _, c := range model.Collections {
		c.Identify(m, func(model.Ref) model.Digest { return "of a function" })
	}
	a.ClusterType = &m.ClusterTypes[0]
	p := &Inputs{
		Name: in.Environment, Model: m, spans: []span{{0, 1}},
		Schedule: &schedule.Schedule{Assignments: []schedule.Assignment{a}},
		clusters: map[string][]model.Cluster{a.ClusterType.Name: m.Clusters},
		request: &Request{
			Meter: NewMeter(nil, cache.Key{}), Backends: all.Backends(),
			Platform: &source.Platform{Root: t.TempDir()},
			Library:  &dependency.Library{Lock: dependency.NewLock([]dependency.Entry{in.Lock})},
		},
	}
	var err error
	if p.Plan, _, err = compose.NewPlan(t.Context(), m, p.Schedule, noFunctions{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	return &assignments{in: p, emitter: &emitter{in: p}}
}

// notInKeys are the fields that do not affect an emission, or that its key covers in another way.
var notInKeys = map[string]string{
	"Settings.Description":            "no file has it",
	"Settings.After":                  "only promotion reads it",
	"Settings.Rings":                  "only promotion reads them",
	"Settings.MaxRemovals":            "it bounds a build, and changes no file",
	"Settings.RemovedClusters":        "they decide which entries stay, and change none",
	"Workspace.Name":                  "it is the workload's",
	"Workspace.Description":           "no file has it",
	"Workspace.Owners":                "they review what it declares, and change nothing that is built",
	"NamespaceService.Name":           "it is the cluster type's",
	"NamespaceService.Facts":          "of a function the digest of its sources counts",
	"Reconciler.Name":                 "it is the cluster type's",
	"Lock.Source":                     "it is that of the manifests",
	"Assignment.Workload.Targets":     "the assignment's own is Target",
	"Assignment.Workload.Requires":    "the tuple has it, and so the values' digest",
	"Assignment.Workload.Digest":      "it is that of the other fields",
	"Assignment.Target.Version":       "the assignment has it, after pins",
	"Assignment.Target.Manifests":     "the assignment has them, after pins",
	"Assignment.Target.DependsOn":     "the assignment has those that are on its cluster type",
	"Assignment.Target.Requires":      "as of the workload",
	"Assignment.Target.AllowEmpty":    "it silences a diagnostic about policies",
	"Assignment.Target.Digest":        "it is that of the other fields",
	"Assignment.ClusterType.Clusters": "the clusters that it selects have digests",
	"Assignment.ClusterType.Digest":   "it is that of the other fields",
	"Assignment.Failed":               "what has failed has no emission",
	"Assignment.SparedBy":             "only the record has them",
}

// The key of an emission depends on every field of its inputs.
func TestKeys(t *testing.T) {
	fieldtest.Check(t, newInput, func(in *input) cache.Key {
		as := in.assignments(t)
		a := &as.in.Schedule.Assignments[0]
		k := &keys{cache.NewHash(""), as.in.clusterTypeFacts(a.ClusterType), capabilities(a.ClusterType), nil}
		return as.assignmentKey(k, 0, a, "")
	}, notInKeys)
}

// The key of a planned cluster type depends on the same fields, and on the fields of the record.
func TestWholeKey(t *testing.T) {
	without := maps.Clone(notInKeys)
	for _, counts := range []string{"Assignment.SparedBy", "Assignment.Failed", "Lock.Source"} {
		delete(without, counts)
	}
	without["Lock"] = "it counts as in TestKeys, for what is rendered"
	without["Assignment.Target.Render"] = "as Lock"
	without["Workspace.Quota"] = "with quotas there is no such key"
	fieldtest.Check(t, func() *input {
		in := newInput()
		in.Assignment.Target.Render = false
		return in
	}, func(in *input) cache.Key {
		as := in.assignments(t)
		s := &scope{in: as.in}
		key, ok := as.typeKey(s, &retainedOutput{in: s.in, scope: s}, 0)
		if !ok && !in.Assignment.Failed {
			t.Error("the cluster type has no key")
		}
		return key
	}, without)
}
