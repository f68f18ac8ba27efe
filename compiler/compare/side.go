package compare

import (
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// side is an environment of an output.
type side struct {
	own      []*Folder            // of cluster types, sorted
	assigned map[string][]*Folder // of assignments by the folder that they are in, sorted
	clusters []*Folder            // that are listed, sorted
	same     map[string]int       // as in comparison
}

// sidesOf sorts the folders of an output by environment. targets is as in comparison.
func sidesOf(folders []Folder, targets bool) map[string]*side {
	out := map[string]*side{}
	for i := range folders {
		f := &folders[i]
		s := out[f.Environment]
		if s == nil {
			s = &side{assigned: map[string][]*Folder{}}
			out[f.Environment] = s
		}
		switch {
		case f.Cluster != "":
			s.clusters = append(s.clusters, f)
		case f.Assignment == "" && !targets:
			s.own = append(s.own, f)
		default:
			s.assigned[f.ClusterType] = append(s.assigned[f.ClusterType], f)
		}
	}
	return out
}

// environmentsIn returns the names of the environments of two outputs, sorted.
func environmentsIn(sides [2]map[string]*side) []string {
	all := maps.Clone(sides[0])
	maps.Copy(all, sides[1])
	return slices.Sorted(maps.Keys(all))
}

// effect returns the side in the form that package effect needs.
func (s *side) effect() *effect.Side {
	out := &effect.Side{Folders: map[string]int{}, Clusters: make([]effect.Cluster, len(s.clusters))}
	for _, f := range s.own {
		out.Folders[f.ClusterType] = 0
	}
	for name, all := range s.assigned {
		out.Folders[name] = len(all)
	}
	maps.Copy(out.Folders, s.same)
	machines := map[string]bool{}
	for _, f := range s.own {
		machines[f.ClusterType] = known()[f.Backend] != nil && known()[f.Backend].Traits().Machines
	}
	for i, f := range s.clusters {
		out.Clusters[i] = effect.Cluster{Name: f.Cluster, Folder: f.Follows,
			Entry: f.Tree != tree.TreeID(nil), OnlyListed: machines[f.Follows]}
	}
	out.Assigned = func(folder string) ([]effect.Assignment, error) {
		all := make([]effect.Assignment, len(s.assigned[folder]))
		for i, f := range s.assigned[folder] {
			all[i] = effect.Assignment{DeploymentTarget: f.Assignment, Tree: f.Tree}
			if f.Info != nil {
				all[i].Namespace = f.Info.Namespace
			}
		}
		return all, nil
	}
	return out
}

// assignment returns the folder of an assignment, or nil.
func (s *side) assignment(folder string, a *effect.Assignment) *Folder {
	if a == nil {
		return nil
	}
	of := s.assigned[folder]
	i, _ := slices.BinarySearchFunc(of, a.DeploymentTarget,
		func(f *Folder, target string) int { return strings.Compare(f.Assignment, target) })
	return of[i]
}

// pulling is a cluster that pulls the folder of its cluster type.
func pulling(environment, cluster, folder string) Folder {
	return Folder{Environment: environment, Cluster: cluster, Follows: folder, Tree: tree.TreeID(nil),
		Files: func() ([]backends.File, error) { return nil, nil }}
}

// key identifies the folder among all folders of an output.
func (f *Folder) key() string { return string(f.owner()) + " " + f.ID() }

// isMove reports whether a change is only another name of the folder that is followed.
func (j *job) isMove(c Change) bool {
	return c.Kind == Changed &&
		strings.ReplaceAll(string(c.From), j.before.Follows, j.after.Follows) == string(c.To)
}
