package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
}

// ParseClusterTypeRecord reads what Encode writes. The bytes need not be trusted:
// what it returns names only paths that kalypso may write, and can be encoded
// again.
func ParseClusterTypeRecord(data []byte) (*ClusterTypeRecord, error) {
	c := &ClusterTypeRecord{}
	if err := jsonv2.Unmarshal(data, c); err != nil { // in half of the time that encoding/json takes
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
	if err := c.check(); err != nil {
		return nil, err
	}
	c.normalize()
	return c, nil
}

// check reports what must not be in a record: see ParseClusterTypeRecord.
func (c *ClusterTypeRecord) check() error {
	if err := c.checkNames(); err != nil {
		return err
	}
	for i := range c.Assignments {
		if id := c.Assignments[i].Tree; !id.valid() {
			return fmt.Errorf("%q is not a git id", id)
		}
	}
	var paths []string
	for p, b := range c.each {
		if !b.ID.valid() {
			return fmt.Errorf("%q is not a git id", b.ID)
		}
		paths = append(paths, p)
	}
	return CheckPaths(paths)
}

// checkNames reports names of folders that are not sorted, not unique or not
// names of folders.
func (c *ClusterTypeRecord) checkNames() error {
	if err := checkPartName(c.Name); err != nil {
		return fmt.Errorf("cluster type: %w", err)
	}
	if err := c.checkEntries(); err != nil {
		return err
	}
	last := ""
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

// normalize gives a record that was read the form of one that was made.
func (c *ClusterTypeRecord) normalize() {
	if c.Files == nil {
		c.Files = map[string]Blob{}
	}
	if c.Assignments == nil {
		c.Assignments = []AssignmentRecord{}
	}
	for i := range c.Entries {
		if c.Entries[i].Files == nil {
			c.Entries[i].Files = map[string]Blob{}
		}
	}
	for i := range c.Assignments {
		a := &c.Assignments[i]
		a.Shared = compacted(a.Shared)
		if a.Files == nil {
			a.Files = map[string]Blob{}
		}
	}
}

// compacted is raw JSON without white space between its tokens.
func compacted(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	var buf bytes.Buffer
	_ = json.Compact(&buf, raw) // it was parsed, so it is JSON
	return buf.Bytes()
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
	}
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
	e := ClusterTypeEntry{Name: c.Name, Tree: c.treeID(), Digest: digest, Assignments: len(c.Assignments), Record: BlobID(encoded)}
	for i := range c.Assignments {
		if c.Assignments[i].Kept != nil {
			e.Kept++
		}
	}
	if e.Kept > 0 || c.Kept != "" {
		e.Digest = ""
	}
	return e
}

// treeID returns the id of the cluster type's folder. The assignments' own ids
// are right.
func (c *ClusterTypeRecord) treeID() ID {
	entries := make([]treeEntry, 0, len(c.Files)+len(c.Assignments))
	for p, b := range c.Files {
		if strings.Contains(p, "/") { // in a folder, which may be an assignment's
			files := map[string]Blob{}
			for p, b := range c.each {
				files[p[len(c.Name)+1:]] = b
			}
			return TreeID(files)
		}
		entries = append(entries, treeEntry{p, b.mode(), b.ID})
	}
	for i := range c.Entries {
		entries = append(entries, treeEntry{c.Entries[i].Cluster, git.FolderMode, TreeID(c.Entries[i].Files)})
	}
	for i := range c.Assignments {
		entries = append(entries, treeEntry{c.Assignments[i].DeploymentTarget, git.FolderMode, c.Assignments[i].Tree})
	}
	return treeOfEntries(entries)
}

// Encode returns the record's JSON, with a line for each assignment: so a change
// of one is a change of a line. It fails only if a folder's Shared is not JSON.
func (c *ClusterTypeRecord) Encode() ([]byte, error) {
	b := make([]byte, 0, 1024+len(c.Files)*80)
	b = appendString(append(b, "{\n  \"apiVersion\": "...), c.APIVersion)
	b = appendString(append(b, ",\n  \"kind\": "...), c.Kind)
	b = appendString(append(b, ",\n  \"name\": "...), c.Name)
	b = appendFiles(append(b, ",\n  \"files\": "...), c.Files)
	if c.Kept != "" {
		b = appendString(append(b, ",\n  \"kept\": "...), c.Kept)
	}
	if len(c.Clusters) > 0 {
		b = append(b, ",\n  \"clusters\": ["...)
		for i, name := range c.Clusters {
			b = appendString(appendNext(b, i), name)
		}
		b = append(b, "\n  ]"...)
	}
	if len(c.Entries) > 0 {
		b = append(b, ",\n  \"entries\": ["...)
		for i := range c.Entries {
			e := &c.Entries[i]
			b = appendString(appendField(append(appendNext(b, i), '{'), "cluster", true), e.Cluster)
			b = appendString(appendField(b, "folder", false), e.Folder)
			b = append(appendFiles(appendField(b, "files", false), e.Files), '}')
		}
		b = append(b, "\n  ]"...)
	}
	b = append(b, ",\n  \"assignments\": ["...)
	before := len(b)
	for i := range c.Assignments {
		b = appendNext(b, i)
		var err error
		if b, err = c.Assignments[i].append(b); err != nil {
			return nil, fmt.Errorf("folder %s/%s: %w", c.Name, c.Assignments[i].DeploymentTarget, err)
		}
		if i == 0 { // the others are about as long
			b = slices.Grow(b, (len(b)-before)*len(c.Assignments)*5/4)
		}
	}
	if len(c.Denied) > 0 {
		b = append(b, "\n  ],\n  \"denied\": ["...)
		for i, d := range c.Denied {
			b = appendString(appendField(append(appendNext(b, i), '{'), "deploymentTarget", true), d.DeploymentTarget)
			b = append(appendStrings(b, "policies", d.Policies), '}')
		}
	}
	return append(b, "\n  ]\n}\n"...), nil
}

// append appends what encoding/json makes of the assignment, without its cost.
func (a *AssignmentRecord) append(b []byte) ([]byte, error) {
	text := func(name, value string) {
		b = appendString(appendField(b, name, b[len(b)-1] == '{'), value)
	}
	b = append(b, '{')
	text("deploymentTarget", a.DeploymentTarget)
	text("workspace", a.Workspace)
	text("workload", a.Workload)
	text("namespace", a.Namespace)
	if a.Version != "" {
		text("version", a.Version)
	}
	if a.Orphan {
		b = append(appendField(b, "orphan", false), "true"...)
	}
	b = appendStrings(b, "dependsOn", a.DependsOn)
	if a.Wave != 0 {
		b = strconv.AppendInt(appendField(b, "wave", false), int64(a.Wave), 10)
	}
	text("backend", a.Backend)
	b = appendStrings(b, "retained", a.Retained)
	if len(a.Shared) > 0 {
		buf := bytes.NewBuffer(appendField(b, "shared", false))
		if err := json.Compact(buf, a.Shared); err != nil {
			return nil, fmt.Errorf("what the index needs to know of it is not JSON: %w", err)
		}
		b = buf.Bytes()
	}
	text("tree", string(a.Tree))
	text("values", string(a.Values))
	b = appendFiles(appendField(b, "files", false), a.Files)
	b = appendStrings(b, "policies", a.Policies)
	b = appendStrings(b, "sparedBy", a.SparedBy)
	b = appendStrings(b, "configs", a.Configs)
	b = appendStrings(b, "configSchemas", a.ConfigSchemas)
	if a.Kept != nil {
		kept, err := encode(a.Kept)
		if err != nil {
			return nil, err
		}
		b = append(appendField(b, "kept", false), kept...)
	}
	return append(b, '}'), nil
}

// encode is json.Marshal, but leaves the characters of HTML as they are.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// appendNext begins the line of an element of an array.
func appendNext(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return append(b, "\n    "...)
}

func appendField(b []byte, name string, first bool) []byte {
	if !first {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, "\":"...)
}

// appendStrings appends a field that is a list of strings, unless it is empty.
func appendStrings(b []byte, name string, list []string) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(appendField(b, name, false), '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

func appendFiles(b []byte, files map[string]Blob) []byte {
	b = append(b, '{')
	for i, p := range slices.Sorted(maps.Keys(files)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = files[p].append(append(appendString(b, p), ':'))
	}
	return append(b, '}')
}

// asIs are the bytes that stand for themselves in a JSON string.
var asIs = func() (out [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		out[c] = c != '"' && c != '\\'
	}
	return out
}()

// appendString appends a JSON string.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !asIs[s[i]] {
			quoted, _ := encode(s) // a string cannot fail
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
