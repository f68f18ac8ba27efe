package tree

import (
	"path"
	"slices"
	"strings"
)

// change is what a write does in one folder: in that of an assignment, or in that of
// the cluster type, without those of the assignments.
type change struct {
	dir     string
	missing []missing
	// first are the paths of files to be removed that block others, last
	// those of the others. empty are the folders that stand where a file has to be.
	first, last []string
	empty       []string
	// whole says that the folder is replaced at once, by one that has all that it has to
	// have: more than one file of an assignment changes.
	whole bool
	// new says that there is no such folder yet.
	new bool
	// within says that the folder is in that of the cluster type.
	within bool
}

// changesOf returns the changes of a part, by folder. assigned says whether a cluster
// type's folder is that of an assignment, now or before.
func changesOf(part *typePlan, assigned func(target string) bool) []*change {
	var all []*change
	folders := map[string]*change{}
	in := func(dir string) *change {
		if folders[dir] == nil {
			folders[dir] = &change{dir: dir, within: dir != part.name}
			all = append(all, folders[dir])
		}
		return folders[dir]
	}
	dirOf := func(p string) string {
		rest := strings.TrimPrefix(p, part.name+"/")
		if target, _, within := strings.Cut(rest, "/"); within && assigned(target) {
			return part.name + "/" + target
		}
		return part.name
	}
	shared := map[string]bool{} // folders that get files of the cluster type's own as well
	for _, m := range part.missing {
		c := in(m.dir)
		c.missing = append(c.missing, m)
		for _, name := range m.names {
			if dir := dirOf(m.dir + "/" + name); dir != m.dir {
				shared[dir] = true
			}
		}
	}
	for _, dir := range part.empty {
		c := in(dirOf(dir))
		c.empty = append(c.empty, dir)
	}
	inTheWay := obstacles(part)
	for _, name := range part.removed {
		c := in(dirOf(name))
		if inTheWay(name) {
			c.first = append(c.first, name)
		} else {
			c.last = append(c.last, name)
		}
	}
	for _, c := range all {
		files := len(c.first) + len(c.last)
		for _, m := range c.missing {
			files += len(m.names)
		}
		// Where a file takes the place of the folder, that has to go before.
		c.whole = files > 1 && c.dir != part.name && !slices.Contains(part.empty, c.dir) && !shared[c.dir]
	}
	return all
}

// obstacles returns a function that says whether a file to be removed blocks another: where a
// folder has to be, or in a folder that stands where a file has to be.
func obstacles(p *typePlan) func(string) bool {
	if len(p.removed) == 0 {
		return nil
	}
	around := map[string]bool{}
	for _, dir := range folders(slices.Collect(p.written)) {
		around[dir] = true
	}
	return func(name string) bool {
		if around[name] {
			return true
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if slices.Contains(p.empty, dir) {
				return true
			}
		}
		return false
	}
}
