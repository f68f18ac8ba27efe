package compare

import (
	"encoding/json"
	"slices"
	"strings"
)

// Report is the change on clusters: the differences between one output and another. Its
// JSON is a contract: it depends only on the content of the outputs, and lists are never
// null. It counts pairs of a deployment target and a cluster. A cluster type that lists no
// clusters counts as one cluster.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Removed, Added and Changed are the differing pairs, similar ones together, sorted by
	// environment, cluster type and deployment target.
	Removed []Entry `json:"removed"`
	Added   []Entry `json:"added"`
	Changed []Entry `json:"changed"`
	// Total counts the differing pairs.
	Total Total `json:"total"`
	// Assignments are the ids of pairs without clusters. Its Unchanged counts pairs.
	Assignments  Folders `json:"assignments"`
	ClusterTypes Folders `json:"clusterTypes"` // by their own files, beside the assignments' folders
	// Clusters are the listed clusters, or nil.
	Clusters *Clusters `json:"clusters,omitempty"`
	// ClusterSets has the names of clusters to which lists of clusters refer as #1, #2 and
	// so on. A list with at most inlineClusters names has the names themselves.
	ClusterSets map[string][]string `json:"clusterSets,omitempty"`
	// Counts are the counts of each cluster type, sorted by environment and name.
	Counts []Counts `json:"counts"`
	// Groups are the differences of files, sorted by number of pairs, then by number of
	// cluster types, most first, then by text.
	Groups []Group `json:"groups"`
	// Objects count the objects that are created, updated and deleted on all clusters, by
	// kind. Objects of added pairs are counted only if their folders were read.
	Objects Objects `json:"objects"`
	// LeftOut are the ids of assignments that are in neither output, since errors hide them.
	LeftOut []string `json:"leftOut,omitempty"`

	// objects and concerned count by environment.
	objects   map[string]Objects
	concerned map[string]int
}

// In returns the report of one environment, without the differences of files.
func (r *Report) In(environment string) *Report {
	out := newReport()
	if of, known := r.objects[environment]; known {
		out.Objects = of
	}
	within := func(ids []string) []string {
		return slices.DeleteFunc(slices.Clone(ids),
			func(id string) bool { return !strings.HasPrefix(id, environment+"/") })
	}
	for _, of := range []struct {
		to    *[]Entry
		from  []Entry
		total *int
	}{{&out.Removed, r.Removed, &out.Total.Removed}, {&out.Added, r.Added, &out.Total.Added},
		{&out.Changed, r.Changed, &out.Total.Changed}} {
		for _, e := range of.from {
			if e.Environment == environment {
				*of.to, *of.total = append(*of.to, e), *of.total+e.Count
			}
		}
	}
	for _, of := range []struct{ to, from *Folders }{{&out.Assignments, &r.Assignments},
		{&out.ClusterTypes, &r.ClusterTypes}} {
		of.to.Added, of.to.Removed, of.to.Changed = within(of.from.Added), within(of.from.Removed),
			within(of.from.Changed)
	}
	for _, c := range r.Counts {
		if c.Environment == environment {
			out.Counts = append(out.Counts, c)
			out.Assignments.Unchanged += c.Unchanged
		}
	}
	if r.Clusters != nil {
		out.Clusters = &Clusters{Concerned: r.concerned[environment], Emptied: within(r.Clusters.Emptied),
			Unlisted: within(r.Clusters.Unlisted), Listed: within(r.Clusters.Listed), Moved: []Move{}}
	}
	return out
}

// Objects count objects by kind, such as {"Namespace": 1}. Documents that are not
// Kubernetes objects count as File.
type Objects struct {
	Created map[string]int `json:"created"`
	Updated map[string]int `json:"updated"`
	Deleted map[string]int `json:"deleted"`
}

// inlineClusters is the largest number of names of clusters in a list itself.
const inlineClusters = 100

// Entry is the change of a deployment target on clusters of a type, on all of them alike.
type Entry struct {
	Environment      string `json:"environment"`
	ClusterType      string `json:"clusterType"`
	DeploymentTarget string `json:"deploymentTarget"` // the full name
	// Clusters are the names, sorted, or references to ClusterSets. They are nil if the
	// cluster type lists none. Count is the number of these clusters that no other entry of
	// the deployment target counts. It is 1 if none are listed.
	Clusters []string `json:"clusters,omitempty"`
	Count    int      `json:"count"`
	// The losses of each of the clusters: namespaces, the number of
	// PersistentVolumeClaims, CustomResourceDefinitions, and the number of objects of
	// custom kinds.
	Namespaces                []string `json:"namespaces,omitempty"`
	PersistentVolumeClaims    int      `json:"persistentVolumeClaims,omitempty"`
	CustomResourceDefinitions []string `json:"customResourceDefinitions,omitempty"`
	CustomResources           int      `json:"customResources,omitempty"`
	// Values are the differing values of the platform config. Objects are other differing
	// objects, as "Kind name", or files that contain no objects.
	Values  []Value  `json:"values,omitempty"`
	Objects []string `json:"objects,omitempty"`
	// RenamedTo is the added deployment target with the same sources and values on the same
	// clusters. RenamedFrom is the removed one.
	RenamedTo   string `json:"renamedTo,omitempty"`
	RenamedFrom string `json:"renamedFrom,omitempty"`

	kind Kind
	sets []*clusterSet // that Clusters lists
	jobs []int         // -1 among them for a folder that was not read
}

// Value is a value of the platform config before and after; From or To is absent if the
// value does not exist on that side.
type Value struct {
	Path string          `json:"path"`
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
}

// ID returns <environment>/<clusterType>/<deployment target>, or only the first two for a target
// of an application.
func (e *Entry) ID() string {
	return strings.TrimSuffix(e.Environment+"/"+e.ClusterType+"/"+e.DeploymentTarget, "/")
}

// clusterSet is a set of names of clusters, sorted, which several entries share.
type clusterSet struct {
	names []string
	ref   string // in ClusterSets, or ""
}

// Clusters are the listed clusters that a change concerns.
type Clusters struct {
	// Concerned is the number of clusters on which something differs.
	Concerned int `json:"concerned"`
	// Emptied are the ids, <environment>/<name>, of clusters that stay listed and lose their
	// last assignment, sorted.
	Emptied []string `json:"emptied"`
	// Unlisted are the ids of clusters that are no longer listed, and Listed the ids of new
	// clusters, sorted.
	Unlisted []string `json:"unlisted"`
	Listed   []string `json:"listed"`
	// Moved are the clusters that follow another folder of their environment than before,
	// similar ones together. This is a detail of how the output stores classes.
	Moved     []Move `json:"moved"`
	Unchanged int    `json:"unchanged"` // the others
}

// Move are clusters that follow a different folder than before.
type Move struct {
	Environment string   `json:"environment"`
	From        string   `json:"from,omitempty"` // "" for clusters that are new
	To          string   `json:"to,omitempty"`   // "" for clusters that are no longer listed
	Clusters    []string `json:"clusters"`       // as in Entry
	Count       int      `json:"count"`

	set *clusterSet
}

// Folders are ids, sorted as outputs are. The id of an assignment is
// <environment>/<clusterType>/<deployment target>, the id of a cluster type
// <environment>/<clusterType>. An assignment is in several lists if some clusters of its type
// add it and others remove or change it. The numbers count pairs with clusters.
type Folders struct {
	Added     []string `json:"added"`
	Removed   []string `json:"removed"`
	Changed   []string `json:"changed"`
	Unchanged int      `json:"unchanged"`
}

// Total counts pairs of a deployment target and a cluster.
type Total struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Changed int `json:"changed"`
}

// Counts are numbers of pairs of one cluster type.
type Counts struct {
	Environment string `json:"environment"`
	ClusterType string `json:"clusterType"`
	Added       int    `json:"added"`
	Removed     int    `json:"removed"`
	Changed     int    `json:"changed"`
	Unchanged   int    `json:"unchanged"`
	// Own is the change of the cluster type's own files, in all folders of its classes:
	// added, removed, changed or unchanged. It is "" without such files.
	Own string `json:"own,omitempty"`
	// Clusters is the number of its listed clusters.
	Clusters int `json:"clusters,omitempty"`
	// Lists reports that it lists clusters, before or after.
	Lists bool `json:"-"`
	// detail reports that its own files differ only in text for people.
	detail bool
}

// Group is a difference of files, with its places. If a part of the change differs between
// the places only in names, it has <environment>, <clusterType>, <deploymentTarget> and
// <namespace> instead of the names.
type Group struct {
	Change
	Assignments  []string `json:"assignments"`  // ids, sorted as outputs are
	ClusterTypes []string `json:"clusterTypes"` // ids, sorted as outputs are
	// Clusters are the ids of the clusters whose entries have the change.
	Clusters []string `json:"clusters,omitempty"`
	// Count is the number of pairs that have it. Each cluster of an assignment counts.
	Count int `json:"count,omitempty"`
	// Detail reports that the change does nothing by itself on clusters.
	Detail bool `json:"detail,omitempty"`

	jobs  []int
	names []string // of the listed clusters that have the change, sorted
}

// Change is one difference in a file.
type Change struct {
	Kind Kind   `json:"kind"`
	File string `json:"file"` // path in the folder
	// Object is the object in the YAML document, if it is a Kubernetes object.
	Object *Object `json:"object,omitempty"`
	// Document is the number, from 1, of a YAML document among the documents of the file
	// that are not objects. It is 0 if the file does not have several of them.
	Document int `json:"document,omitempty"`
	// Path is the place of the value in the document, such as
	// spec.containers[name=app].args[0]; "" for the whole document. [] is an element of a
	// list, at any place in it. A path in a YAML document that is a string of another
	// follows a #, as in data["app.yaml"]#log.level.
	Path string `json:"path,omitempty"`
	// From and To are the values before and after. From is absent if something was added,
	// To if it was removed, and both for a Text. Files that are not YAML are strings.
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
	// Diff is how the lines of a Text differ, as hunks of a unified diff.
	Diff string `json:"diff,omitempty"`

	assignment string // that the object is made for, by its annotation, or ""
	detail     bool   // as in Group
}

// Kind is the kind of a change.
type Kind string

// The kinds of changes.
const (
	Added     Kind = "added"
	Removed   Kind = "removed"
	Changed   Kind = "changed"
	Reordered Kind = "reordered" // the same elements of a list in another order
	// Text is a change of lines in a file that is not YAML. It is also a change of
	// something that is not a value, such as a comment.
	Text Kind = "text"
	// Mode reports that a file became executable, or is no longer executable. From and To
	// are git's modes for it, "100644" and "100755". An executable file that was added or
	// removed has this change in addition to the change of its content.
	Mode Kind = "mode"
)

// Object identifies a Kubernetes object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func newReport() *Report {
	none := func() Folders {
		return Folders{Added: []string{}, Removed: []string{},
			Changed: []string{}}
	}
	return &Report{
		APIVersion: "kalypso.io/v1alpha1", Kind: "Diff", Removed: []Entry{}, Added: []Entry{},
		Changed:     []Entry{},
		Assignments: none(), ClusterTypes: none(), Counts: []Counts{}, Groups: []Group{},
		Objects: newObjects(), objects: map[string]Objects{}, concerned: map[string]int{},
	}
}

func newObjects() Objects {
	return Objects{Created: map[string]int{}, Updated: map[string]int{}, Deleted: map[string]int{}}
}

// Empty reports whether the outputs are equal.
func (r *Report) Empty() bool {
	for _, f := range []Folders{r.Assignments, r.ClusterTypes} {
		if len(f.Added)+len(f.Removed)+len(f.Changed) > 0 {
			return false
		}
	}
	return r.Clusters == nil || len(r.Clusters.Moved) == 0 && r.Clusters.Concerned == 0
}

// outcome is the change of a folder.
type outcome string

const (
	added     outcome = "added"
	removed   outcome = "removed"
	changed   outcome = "changed"
	unchanged outcome = "unchanged"
)

// clone returns a copy of a change. The copy shares nothing that anybody changes.
func (c Change) clone() Change {
	if c.Object != nil {
		o := *c.Object
		c.Object = &o
	}
	c.From, c.To = slices.Clone(c.From), slices.Clone(c.To)
	return c
}
