package query

import (
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// onClusters has the differences on clusters that both environments list. Its pairs are of a
// workload, instead of a deployment target, and a cluster.
type onClusters struct {
	pairs map[string][]*effect.Pair // by workload
	// stays are the folders that some of these clusters follow on both sides. classified are the
	// cluster types that have some of these clusters in classes.
	stays, classified map[string]bool
}

// clustersOfBoth compares the clusters that both environments list.
func clustersOfBoth(before, after *engine.Environment, was, is []model.Digest) (*onClusters,
	error) {
	out := &onClusters{pairs: map[string][]*effect.Pair{}, stays: map[string]bool{},
		classified: map[string]bool{}}
	side := func(e, other *engine.Environment, digests []model.Digest) *effect.Side {
		s := &effect.Side{Folders: map[string]int{}}
		for i := range e.Model.Clusters {
			c := &e.Model.Clusters[i]
			if there := other.Model.Cluster(c.Name); c.Folder != "" && there != nil {
				s.Clusters = append(s.Clusters, effect.Cluster{Name: c.Name, Folder: c.Folder})
				out.stays[c.Folder] = out.stays[c.Folder] || there.Folder == c.Folder
				if of := model.TypeOfFolder(c.Folder); of != c.Folder {
					out.classified[of] = true
				}
			}
		}
		configured := map[string]map[string][]string{} // by folder and workload
		for i := range e.Schedule.Assignments {
			a := &e.Schedule.Assignments[i]
			if configured[a.ClusterType.Name] == nil {
				configured[a.ClusterType.Name] = map[string][]string{}
			}
			of, how := configured[a.ClusterType.Name], "failed"
			if !e.Failed(i) {
				how = string(digests[i])
			}
			of[a.Workload.Name] = append(of[a.Workload.Name], how)
		}
		for folder := range configured {
			s.Folders[folder] = len(configured[folder])
		}
		s.Assigned = func(folder string) (all []effect.Assignment, err error) {
			for _, workload := range slices.Sorted(maps.Keys(configured[folder])) {
				slices.Sort(configured[folder][workload])
				all = append(all, effect.Assignment{DeploymentTarget: workload,
					Tree: tree.ID(strings.Join(configured[folder][workload], " "))})
			}
			return all, nil
		}
		return s
	}
	of, err := effect.Compare(side(before, after, was), side(after, before, is), nil)
	if err != nil {
		return nil, err
	}
	for i := range of.Pairs {
		if p := &of.Pairs[i]; p.Way.Clusters != nil {
			out.pairs[p.DeploymentTarget()] = append(out.pairs[p.DeploymentTarget()], p)
		}
	}
	return out, nil
}

// placements returns the clusters that have a workload only on one side, if both sides have it on
// their cluster type.
func (o *onClusters) placements(workload string, before, after []string) []WorkloadDifference {
	var out []WorkloadDifference
	for _, p := range o.pairs[workload] {
		if on := p.ClusterType(); !p.Changed() && slices.Contains(before, on) &&
			slices.Contains(after, on) {
			d := WorkloadDifference{Kind: DiffersInPlacement, Clusters: p.Way.Clusters, Before: []string{},
				After: []string{}}
			if p.Removed() {
				d.Before = append(d.Before, on)
			} else {
				d.After = append(d.After, on)
			}
			out = append(out, d)
		}
	}
	return merged(out)
}

// merged combines equal differences, with the clusters of all of them.
func merged(all []WorkloadDifference) []WorkloadDifference {
	var out []WorkloadDifference
	for _, d := range all {
		n := slices.IndexFunc(out, func(o WorkloadDifference) bool {
			return o.Clusters != nil && d.Clusters != nil && o.Kind == d.Kind && o.Path == d.Path &&
				slices.Equal(o.Before, d.Before) && slices.Equal(o.After, d.After)
		})
		if n < 0 {
			out = append(out, d)
			continue
		}
		out[n].Clusters = slices.Sorted(slices.Values(slices.Concat(out[n].Clusters, d.Clusters)))
	}
	return out
}

// clustersThatDiffer compares the own values of clusters that both sides list. It returns one
// difference for each path.
func clustersThatDiffer(before, after workloadSide) []WorkloadDifference {
	was, is := before.own(), after.own()
	found := map[string]*WorkloadDifference{} // by path
	for name, x := range was {
		y, both := is[name]
		if !both {
			continue
		}
		paths := maps.Clone(x)
		maps.Copy(paths, y)
		for path := range paths {
			if maps.Equal(x[path], y[path]) {
				continue
			}
			if found[path] == nil {
				found[path] = &WorkloadDifference{Kind: DiffersInValue, Path: path}
			}
			d := found[path]
			d.Before, d.After, d.Clusters = append(d.Before, sorted(x[path])...),
				append(d.After, sorted(y[path])...), append(d.Clusters, name)
		}
	}
	var out []WorkloadDifference
	for _, path := range slices.Sorted(maps.Keys(found)) {
		d := found[path]
		for _, list := range []*[]string{&d.Before, &d.After, &d.Clusters} {
			*list = append([]string{}, slices.Compact(slices.Sorted(slices.Values(*list)))...)
		}
		out = append(out, *d)
	}
	return out
}

// own returns the own values of clusters, by cluster and path.
func (c workloadSide) own() map[string]map[string]map[string]bool {
	targets := map[string][]string{} // by folder
	for _, i := range c.all {
		a := &c.e.Schedule.Assignments[i]
		targets[a.ClusterType.Name] = append(targets[a.ClusterType.Name], a.Target.FullName)
	}
	out := map[string]map[string]map[string]bool{}
	for i := range c.e.Model.Clusters {
		of := &c.e.Model.Clusters[i]
		if len(targets[of.Folder]) == 0 {
			continue
		}
		all := map[string]map[string]bool{}
		for _, target := range targets[of.Folder] {
			addLeaves(all, "", of.ValuesOf(target))
		}
		out[of.Name] = all
	}
	return out
}

// addLeaves adds the leaves of a value to all, by path.
func addLeaves(all map[string]map[string]bool, path string, v model.Value) {
	if v.Kind() == model.Struct {
		for _, f := range v.Fields() {
			addLeaves(all, model.JoinPath(path, model.Label(f.Name)), f.Value)
		}
		return
	}
	if all[path] == nil {
		all[path] = map[string]bool{}
	}
	all[path][compose.Shown(path, v).String()] = true
}
