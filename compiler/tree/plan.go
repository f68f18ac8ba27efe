package tree

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// writePlan lists the changes of a write.
type writePlan struct {
	before    *state
	next      *Record
	nextBytes []byte
	header    bool // .kalypso/provenance.json must be written
	recorded  bool // that file or the record of a cluster type must be written
	parts     []*typePlan
	began     time.Time // when the planner read the first file
	vacant    bool      // the folder was empty
	// learnt means that a file was read that the next write need not read again.
	learnt bool
}

// typePlan lists the changes of a write to a cluster type.
type typePlan struct {
	name   string
	wanted *ClusterType      // nil if the cluster type is removed
	before *ClusterTypeEntry // nil if there is no record of it
	next   *ClusterTypeEntry // nil if the cluster type is removed
	record bool              // its record must be written

	outcome *outcome      // nil if it was not computed, or is not in memory
	missing []missingFile // files to be written
	removed []string      // paths of files to be removed, sorted
	empty   []string      // folders at the paths of files to be written
	changes []*change     // all of these, folder by folder

	section *section // of the index; nil if nothing is known
	revised bool     // the section differs from the previous index

	unchanged   int
	assignments AssignmentChanges
	report      []diag.Diagnostic
}

// done reports whether the folder is as desired, and contains nothing of a write that was killed.
func (p *writePlan) done() bool {
	changes := func(p *typePlan) bool { return len(p.missing) > 0 || len(p.removed) > 0 }
	return !p.recorded && p.before.journal == nil && len(p.before.litter) == 0 && !p.before.staging &&
		!slices.ContainsFunc(p.parts, changes)
}

// missingFile are files of a group that must be written. The plan does not keep their ids.
type missingFile struct {
	folder int      // as in group
	dir    string   // as in group
	names  []string // paths in dir, in the order of the group
}

// written yields the paths of the files to be written.
func (p *typePlan) written(yield func(string) bool) {
	for _, m := range p.missing {
		for _, name := range m.names {
			if !yield(m.dir + "/" + name) {
				return
			}
		}
	}
}

// planner makes a plan.
type planner struct {
	at     location
	survey func() surveyor
	dir    *Dir // nil if there is no index
	o      Options
	before *state
	began  time.Time
	index  *index          // nil if there is no usable index
	intact map[string]bool // cluster types whose records match the environment's record
	learnt atomic.Bool
	// held is the number of files in the outcomes in memory, and maxHeld is its limit: see hold.
	held    atomic.Int64
	maxHeld int64
}

// plan compares the folder with a tree. With diagnostics, the plan is nil.
func (d *Dir) plan(ctx context.Context, t *Tree, o Options) (*writePlan, []diag.Diagnostic, error) {
	s := newSurvey(d.root)
	defer s.close()
	pl := &planner{at: d.location, survey: func() surveyor { return newSurvey(d.root) }, dir: d,
		maxHeld: d.maxHeld, o: o, began: time.Now()}
	before, problems, err := d.load(s, o.Adopt)
	if err != nil {
		return nil, nil, err
	}
	pl.before = before
	problems = append(problems, d.belongs(before, o)...)
	if report := unsolved(problems, o.Adopt); len(report) > 0 {
		return nil, report, nil
	}
	parts, err := partsOf(t, before)
	if err != nil {
		return nil, nil, err
	}
	if !o.Verify {
		if pl.index, err = d.loadIndex(s, before); err != nil {
			return nil, nil, err
		}
	}
	vacant, err := d.vacant()
	if err != nil {
		return nil, nil, err
	}
	if pl.intact, err = pl.intactRecords(); err != nil {
		return nil, nil, err
	}
	if err := eachPart(parts,
		func(_ int, p *typePlan) error { return pl.compare(ctx, p) }); err != nil {
		return nil, nil, err
	}
	if report := reports(parts); len(report) > 0 {
		return nil, report, nil
	}
	p := pl.finish(ctx, parts)
	p.vacant = vacant
	return p, nil, nil
}

// eachPart calls a function for the parts, several at once. It returns the error of the
// first part with an error.
func eachPart(parts []*typePlan, do func(i int, p *typePlan) error) error {
	errs := make([]error, len(parts))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range parts {
		g.Go(func() error {
			errs[i] = do(i, p)
			return nil
		})
	}
	_ = g.Wait() // no function returns an error
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// reports returns the diagnostics of the parts.
func reports(parts []*typePlan) []diag.Diagnostic {
	var all []diag.Diagnostic
	for _, p := range parts {
		all = append(all, p.report...)
	}
	return all
}

// partsOf returns the cluster types of the tree, of the record and of the journal, by name.
func partsOf(t *Tree, before *state) ([]*typePlan, error) {
	var parts []*typePlan
	last := ""
	for i := range t.ClusterTypes {
		ct := &t.ClusterTypes[i]
		if err := checkPart(last, ct.Name); err != nil {
			return nil, err
		}
		last = ct.Name
		parts = append(parts, &typePlan{name: ct.Name, wanted: ct, before: before.record.entry(ct.Name)})
	}
	known := map[string]bool{}
	for _, p := range parts {
		known[p.name] = true
	}
	add := func(name string) {
		if !known[name] {
			known[name] = true
			parts = append(parts, &typePlan{name: name, before: before.record.entry(name)})
		}
	}
	if before.record != nil {
		for _, e := range before.record.ClusterTypes {
			add(e.Name)
		}
	}
	for name := range before.unfinished {
		add(name)
	}
	slices.SortFunc(parts, func(a, b *typePlan) int { return strings.Compare(a.name, b.name) })
	return parts, nil
}

// finish makes the plan from its parts.
func (pl *planner) finish(ctx context.Context, parts []*typePlan) *writePlan {
	p := &writePlan{before: pl.before, parts: parts, began: pl.began, learnt: pl.learnt.Load()}
	p.next = &Record{
		APIVersion: apiVersion, Kind: recordKind,
		Platform: pl.o.Platform, Environment: pl.o.Environment,
		Compiler: pl.o.Compiler, Source: pl.o.Source, Rings: pl.o.Rings, Hold: pl.o.Hold,
		Named: pl.o.Named, Clock: pl.o.Clock, OCI: pl.o.OCI, Git: pl.o.Git,
		ClusterTypes: []ClusterTypeEntry{},
	}
	made := map[string]*typePlan{}
	for _, part := range parts {
		if part.next != nil {
			p.next.ClusterTypes = append(p.next.ClusterTypes, pl.originated(part))
		}
		if part.record {
			p.recorded = true
			made[part.name] = part
		}
	}
	p.next.Tree = p.next.treeID()
	p.nextBytes = p.next.Encode()
	p.header = !bytes.Equal(p.nextBytes, pl.before.recordBytes)
	p.recorded = p.recorded || p.header
	previous := pl.before.record
	p.next.load = func(name string) (*ClusterTypeRecord, error) {
		part, remade := made[name]
		if !remade {
			return previous.ClusterType(name)
		}
		out, err := part.remake(ctx, previous)
		if err != nil {
			return nil, err
		}
		return out.record.listed(), nil
	}
	return p
}

// originated returns the entry of a part. If this build does not include the part, the entry has
// its own compiler and source.
func (pl *planner) originated(p *typePlan) ClusterTypeEntry {
	e := *p.next
	e.Compiler, e.Source = nil, nil
	if p.wanted == nil || !p.wanted.Outside || pl.before.record == nil {
		if e.Ring = pl.o.Ring; IsShard(p.name) {
			e.Ring = ""
		}
		return e
	}
	if c, s := pl.before.record.origin(p.name); c != pl.o.Compiler || s != pl.o.Source {
		e.Compiler, e.Source = &c, &s
	}
	return e
}

// maxHeld is the number of files whose content stays in memory between the comparison and the
// write. The content of other files is made a second time.
const maxHeld = 20_000

// remake returns the outcome for the part's folder, as in the comparison.
func (p *typePlan) remake(ctx context.Context, previous *Record) (*outcome, error) {
	if p.outcome != nil {
		return p.outcome, nil
	}
	var before *ClusterTypeRecord
	if p.before != nil {
		var err error
		if before, err = previous.read(p.name); err != nil {
			return nil, err
		}
	}
	out, err := outcomeOf(ctx, p.wanted, before, previous)
	if err != nil {
		return nil, err
	}
	if out.entry.Record != p.next.Record {
		return nil, errors.New("cluster type " + p.name + " has other content than a moment ago")
	}
	return out, nil
}

// unsolved returns the diagnostics of the remaining problems.
func unsolved(problems []problem, adopt bool) []diag.Diagnostic {
	var report []diag.Diagnostic
	for _, p := range problems {
		if !adopt || !p.adoptable {
			report = append(report, p.Diagnostic)
		}
	}
	return report
}

// Changes are the changes of a write, actual or possible. Paths are sorted. Changes do not include
// paths in .kalypso, or anything about cluster types that are Outside.
type Changes struct {
	Written     []string // new files and files with new content
	Removed     []string
	Unchanged   int // files, kept ones included
	Assignments AssignmentChanges
	// Recorded means that a record itself is new or changed, for example if only the source changed
	// and not the tree.
	Recorded bool
	// Record describes the tree that is, or would be, written. Its cluster types are made from the
	// tree, or read from the folder, which must then be open.
	Record *Record
}

// AssignmentChanges compares the assignments of a tree with the previous record. Names have the
// form <environment>/<clusterType>/<workload>-<target>, sorted by cluster type and deployment
// target. Each assignment is in one list, or counted in Unchanged.
type AssignmentChanges struct {
	Added, Changed, Removed, Kept []string
	Unchanged                     int
}

// Empty reports whether there is nothing to write.
func (c *Changes) Empty() bool { return len(c.Written) == 0 && len(c.Removed) == 0 && !c.Recorded }

// add adds the changes of the next cluster type.
func (a *AssignmentChanges) add(b *AssignmentChanges) {
	a.Added = append(a.Added, b.Added...)
	a.Changed = append(a.Changed, b.Changed...)
	a.Removed = append(a.Removed, b.Removed...)
	a.Kept = append(a.Kept, b.Kept...)
	a.Unchanged += b.Unchanged
}

// compareAssignments compares the assignments in two records of one cluster type. Each of the
// records may be nil.
func compareAssignments(environment string, before, after *ClusterTypeRecord) AssignmentChanges {
	var changes AssignmentChanges
	if after != nil {
		for i := range after.Assignments {
			a := &after.Assignments[i]
			id := environment + "/" + after.Name + "/" + a.DeploymentTarget
			switch b := before.Assignment(a.DeploymentTarget); {
			case a.Kept != nil:
				changes.Kept = append(changes.Kept, id)
			case b == nil:
				changes.Added = append(changes.Added, id)
			case a.Tree != b.Tree:
				changes.Changed = append(changes.Changed, id)
			default:
				changes.Unchanged++
			}
		}
	}
	if before != nil {
		for i := range before.Assignments {
			target := before.Assignments[i].DeploymentTarget
			if after.Assignment(target) == nil {
				changes.Removed = append(changes.Removed, environment+"/"+before.Name+"/"+target)
			}
		}
	}
	return changes
}

// changes returns the changes that the plan makes, or made.
func (p *writePlan) changes() *Changes {
	c := &Changes{Recorded: p.recorded, Record: p.next}
	for _, part := range p.parts {
		c.Written = slices.AppendSeq(c.Written, part.written)
		c.Removed = append(c.Removed, part.removed...)
		c.Unchanged += part.unchanged
		c.Assignments.add(&part.assignments)
	}
	// Cluster types are sorted by name, which is not the order of whole paths.
	slices.Sort(c.Written)
	slices.Sort(c.Removed)
	return c
}
