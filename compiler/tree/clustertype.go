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

// ClusterTypeRecord is .kalypso/cluster-types/<name>.json: the description of
// a cluster type's folder.
type ClusterTypeRecord struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Name       string          `json:"name"`
	Files      map[string]Blob `json:"files"` // at its root, by path in it
	// Kept is the reason why Files stem from an earlier build; "" if they do not.
	Kept string `json:"kept,omitempty"`
	// Clusters are the names of the clusters that pull the folder, sorted, if the platform lists
	// them: each of them must report.
	Clusters []string `json:"clusters,omitempty"`
	// Facts are the properties of single clusters that went into the folder, sorted by cluster.
	// Clusters without such properties have no facts. Facts is nil if they are not known.
	Facts []ClusterFacts `json:"facts,omitempty"`
	// Entries are the entries of clusters, sorted, in a folder of entries.
	Entries     []EntryRecord      `json:"entries,omitempty"`
	Assignments []AssignmentRecord `json:"assignments"` // sorted by deployment target
	// Denied are the pairs that policies remove, sorted by deployment target.
	Denied []DeniedTarget `json:"denied,omitempty"`
}

// DeniedTarget is a deployment target that policies select, and that other policies, or an except,
// remove from the cluster type.
type DeniedTarget struct {
	DeploymentTarget string   `json:"deploymentTarget"` // the full name
	Policies         []string `json:"policies"`         // the policies that remove it, sorted
}

// Selection lists the objects that selected an assignment when its folder was built: names, sorted.
type Selection struct {
	Policies []string `json:"policies,omitempty"` // that assign it; empty in older records
	// SparedBy are the policies with deny that except the assignment.
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
	// Kept is set if the folder stems from an earlier build.
	Kept *Retention `json:"kept,omitempty"`

	made []File // sorted: the files of a record that was made, instead of Files, until listed
}

// ParseClusterTypeRecord reads the output of Encode. The bytes need not be trusted: the returned
// record names only paths that kalypso may write, and Encode can encode it again.
func ParseClusterTypeRecord(data []byte) (*ClusterTypeRecord, error) {
	return parseClusterTypeRecord(data, new(entryFilesRead))
}

// parseClusterTypeRecord is ParseClusterTypeRecord for one of several records whose entries may
// have the same files.
func parseClusterTypeRecord(data []byte, known *entryFilesRead) (*ClusterTypeRecord, error) {
	c := &ClusterTypeRecord{}
	rest, entries := known.entries(data)
	err := jsonv2.Unmarshal(rest, c) // twice as fast as encoding/json
	if entries != nil && (err != nil || c.Entries == nil || len(c.Entries) > 0) {
		*c, entries = ClusterTypeRecord{}, nil
		err = jsonv2.Unmarshal(data, c)
	}
	if err != nil {
		// The header may explain the error: a record of another version must not be repaired.
		if header := checkHeader(data, clusterTypeKind); header != nil {
			return nil, header
		}
		// Its messages differ between processes.
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
	// A record that was read has the same form as one that was made.
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

// check returns an error if the record has invalid content: see ParseClusterTypeRecord.
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

// checkFiles returns an error for invalid git ids, and for paths that must not be written.
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

// checkNames checks that names of folders, entries and facts are sorted, unique and valid names of
// folders. It also returns an error if an entry is in the folder of another shard.
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
			return fmt.Errorf("facts of cluster %q come after those of %q", c.Facts[i].Cluster,
				c.Facts[i-1].Cluster)
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

// listed returns a record that was made, with the Files of its assignments.
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

// each yields every file that the record lists, by path in the environment, in no particular order.
// A nil record lists no files.
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

// Assignment returns the record of a folder; nil if the record is nil or does not list the folder.
func (c *ClusterTypeRecord) Assignment(target string) *AssignmentRecord {
	if c == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(c.Assignments, target,
		func(a AssignmentRecord, target string) int {
			return strings.Compare(a.DeploymentTarget, target)
		})
	if !found {
		return nil
	}
	return &c.Assignments[i]
}

// entry returns the entry of this record in the environment's record. encoded
// is the output of Encode.
func (c *ClusterTypeRecord) entry(digest model.Digest, encoded []byte) ClusterTypeEntry {
	e := ClusterTypeEntry{Name: c.Name, Tree: c.treeID(), Digest: digest,
		Assignments: len(c.Assignments), Record: BlobID(encoded)}
	for i := range c.Assignments {
		if c.Assignments[i].Kept != nil {
			e.Kept++
		}
	}
	if e.Kept > 0 || c.Kept != "" ||
		slices.ContainsFunc(c.Facts, func(f ClusterFacts) bool { return f.Kept }) {
		e.Digest = ""
	}
	return e
}

// treeID returns the id of the cluster type's folder. It trusts the ids of the assignments.
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

// ClusterFacts is the properties of a cluster in the files of its cluster type. The record keeps
// them, so that they stay in the files while errors hide the cluster.
type ClusterFacts struct {
	Cluster string            `json:"cluster"`
	Address string            `json:"address,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Values  *model.Value      `json:"values,omitempty"`
	// Composed are the values that are composed only for this cluster, by deployment target.
	Composed map[string]model.Value `json:"composed,omitempty"`
	// Kept means that the facts stem from an earlier build.
	Kept bool `json:"kept,omitempty"`
}

// Encode returns the facts as JSON, as in the record.
func (f *ClusterFacts) Encode() ([]byte, error) { return encode(f) }

// IsEmpty reports whether the facts contain only the cluster's name.
func (f *ClusterFacts) IsEmpty() bool {
	return f.Address == "" && len(f.Labels) == 0 && f.Values == nil && len(f.Composed) == 0 && !f.Kept
}

// FactsOf returns the recorded facts of a cluster, if Facts are known.
func (c *ClusterTypeRecord) FactsOf(cluster string) ClusterFacts {
	i, found := slices.BinarySearchFunc(c.Facts, cluster,
		func(f ClusterFacts, cluster string) int { return strings.Compare(f.Cluster, cluster) })
	if !found {
		return ClusterFacts{Cluster: cluster}
	}
	return c.Facts[i]
}
