package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
)

const clusterTypeKind = "ClusterTypeProvenance"

// ClusterTypeRecord is .kalypso/cluster-types/<name>.json: what a cluster type's
// folder is.
type ClusterTypeRecord struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Name       string          `json:"name"`
	Files      map[string]Blob `json:"files"` // at its root, by path in it
	// Kept is the reason why Files are those of an earlier build; "" for none.
	Kept string `json:"kept,omitempty"`
	// Clusters are the names of those that pull the folder, sorted, where the platform
	// lists them: each of them is to report.
	Clusters []string `json:"clusters,omitempty"`
	// Facts are what the folder was made of that is of single clusters, sorted by cluster:
	// those of whom there is anything. It is nil where they are not known.
	Facts []ClusterFacts `json:"facts,omitempty"`
	// Entries are those of clusters, sorted, in a folder of entries.
	Entries     []EntryRecord      `json:"entries,omitempty"`
	Assignments []AssignmentRecord `json:"assignments"` // sorted by deployment target
	// Denied are the pairs that policies take away, sorted by deployment target.
	Denied []Denied `json:"denied,omitempty"`
}

// Denied is a deployment target that policies select and that others, or an except,
// take from the cluster type.
type Denied struct {
	DeploymentTarget string   `json:"deploymentTarget"` // the full name
	Policies         []string `json:"policies"`         // those that take it away, sorted
}

// Selection says what selected an assignment when its folder was built: names, sorted.
type Selection struct {
	Policies []string `json:"policies,omitempty"` // that assign it; a record from before there was such a thing has none
	// SparedBy are the policies with deny whose except leaves it out.
	SparedBy      []string `json:"sparedBy,omitempty"`
	Configs       []string `json:"configs,omitempty"`
	ConfigSchemas []string `json:"configSchemas,omitempty"`
}

// AssignmentRecord records an assignment's folder.
type AssignmentRecord struct {
	backends.Folder
	Tree   ID              `json:"tree"` // of Files
	Values model.Digest    `json:"values"`
	Files  map[string]Blob `json:"files"` // by path in the folder
	Selection
	// Kept is set where the folder is that of an earlier build.
	Kept *Kept `json:"kept,omitempty"`

	made []File // sorted: those of a record that was made, which has no Files until it is asked for
}

// ParseClusterTypeRecord reads what Encode writes. The bytes need not be trusted:
// what it returns names only paths that kalypso may write, and can be encoded
// again.
func ParseClusterTypeRecord(data []byte) (*ClusterTypeRecord, error) {
	return parseClusterTypeRecord(data, new(entryFilesRead))
}

// parseClusterTypeRecord is ParseClusterTypeRecord for one of several records whose entries may
// have the same files.
func parseClusterTypeRecord(data []byte, known *entryFilesRead) (*ClusterTypeRecord, error) {
	c := &ClusterTypeRecord{}
	rest, entries := known.entries(data)
	err := jsonv2.Unmarshal(rest, c) // in half of the time that encoding/json takes
	if entries != nil && (err != nil || c.Entries == nil || len(c.Entries) > 0) {
		*c, entries = ClusterTypeRecord{}, nil
		err = jsonv2.Unmarshal(data, c)
	}
	if err != nil {
		// The header may say more: that of another version is not to be repaired.
		if header := checkHeader(data, clusterTypeKind); header != nil {
			return nil, header
		}
		// Its messages are not the same in each process.
		if plain := json.Unmarshal(data, &ClusterTypeRecord{}); plain != nil {
			return nil, plain
		}
		return nil, errors.New("a name is there twice, or in other letters than kalypso writes")
	}
	if err := checkKind(c.APIVersion, c.Kind, clusterTypeKind); err != nil {
		return nil, err
	}
	if entries != nil {
		c.Entries = entries
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	// A record that was read has the form of one that was made.
	nonNil := func(files *map[string]Blob) {
		if *files == nil {
			*files = map[string]Blob{}
		}
	}
	nonNil(&c.Files)
	if c.Assignments == nil {
		c.Assignments = []AssignmentRecord{}
	}
	for i := range c.Entries {
		nonNil(&c.Entries[i].Files)
	}
	for i := range c.Assignments {
		a := &c.Assignments[i]
		nonNil(&a.Files)
		if a.Shared != nil {
			var compact bytes.Buffer
			_ = json.Compact(&compact, a.Shared) // it was parsed, so it is JSON
			a.Shared = compact.Bytes()
		}
	}
	return c, nil
}

// check reports what must not be in a record: see ParseClusterTypeRecord.
func (c *ClusterTypeRecord) check() error {
	if err := c.checkNames(); err != nil {
		return err
	}
	for i := range c.Assignments {
		if err := checkIDs(c.Assignments[i].Tree); err != nil {
			return err
		}
	}
	rest := *c
	if len(c.Files)+len(c.Assignments) == 0 { // each entry is in a folder of its own
		rest.Entries = nil
		checked := map[uintptr]bool{}
		for i := range c.Entries {
			if files := reflect.ValueOf(c.Entries[i].Files).Pointer(); !checked[files] {
				checked[files] = true
				one := ClusterTypeRecord{Name: c.Name, Entries: c.Entries[i : i+1]}
				if err := one.checkFiles(); err != nil {
					return err
				}
			}
		}
	}
	return rest.checkFiles()
}

// checkFiles reports invalid git ids, and paths that must not be written.
func (c *ClusterTypeRecord) checkFiles() error {
	var paths []string
	for p, b := range c.each {
		if err := checkIDs(b.ID); err != nil {
			return err
		}
		paths = append(paths, p)
	}
	return CheckPaths(paths)
}

// checkNames reports names of folders, entries and facts that are not sorted, not unique or not
// names of folders, and entries that are in the folder of another shard.
func (c *ClusterTypeRecord) checkNames() error {
	if err := checkPartName(c.Name); err != nil {
		return fmt.Errorf("cluster type: %w", err)
	}
	last := ""
	for i := range c.Entries {
		e := &c.Entries[i]
		if err := checkNext("entry", last, e.Cluster); err != nil {
			return err
		}
		if err := checkName(e.Folder); err != nil {
			return err
		}
		if ShardName(e.Cluster) != c.Name {
			return fmt.Errorf("the entry of cluster %q is not in %s", e.Cluster, c.Name)
		}
		last = e.Cluster
	}
	for i := range c.Facts {
		if i > 0 && c.Facts[i].Cluster <= c.Facts[i-1].Cluster {
			return fmt.Errorf("facts of cluster %q come after those of %q", c.Facts[i].Cluster, c.Facts[i-1].Cluster)
		}
	}
	last = ""
	for i := range c.Assignments {
		name := c.Assignments[i].DeploymentTarget
		if err := checkNext("folder of cluster type "+c.Name, last, name); err != nil {
			return err
		}
		last = name
	}
	last = ""
	for _, d := range c.Denied {
		if err := checkNext("denied pair of cluster type "+c.Name, last, d.DeploymentTarget); err != nil {
			return err
		}
		last = d.DeploymentTarget
	}
	return nil
}

// listed returns a record that was made with the Files of its assignments.
func (c *ClusterTypeRecord) listed() *ClusterTypeRecord {
	all := *c
	all.Assignments = slices.Clone(c.Assignments)
	for i := range all.Assignments {
		if a := &all.Assignments[i]; a.Files == nil {
			a.Files, a.made = make(map[string]Blob, len(a.made)), nil
			for _, f := range c.Assignments[i].made {
				a.Files[f.Path] = f.Blob()
			}
		}
	}
	return &all
}

// each yields every file that the record lists, by path in the environment, in
// no order. A nil record lists none.
func (c *ClusterTypeRecord) each(yield func(string, Blob) bool) {
	if c == nil {
		return
	}
	for p, b := range c.Files {
		if !yield(c.Name+"/"+p, b) {
			return
		}
	}
	for i := range c.Entries {
		dir := c.Name + "/" + c.Entries[i].Cluster + "/"
		for p, b := range c.Entries[i].Files {
			if !yield(dir+p, b) {
				return
			}
		}
	}
	for i := range c.Assignments {
		dir := c.Name + "/" + c.Assignments[i].DeploymentTarget + "/"
		for p, b := range c.Assignments[i].Files {
			if !yield(dir+p, b) {
				return
			}
		}
		for _, f := range c.Assignments[i].made {
			if !yield(dir+f.Path, f.Blob()) {
				return
			}
		}
	}
}

// inFolder returns every file that the record lists, by path in the cluster type's folder.
func (c *ClusterTypeRecord) inFolder() map[string]Blob {
	files := map[string]Blob{}
	for p, b := range c.each {
		files[p[len(c.Name)+1:]] = b
	}
	return files
}

// Assignment returns the record of a folder; nil for nothing, as of
// any in a nil record.
func (c *ClusterTypeRecord) Assignment(target string) *AssignmentRecord {
	if c == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(c.Assignments, target, func(a AssignmentRecord, target string) int {
		return strings.Compare(a.DeploymentTarget, target)
	})
	if !found {
		return nil
	}
	return &c.Assignments[i]
}

// entry returns this one's entry in the environment's record, whose bytes it
// is given.
func (c *ClusterTypeRecord) entry(digest model.Digest, encoded []byte) ClusterTypeEntry {
	e := ClusterTypeEntry{Name: c.Name, Tree: c.treeID(), Digest: digest,
		Assignments: len(c.Assignments), Record: BlobID(encoded)}
	for i := range c.Assignments {
		if c.Assignments[i].Kept != nil {
			e.Kept++
		}
	}
	if e.Kept > 0 || c.Kept != "" || slices.ContainsFunc(c.Facts, func(f ClusterFacts) bool { return f.Kept }) {
		e.Digest = ""
	}
	return e
}

// treeID returns the id of the cluster type's folder. The assignments' own ids
// are right.
func (c *ClusterTypeRecord) treeID() ID {
	entries := make([]git.Entry, 0, len(c.Files)+len(c.Assignments))
	for p, b := range c.Files {
		if strings.Contains(p, "/") { // in a folder, which may be an assignment's
			return TreeID(c.inFolder())
		}
		entries = append(entries, git.Entry{Name: p, Mode: b.mode(), ID: hash(b.ID)})
	}
	for i := range c.Entries {
		entries = append(entries, git.Entry{Name: c.Entries[i].Cluster, Mode: git.FolderMode,
			ID: hash(TreeID(c.Entries[i].Files))})
	}
	for i := range c.Assignments {
		entries = append(entries, git.Entry{Name: c.Assignments[i].DeploymentTarget, Mode: git.FolderMode,
			ID: hash(c.Assignments[i].Tree)})
	}
	return treeOfEntries(entries)
}

// ClusterFacts is what of a cluster is in the files of its cluster type, so that it stays there
// while errors hide the cluster.
type ClusterFacts struct {
	Cluster string            `json:"cluster"`
	Address string            `json:"address,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Values  *model.Value      `json:"values,omitempty"`
	// Composed are the values that are composed for it alone, by deployment target.
	Composed map[string]model.Value `json:"composed,omitempty"`
	// Kept says that they are those of an earlier build.
	Kept bool `json:"kept,omitempty"`
}

// Encode returns the JSON that the record has.
func (f *ClusterFacts) Encode() ([]byte, error) { return encode(f) }

// IsEmpty says whether there is nothing but the cluster's name.
func (f *ClusterFacts) IsEmpty() bool {
	return f.Address == "" && len(f.Labels) == 0 && f.Values == nil && len(f.Composed) == 0 && !f.Kept
}

// FactsOf returns the recorded facts of a cluster, where Facts are known.
func (c *ClusterTypeRecord) FactsOf(cluster string) ClusterFacts {
	i, found := slices.BinarySearchFunc(c.Facts, cluster,
		func(f ClusterFacts, cluster string) int { return strings.Compare(f.Cluster, cluster) })
	if !found {
		return ClusterFacts{Cluster: cluster}
	}
	return c.Facts[i]
}
