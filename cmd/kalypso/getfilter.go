package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	klabels "k8s.io/apimachinery/pkg/labels"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// The flags that filter lists.
const (
	byLabels      = "selector"
	byWorkload    = "workload"
	byClusterType = "cluster-type"
	byCluster     = "cluster"
	byState       = "state"
)

// The values of --state.
const (
	stateAny    = "any"
	stateOK     = "ok"
	stateFailed = "failed"
)

// facets are what an item of a list can be found by.
type facets struct {
	id           string // what -o name prints
	workloads    []string
	clusterTypes []string
	cluster      string // ENVIRONMENT/NAME of the one that the item is of; "" for several
	// labels are those of the item; of one with two sources of them, each in turn.
	labels []map[string]string
	failed bool
}

// state returns the state that tables show.
func (f facets) state() string {
	if f.failed {
		return stateFailed
	}
	return stateOK
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
	flags.StringSliceVarP(&f.environments, "environment", "e", nil, "list only what is in this `ENVIRONMENT`")
	for _, name := range names {
		switch name {
		case byLabels:
			flags.StringVarP(&f.selector, byLabels, "l", "", "list only what the `LABELS` select, written "+
				"as for kubectl: key=value,key!=value,key in (a,b),key,!key")
		case byWorkload:
			flags.StringSliceVar(&f.workloads, byWorkload, nil, "list only what is of this `WORKLOAD`")
		case byClusterType:
			flags.StringSliceVar(&f.clusterTypes, byClusterType, nil, "list only what is on this `CLUSTER-TYPE`")
		case byCluster:
			flags.StringSliceVar(&f.clusters, byCluster, nil, "list only what is on this `CLUSTER`, which "+
				"is NAME or ENVIRONMENT/NAME")
		case byState:
			choiceFlag(cmd, flags, &f.state, byState, "", "list only what is in this state", stateAny, stateOK, stateFailed)
		}
	}
	return f
}

// matcher returns what says whether an item is to be listed.
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
				return slices.Contains(f.clusterTypes, c) || slices.Contains(f.clusterTypes, model.TypeOfFolder(c))
			})) &&
			(len(f.clusters) == 0 || slices.ContainsFunc(f.clusters,
				func(name string) bool { return isNamed(item.cluster, name) })) &&
			(f.state == stateAny || f.state == item.state())
	}, nil
}

// isNamed says whether an entity of an environment, ENVIRONMENT/NAME, has a name: NAME, or ENVIRONMENT/NAME.
func isNamed(entity, name string) bool {
	return entity == name || strings.HasSuffix(entity, "/"+name)
}

// unknown says which names of the filter no environment of a build has, and which were
// probably meant; "" where an environment cannot be read, and may have any.
func (f *filter) unknown(b *compiler.Build) string {
	if slices.ContainsFunc(b.Environments, func(e *engine.Environment) bool { return e.Model == nil }) {
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
			if slices.ContainsFunc(f.clusters, func(name string) bool { return strings.Contains(name, "/") }) {
				clusters = append(clusters, c.Environment+"/"+c.Name)
			}
		}
		look("cluster", f.clusters, clusters)
	}
	return said
}
