// Package compare computes the effects of a change of outputs on clusters: the deployment
// targets that each cluster gets, loses or has changed, and the differing values of
// objects.
//
// Its input is the folders of two outputs, each with the git id of its content and a
// function to read it. Package effect finds the differing pairs of a deployment target and
// a cluster, and only the folders of these pairs are read. Its output is a Report, in which
// equal changes of many pairs are one group. No file makes a comparison fail. Text that is
// not YAML is compared as text, and so is YAML that cannot be compared by values.
//
// For example, a change of examples/hello-world replaces the GREETING "Hello, world" by "Good
// morning". Compare gets the folders of both outputs. On each side, one [Folder] has the ID
// dev/drone/hello-world-functional-test, and the two have different Tree ids. In the Report, this
// assignment and six others are the Assignments of one [Group]. It has the Kind changed, the File
// platform-config.yaml and the Path data.GREETING. From is "Hello, world", and To is "Good
// morning".
package compare

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Folder is one folder of an output. It belongs to an assignment, or has a cluster type's
// own files, or the entry that a cluster pulls.
type Folder struct {
	Environment string
	ClusterType string // or a class of one; "" for an entry of a cluster
	// Assignment is the deployment target's full name; "" for the cluster type's
	// own files.
	Assignment string
	// Cluster is the name of a cluster that is listed, and Follows the folder of its cluster
	// type, or of its class; "" if that is not known. Its files are its entry's, or nil if
	// it pulls that folder itself.
	Cluster, Follows string
	// Backend is the name of the backend that made an assignment's folder, or a cluster type's
	// own files; "" if that is not known.
	Backend string
	// Info describes an assignment's folder. It is nil if only the files of the folder are
	// known.
	Info *backends.Folder
	// Tree is git's id of the folder's files. Folders with equal ids are equal,
	// and neither is read.
	Tree tree.ID
	// Files returns the folder's files by path in it, in any order. Any goroutine may call
	// it, and its result is kept for as long as folders are compared.
	Files func() ([]backends.File, error)
}

// ID returns <environment>/<clusterType>/<assignment>, or only the first two for a
// cluster type's own files, and <environment>/<cluster> for an entry of a cluster.
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
	switch { // cmp.Or would compare everything
	case a.Environment != b.Environment:
		return strings.Compare(a.Environment, b.Environment)
	case a.ClusterType != b.ClusterType:
		return strings.Compare(a.ClusterType, b.ClusterType)
	case a.Assignment != b.Assignment:
		return strings.Compare(a.Assignment, b.Assignment)
	}
	return strings.Compare(a.Cluster, b.Cluster)
}

// Sort sorts the folders of an output as Compare needs them.
func Sort(folders []Folder) {
	slices.SortFunc(folders, func(a, b Folder) int { return order(&a, &b) })
}

// Compare compares two outputs, each sorted by environment, cluster type, assignment and
// cluster, without duplicates. It reads up to GOMAXPROCS pairs of folders at once; the
// result does not depend on their number. It fails with the error of the first folder that
// cannot be read, or if an output is not sorted.
//
// created reports whether the objects of added pairs are counted. Compare must read their
// folders for that.
func Compare(before, after []Folder, created bool) (*Report, error) {
	return (&comparison{created: created}).compare(before, after)
}

func (c *comparison) compare(before, after []Folder) (*Report, error) {
	for n, folders := range [][]Folder{before, after} {
		for i := 1; i < len(folders); i++ {
			if order(&folders[i-1], &folders[i]) >= 0 {
				return nil, fmt.Errorf("comparing outputs: %s comes after %s", folders[i].ID(),
					folders[i-1].ID())
			}
		}
		c.sides[n] = sidesOf(folders, c.targets)
	}
	for _, name := range environmentsIn(c.sides) {
		if err := c.environment(name); err != nil {
			return nil, err
		}
	}
	groups, err := c.run()
	if err != nil {
		return nil, err
	}
	return c.report(groups), nil
}

// comparison is one call of Compare: first the environments with their differences, then
// the jobs that read the differing folders.
type comparison struct {
	// created makes the comparison read the folders of added pairs and count their objects.
	// targets reports that an application wrote the outputs: each cluster type is a target,
	// and its own files are deployed.
	created, targets bool
	// same has, for each folder, the number of assignments that are equal on both sides and
	// are not listed.
	same map[string]int

	sides        [2]map[string]*side // by environment
	environments []*environmentEffect
	jobs         []job
	reads        reads
}

// reads are the files of recently read folders, by the id of the folder. If clusters move
// from class to class, each folder is read once for the clusters that leave and once for
// the clusters that arrive.
type reads struct {
	mu    sync.Mutex
	files map[tree.ID]map[string]backends.File // by path; not written to
}

// maxRead is the largest number of folders that are remembered.
const maxRead = 500

// filesOf returns the files of a folder by path. It returns nil for a nil folder.
func (r *reads) filesOf(f *Folder) (map[string]backends.File, error) {
	if f == nil {
		return nil, nil
	}
	r.mu.Lock()
	files, known := r.files[f.Tree]
	r.mu.Unlock()
	if known {
		return files, nil
	}
	list, err := f.Files()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.ID(), err)
	}
	files = make(map[string]backends.File, len(list))
	for _, file := range list {
		files[file.Path] = file
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files == nil || len(r.files) >= maxRead {
		r.files = map[tree.ID]map[string]backends.File{}
	}
	r.files[f.Tree] = files
	return files, nil
}

// environmentEffect is the difference of an environment.
type environmentEffect struct {
	name          string
	before, after *side
	*effect.Effect
	jobs []int // for each of Pairs, an index of the comparison's jobs; -1 if it is not read
	// own are the indexes of jobs for cluster types' own files, and entries for the entries
	// of clusters.
	own, entries []int
}

// job is two folders to compare, or one folder to count the objects in.
type job struct {
	before, after *Folder // one may be nil
	pair          *effect.Pair
	// found are the changes, without their list once they are in groups.
	found *changes
	// attributed are the deployment targets whose values differ, of own files and of entries.
	attributed map[string]bool
	// variables are the names of values of single clusters by their paths. The name is ""
	// if another variable has the same meaning.
	variables map[string]string
	// assigned are the deployment targets of own files on either side.
	assigned map[string]bool
	objects  objects
	// signature identifies an added or removed folder, whatever the deployment target is called.
	signature digest
}

// environment finds the differences of an environment, and adds a job for each folder to read.
func (c *comparison) environment(name string) error {
	e := &environmentEffect{name: name, before: c.sides[0][name], after: c.sides[1][name]}
	for _, s := range []**side{&e.before, &e.after} {
		if *s == nil {
			*s = &side{}
		}
		(*s).same = c.same
	}
	var err error
	if e.Effect, err = effect.Compare(e.before.effect(), e.after.effect(),
		func(folder string) bool { _, same := c.same[folder]; return same }); err != nil {
		return err
	}
	removes := map[string]bool{} // cluster types in which an added target may be a renamed one
	for i := range e.Pairs {
		removes[e.Pairs[i].ClusterType()] = removes[e.Pairs[i].ClusterType()] || e.Pairs[i].Removed()
	}
	for i := range e.Pairs {
		p := &e.Pairs[i]
		if p.Added() && !c.created && !removes[p.ClusterType()] {
			e.jobs = append(e.jobs, -1)
			continue
		}
		e.jobs = append(e.jobs, len(c.jobs))
		c.jobs = append(c.jobs, job{before: e.before.assignment(p.Way.From, p.Before),
			after: e.after.assignment(p.Way.To, p.After), pair: p})
	}
	both := func(list *[]int, before, after *Folder) {
		if before != nil && after != nil && before.Tree != after.Tree {
			*list = append(*list, len(c.jobs))
			c.jobs = append(c.jobs, job{before: before, after: after})
		}
	}
	for _, folder := range e.after.own {
		before := len(c.jobs)
		if both(&e.own, find(e.before.own, folder), folder); len(c.jobs) > before {
			targets := map[string]bool{}
			for _, f := range slices.Concat(e.before.assigned[folder.ClusterType],
				e.after.assigned[folder.ClusterType]) {
				targets[f.Assignment] = true
			}
			c.jobs[before].assigned = targets
		}
	}
	c.environments = append(c.environments, e)
	return c.entries(e)
}

// entryChange is how an entry changes: many clusters that go from one class to another have the
// same change.
type entryChange struct {
	before, after tree.ID
	from, to      string // the folders that are followed
}

// entries adds jobs for the differing entries of clusters. If several entries have the same
// change, and only the name of the folder that they follow differs, entries adds no job for
// them.
func (c *comparison) entries(e *environmentEffect) error {
	counts := map[entryChange]int{}
	before := make([]*Folder, len(e.after.clusters))
	change := func(i int) entryChange {
		return entryChange{before[i].Tree, e.after.clusters[i].Tree, before[i].Follows,
			e.after.clusters[i].Follows}
	}
	for i, f := range e.after.clusters {
		if was := find(e.before.clusters, f); was != nil && was.Tree != f.Tree {
			before[i] = was
			counts[change(i)]++
		}
	}
	moves, known := map[entryChange]bool{}, memo{}
	for i, after := range e.after.clusters {
		if before[i] == nil {
			continue
		}
		j := job{before: before[i], after: after}
		if of := change(i); counts[of] > 1 {
			only, asked := moves[of]
			if !asked {
				first := j
				if err := first.run(&c.reads, known); err != nil {
					return err
				}
				only = len(first.found.list)+len(first.attributed) == 0
				moves[of] = only
			}
			if only {
				continue
			}
		}
		e.entries, c.jobs = append(e.entries, len(c.jobs)), append(c.jobs, j)
	}
	return nil
}

// find returns the folder in a sorted list that has the place of another one, or nil.
func find(in []*Folder, f *Folder) *Folder {
	if i, found := slices.BinarySearchFunc(in, f, order); found {
		return in[i]
	}
	return nil
}

// run runs the jobs in parallel, and returns the groups of changes.
func (c *comparison) run() (groups, error) {
	var next atomic.Int64
	var failed atomic.Bool
	workers := min(runtime.GOMAXPROCS(0), len(c.jobs))
	found := make([]groups, workers)
	errs := make([]error, workers)
	at := make([]int, workers) // the job that the error is about
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			found[w] = groups{}
			entries := memo{}
			for !failed.Load() {
				i := int(next.Add(1) - 1)
				if i >= len(c.jobs) {
					return
				}
				if err := c.jobs[i].run(&c.reads, entries); err != nil {
					errs[w], at[w] = err, i
					failed.Store(true)
					return
				}
				if j := &c.jobs[i]; j.found != nil {
					found[w].add(i, j)
					j.found.list = nil
				}
			}
		})
	}
	all.Wait()
	c.reads.files = nil
	first := -1
	for w, err := range errs {
		// Jobs are taken in order, so all before the first that failed are done.
		if err != nil && (first < 0 || at[w] < at[first]) {
			first = w
		}
	}
	if first >= 0 {
		return nil, errs[first]
	}
	merged := groups{}
	for w := range found {
		// Add the groups of another worker.
		for key, b := range found[w] {
			a := merged[key]
			if a == nil {
				merged[key] = b
				continue
			}
			a.compareParts(&b.concrete)
			for i := range a.varies {
				a.varies[i] = a.varies[i] || b.varies[i]
			}
			a.jobs = append(a.jobs, b.jobs...)
			slices.Sort(a.jobs)
		}
	}
	return merged, nil
}

// run reads the folders of the job, counts their objects and compares their files. entries
// are the changes of entries that were compared before.
func (j *job) run(known *reads, entries memo) error {
	var files [2]map[string]backends.File
	for i, f := range []*Folder{j.before, j.after} {
		var err error
		if files[i], err = known.filesOf(f); err != nil {
			return err
		}
	}
	if j.pair != nil && !(j.pair.Way.Leaves() && j.stays()) {
		j.objects = countObjects(files[0], files[1], j.before, j.after)
	}
	if j.before == nil || j.after == nil {
		j.signature = signatureOf(cmp.Or(j.before, j.after), files[min(1, len(files[1]))])
		return nil
	}
	if j.after.Cluster == "" {
		entries = nil
	}
	j.found = compareFiles(files[0], files[1], entries)
	j.found.of = j.partsOf(files[0], files[1])
	if j.after.Cluster != "" && j.before.Follows != "" && j.after.Follows != "" &&
		j.before.Follows != j.after.Follows {
		j.found.list = slices.DeleteFunc(j.found.list, j.isMove)
	}
	switch {
	case j.pair == nil:
		j.attribute()
	// everything in the former namespace is removed, and created again in the new one
	case j.pair.Renames():
		for i := range j.found.list {
			c := &j.found.list[i]
			c.detail = c.Object != nil && c.Path == "" && (c.Kind == Added || c.Kind == Removed)
		}
	}
	return nil
}
