package compare

import (
	"encoding/json"
	"slices"
	"strings"
)

// Report says how one output differs from another. Its JSON is a contract: it
// depends on nothing but the content of the outputs, and lists are never null.
type Report struct {
	APIVersion   string  `json:"apiVersion"`
	Kind         string  `json:"kind"`
	Assignments  Folders `json:"assignments"`
	ClusterTypes Folders `json:"clusterTypes"` // by their own files, beside the assignments' folders
	// Clusters are those that are listed; nil where there are none.
	Clusters *Clusters `json:"clusters,omitempty"`
	// Counts are those of each cluster type, sorted by environment and name.
	Counts []Counts `json:"counts"`
	// Groups are the changes in folders that changed: those of most assignments
	// first, then those of most cluster types, then by text.
	Groups []Group `json:"groups"`
	// LeftOut are the ids of assignments that whoever compares left out of both
	// outputs, since errors hide what they are.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Folders are the ids of folders, sorted as outputs are. Those of assignments
// are <environment>/<clusterType>/<deployment target>, those of cluster types
// <environment>/<clusterType>.
type Folders struct {
	Added     []string `json:"added"`
	Removed   []string `json:"removed"`
	Changed   []string `json:"changed"`
	Unchanged int      `json:"unchanged"`
}

// Counts are numbers of assignments of one cluster type.
type Counts struct {
	Environment string `json:"environment"`
	ClusterType string `json:"clusterType"`
	Added       int    `json:"added"`
	Removed     int    `json:"removed"`
	Changed     int    `json:"changed"`
	Unchanged   int    `json:"unchanged"`
	// Own says what happened to the cluster type's own files: added, removed,
	// changed or unchanged; "" where there are none.
	Own string `json:"own,omitempty"`
	// Clusters are how many of those that are listed follow it.
	Clusters int `json:"clusters,omitempty"`
}

// Group is a change, and the folders that it is in. A part of the change that is
// the same in all of them but for their names has <environment>, <clusterType>,
// <deploymentTarget> and <namespace> for these.
type Group struct {
	Change
	Assignments  []string `json:"assignments"`  // ids, sorted as outputs are
	ClusterTypes []string `json:"clusterTypes"` // ids, sorted as outputs are
	// Clusters are the ids of those whose entries have the change.
	Clusters []string `json:"clusters,omitempty"`
}

// Change is one difference in a file.
type Change struct {
	Kind Kind   `json:"kind"`
	File string `json:"file"` // path in the folder
	// Object is what the YAML document is, if it is a Kubernetes object.
	Object *Object `json:"object,omitempty"`
	// Document is the number, from 1, of a YAML document among those of the file
	// that are no objects; 0 where there are not several of them.
	Document int `json:"document,omitempty"`
	// Path is where in the document the value is, such as
	// spec.containers[name=app].args[0]; "" for all of it. [] stands for an
	// element of a list, wherever it is in it. A path in a YAML document that is a
	// string of another follows a #, as in data["app.yaml"]#log.level.
	Path string `json:"path,omitempty"`
	// From and To are the values before and after; From is absent where
	// something was added, To where it was removed, and both for a Text. Files
	// that are no YAML are strings.
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
	// Diff is how the lines of a Text differ, as hunks of a unified diff.
	Diff string `json:"diff,omitempty"`
}

// Kind is the kind of a change.
type Kind string

// The kinds of changes.
const (
	Added     Kind = "added"
	Removed   Kind = "removed"
	Changed   Kind = "changed"
	Reordered Kind = "reordered" // the same elements of a list in another order
	// Text is a change of lines: in a file that is no YAML, or where what differs
	// is not a value, such as a comment.
	Text Kind = "text"
	// Mode says that a file became executable, or is no longer: From and To are the
	// modes that git has for it, "100644" and "100755". Of an executable file that was
	// added or removed it is a change beside that of its content.
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
	none := func() Folders { return Folders{Added: []string{}, Removed: []string{}, Changed: []string{}} }
	return &Report{
		APIVersion: "kalypso.io/v1alpha1", Kind: "Diff",
		Assignments: none(), ClusterTypes: none(), Counts: []Counts{}, Groups: []Group{},
	}
}

// OfTargets returns the report on trees whose cluster types are targets of an
// application, with files and no assignments: where it names cluster types, these are
// assignments then, so that they are counted and shown as what is deployed.
func (r *Report) OfTargets() *Report {
	out := newReport()
	out.Assignments = r.ClusterTypes
	for _, c := range r.Counts {
		of := Counts{Environment: c.Environment, ClusterType: c.ClusterType}
		switch outcome(c.Own) {
		case added:
			of.Added = 1
		case removed:
			of.Removed = 1
		case changed:
			of.Changed = 1
		case unchanged:
			of.Unchanged = 1
		}
		out.Counts = append(out.Counts, of)
	}
	named := strings.NewReplacer("<clusterType>", "<target>")
	for _, g := range r.Groups {
		g.Change = g.Change.replaced(named)
		g.Assignments, g.ClusterTypes = g.ClusterTypes, []string{}
		out.Groups = append(out.Groups, g)
	}
	out.LeftOut = r.LeftOut
	return out
}

// Empty says whether the outputs are equal.
func (r *Report) Empty() bool {
	for _, f := range []Folders{r.Assignments, r.ClusterTypes} {
		if len(f.Added)+len(f.Removed)+len(f.Changed) > 0 {
			return false
		}
	}
	return r.Clusters == nil || len(r.Clusters.Moves)+len(r.Clusters.Changed) == 0
}

// outcome is what happened to a folder.
type outcome string

const (
	added     outcome = "added"
	removed   outcome = "removed"
	changed   outcome = "changed"
	unchanged outcome = "unchanged"
)

// count counts a folder. Folders come in the order of outputs.
func (r *Report) count(f *Folder, what outcome) {
	if n := len(r.Counts); n == 0 || r.Counts[n-1].Environment != f.Environment || r.Counts[n-1].ClusterType != f.ClusterType {
		r.Counts = append(r.Counts, Counts{Environment: f.Environment, ClusterType: f.ClusterType})
	}
	c := &r.Counts[len(r.Counts)-1]
	if f.Assignment == "" {
		c.Own = string(what)
		r.ClusterTypes.count(f, what, new(Counts))
		return
	}
	r.Assignments.count(f, what, c)
}

func (fs *Folders) count(f *Folder, what outcome, c *Counts) {
	switch what {
	case added:
		fs.Added = append(fs.Added, f.ID())
		c.Added++
	case removed:
		fs.Removed = append(fs.Removed, f.ID())
		c.Removed++
	case changed:
		fs.Changed = append(fs.Changed, f.ID())
		c.Changed++
	case unchanged:
		fs.Unchanged++
		c.Unchanged++
	}
}

// clone returns a change that shares nothing that is written to.
func (c Change) clone() Change {
	if c.Object != nil {
		o := *c.Object
		c.Object = &o
	}
	c.From, c.To = slices.Clone(c.From), slices.Clone(c.To)
	return c
}
