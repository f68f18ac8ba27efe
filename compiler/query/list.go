// Package query answers questions about a compiled platform. It lists the entities and
// assignments, explains assignments, and lists the keys that the contracts require. Its types are
// the JSON of `kalypso get`, `explain` and `requirements`. Lists are never null.
//
// For example, [Explain] gets a build of examples/hello-world, and the arguments "dev", "drone",
// "hello-world-functional-test" and "LOG_LEVEL". The Explanation is Assigned, and has one Value:
// "warn" at the path LOG_LEVEL. It is From the default of config edge, in layer 10. The default of
// config everywhere, in layer 0, is in Replaced.
package query

import (
	"context"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Environment is a stage of the platform.
type Environment struct {
	Name         string   `json:"name"`
	Description  string   `json:"description,omitempty"`
	After        []string `json:"after"`
	ClusterTypes int      `json:"clusterTypes"`
	Assignments  int      `json:"assignments"`
	// Readable is false if errors hide the whole environment.
	Readable bool `json:"readable"`
	Position int  `json:"-"` // in the order of promotion, from 1
}

// Environments lists the environments, in the order of promotion.
func Environments(b *compiler.Build) []Environment {
	out := []Environment{}
	for i, e := range InOrder(b) {
		item := Environment{Name: e.Name, After: []string{}, Readable: e.Model != nil, Position: i + 1}
		if e.Model != nil {
			item.Description = e.Model.Description
			item.After = append(item.After, e.Model.After...)
			item.ClusterTypes = len(e.Model.ClusterTypes)
			item.Assignments = len(e.Schedule.Assignments)
		}
		out = append(out, item)
	}
	return out
}

// Workload is an application or service, with its deployment targets in one environment.
type Workload struct {
	Environment       string            `json:"environment"`
	Name              string            `json:"name"`
	Description       string            `json:"description,omitempty"`
	Workspace         string            `json:"workspace"`
	Application       string            `json:"application"`
	Labels            map[string]string `json:"labels"`
	DeploymentTargets []string          `json:"deploymentTargets"` // full names
	// listed clusters that any of them is assigned to
	Clusters int `json:"clusters"`
}

// Workloads lists the workloads, by environment and name.
func Workloads(b *compiler.Build) []Workload {
	out := []Workload{}
	for e := range readable(b) {
		followers := followersOf(e)
		clusters := map[string]int{}    // by workload
		counted := map[[2]string]bool{} // workloads and folders
		for i := range e.Schedule.Assignments {
			a := &e.Schedule.Assignments[i]
			if on := [2]string{a.Workload.Name, a.ClusterType.Name}; !counted[on] {
				counted[on] = true
				clusters[a.Workload.Name] += followers[a.ClusterType.Name]
			}
		}
		for _, w := range e.Model.Workloads {
			if len(w.Targets) == 0 {
				continue
			}
			item := Workload{
				Environment: e.Name, Name: w.Name, Description: w.Description, Workspace: w.Workspace,
				Application: w.Application,
				Labels:      labels(w.Labels), Clusters: clusters[w.Name],
			}
			for _, t := range w.Targets {
				item.DeploymentTargets = append(item.DeploymentTargets, t.FullName)
			}
			out = append(out, item)
		}
	}
	return out
}

// DeploymentTarget is one variant of a workload in one environment.
type DeploymentTarget struct {
	Environment      string            `json:"environment"`
	DeploymentTarget string            `json:"deploymentTarget"` // the full name
	Name             string            `json:"name"`             // the short one
	Workload         string            `json:"workload"`
	Workspace        string            `json:"workspace"`
	Labels           map[string]string `json:"labels"`
	Version          string            `json:"version,omitempty"`
	// VersionFrom is the source of a derived Version; "" if the platform names it.
	VersionFrom  model.VersionSource `json:"versionFrom,omitempty"`
	Manifests    model.Manifests     `json:"manifests"`
	Render       bool                `json:"render,omitempty"` // the build renders the manifests
	DependsOn    []string            `json:"dependsOn"`
	ClusterTypes []string            `json:"clusterTypes"` // the folders that it is assigned to
	Clusters     int                 `json:"clusters"`     // listed clusters that it is assigned to
}

// DeploymentTargets lists the deployment targets, by environment, workload and name.
func DeploymentTargets(b *compiler.Build) []DeploymentTarget {
	out := []DeploymentTarget{}
	for e := range readable(b) {
		on, clusters, followers := map[string][]string{}, map[string]int{}, followersOf(e)
		for _, a := range e.Schedule.Assignments {
			on[a.Target.FullName] = append(on[a.Target.FullName], a.ClusterType.Name)
			clusters[a.Target.FullName] += followers[a.ClusterType.Name]
		}
		for i := range e.Model.Workloads {
			w := &e.Model.Workloads[i]
			for j := range w.Targets {
				t := &w.Targets[j]
				version, from := t.Version, model.VersionSource("")
				if version == "" {
					version, from = t.Manifests.Version()
				}
				out = append(out, DeploymentTarget{
					Environment: e.Name, DeploymentTarget: t.FullName, Name: t.Name, Workload: w.Name,
					Workspace: w.Workspace,
					Labels:    labels(t.Labels), Version: version, VersionFrom: from,
					Manifests:    manifests(e, w, t),
					Render:       t.Render,
					DependsOn:    append([]string{}, t.DependsOn...),
					ClusterTypes: append([]string{}, on[t.FullName]...),
					Clusters:     clusters[t.FullName],
				})
			}
		}
	}
	return out
}

// manifests returns the manifests of a deployment target, with the application's values for its
// chart.
func manifests(e *engine.Environment, w *model.Workload,
	t *model.DeploymentTarget) model.Manifests {
	m := t.Manifests
	if m.Helm == nil {
		return m
	}
	helm := *m.Helm
	if values := e.ApplicationValues(w, t).Values; len(values.Fields()) > 0 {
		helm.Values = &values
	}
	m.Helm = &helm
	return m
}

// Assignment is one deployment target on one cluster type.
type Assignment struct {
	Environment string `json:"environment"`
	// ClusterType is the name of the folder of the cluster type, or of a class of it.
	ClusterType string `json:"clusterType"`
	Cluster     string `json:"cluster,omitempty"` // if clusters are listed one by one
	// listed clusters that follow the folder, or 1 for Cluster
	Clusters         int    `json:"clusters"`
	DeploymentTarget string `json:"deploymentTarget"` // the full name
	Workload         string `json:"workload"`
	Workspace        string `json:"workspace"`
	Application      string `json:"application"`
	Namespace        string `json:"namespace"`
	Version          string `json:"version,omitempty"`
	// VersionFrom is the source of a derived Version; "" if the platform names it.
	VersionFrom model.VersionSource `json:"versionFrom,omitempty"`
	Policies    []string            `json:"policies"`
	Reconciler  string              `json:"reconciler"`
	Render      bool                `json:"render,omitempty"` // the build renders the manifests
	DependsOn   []string            `json:"dependsOn"`
	// Configuration is the digest of the composed values, which is their version.
	Configuration model.Digest `json:"configuration,omitempty"`
	// TargetLabels and ClusterTypeLabels are the labels of the deployment target and of the
	// cluster type. A selector of assignments sees both.
	TargetLabels      map[string]string `json:"-"`
	ClusterTypeLabels map[string]string `json:"-"`
	// Failed reports whether the assignment has errors, so that it is not built.
	Failed bool `json:"failed"`
}

// Assignments lists the assignments, by environment, cluster type and full name.
// The error is about reading the cache.
func Assignments(ctx context.Context, b *compiler.Build) ([]Assignment, error) {
	out := []Assignment{}
	for e := range readable(b) {
		followers := followersOf(e)
		for i := range e.Schedule.Assignments {
			a, err := assignmentOf(ctx, e, i, followers)
			if err != nil {
				return nil, err
			}
			out = append(out, a)
		}
	}
	return out, nil
}

// ClusterAssignments lists the assignments once for each cluster that follows their folder, by
// environment, cluster and full name.
func ClusterAssignments(ctx context.Context, b *compiler.Build) ([]Assignment, error) {
	out := []Assignment{}
	for e := range readable(b) {
		of := map[string][]Assignment{}
		for i := range e.Schedule.Assignments {
			a, err := assignmentOf(ctx, e, i, nil)
			if err != nil {
				return nil, err
			}
			of[a.ClusterType] = append(of[a.ClusterType], a)
		}
		for i := range e.Model.Clusters {
			for _, a := range of[e.Model.Clusters[i].Folder] {
				a.Cluster, a.Clusters = e.Model.Clusters[i].Name, 1
				out = append(out, a)
			}
		}
	}
	return out, nil
}

// followersOf counts the listed clusters that follow each folder, of a cluster type or of a
// class.
func followersOf(e *engine.Environment) map[string]int {
	out := map[string]int{}
	for i := range e.Model.Clusters {
		out[e.Model.Clusters[i].Folder]++
	}
	return out
}

// assignmentOf returns an assignment, with the number of clusters that follow its folder.
func assignmentOf(ctx context.Context, e *engine.Environment, i int,
	followers map[string]int) (item Assignment, err error) {
	a := &e.Schedule.Assignments[i]
	version, from := e.Version(i)
	item = Assignment{
		Environment: e.Name, ClusterType: a.ClusterType.Name, DeploymentTarget: a.Target.FullName,
		Clusters: followers[a.ClusterType.Name],
		Workload: a.Workload.Name, Workspace: a.Workload.Workspace, Application: a.Workload.Application,
		Namespace: e.Plan.Namespaces[i], Version: version, VersionFrom: from,
		Policies:   append([]string{}, a.Policies...),
		Reconciler: a.ClusterType.Reconciler,
		Render:     a.Target.Render, DependsOn: append([]string{}, a.DependsOn...), Failed: e.Failed(i),
		TargetLabels: a.Target.Labels, ClusterTypeLabels: a.ClusterType.Labels,
	}
	if !item.Failed {
		item.Configuration, err = e.Configuration(ctx, i)
	}
	return item, err
}

// Config is a container of platform values.
type Config struct {
	Environment string `json:"environment"`
	Name        string `json:"name"`
	Layer       int    `json:"layer"`
	Match       string `json:"match"`
	// the selector of single clusters, as CUE; "" for all
	Clusters    string   `json:"clusters,omitempty"`
	Keys        []string `json:"keys"` // the known paths of its values
	Assignments int      `json:"assignments"`
	Failed      bool     `json:"failed"` // it has errors
}

// Configs lists the configs, by environment and name.
func Configs(b *compiler.Build) []Config {
	out := []Config{}
	for e := range readable(b) {
		for i, c := range e.Model.Configs {
			item := Config{Environment: e.Name, Name: c.Name, Layer: c.Layer, Match: c.Match.String(),
				Clusters: optionalSelector(c.Clusters), Keys: []string{}, Assignments: e.Plan.Matches[i],
				Failed: c.Invalid}
			for _, t := range []model.Tree{c.Values, c.Defaults, c.Overrides} {
				keys("", t, &item.Keys)
			}
			slices.Sort(item.Keys)
			item.Keys = slices.Compact(item.Keys)
			out = append(out, item)
		}
	}
	return out
}

func keys(path string, t model.Tree, out *[]string) {
	if t.Kind != model.StructTree {
		if path != "" && t.Kind != model.Absent {
			*out = append(*out, path)
		}
		return
	}
	for _, f := range t.Fields {
		keys(model.JoinPath(path, model.Label(f.Name)), f.Tree, out)
	}
}

// InOrder returns the environments of a build in the order of promotion. It sorts them by the
// longest chain of environments that they are promoted from, and then by name. Environments
// outside of the build count in the chains. If an environment waits for itself, InOrder breaks
// the cycle at some point.
func InOrder(b *compiler.Build) []*engine.Environment {
	after := map[string][]string{}
	for _, d := range b.Declarations {
		after[d.Name] = d.After
	}
	stages := map[string]int{}
	var stage func(name string) int
	stage = func(name string) int {
		if n, known := stages[name]; known {
			return n
		}
		stages[name] = 0
		n := 0
		for _, before := range after[name] {
			n = max(n, stage(before)+1)
		}
		stages[name] = n
		return n
	}
	out := slices.Clone(b.Environments) // by name
	slices.SortStableFunc(out,
		func(x, y *engine.Environment) int { return stage(x.Name) - stage(y.Name) })
	return out
}

// readable iterates over the environments that can be read, in the order of promotion.
func readable(b *compiler.Build) func(func(*engine.Environment) bool) {
	return func(yield func(*engine.Environment) bool) {
		for _, e := range InOrder(b) {
			if e.Model != nil && !yield(e) {
				return
			}
		}
	}
}

func labels(of map[string]string) map[string]string {
	if of == nil {
		return map[string]string{}
	}
	return of
}

// find returns an environment of the build. It returns nil if the build does not have it.
func find(b *compiler.Build, environment string) *engine.Environment {
	i := slices.IndexFunc(b.Environments,
		func(e *engine.Environment) bool { return e.Name == environment })
	if i < 0 {
		return nil
	}
	return b.Environments[i]
}

// Parse splits an id of the form ENV/CLUSTER-TYPE/TARGET. ok is false if id has another form.
func Parse(id string) (environment, clusterType, target string, ok bool) {
	parts := strings.Split(id, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}
