package verify

import (
	"context"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/tree"
)

// A folder of entries may have some of several rings. Each is compared with the source of its
// own ring: the ring of the folder that it names, by the record.

// entries compares the entries in a folder of them that name certain folders with the record.
func (v *verifier) entries(ctx context.Context, ct *tree.ClusterType, by tree.Compiler,
	folder func(name string) bool) error {
	v.checked[ct.Name] = true
	recorded, err := v.at.Record.ClusterType(ct.Name)
	if err != nil {
		return err
	}
	content, err := ct.Content(ctx)
	if err != nil {
		return err
	}
	switch {
	case recorded == nil:
		v.problem("the entries of %s are compiled, and not in the tree", ct.Name)
		return nil
	case !content.EntriesMatch(recorded, folder):
		v.problem("%s: its entries are not what is compiled", ct.Name)
		return nil
	case ct.Digest == "" || slices.ContainsFunc(recorded.Entries,
		func(e tree.EntryRecord) bool { return !folder(e.Folder) }):
		return nil
	}
	return v.recorded(ctx, ct, recorded, by)
}

// restOfEntries adds the folders with entries that name a cluster type to cluster types
// that are compared one by one, by their source.
func (v *verifier) restOfEntries(of map[tree.Source][]string) error {
	for i := range v.at.Record.ClusterTypes {
		e := &v.at.Record.ClusterTypes[i]
		if !tree.IsShard(e.Name) || len(of) == 0 && v.checked[e.Name] {
			continue
		}
		recorded, err := v.at.Record.ClusterType(e.Name)
		if err != nil {
			return err
		}
		compared := v.checked[e.Name]
		for source, names := range of {
			if slices.ContainsFunc(recorded.Entries,
				func(e tree.EntryRecord) bool { return slices.Contains(names, e.Folder) }) {
				of[source], compared = append(names, e.Name), true
			}
		}
		if !compared {
			v.problem("the entries of %s are in the tree, and not compiled", e.Name)
		}
	}
	return nil
}
