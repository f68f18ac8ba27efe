package engine

import (
	"context"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// keeper decides what of the previous output stays: failure never deletes.
type keeper struct {
	in       *Inputs
	scope    *scope
	retained *retained
	entries  *entries
	// records are those of cluster types of which something may have to be kept.
	records  map[string]*tree.ClusterTypeRecord
	recorded map[folderKey]*tree.AssignmentRecord
	errors   map[string][]diag.Diagnostic // assignment -> what concerns it
}

// folderKey names an assignment's folder.
type folderKey struct{ clusterType, target string }

// newKeeper reads the records of cluster types of which something may have to be kept.
func newKeeper(s *scope, as *assignments, r *retained, e *entries) (*keeper, error) {
	k := &keeper{in: s.in, scope: s, retained: r, entries: e, records: map[string]*tree.ClusterTypeRecord{},
		recorded: map[folderKey]*tree.AssignmentRecord{}, errors: map[string][]diag.Diagnostic{}}
	if s.record == nil {
		return k, nil
	}
	failed := map[string]bool{}
	for n, at := range s.in.spans {
		failed[s.in.Model.ClusterTypes[n].Name] = as.failedIn(at)
	}
	for _, entry := range s.record.ClusterTypes {
		if tree.IsShard(entry.Name) || !s.builds(entry.Name) {
			continue
		}
		gone := e.types[entry.Name] == nil && e.followed[entry.Name]
		if !failed[entry.Name] && !s.in.Model.Incomplete && r.folders[entry.Name] == nil &&
			!s.holdsLost(entry.Name) && e.needed[entry.Name] == nil && !gone {
			continue
		}
		ct, err := s.record.ClusterType(entry.Name)
		if err != nil {
			return nil, err
		}
		k.records[ct.Name] = ct
		for i := range ct.Assignments {
			a := &ct.Assignments[i]
			k.recorded[folderKey{ct.Name, a.DeploymentTarget}] = a
		}
	}
	return k, nil
}

// keptOf returns the recorded folders of a cluster type that may have to be kept.
func (k *keeper) keptOf(clusterType string) []tree.AssignmentRecord {
	if ct := k.records[clusterType]; ct != nil {
		return ct.Assignments
	}
	return nil
}

// explain lets the reasons name the codes of the errors.
func (k *keeper) explain(ds []diag.Diagnostic) {
	for _, d := range ds {
		for _, a := range d.Assignments {
			k.errors[a] = append(k.errors[a], d)
		}
	}
}

// assignment returns the last good folder of an assignment that failed.
func (k *keeper) assignment(a *schedule.Assignment) (tree.Folder, bool) {
	r, recorded := k.recorded[folderKey{a.ClusterType.Name, a.Target.FullName}]
	if !recorded {
		return tree.Folder{}, false
	}
	reason := "errors: " + codes(k.errors[a.ID(k.in.Name)])
	return tree.Folder{Info: r.Folder, Kept: &tree.Kept{Reason: reason}}, true
}

// needed returns the recorded folders that kept ones depend on and that would go:
// what is kept would wait for them for ever. kept is all that is kept so far,
// and there what else there is.
func (k *keeper) needed(clusterType string, kept []backends.Folder, there map[string]bool) []backends.Folder {
	var out []backends.Folder
	for todo := kept; len(todo) > 0; {
		f := todo[0]
		todo = todo[1:]
		for _, target := range f.DependsOn {
			r, recorded := k.recorded[folderKey{clusterType, target}]
			if there[target] || !recorded {
				continue
			}
			there[target] = true
			out, todo = append(out, r.Folder), append(todo[:len(todo):len(todo)], r.Folder)
		}
	}
	return out
}

const (
	uncertain = "errors hide which assignments there are"
	noMore    = "errors: " + string(diag.SelectsNoMore)
	followed  = "entries of clusters name it, and stay"
	ahead     = "errors keep clusters from another folder that has it"
)

// stays says why a recorded folder stays that no policy gives; "" where it goes.
func (k *keeper) stays(clusterType, target string) string {
	switch {
	case k.in.Model.Incomplete:
		return uncertain
	case k.retained.folders[clusterType][target]:
		return noMore
	case k.gone(clusterType):
		return followed
	case k.entries.needed[clusterType][target]:
		return ahead
	}
	return ""
}

// gone says whether a cluster type is no longer in the platform, and entries of clusters name
// its folder.
func (k *keeper) gone(clusterType string) bool {
	return k.entries.types[clusterType] == nil && k.entries.followed[clusterType]
}

// pulledByEntries reports whether clusters pull a cluster type by entries, so that a cluster of it without
// an entry pulls nothing.
func (k *keeper) pulledByEntries(clusterType string) bool {
	for folder := range k.entries.followed {
		if model.TypeOfFolder(folder) == model.TypeOfFolder(clusterType) {
			return true
		}
	}
	return false
}

// others returns the recorded folders that stay although no policy gives them: of
// assignments that an uncertain environment may only seem to have lost, and that a
// selector selected which selects nothing any more. there are those that policies give.
func (k *keeper) others(clusterType string, there map[string]bool) []tree.Folder {
	var out []tree.Folder
	for _, r := range k.keptOf(clusterType) {
		if why := k.stays(clusterType, r.DeploymentTarget); why != "" && !there[r.DeploymentTarget] {
			out = append(out, tree.Folder{Info: r.Folder, Kept: &tree.Kept{Reason: why}})
		}
	}
	return out
}

// whole says why a cluster type stays whole that is no longer in the platform; "" where
// it goes.
func (k *keeper) whole(clusterType string) string {
	switch {
	case k.in.Model.Incomplete:
		return uncertain
	case k.retained.folders[clusterType] != nil:
		return noMore
	case k.gone(clusterType):
		return followed
	}
	return ""
}

// clusterTypes returns the cluster types that are no longer in the platform, but stay:
// whole, and those of other shards.
func (k *keeper) clusterTypes() []clusterType {
	if k.scope.record == nil {
		return nil
	}
	known := map[string]bool{}
	for _, ct := range k.in.Model.ClusterTypes {
		known[ct.Name] = true
	}
	var out []clusterType
	for _, ct := range k.scope.record.ClusterTypes {
		switch {
		case known[ct.Name] || tree.IsShard(ct.Name):
		case !k.scope.builds(ct.Name):
			out = append(out, clusterType{tree: tree.ClusterType{Name: ct.Name, Outside: true}})
		case k.whole(ct.Name) != "":
			content := &tree.Content{Kept: k.whole(ct.Name), Folders: k.others(ct.Name, nil),
				Denied: k.retained.deniedOf(ct.Name)}
			if was := k.records[ct.Name]; was != nil {
				content.Facts = was.Facts
				if !k.pulledByEntries(ct.Name) {
					content.Clusters = slices.DeleteFunc(slices.Clone(was.Clusters),
						func(name string) bool { return k.scope.record.FolderOf(name) != "" })
				}
			}
			kept := clusterType{
				tree: tree.ClusterType{Name: ct.Name,
					Content: func(context.Context) (*tree.Content, error) { return content, nil }},
				counts: Counts{ClusterTypes: 1},
			}
			kept.counts.count(content.Folders)
			out = append(out, kept)
		}
	}
	return out
}
