package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
)

const (
	apiVersion = "kalypso.io/v1alpha1"
	recordKind = "Provenance"
)

// Record is .kalypso/provenance.json: the description of an environment's tree and
// of the build that made it. It lists the cluster types. Each of them has a file of
// its own, which ClusterType reads. Equal inputs give equal records: a record
// contains no time and no host name.
type Record struct {
	APIVersion  string   `json:"apiVersion"`
	Kind        string   `json:"kind"`
	Platform    string   `json:"platform"`
	Environment string   `json:"environment"`
	Compiler    Compiler `json:"compiler"`
	Source      Source   `json:"source"` // of the newest build of any part
	// Rings are the parts that get commits one after the other, sorted by name. If the environment
	// is one part, there are no rings, and Source is its source.
	Rings []Ring `json:"rings,omitempty"`
	// Hold stops promotion to the environment; nil if there is no hold.
	Hold *Hold `json:"hold,omitempty"`
	// Named identifies the person who promoted the base commit by name, in an environment without
	// rings; nil if a policy chose the commit.
	Named *NamedPromotion `json:"named,omitempty"`
	// Clock is ClockSet if a user set the clock of the run that wrote the record; "" if the run
	// used the real time.
	Clock string `json:"clock,omitempty"`
	// OCI is the OCI registry where the environment's gitops keeps the tree; nil if it uses
	// another kind of storage.
	OCI *OCI `json:"oci,omitempty"`
	// Git is the git repository with the tree; nil if the environment does not use git.
	Git *Git `json:"git,omitempty"`
	// Tree is the id of all files that the cluster types' records list: the version of the
	// environment's tree. It does not include .kalypso.
	Tree         ID                 `json:"tree"`
	ClusterTypes []ClusterTypeEntry `json:"clusterTypes"` // sorted by name

	load func(name string) (*ClusterTypeRecord, error)
	// the verified bytes for load; nil if bytes are not available
	bytes  func(name string) ([]byte, error)
	parse  func(name string, data []byte) (*ClusterTypeRecord, error)
	mu     sync.Mutex
	loaded map[string]func() (*ClusterTypeRecord, error)
	split  map[string]func() (*recordLines, error)
}

// ClusterTypeEntry is the entry of a cluster type in a record, without its own file.
type ClusterTypeEntry struct {
	Name string `json:"name"`
	Tree ID     `json:"tree"` // of the cluster type's folder
	// Digest is the digest of ClusterType; "" if something is kept.
	Digest      model.Digest `json:"digest,omitempty"`
	Assignments int          `json:"assignments"`    // their number, including kept ones
	Kept        int          `json:"kept,omitempty"` // how many of them are kept
	Record      ID           `json:"record"`         // of the cluster type's file
	Ring        string       `json:"ring,omitempty"` // that the cluster type was built for
	// Compiler and Source belong to the build that wrote the folder, if that build is not the
	// record's build. They are nil if they equal the record's Compiler and Source.
	Compiler *Compiler `json:"compiler,omitempty"`
	Source   *Source   `json:"source,omitempty"`

	// corrected means that an unfinished write changed the folder. The cluster type's record
	// describes the actual folder, and Record does not apply.
	corrected bool
}

// RecordError reports that kalypso cannot use a record: it is missing, damaged, or written by
// another version of kalypso.
type RecordError struct {
	Path string // in the environment's folder
	File string // as the user would open it; "" if the record is not in a file
	Err  error
}

// Error returns the path of the record and the reason.
func (e *RecordError) Error() string { return e.Path + " cannot be read: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *RecordError) Unwrap() error { return e.Err }

// adoptable reports whether --adopt continues despite the error. It does not overwrite a record of
// another version of kalypso.
func (e *RecordError) adoptable() bool { return !errors.Is(e.Err, errVersion) }

// Diagnostic returns the error as diag.BadRecord.
func (e *RecordError) Diagnostic() diag.Diagnostic {
	file := e.File
	if file == "" {
		file = e.Path
	}
	report := diag.New(diag.BadRecord, e.Error()).In(model.Position{File: file, Line: 1, Column: 1},
		"")
	if !e.adoptable() {
		return report.Hinting("use the version of kalypso that wrote it, or a newer one")
	}
	return report.Hinting(
		"restore the file from git, or take over the files that are there with --adopt")
}

// errVersion is the error of ParseRecord for a record of another version of kalypso.
var errVersion = errors.New("was written by another version of kalypso")

// ParseRecord reads the output of Encode. The bytes need not be trusted: the returned record names
// only folders that kalypso may write, and Encode can encode it again. load returns the bytes of
// ClusterTypeRecordPath for a cluster type of the record. These need not be trusted either. Several
// goroutines call load.
func ParseRecord(data []byte, load func(name string) ([]byte, error)) (*Record, error) {
	if err := checkHeader(data, recordKind); err != nil {
		return nil, err
	}
	r := &Record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.ClusterTypes == nil {
		r.ClusterTypes = []ClusterTypeEntry{}
	}
	r.setSource(identified(load), func(err error) error { return err })
	return r, nil
}

// identified returns a function that reads bytes, and adds their id.
func identified(read func(name string) ([]byte, error)) func(string) ([]byte, ID, error) {
	return func(name string) ([]byte, ID, error) {
		data, err := read(name)
		return data, BlobID(data), err
	}
}

// parse reads the bytes of the cluster type's record. Its errors are RecordErrors.
func (e *ClusterTypeEntry) parse(data []byte) (*ClusterTypeRecord, error) {
	if err := e.verify(BlobID(data)); err != nil {
		return nil, err
	}
	return e.parseAny(data, new(entryFilesRead))
}

// verify returns an error if the id is not the id of the cluster type's record.
func (e *ClusterTypeEntry) verify(id ID) error {
	if id != e.Record {
		return e.unusable(
			fmt.Errorf("its content has the id %s, and %s says %s", id, recordPath, e.Record))
	}
	return nil
}

// parseAny is parse for a record that is not the entry's.
func (e *ClusterTypeEntry) parseAny(data []byte, known *entryFilesRead) (*ClusterTypeRecord,
	error) {
	c, err := parseClusterTypeRecord(data, known)
	if err == nil && c.Name != e.Name {
		err = fmt.Errorf("it is about cluster type %q", c.Name)
	}
	if err != nil {
		return nil, e.unusable(err)
	}
	return c, nil
}

// unusable returns the error for a record of the cluster type that cannot be used.
func (e *ClusterTypeEntry) unusable(err error) *RecordError {
	return &RecordError{Path: ClusterTypeRecordPath(e.Name), Err: err}
}

// checkHeader checks the fields that determine how to read the rest.
func checkHeader(data []byte, kind string) error {
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(data, &header); err != nil {
		return err
	}
	return checkKind(header.APIVersion, header.Kind, kind)
}

// checkKind returns an error if the header of a file has another kind or version.
func checkKind(version, is, want string) error {
	if is != want {
		return fmt.Errorf("kind is %q, not %s", is, want)
	}
	if version != apiVersion {
		return fmt.Errorf("apiVersion %q %w", version, errVersion)
	}
	return nil
}

// check returns an error if names of cluster types or rings are not sorted, not unique or not names
// of folders, or if ids or numbers are invalid.
func (r *Record) check() error {
	last := ""
	for _, c := range r.ClusterTypes {
		if err := checkPart(last, c.Name); err != nil {
			return err
		}
		last = c.Name
	}
	last = ""
	for _, ring := range r.Rings {
		if err := checkNext("ring", last, ring.Name); err != nil {
			return err
		}
		last = ring.Name
	}
	if err := checkIDs(r.Tree); err != nil {
		return err
	}
	for _, c := range r.ClusterTypes {
		if err := checkIDs(c.Tree, c.Record); err != nil {
			return err
		}
		if c.Kept < 0 || c.Assignments < c.Kept {
			return fmt.Errorf("cluster type %s has %d assignments, of which %d are kept", c.Name,
				c.Assignments, c.Kept)
		}
	}
	return nil
}

// checkIDs returns an error for the first id that is not a git id.
func checkIDs(ids ...ID) error {
	for _, id := range ids {
		if !id.valid() {
			return fmt.Errorf("%q is not a git id", id)
		}
	}
	return nil
}

// checkNext returns an error if a name is not exactly one element of a path, or does not come after
// the last one. Messages use what as the kind of the named things.
func checkNext(what, last, name string) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if name <= last {
		return fmt.Errorf("%s: %q comes after %q", what, name, last)
	}
	return nil
}

// ClockSet is the value of Record.Clock for a clock that was set.
const ClockSet = "set"

// recordedHold is a Hold in a record, with all its fields. Only Environment may be missing, because
// older records do not have it.
type recordedHold struct {
	Reason      string   `json:"reason"`
	By          string   `json:"by"`
	Until       string   `json:"until"`
	Base        Revision `json:"base"`
	Environment Revision `json:"environment,omitempty"`
}

// Encode returns the record's JSON, with a line for each cluster type and each ring.
func (r *Record) Encode() []byte {
	b := []byte("{")
	line := func(v any) {
		text, _ := encode(v) // it consists of strings and numbers
		b = append(b, text...)
	}
	list := func(name string, n int, element func(i int) any) {
		b = append(b, ",\n  \""+name+"\": ["...)
		for i := range n {
			b = appendNext(b, i)
			line(element(i))
		}
		b = append(b, "\n  ]"...)
	}
	field := func(name string, v any, there bool) {
		if !there {
			return
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, "\n  \""+name+"\": "...)
		line(v)
	}
	field("apiVersion", r.APIVersion, true)
	field("kind", r.Kind, true)
	field("platform", r.Platform, true)
	field("environment", r.Environment, true)
	field("compiler", r.Compiler, true)
	field("source", r.Source, true)
	if len(r.Rings) > 0 {
		list("rings", len(r.Rings), func(i int) any {
			ring := &r.Rings[i]
			return struct {
				Name   string          `json:"name"`
				Source Source          `json:"source"`
				Hold   *recordedHold   `json:"hold,omitempty"`
				Named  *NamedPromotion `json:"named,omitempty"`
			}{ring.Name, ring.Source, (*recordedHold)(ring.Hold), ring.Named}
		})
	}
	field("hold", (*recordedHold)(r.Hold), r.Hold != nil)
	field("named", r.Named, r.Named != nil)
	field("clock", r.Clock, r.Clock != "")
	field("oci", r.OCI, r.OCI != nil)
	field("git", r.Git, r.Git != nil)
	field("tree", r.Tree, true)
	list("clusterTypes", len(r.ClusterTypes), func(i int) any { return &r.ClusterTypes[i] })
	return append(b, "\n}\n"...)
}

// origin returns the compiler and the source of a cluster type's folder.
func (r *Record) origin(clusterType string) (Compiler, Source) {
	c, s := r.Compiler, r.Source
	if e := r.entry(clusterType); e != nil && e.Compiler != nil && e.Source != nil {
		c, s = *e.Compiler, *e.Source
	}
	return c, s
}

// ClusterType returns the record of a cluster type, and reads it once. It returns nil if
// the environment's record is nil or does not list the cluster type. It returns a
// *RecordError if kalypso cannot use the cluster type's file, and the reader's error for
// other failures. ClusterType may be called by several goroutines. The caller must not
// change the returned record.
func (r *Record) ClusterType(name string) (*ClusterTypeRecord, error) {
	if r.entry(name) == nil {
		return nil, nil
	}
	r.mu.Lock()
	load, known := r.loaded[name]
	if !known {
		load = sync.OnceValues(func() (*ClusterTypeRecord, error) { return r.load(name) })
		r.remember(name, load)
	}
	r.mu.Unlock()
	return load()
}

// remember sets the function that returns a cluster type's record. The caller must hold r.mu,
// unless nothing else uses the record yet.
func (r *Record) remember(name string, load func() (*ClusterTypeRecord, error)) {
	if r.loaded == nil {
		r.loaded = map[string]func() (*ClusterTypeRecord, error){}
	}
	r.loaded[name] = load
}

// read is ClusterType for a single use: it does not remember a record that it has to read.
func (r *Record) read(name string) (*ClusterTypeRecord, error) {
	if r.entry(name) == nil {
		return nil, nil
	}
	r.mu.Lock()
	load, known := r.loaded[name]
	r.mu.Unlock()
	if known {
		return load()
	}
	return r.load(name)
}

// entry returns the entry of a cluster type, without the record in its own file. It returns nil if
// the record is nil or does not list the cluster type.
func (r *Record) entry(name string) *ClusterTypeEntry {
	if r == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(r.ClusterTypes, name,
		func(c ClusterTypeEntry, name string) int {
			return strings.Compare(c.Name, name)
		})
	if !found {
		return nil
	}
	return &r.ClusterTypes[i]
}

// Whole reports whether Tree is the id that results from the folders of the cluster types.
func (r *Record) Whole() bool { return r.treeID() == r.Tree }

// treeID returns the id of the tree with the cluster types' trees. Folders of
// entries are in one folder.
func (r *Record) treeID() ID {
	var trees, shards []git.Entry
	for _, c := range r.ClusterTypes {
		if !IsShard(c.Name) {
			trees = append(trees, git.Entry{Name: c.Name, Mode: git.FolderMode, ID: hash(c.Tree)})
		} else if c.Tree != emptyTree {
			shards = append(shards,
				git.Entry{Name: path.Base(c.Name), Mode: git.FolderMode, ID: hash(c.Tree)})
		}
	}
	if len(shards) > 0 {
		trees = append(trees,
			git.Entry{Name: backends.EntriesDir, Mode: git.FolderMode, ID: hash(treeOfEntries(shards))})
	}
	return treeOfEntries(trees)
}
