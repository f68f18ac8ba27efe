package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// ClusterExplanation says what runs on one cluster, and why.
type ClusterExplanation struct {
	Environment string            `json:"environment"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	ClusterType string            `json:"clusterType"`
	Address     string            `json:"address,omitempty"`
	Inventory   string            `json:"inventory,omitempty"` // that has it as a row
	Labels      map[string]string `json:"labels"`              // as selectors of clusters see them
	// Folder is what it follows, and Pulls what its reconciler pulls, in the environment's tree.
	Folder string `json:"folder"`
	Pulls  string `json:"pulls"`
	// Class are the selectors of clusters that hold for it, sorted by kind and name.
	Class []Place `json:"class"`
	// Values are the cluster's own.
	Values      *model.Value        `json:"values,omitempty"`
	Positions   []model.Position    `json:"positions"`
	Assignments []ClusterAssignment `json:"assignments"`
}

// ClusterAssignment is what is assigned to a cluster, with its composed values.
type ClusterAssignment struct {
	Assignment
	Values []Value `json:"values"`
}

// ExplainCluster explains a cluster. ok is false where nothing of the environment can be
// read, or errors hide the cluster. The error says that there is no such cluster, and what
// may have been meant.
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
	n := slices.IndexFunc(e.Model.ClusterTypes, func(ct model.ClusterType) bool { return ct.Name == c.Folder })
	ct := &e.Model.ClusterTypes[n]
	x = ClusterExplanation{
		Environment: environment, Name: name, Description: c.Description, ClusterType: c.ClusterType,
		Address: c.Address, Inventory: c.Inventory,
		Labels: labels(ct.Labels), Folder: c.Folder, Pulls: c.Folder, Class: classOf(e, ct), Values: masked(c.Values),
		Positions: positions(e, model.Ref{Collection: "clusters", Name: name}), Assignments: []ClusterAssignment{},
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
		x.Assignments = append(x.Assignments, ClusterAssignment{assignmentOf(e, i, followers), values})
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

// classOf returns the selectors of clusters that hold for a class.
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

// valuesOn returns the composed values of an assignment, with what they are on a cluster; nil
// for what all its clusters have in common.
func valuesOn(ctx context.Context, e *engine.Environment, assignment int, c *model.Cluster) ([]Value, error) {
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

// masked returns the own values of a cluster, of which what looks like a secret is masked; nil
// for none.
func masked(values *model.Value) *model.Value {
	if values == nil {
		return nil
	}
	shown := shownIn("", *values)
	return &shown
}

// shownIn returns what is shown of a value at a path, and of what is in it.
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

// onCluster puts the cluster's own values in the place of composed ones.
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
