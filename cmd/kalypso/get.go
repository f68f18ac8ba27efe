package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	klabels "k8s.io/apimachinery/pkg/labels"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/compiler/query/tables"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

func newGet(g inspector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List what the platform has",
		Long: `get lists entities of the platform, and the assignments that the scheduling
policies make of them, environment by environment in the order of promotion. What is
wrong with the platform is printed on stderr; the exit code is then 3, and the list
holds what can be known.`,
		Example: `  kalypso get assignments --workload shop -l region=west
  kalypso get assignments prod --state failed -o name
  kalypso get dt -o wide`,
		Args: nothingCalled,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, l := range listings() {
		cmd.AddCommand(l.command(g))
	}
	return cmd
}

// nothingCalled refuses arguments of a command that only has others below it.
func nothingCalled(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	hint := "kinds are: " + strings.Join(names, ", ")
	if near := spelling.Meant(args[0], names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return usagef("unknown kind %q to %s; %s", args[0], cmd.Name(), hint)
}

// lister is a list of any type.
type lister interface {
	command(inspector) *cobra.Command
	describe(inspector) *cobra.Command
}

// listings returns the lists of each collection, and of the assignments that the compiler makes
// from them.
func listings() []lister {
	workspaces := newListing(tables.Workspaces(), "ws", "the workspaces",
		func(w query.Workspace) facets { return facets{environment: w.Environment, id: w.Name} })
	workspaces.extend = addCodeOwners
	targets := newListing(tables.DeploymentTargets(), "dt", "the deployment targets",
		func(t query.DeploymentTarget) facets {
			return facets{environment: t.Environment, id: t.DeploymentTarget,
				workloads:    []string{t.Workload},
				clusterTypes: t.ClusterTypes, labels: []map[string]string{t.Labels}}
		}, byLabels, byWorkload, byClusterType)
	targets.ref = func(t query.DeploymentTarget) model.Ref {
		return model.Ref{Collection: "workloads", Name: t.Workload,
			Path: "deploymentTargets." + model.Label(t.Name)}
	}
	assignments := newListing(tables.Assignments(), "as", "what is assigned where", assignmentFacets,
		byLabels, byWorkload, byClusterType, byCluster, byState)
	assignments.byCluster = newListing(tables.ClusterAssignments(), "", "",
		func(a query.Assignment) facets {
			f := assignmentFacets(a)
			f.id, f.cluster = a.Environment+"/"+a.Cluster+"/"+a.DeploymentTarget, a.Environment+"/"+a.Cluster
			return f
		})
	return []lister{
		newListing(tables.Environments(), "env", "the environments",
			func(e query.Environment) facets { return facets{environment: e.Name, id: e.Name} }),
		newListing(tables.ClusterTypes(), "ct", "the cluster types", func(c query.ClusterType) facets {
			return facets{environment: c.Environment, id: c.Name, labels: []map[string]string{c.Labels}}
		}, byLabels),
		newListing(tables.Clusters(), "cl", "the clusters", func(c query.Cluster) facets {
			return facets{environment: c.Environment, id: c.Name, clusterTypes: []string{c.Folder},
				workloads: c.Workloads, labels: []map[string]string{c.Labels}}
		}, byLabels, byWorkload, byClusterType),
		newListing(tables.Inventories(), "inv", "the inventories",
			func(i query.Inventory) facets { return facets{environment: i.Environment, id: i.Name} }),
		newListing(tables.NamespaceServices(), "ns", "the namespace services",
			func(s query.NamespaceService) facets {
				return facets{environment: s.Environment, id: s.Name, clusterTypes: s.ClusterTypes}
			}, byClusterType),
		newListing(tables.Reconcilers(), "rec", "the reconcilers", func(r query.Reconciler) facets {
			return facets{environment: r.Environment, id: r.Name, clusterTypes: r.ClusterTypes}
		}, byClusterType),
		workspaces,
		newListing(tables.Workloads(), "wl", "the workloads with deployment targets",
			func(w query.Workload) facets {
				return facets{environment: w.Environment, id: w.Name, workloads: []string{w.Name},
					labels: []map[string]string{w.Labels}}
			}, byLabels, byWorkload),
		targets,
		newListing(tables.Registrations(), "reg",
			"the registrations, by which other teams bring workloads and configs",
			func(r query.Registration) facets { return facets{environment: r.Environment, id: r.Name} }),
		newListing(tables.SchedulingPolicies(), "sp", "the scheduling policies",
			func(p query.SchedulingPolicy) facets { return facets{environment: p.Environment, id: p.Name} }),
		assignments,
		newListing(tables.Configs(), "cfg", "the configs", func(c query.Config) facets {
			return facets{environment: c.Environment, id: c.Name, failed: c.Failed}
		}, byState),
		newListing(tables.ConfigSchemas(), "cs", "the config schemas", func(s query.ConfigSchema) facets {
			return facets{environment: s.Environment, id: s.Name, failed: s.Failed}
		}, byState),
		newListing(tables.Tests(), "ts", "the tests", func(t query.Test) facets {
			return facets{environment: t.Environment, id: t.Name, failed: t.Failed}
		}, byState),
	}
}

// assignmentFacets finds an assignment by labels of its deployment target and its cluster type.
// If both have a label, either value matches, as it does for configs.
func assignmentFacets(a query.Assignment) facets {
	over := func(below, above map[string]string) map[string]string {
		both := map[string]string{}
		maps.Copy(both, below)
		maps.Copy(both, above)
		return both
	}
	return facets{
		environment: a.Environment,
		id:          a.Environment + "/" + a.ClusterType + "/" + a.DeploymentTarget,
		workloads:   []string{a.Workload}, clusterTypes: []string{a.ClusterType},
		labels: []map[string]string{over(a.ClusterTypeLabels, a.TargetLabels),
			over(a.TargetLabels, a.ClusterTypeLabels)}, failed: a.Failed,
	}
}

// listing is `get NAME`, and `describe NAME` of one item. All names come from the name of the
// table: cluster_types is the list cluster-types, the document ClusterTypeList, and the
// collection clusterTypes of the language.
type listing[T any] struct {
	*tables.List[T]
	short, what string
	facets      func(T) facets
	filters     []string // the facets that flags are added for
	// ref returns the entity of an item in its environment; nil for the entity of the collection
	// with the item's id as its name.
	ref func(T) model.Ref
	// byCluster is the list with each item once for each of its clusters; nil if there is no such
	// list.
	byCluster *listing[T]
	// extend adds the flags of only this list to its command; nil if it has no such flags.
	extend func(inspector, *cobra.Command)
}

func newListing[T any](list *tables.List[T], short, what string, facets func(T) facets,
	filters ...string) *listing[T] {
	return &listing[T]{List: list, short: short, what: what, facets: facets, filters: filters}
}

// name returns the name of the list on the command line, in the plural.
func (l *listing[T]) name() string { return strings.ReplaceAll(l.Name, "_", "-") }

// singular returns the name of one item on the command line.
func (l *listing[T]) singular() string {
	if stem, is := strings.CutSuffix(l.name(), "ies"); is {
		return stem + "y"
	}
	return strings.TrimSuffix(l.name(), "s")
}

// camelCase joins words that dashes separate: cluster-types is ClusterTypes.
func camelCase(name string) string {
	out := ""
	for word := range strings.SplitSeq(name, "-") {
		out += strings.ToUpper(word[:1]) + word[1:]
	}
	return out
}

// entity returns the entity that an item is.
func (l *listing[T]) entity(item T) model.Ref {
	if l.ref != nil {
		return l.ref(item)
	}
	collection := camelCase(l.name())
	return model.Ref{Collection: strings.ToLower(collection[:1]) + collection[1:],
		Name: l.facets(item).id}
}

// command returns the command.
func (l *listing[T]) command(g inspector) *cobra.Command {
	cmd := &cobra.Command{
		Use:     l.name() + " [ENVIRONMENT...]",
		Aliases: []string{l.singular(), l.short},
		Short:   "List " + l.what,
	}
	output := new(string)
	choiceFlag(cmd, cmd.Flags(), output, "output", "o", "how to print the result", "table", "wide",
		"name", "json", "yaml")
	filter := newFilter(cmd, l.filters)
	expand := new(string)
	if l.byCluster != nil {
		choiceFlag(cmd, cmd.Flags(), expand, "expand", "", "list each item once for each of its "+
			"clusters, or only once", "none", "clusters")
	}
	cmd.RunE = func(cmd *cobra.Command, environments []string) error {
		l := l
		if *expand == "clusters" || len(filter.clusters) > 0 {
			l = l.byCluster
		}
		matches, err := filter.matcher()
		if err != nil {
			return err
		}
		return g.compile(cmd.Context(), append(environments, filter.environments...),
			func(b *compiler.Build) error {
				items, err := l.Items(cmd.Context(), b)
				if err != nil {
					return err
				}
				items = slices.DeleteFunc(items, func(item T) bool { return !matches(l.facets(item)) })
				if err := l.print(g, *output, items); err != nil {
					return err
				}
				if len(items) == 0 && !slices.Contains([]string{"json", "yaml"}, *output) {
					fmt.Fprintln(g.err, "kalypso: nothing to list"+filter.unknown(b))
				}
				return g.reportErrors(b)
			})
	}
	if l.extend != nil {
		l.extend(g, cmd)
	}
	return cmd
}

// print prints the items. With the output format name, it prints each name only once.
func (l *listing[T]) print(g inspector, output string, items []T) error {
	switch output {
	case "name":
		printed := map[string]bool{}
		for _, item := range items {
			if name := l.facets(item).id; !printed[name] {
				printed[name] = true
				fmt.Fprintln(g.out, name)
			}
		}
		return nil
	case "table", "wide":
		wide := output == "wide"
		var rows [][]any
		printed := map[string]bool{} // classes of a cluster type may differ only in what -o wide shows
		for _, item := range items {
			cells := l.Cells(item, wide)
			if line := fmt.Sprintln(cells...); !printed[line] {
				printed[line] = true
				rows = append(rows, cells)
			}
		}
		return g.table(l.Header(wide), rows)
	}
	return g.printDocument(output, list[T]{apiVersion, camelCase(l.singular()) + "List", items})
}

// The flags that filter lists.
const (
	byLabels      = "selector"
	byWorkload    = "workload"
	byClusterType = "cluster-type"
	byCluster     = "cluster"
	byState       = "state"
)

// stateAny is the value of --state for items in any state; the others are the states that tables
// show.
const stateAny = "any"

// facets are the properties by which the flags of a list find an item.
type facets struct {
	environment  string
	id           string // that -o name prints
	workloads    []string
	clusterTypes []string
	cluster      string // ENVIRONMENT/NAME of the one that the item is of; "" for several
	// labels are the labels of the item. If the item has two sources of labels, the flags try each
	// in turn.
	labels []map[string]string
	failed bool
}

// filter are the flags that choose the items of a list. Several flags are all to be
// fulfilled; of several values of one flag, one.
type filter struct {
	environments, workloads, clusterTypes, clusters []string
	selector, state                                 string
}

// newFilter adds --environment and the flags with the names to a command.
func newFilter(cmd *cobra.Command, names []string) *filter {
	f := &filter{state: stateAny}
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.environments, "environment", "e", nil,
		"list only what is in this `ENVIRONMENT`")
	for _, name := range names {
		switch name {
		case byLabels:
			flags.StringVarP(&f.selector, byLabels, "l", "", "list only what the `LABELS` select, written "+
				"as for kubectl: key=value,key!=value,key in (a,b),key,!key")
		case byWorkload:
			flags.StringSliceVar(&f.workloads, byWorkload, nil, "list only what is of this `WORKLOAD`")
		case byClusterType:
			flags.StringSliceVar(&f.clusterTypes, byClusterType, nil,
				"list only what is on this `CLUSTER-TYPE`")
		case byCluster:
			flags.StringSliceVar(&f.clusters, byCluster, nil, "list only what is on this `CLUSTER`, which "+
				"is NAME or ENVIRONMENT/NAME")
		case byState:
			choiceFlag(cmd, flags, &f.state, byState, "", "list only what is in this state",
				stateAny, tables.StateOK, tables.StateFailed)
		}
	}
	return f
}

// matcher returns a function that reports whether the list includes an item.
func (f *filter) matcher() (func(facets) bool, error) {
	selector, err := klabels.Parse(f.selector)
	if err != nil {
		return nil, usagef("--selector %s: %v", f.selector, err)
	}
	return func(item facets) bool {
		labelled := func(set map[string]string) bool { return selector.Matches(klabels.Set(set)) }
		return (selector.Empty() || slices.ContainsFunc(item.labels, labelled)) &&
			(len(f.workloads) == 0 || slices.ContainsFunc(item.workloads,
				func(w string) bool { return slices.Contains(f.workloads, w) })) &&
			(len(f.clusterTypes) == 0 || slices.ContainsFunc(item.clusterTypes, func(c string) bool {
				return slices.Contains(f.clusterTypes, c) ||
					slices.Contains(f.clusterTypes, model.TypeOfFolder(c))
			})) &&
			(len(f.clusters) == 0 || slices.ContainsFunc(f.clusters,
				func(name string) bool { // ENVIRONMENT/NAME, or NAME
					return item.cluster == name || strings.HasSuffix(item.cluster, "/"+name)
				})) &&
			(f.state == stateAny || f.state == tables.State(item.failed))
	}, nil
}

// unknown returns a message about the names of the filter that no environment of a build has,
// with similar names as hints. It returns "" if an environment cannot be read, as it may have any
// name.
func (f *filter) unknown(b *compiler.Build) string {
	if slices.ContainsFunc(b.Environments,
		func(e *engine.Environment) bool { return e.Model == nil }) {
		return ""
	}
	said, in := "", ""
	if len(b.Environments) < len(b.Declarations) {
		var names []string
		for _, e := range b.Environments {
			names = append(names, e.Name)
		}
		in = " in " + strings.Join(names, ", ")
	}
	look := func(what string, names, known []string) {
		slices.Sort(known)
		known = slices.Compact(known) // of several environments
		for _, name := range names {
			if slices.Contains(known, name) {
				continue
			}
			said += "; there is no " + what + " " + name + in
			if hint := spelling.DidYouMean(name, known); hint != "" {
				said += ", " + hint
			}
		}
	}
	var workloads, clusterTypes []string
	for _, w := range query.Workloads(b) {
		workloads = append(workloads, w.Name)
	}
	for _, c := range query.ClusterTypes(b) {
		clusterTypes = append(clusterTypes, c.Name)
		for _, class := range c.Classes {
			clusterTypes = append(clusterTypes, class.Folder)
		}
	}
	look("workload", f.workloads, workloads)
	look("cluster type", f.clusterTypes, clusterTypes)
	if len(f.clusters) > 0 {
		var clusters []string
		for _, c := range query.Clusters(b) {
			clusters = append(clusters, c.Name)
			if slices.ContainsFunc(f.clusters,
				func(name string) bool { return strings.Contains(name, "/") }) {
				clusters = append(clusters, c.Environment+"/"+c.Name)
			}
		}
		look("cluster", f.clusters, clusters)
	}
	return said
}
