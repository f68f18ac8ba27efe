package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const (
	apiVersion = "kalypso.io/v1alpha1"
	recordKind = "Provenance"
)

// Record is .kalypso/provenance.json: what an environment's tree is and what
// built it. Equal inputs give equal records: there is no clock and no host name
// in it.
type Record struct {
	APIVersion  string   `json:"apiVersion"`
	Kind        string   `json:"kind"`
	Platform    string   `json:"platform"`
	Environment string   `json:"environment"`
	Compiler    Compiler `json:"compiler"`
	Source      Source   `json:"source"`
	// Tree is the id of all files that the record lists, which .kalypso is not
	// among: the version of the environment's tree.
	Tree         ID                  `json:"tree"`
	ClusterTypes []ClusterTypeRecord `json:"clusterTypes"` // sorted by name
}

// ClusterTypeRecord records a cluster type's folder.
type ClusterTypeRecord struct {
	Name  string        `json:"name"`
	Files map[string]ID `json:"files"` // at its root, by path in it
	// Kept is the reason why Files are those of an earlier build; "" for none.
	Kept        string             `json:"kept,omitempty"`
	Assignments []AssignmentRecord `json:"assignments"` // sorted by deployment target
}

// AssignmentRecord records an assignment's folder.
type AssignmentRecord struct {
	backends.Folder
	Tree   ID            `json:"tree"` // of Files
	Values model.Digest  `json:"values"`
	Files  map[string]ID `json:"files"` // by path in the folder
	// Kept is set where the folder is that of an earlier build.
	Kept *Kept `json:"kept,omitempty"`
}

// Encode returns the record's JSON, indented, with a final newline. It fails
// only if a folder's Shared is not JSON.
func (r *Record) Encode() ([]byte, error) { return encode(r) }

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// errVersion is what ParseRecord's error is for a record of another version of
// kalypso.
var errVersion = errors.New("was written by another version of kalypso")

// ParseRecord reads what Encode writes. The bytes need not be trusted: what it
// returns names only paths that kalypso may write, and can be encoded again.
func ParseRecord(data []byte) (*Record, error) {
	if err := checkHeader(data, recordKind); err != nil {
		return nil, err
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	r.normalize()
	return &r, nil
}

// checkHeader looks at what says how to read the rest.
func checkHeader(data []byte, kind string) error {
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(data, &header); err != nil {
		return err
	}
	if header.Kind != kind {
		return fmt.Errorf("kind is %q, not %s", header.Kind, kind)
	}
	if header.APIVersion != apiVersion {
		return fmt.Errorf("apiVersion %q %w", header.APIVersion, errVersion)
	}
	return nil
}

func (r *Record) check() error {
	if err := r.checkNames(); err != nil {
		return err
	}
	ids := []ID{r.Tree}
	var paths []string
	for p, id := range r.each {
		paths = append(paths, p)
		ids = append(ids, id)
	}
	for _, c := range r.ClusterTypes {
		for _, a := range c.Assignments {
			ids = append(ids, a.Tree)
		}
	}
	for _, id := range ids {
		if !id.valid() {
			return fmt.Errorf("%q is not a git id", id)
		}
	}
	return checkPaths(paths)
}

// checkNames reports names that are not sorted, not unique or not names of
// folders.
func (r *Record) checkNames() error {
	last := ""
	for _, c := range r.ClusterTypes {
		if err := checkNext("cluster type", last, c.Name); err != nil {
			return err
		}
		last = c.Name
		lastTarget := ""
		for _, a := range c.Assignments {
			if err := checkNext("folder of cluster type "+c.Name, lastTarget, a.DeploymentTarget); err != nil {
				return err
			}
			lastTarget = a.DeploymentTarget
		}
	}
	return nil
}

func checkNext(what, last, name string) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if name <= last {
		return fmt.Errorf("%s: %q comes after %q", what, name, last)
	}
	return nil
}

// normalize gives a record that was read the form of one that was made.
func (r *Record) normalize() {
	if r.ClusterTypes == nil {
		r.ClusterTypes = []ClusterTypeRecord{}
	}
	for i := range r.ClusterTypes {
		c := &r.ClusterTypes[i]
		if c.Files == nil {
			c.Files = map[string]ID{}
		}
		if c.Assignments == nil {
			c.Assignments = []AssignmentRecord{}
		}
		for j := range c.Assignments {
			a := &c.Assignments[j]
			a.Shared = compacted(a.Shared)
			if a.Files == nil {
				a.Files = map[string]ID{}
			}
		}
	}
}

// compacted is raw JSON without the indentation that a record gives it, so that
// a backend reads back what it gave.
func compacted(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	var buf bytes.Buffer
	_ = json.Compact(&buf, raw) // it was parsed, so it is JSON
	return buf.Bytes()
}

// Files returns the ids of all files that the record lists, by path in the
// environment. A nil record lists none.
func (r *Record) Files() map[string]ID {
	files := map[string]ID{}
	for p, id := range r.each {
		files[p] = id
	}
	return files
}

// each yields every file that the record lists, in no order.
func (r *Record) each(yield func(string, ID) bool) {
	if r == nil {
		return
	}
	for _, c := range r.ClusterTypes {
		for p, id := range c.Files {
			if !yield(c.Name+"/"+p, id) {
				return
			}
		}
		for _, a := range c.Assignments {
			for p, id := range a.Files {
				if !yield(c.Name+"/"+a.DeploymentTarget+"/"+p, id) {
					return
				}
			}
		}
	}
}

// clusterType returns what the record says of a cluster type; nil for nothing,
// as of any in a nil record.
func (r *Record) clusterType(name string) *ClusterTypeRecord {
	if r == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(r.ClusterTypes, name, func(c ClusterTypeRecord, name string) int {
		return strings.Compare(c.Name, name)
	})
	if !found {
		return nil
	}
	return &r.ClusterTypes[i]
}

// assignment returns what the record says of a folder; nil for nothing, as of
// any in a nil record.
func (c *ClusterTypeRecord) assignment(target string) *AssignmentRecord {
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
