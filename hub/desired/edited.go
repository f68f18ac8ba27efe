package desired

import (
	"context"
	"path"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// edited returns the digests in the tree of a commit that differ from its record, by key. They
// differ if somebody edited generated files. If the folders of cluster types have the recorded ids,
// as in kalypso's own commits, edited does not read the folders below them, like tree.Branch.Drift.
func (r *reader) edited(ctx context.Context, past session.Past) (map[string]string, error) {
	record := past.Record
	root, found, err := r.env.Repository.Staging.Find(past.Tree, r.env.Folder)
	if err != nil {
		return nil, err
	}
	at := &folders{repository: r.env.Repository.Staging, read: map[string]map[string]git.Hash{}}
	if found && root.Mode == git.FolderMode {
		at.root = root.ID
	}
	var differ []*tree.ClusterTypeEntry
	whole := record.Whole()
	for i := range record.ClusterTypes {
		e := &record.ClusterTypes[i]
		if is, err := at.digest(e.Name); err != nil {
			return nil, err
		} else if is != e.Tree || !whole {
			differ = append(differ, e)
		}
	}
	if len(differ) == 0 {
		return nil, nil
	}
	if err := r.prefetch(ctx, differ); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, e := range differ {
		c, err := r.clusterType(e)
		if err != nil {
			return nil, err
		}
		compare := func(key, name string, recorded tree.ID) error {
			is, err := at.digest(e.Name + "/" + name)
			if is != recorded {
				out[key] = string(is)
			}
			return err
		}
		for i := range c.Assignments {
			a := &c.Assignments[i]
			if err := compare(state.Key(e.Name, a.DeploymentTarget), a.DeploymentTarget,
				a.Tree); err != nil {
				return nil, err
			}
		}
		for _, entry := range c.Entries {
			if err := compare(state.EntryKey(entry.Cluster), entry.Cluster,
				tree.TreeID(entry.Files)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// folders finds folders of one tree by their paths. Each tree is read once.
type folders struct {
	repository *git.Repository
	root       git.Hash                       // zero if the tree lacks the folder
	read       map[string]map[string]git.Hash // the folders in a folder
}

// digest returns the id of a folder, or "" if the folder does not exist.
func (f *folders) digest(p string) (tree.ID, error) {
	id, err := f.find(p)
	if err != nil || id.IsZero() {
		return "", err
	}
	return tree.ID(id.String()), nil
}

func (f *folders) find(p string) (git.Hash, error) {
	if p == "." {
		return f.root, nil
	}
	dir, name := path.Split(p)
	dir = path.Clean(dir)
	in, known := f.read[dir]
	if !known {
		id, err := f.find(dir)
		if err != nil || id.IsZero() {
			return git.Hash{}, err
		}
		entries, err := f.repository.Tree(id)
		if err != nil {
			return git.Hash{}, err
		}
		in = make(map[string]git.Hash, len(entries))
		for _, e := range entries {
			if e.Mode == git.FolderMode {
				in[e.Name] = e.ID
			}
		}
		f.read[dir] = in
	}
	return in[name], nil
}
