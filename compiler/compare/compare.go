// Package compare says what differs between two outputs: which assignments come
// and go, and for those that change, which values in which objects do.
//
// In come the folders of two outputs, each with the git id of its content and a
// way to read it; only folders whose ids differ are read. Out comes a Report, in
// which equal changes of many folders are one group. Nothing in a file makes a
// comparison fail: what is no YAML, or YAML that cannot be compared by values,
// is compared as text.
package compare

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Folder is one folder of an output: that of an assignment, a cluster type's own files,
// or what a cluster pulls.
type Folder struct {
	Environment string
	ClusterType string // or a class of one; "" for what a cluster pulls
	// Assignment is the deployment target's full name; "" for the cluster type's
	// own files.
	Assignment string
	// Cluster is the name of a cluster that is listed, and Follows the folder of its cluster
	// type, or of its class; "" where that is not known. Its files are those of its entry;
	// there are none where it pulls that folder itself.
	Cluster, Follows string
	// Backend is the name of the backend that made an assignment's folder, or a cluster type's
	// own files; "" where that is not known.
	Backend string
	// Tree is git's id of the folder's files. Folders with equal ids are equal,
	// and neither is read.
	Tree tree.ID
	// Files returns the folder's files by path in it, in any order. It is called
	// at most once, by any goroutine, and what it returns is dropped once the
	// folder is compared.
	Files func() ([]backends.File, error)
}

// ID returns <environment>/<clusterType>/<assignment>, or only the first two for
// a cluster type's own files, and <environment>/<cluster> for what a cluster pulls.
func (f *Folder) ID() string {
	if f.Cluster != "" {
		return f.Environment + "/" + f.Cluster
	}
	id := f.Environment + "/" + f.ClusterType
	if f.Assignment != "" {
		id += "/" + f.Assignment
	}
	return id
}

// order compares folders as an output sorts them.
func order(a, b *Folder) int {
	return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.ClusterType, b.ClusterType), cmp.Compare(a.Assignment, b.Assignment), cmp.Compare(a.Cluster, b.Cluster))
}

// Sort sorts the folders of an output as Compare wants them.
func Sort(folders []Folder) {
	slices.SortFunc(folders, func(a, b Folder) int { return order(&a, &b) })
}

// Compare compares two outputs, each sorted by environment, cluster type,
// assignment and cluster, without duplicates. It reads up to GOMAXPROCS pairs of folders at
// once, and what it returns does not depend on how many. It fails where a folder
// cannot be read, with the error of the first one, or where an output is not
// sorted.
func Compare(before, after []Folder) (*Report, error) {
	for _, folders := range [][]Folder{before, after} {
		for i := 1; i < len(folders); i++ {
			if order(&folders[i-1], &folders[i]) >= 0 {
				return nil, fmt.Errorf("comparing outputs: %s comes after %s", folders[i].ID(), folders[i-1].ID())
			}
		}
	}
	r := newReport()
	var pairs []pair
	var clusters []pair // of which one side may be nil
	for i, j := 0, 0; i < len(before) || j < len(after); {
		var c int
		switch {
		case i == len(before):
			c = 1
		case j == len(after):
			c = -1
		default:
			c = order(&before[i], &after[j])
		}
		p, what := pair{}, unchanged
		switch {
		case c < 0:
			p.before, what = &before[i], removed
			i++
		case c > 0:
			p.after, what = &after[j], added
			j++
		default:
			p.before, p.after = &before[i], &after[j]
			if before[i].Tree != after[j].Tree {
				what = changed
				pairs = append(pairs, p)
			}
			i, j = i+1, j+1
		}
		if f := cmp.Or(p.after, p.before); f.Cluster != "" {
			clusters = append(clusters, p)
		} else {
			r.count(f, what)
		}
	}
	g, concerned, err := comparePairs(pairs)
	if err != nil {
		return nil, err
	}
	r.countClusters(clusters, concerned)
	r.Groups = g.list(pairs)
	r.setChanged()
	return r, nil
}

// pair is a folder of both outputs.
type pair struct{ before, after *Folder }

// comparePairs compares pairs of folders in parallel, and returns which clusters they concern.
func comparePairs(pairs []pair) (groups, concerned, error) {
	var next atomic.Int64
	var failed atomic.Bool
	workers := min(runtime.GOMAXPROCS(0), len(pairs))
	found := make([]groups, workers)
	concerns := make([]concerned, workers)
	errs := make([]error, workers)
	at := make([]int, workers) // the pair that the error is about
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			found[w], concerns[w] = groups{}, concerned{}
			for !failed.Load() {
				i := int(next.Add(1) - 1)
				if i >= len(pairs) {
					return
				}
				changes, err := pairs[i].compare()
				if err != nil {
					errs[w], at[w] = err, i
					failed.Store(true)
					return
				}
				found[w].add(i, pairs[i], changes)
				concerns[w].add(pairs[i], changes)
			}
		})
	}
	all.Wait()
	first := -1
	for w, err := range errs {
		// Pairs are taken in order, so all before the first that failed are done.
		if err != nil && (first < 0 || at[w] < at[first]) {
			first = w
		}
	}
	if first >= 0 {
		return nil, nil, errs[first]
	}
	merged, of := groups{}, concerned{}
	for w := range found {
		merged.merge(found[w])
		of.merge(concerns[w])
	}
	return merged, of, nil
}

// compare reads both folders and compares their files.
func (p pair) compare() (*changes, error) {
	var files [2]map[string]backends.File
	for i, f := range []*Folder{p.before, p.after} {
		list, err := f.Files()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.ID(), err)
		}
		files[i] = make(map[string]backends.File, len(list))
		for _, file := range list {
			files[i][file.Path] = file
		}
	}
	found := compareFiles(files[0], files[1])
	found.of = p.partsOf(files[0], files[1])
	if p.moved() {
		found.list = slices.DeleteFunc(found.list, p.isMove)
	}
	return found, nil
}
