package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Explanation explains why a deployment target is, or is not, assigned to a cluster type, and the
// origins of its configuration.
type Explanation struct {
	Environment      string `json:"environment"`
	ClusterType      string `json:"clusterType"`
	Cluster          string `json:"cluster,omitempty"`
	DeploymentTarget string `json:"deploymentTarget"` // the full name
	Assigned         bool   `json:"assigned"`

	// These fields are set if it is assigned.
	Assignment *Assignment `json:"assignment,omitempty"`
	Policies   []Place     `json:"policies,omitempty"`
	Values     []Value     `json:"values,omitempty"`
	// ChartValues are the application's values for its chart. The platform's values are below the
	// path in platformValues. ChartValues is set only for a chart.
	ChartValues []Value `json:"chartValues,omitempty"`

	// These fields are set if it is not assigned: the reason, and the places of the policies and
	// of both sides.
	Absence *schedule.Absence `json:"absence,omitempty"`
	Places  []Place           `json:"places,omitempty"`
}

// Place is a named thing with its positions in the files.
type Place struct {
	Kind      string           `json:"kind"`
	Name      string           `json:"name"`
	Positions []model.Position `json:"positions"`
}

// Value is a composed value with its provenance.
type Value struct {
	Path     string      `json:"path"`
	Value    model.Value `json:"value"`
	Secret   bool        `json:"secret,omitempty"` // it is a reference to a secret
	From     []Origin    `json:"from"`
	Replaced []Origin    `json:"replaced"`
}

// Origin is a place that a value comes from.
type Origin struct {
	Kind      compose.OriginKind `json:"kind"`
	Name      string             `json:"name"`
	Layer     *int               `json:"layer,omitempty"` // of a config
	Text      string             `json:"text"`            // the text at that place
	Positions []model.Position   `json:"positions"`
}

// folderOf returns the folder of a cluster type or of a class, by its name. If there is no such
// folder, it returns the folder of the cluster with this name. It returns an error if the cluster
// type has several classes and no folder of its own.
func folderOf(e *engine.Environment, name string) (folder string, cluster *model.Cluster,
	err error) {
	var classes []string
	for i := range e.Model.ClusterTypes {
		switch c := &e.Model.ClusterTypes[i]; {
		case c.Name == name:
			return name, nil, nil
		case c.TypeName() == name:
			classes = append(classes, c.Name)
		}
	}
	if len(classes) > 0 {
		return "", nil, fmt.Errorf("the clusters of %s are of several classes: give one of %s, or the "+
			"name of a cluster", name, strings.Join(classes, ", "))
	}
	if c := e.Model.Cluster(name); c != nil {
		return c.Folder, c, nil
	}
	return name, nil, nil
}

// Explain explains a pair of a deployment target and a cluster type, a class, or a cluster. key,
// if not "", is a path, and Explain explains only the values at or below it. ok is false if the
// environment cannot be read.
//
// Explain returns an error if the environment does not have the cluster type, the deployment
// target or the value. The error suggests a similar name. If errors hide a part of the
// environment, names that do not exist are not an error.
func Explain(ctx context.Context, b *compiler.Build, environment, clusterType, target,
	key string) (x Explanation, ok bool, err error) {
	x = Explanation{Environment: environment, ClusterType: clusterType, DeploymentTarget: target}
	e := find(b, environment)
	if e == nil || e.Model == nil {
		return x, false, nil
	}
	folder, cluster, err := folderOf(e, clusterType)
	if err != nil {
		return x, false, err
	}
	absence, absent := e.Schedule.WhyNot(folder, target)
	if i := slices.IndexFunc(absence.Unknown,
		func(u schedule.Unknown) bool { return u.Kind == "cluster type" }); i >= 0 &&
		len(e.Model.Clusters) > 0 {
		absence.Unknown[i] = neither(e, absence.Unknown[i])
	}
	if err := unknown(&absence); err != nil {
		return x, false, err
	}
	if absent {
		x.Absence = &absence
		x.Places = absencePlaces(e, &absence)
		return x, true, nil
	}
	i := slices.IndexFunc(e.Schedule.Assignments, func(a schedule.Assignment) bool {
		return a.ClusterType.Name == folder && a.Target.FullName == target
	})
	a, err := assignmentOf(ctx, e, i, followersOf(e))
	if err != nil {
		return x, false, err
	}
	x.Assigned, x.Assignment = true, &a
	for _, p := range a.Policies {
		x.Policies = append(x.Policies,
			place(e, "policy", model.Ref{Collection: "schedulingPolicies", Name: p}))
	}
	if path, ok := model.ParsePath(key); ok {
		key = path
	}
	x.Values = []Value{}
	all, err := valuesOn(ctx, e, i, cluster)
	if err != nil {
		return x, false, err
	}
	if cluster != nil {
		x.Cluster = cluster.Name
	}
	for _, v := range all {
		if key == "" || v.Path == key || strings.HasPrefix(v.Path, key+".") {
			x.Values = append(x.Values, v)
		}
	}
	if len(x.Values) == 0 && key != "" && !a.Failed {
		if c := composedFor(e, folder, target, key); c != nil && cluster == nil {
			return x, false, fmt.Errorf("%s has another value of %s on each cluster: kalypso explain "+
				"%s/%s/%s %s", target, key, environment, c.Name, target, key)
		}
		return x, false, noValue(target, key, all)
	}
	if key == "" {
		x.ChartValues = chartValues(e, &e.Schedule.Assignments[i], all)
	}
	return x, true, nil
}

// composedFor returns a cluster of a class that has its own composed value. It returns nil if
// there is no such cluster.
func composedFor(e *engine.Environment, folder, target, key string) *model.Cluster {
	for i := range e.Model.Clusters {
		c := &e.Model.Clusters[i]
		if _, there := c.Composed[target].Lookup(model.Elements(key)[0]); there && c.Folder == folder {
			return c
		}
	}
	return nil
}

// neither changes an unknown name to one of neither a cluster type nor a cluster.
func neither(e *engine.Environment, u schedule.Unknown) schedule.Unknown {
	var names []string
	for i := range e.Model.ClusterTypes {
		names = append(names, e.Model.ClusterTypes[i].TypeName())
	}
	for i := range e.Model.Clusters {
		names = append(names, e.Model.Clusters[i].Name)
	}
	u.Kind += " or cluster"
	if near := spelling.Meant(u.Name, names); near != "" {
		u.Hint = "did you mean " + near + "?"
	} else {
		u.Hint += fmt.Sprintf(", and %d listed clusters, which kalypso get clusters %s names",
			len(e.Model.Clusters), e.Name)
	}
	return u
}

// unknown returns the error about sides that do not exist. It returns nil if all sides exist, or
// may exist.
func unknown(a *schedule.Absence) error {
	if len(a.Unknown) == 0 || a.Uncertain {
		return nil
	}
	var lines []string
	for _, u := range a.Unknown {
		lines = append(lines, u.Message(a.Environment))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// noValue returns the error about a key that an assignment has no value for.
func noValue(target, key string, all []Value) error {
	var paths []string
	for _, v := range all {
		paths = append(paths, v.Path)
	}
	if len(paths) == 0 {
		return fmt.Errorf("%s has no values", target)
	}
	return fmt.Errorf("%s has no value %s; %s", target, key, spelling.DidYouMean(key, paths))
}

func valuesOf(e *engine.Environment, leaves []compose.Leaf) []Value {
	out := []Value{}
	for _, leaf := range leaves {
		out = append(out, Value{
			Path: leaf.Path, Value: compose.Shown(leaf.Path, leaf.Value),
			Secret: leaf.Value.Kind() == model.Secret,
			From:   origins(e, leaf.From), Replaced: origins(e, leaf.Replaced),
		})
	}
	return out
}

// chartValues returns the values of an assignment's chart. It returns nil if it has no chart.
func chartValues(e *engine.Environment, a *schedule.Assignment, platform []Value) []Value {
	h := a.Manifests.Helm
	if h == nil {
		return nil
	}
	out := valuesOf(e, e.ApplicationValues(a.Workload, a.Target).Leaves())
	if h.PlatformValues == "" {
		return out
	}
	for _, v := range platform {
		if !v.Secret {
			v.Path = model.JoinPath(h.PlatformValues, v.Path)
			out = append(out, v)
		}
	}
	return out
}

func origins(e *engine.Environment, of []compose.Origin) []Origin {
	out := []Origin{}
	for _, o := range of {
		item := Origin{Kind: o.Kind, Name: o.Name, Text: o.Text, Positions: positions(e, o.Ref)}
		if o.Ref.Collection == "configs" && o.Kind != compose.FromContract {
			layer := o.Layer
			item.Layer = &layer
		}
		out = append(out, item)
	}
	return out
}

func positions(e *engine.Environment, ref model.Ref) []model.Position {
	return append([]model.Position{}, e.Model.Positions.Of(ref)...)
}

func place(e *engine.Environment, kind string, ref model.Ref) Place {
	return Place{Kind: kind, Name: ref.Name, Positions: positions(e, ref)}
}

func absencePlaces(e *engine.Environment, a *schedule.Absence) []Place {
	out := []Place{}
	for _, w := range e.Model.Workloads {
		for _, t := range w.Targets {
			if t.FullName == a.DeploymentTarget {
				out = append(out,
					Place{Kind: "deployment target", Name: t.FullName,
						Positions: positions(e, w.TargetRef(t.Name))})
			}
		}
	}
	for _, c := range e.Model.ClusterTypes {
		if c.Name == a.ClusterType {
			out = append(out, place(e, "cluster type", c.Ref()))
		}
	}
	var policies []string
	for _, n := range a.Nearest {
		policies = append(policies, n.Policy)
	}
	for _, r := range a.Removals {
		policies = append(append(policies, r.Policy), r.DeniedBy...)
	}
	slices.Sort(policies)
	for _, p := range slices.Compact(policies) {
		out = append(out, place(e, "policy", model.Ref{Collection: "schedulingPolicies", Name: p}))
	}
	return out
}

// ClusterExplanation explains what runs on one cluster, and why.
type ClusterExplanation struct {
	Environment string            `json:"environment"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	ClusterType string            `json:"clusterType"`
	Address     string            `json:"address,omitempty"`
	Inventory   string            `json:"inventory,omitempty"` // the inventory that has it as a row
	Labels      map[string]string `json:"labels"`              // as selectors of clusters see them
	// Folder is the folder that it follows. Pulls is the folder in the environment's tree that
	// its reconciler pulls.
	Folder string `json:"folder"`
	Pulls  string `json:"pulls"`
	// Class are the selectors of clusters that select it, sorted by kind and name.
	Class []Place `json:"class"`
	// Values are the cluster's own values.
	Values      *model.Value        `json:"values,omitempty"`
	Positions   []model.Position    `json:"positions"`
	Assignments []ClusterAssignment `json:"assignments"`
}

// ClusterAssignment is an assignment on a cluster, with its composed values.
type ClusterAssignment struct {
	Assignment
	Values []Value `json:"values"`
}

// ExplainCluster explains a cluster. ok is false if the environment cannot be read, or if errors
// hide the cluster. If there is no such cluster, the error suggests a similar name.
func ExplainCluster(ctx context.Context, b *compiler.Build, environment,
	name string) (x ClusterExplanation, ok bool, err error) {
	e := find(b, environment)
	if e == nil || e.Model == nil {
		return x, false, nil
	}
	c := e.Model.Cluster(name)
	if c == nil {
		if e.Model.Incomplete || e.Model.ClustersIncomplete ||
			e.Model.Invalid[model.Ref{Collection: "clusters", Name: name}] {
			return x, false, nil
		}
		return x, false, noCluster(e, name)
	}
	n := slices.IndexFunc(e.Model.ClusterTypes,
		func(ct model.ClusterType) bool { return ct.Name == c.Folder })
	ct := &e.Model.ClusterTypes[n]
	x = ClusterExplanation{
		Environment: environment, Name: name, Description: c.Description, ClusterType: c.ClusterType,
		Address: c.Address, Inventory: c.Inventory,
		Labels: labels(ct.Labels), Folder: c.Folder, Pulls: c.Folder, Class: classOf(e, ct),
		Values:      masked(c.Values),
		Positions:   positions(e, model.Ref{Collection: "clusters", Name: name}),
		Assignments: []ClusterAssignment{},
	}
	x.Labels = maps.Clone(x.Labels)
	maps.Copy(x.Labels, c.Labels)
	if ct.Entries == model.ClusterEntries {
		x.Pulls = backends.EntryDir(name)
	}
	followers := followersOf(e)
	for i := range e.Schedule.Assignments {
		if e.Schedule.Assignments[i].ClusterType != ct {
			continue
		}
		values, err := valuesOn(ctx, e, i, c)
		if err != nil {
			return x, false, err
		}
		a, err := assignmentOf(ctx, e, i, followers)
		if err != nil {
			return x, false, err
		}
		x.Assignments = append(x.Assignments, ClusterAssignment{a, values})
	}
	return x, true, nil
}

func noCluster(e *engine.Environment, name string) error {
	names := make([]string, len(e.Model.Clusters))
	for i := range e.Model.Clusters {
		names[i] = e.Model.Clusters[i].Name
	}
	return fmt.Errorf("there is no cluster %s in %s; %s", name, e.Name,
		cmp.Or(spelling.DidYouMean(name, names), "it lists none"))
}

// classOf returns the selectors of clusters that select a class.
func classOf(e *engine.Environment, ct *model.ClusterType) []Place {
	out := []Place{}
	for _, s := range e.Model.ClusterSelectors() {
		kind := map[string]string{"configs": "config", "configSchemas": "config schema",
			"schedulingPolicies": "policy"}[s.Of.Collection]
		if s.Of.Path != "" {
			kind += "'s except"
		}
		if ct.Selects(s.Selector, model.SelectorOf(s.Of)) {
			out = append(out, place(e, kind, s.Of.At("clusters")))
		}
	}
	return out
}

// valuesOn returns the composed values of an assignment on a cluster. If c is nil, it returns the
// values that all clusters of the assignment share.
func valuesOn(ctx context.Context, e *engine.Environment, assignment int,
	c *model.Cluster) ([]Value, error) {
	if c == nil {
		g, err := e.Graph(ctx, assignment)
		if err != nil {
			return nil, err
		}
		return valuesOf(e, g.Leaves()), nil
	}
	g, err := e.GraphOn(ctx, assignment, c)
	if err != nil {
		return nil, err
	}
	return onCluster(e, c, valuesOf(e, g.Leaves())), nil
}

// masked returns the own values of a cluster, and masks values that look like secrets. It returns
// nil if values is nil.
func masked(values *model.Value) *model.Value {
	if values == nil {
		return nil
	}
	shown := shownIn("", *values)
	return &shown
}

// shownIn returns a value at a path in the form to show, including the values in it.
func shownIn(path string, v model.Value) model.Value {
	if v.Kind() != model.Struct {
		return compose.Shown(path, v)
	}
	fields := slices.Clone(v.Fields())
	for i, f := range fields {
		fields[i].Value = shownIn(model.JoinPath(path, model.Label(f.Name)), f.Value)
	}
	return model.StructOf(fields...)
}

// onCluster replaces composed values by the cluster's own values.
func onCluster(e *engine.Environment, c *model.Cluster, all []Value) []Value {
	if c.Values == nil {
		return all
	}
	for _, f := range c.Values.Fields() {
		path := model.Label(f.Name)
		ref := model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}
		shown := shownIn(path, f.Value)
		own := Value{Path: path, Value: shown, From: []Origin{{Kind: "value", Name: c.Name,
			Text: shown.String(), Positions: positions(e, ref.At(path))}}, Replaced: []Origin{}}
		n, found := slices.BinarySearchFunc(all, path,
			func(v Value, path string) int { return strings.Compare(v.Path, path) })
		if found {
			own.Replaced = all[n].From
			all[n] = own
			continue
		}
		all = slices.Insert(all, n, own)
	}
	return all
}
