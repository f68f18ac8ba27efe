package tree

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// comparison fills a part of a plan.
type comparison struct {
	*planner
	*typePlan
	survey   surveyor
	known    map[string]entry // of files that are as the index says
	owned    map[string]bool  // paths that kalypso wrote
	obsolete map[string]bool  // owned, and neither desired nor kept
	refused  map[string]bool  // paths that were reported
}

// compare compares a cluster type's folder with what it has to be.
func (pl *planner) compare(ctx context.Context, p *typePlan) error {
	if p.wanted != nil && p.wanted.Outside && (p.before == nil || !p.before.corrected) {
		if p.before != nil {
			p.next = p.before
			p.section = pl.index.section(p.name)
			return nil
		}
		p.wanted = nil // only what an unfinished write made of it
	}
	s := pl.survey()
	seen, err := pl.statAll(p.name)
	same := false
	if err == nil && pl.reusable(p) {
		if same, err = pl.asRecorded(s, p, seen); pl.adoptable(err) {
			err = nil
		}
	}
	if err == nil && !same {
		err = pl.compareContent(ctx, s, p, seen)
	}
	var bad *RecordError
	if errors.As(err, &bad) {
		p.report = append(p.report, bad.Diagnostic())
		err = nil
	}
	return errors.Join(err, s.close())
}

// reusable says whether the folder has to be what it is by the record.
func (pl *planner) reusable(p *typePlan) bool {
	return p.wanted != nil && p.before != nil && p.wanted.Digest != "" && p.wanted.Digest == p.before.Digest &&
		p.before.Kept == 0 && !p.before.corrected
}

// asRecorded says whether the folder is as the record says, which then is what
// it has to be.
func (pl *planner) asRecorded(s surveyor, p *typePlan, seen *statResult) (bool, error) {
	if seen == nil {
		return pl.readAsRecorded(s, p)
	}
	if err := pl.checkRecord(p.before); err != nil {
		return false, err
	}
	if same, err := pl.resolve(s, seen); err != nil || !same {
		return false, err
	}
	p.next, p.unchanged = p.before, seen.files
	p.section, p.revised = seen.section, len(seen.unsure) > 0
	p.assignments.Unchanged = p.before.Assignments
	return true, nil
}

// readAsRecorded is asRecorded without an index: every file is read.
func (pl *planner) readAsRecorded(s surveyor, p *typePlan) (bool, error) {
	record, err := pl.before.record.read(p.name)
	if err != nil {
		return false, err
	}
	files := map[string]Blob{}
	maps.Insert(files, record.each)
	section := &section{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		there, err := s.look(path)
		if err != nil || there.kind != regular {
			return false, err
		}
		if same, err := s.holds(path, there.info, files[path], -1); err != nil || !same {
			return false, err
		}
		is := statOf(there.info)
		section.add(path[len(p.name)+1:], files[path], is, compared)
		pl.compared(is)
	}
	p.next, p.unchanged = p.before, len(files)
	p.section, p.revised = section, true
	p.assignments.Unchanged = p.before.Assignments
	return true, nil
}

// compareContent compares the folder with the content that it has to have.
func (pl *planner) compareContent(ctx context.Context, s surveyor, p *typePlan, seen *statResult) error {
	before, out, err := pl.sides(ctx, s, p)
	if err != nil {
		return err
	}
	if err := out.check(); err != nil {
		return err
	}
	if p.wanted != nil {
		next := out.entry // the outcome itself is not held
		p.next = &next
		p.record = p.before == nil || p.before.corrected || p.before.Record != p.next.Record
		p.section, p.revised = newSection(out), true
		// Keep the outcome of a part in memory if there is room.
		n := int64(len(out.kept) + 1)
		for _, g := range out.groups {
			n += int64(len(g.files))
		}
		if pl.held.Add(n) <= pl.maxHeld {
			p.outcome = out
		}
	}
	owned := map[string]bool{}
	for path := range before.each {
		owned[path] = true
	}
	for _, path := range pl.before.unfinished[p.name] {
		owned[path] = true
	}
	c := &comparison{planner: pl, survey: s, typePlan: p, known: seen.known(p.name), owned: owned,
		refused: map[string]bool{}}
	return c.compare(out, before)
}

// sides returns the record of the folder, and what it will be. Of a git tree both are without
// the assignments that are the same, as far as that is known.
func (pl *planner) sides(ctx context.Context, s surveyor, p *typePlan) (before *ClusterTypeRecord,
	out *outcome, err error) {
	if old := pl.lines(p); old != nil {
		if out, err = outcomeOf(ctx, p.wanted, nil, pl.before.record); err != nil {
			return nil, nil, err
		}
		if before, err = pl.differing(s, p, out, old); !pl.adoptable(err) {
			return before, out, err
		}
	}
	before, err = pl.before.record.read(p.name)
	if pl.adoptable(err) {
		p.before, before, err = nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	out = &outcome{}
	if p.wanted != nil {
		if out, err = outcomeOf(ctx, p.wanted, before, pl.before.record); err != nil {
			return nil, nil, err
		}
	}
	if p.wanted == nil || !p.wanted.Outside {
		p.assignments = compareAssignments(pl.o.Environment, before, out.record)
	}
	return before, out, nil
}

// compare finds the files to be written and to be removed, and everything that blocks them.
func (c *comparison) compare(out *outcome, before *ClusterTypeRecord) error {
	c.obsolete = maps.Clone(c.owned)
	for _, g := range out.groups {
		for _, f := range g.files {
			delete(c.obsolete, g.dir+"/"+f.Path)
		}
	}
	for _, p := range out.kept {
		delete(c.obsolete, p)
	}
	for _, g := range out.groups {
		same, err := c.group(out, g)
		if err != nil {
			return err
		}
		if same {
			continue
		}
		lacking := missing{folder: g.folder, dir: g.dir}
		for _, f := range g.files {
			p := g.dir + "/" + f.Path
			is, differs, err := c.file(p, f)
			if err != nil {
				return err
			}
			worth := compared
			if differs {
				lacking.names = append(lacking.names, f.Path)
				is, worth = stat{size: f.Size}, fresh
			}
			c.section.add(p[len(c.name)+1:], f.Blob(), is, worth)
		}
		if len(lacking.names) > 0 {
			c.missing = append(c.missing, lacking)
		}
	}
	if c.wanted == nil || !c.wanted.Outside {
		for _, p := range out.kept {
			if err := c.keep(p); err != nil {
				return err
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(c.obsolete)) {
		there, err := c.survey.look(p)
		if err != nil {
			return err
		}
		// A folder where a file was is not kalypso's.
		if there.kind == regular || there.kind == other {
			c.removed = append(c.removed, p)
		}
	}
	c.changes = changesOf(c.typePlan, func(target string) bool {
		return before.Assignment(target) != nil || out.record.Assignment(target) != nil
	})
	return nil
}

// group says whether the files of an assignment are known to be there by the id
// of their folder, and notes them. Most assignments of a cluster type are as they
// were where one of them changes.
func (c *comparison) group(out *outcome, g group) (same bool, err error) {
	if g.folder < 0 {
		return false, nil // there are other folders around them
	}
	if same, err = c.survey.holdsTree(g.dir, out.record.Assignments[g.folder].Tree); !same || err != nil {
		return false, err
	}
	for _, f := range g.files {
		c.unchanged++
		c.section.add((g.dir + "/" + f.Path)[len(c.name)+1:], f.Blob(), stat{}, compared)
	}
	return true, nil
}

// file says whether a file has to be written to be at p, and, if not, how it
// looked before it was compared.
func (c *comparison) file(p string, f File) (is stat, differs bool, err error) {
	mine := c.owned[p] || c.o.Adopt
	if e, known := c.known[p]; known && (mine || e.blob() == f.Blob()) {
		if e.blob() != f.Blob() {
			return stat{}, true, nil
		}
		c.unchanged++
		return e.stat(), false, nil
	}
	there, err := c.survey.look(p)
	if err != nil {
		return stat{}, false, err
	}
	switch there.kind {
	case nothing:
		// What is not kalypso's is never removed for a folder: there would be nothing left of it.
		if there.blocker != "" && !c.obsolete[there.blocker] {
			c.refuse(there.blocker, "is not a folder, and kalypso has to write into it", moveHint)
		}
	case regular:
		equal, err := c.survey.holds(p, there.info, f.Blob(), f.Size)
		if err != nil {
			return stat{}, false, err
		}
		if equal {
			c.unchanged++
			is := statOf(there.info)
			c.compared(is)
			return is, false, nil
		}
		if !mine {
			sameBytes, err := c.survey.holds(p, there.info, Blob{f.ID, !f.Executable}, f.Size)
			what := "is not kalypso's and has other content"
			switch {
			case sameBytes && f.Executable:
				what = "is not kalypso's and is not executable"
			case sameBytes:
				what = "is not kalypso's and is executable"
			}
			c.refuse(p, what, adoptHint)
			return stat{}, true, err
		}
	case other:
		// Renaming a file over a link replaces the link, not what it points to.
		if !mine {
			c.refuse(p, "is not kalypso's, and not a file", adoptHint)
		}
	case folder:
		if err := c.replaceFolder(p, mine); err != nil {
			return stat{}, false, err
		}
	}
	return stat{}, true, nil
}

const (
	adoptHint = "move it away, or let kalypso take it over with --adopt"
	moveHint  = "move it away"
)

// refuse reports what blocks a file, once.
func (c *comparison) refuse(p, what, hint string) {
	if !c.refused[p] {
		c.refused[p] = true
		c.report = append(c.report, c.at.foreign(p, what).Hinting(hint))
	}
}

// replaceFolder looks at a folder that stands where a file has to be. It can go
// if all that is in it is obsolete; an empty one can if the path is kalypso's.
func (c *comparison) replaceFolder(dir string, mine bool) error {
	content, err := c.survey.within(dir)
	if err != nil {
		return err
	}
	for _, p := range content {
		if !c.obsolete[p] && !isTemp(p) {
			c.refuse(dir, "is a folder with files that are not kalypso's, and kalypso has to write a file there", moveHint)
			return nil
		}
	}
	if !mine && !slices.ContainsFunc(content, func(p string) bool { return !isTemp(p) }) {
		c.refuse(dir, "is a folder, and kalypso has to write a file there", adoptHint)
	}
	c.empty = append(c.empty, dir)
	return nil
}

// keep reports a kept file that is not there. The index lists the folder that it
// is kept in: writing it would break what the reconciler pulls for the whole
// cluster type, and leaving the folder out would delete a running workload
// because of an error. So nothing is written.
func (c *comparison) keep(p string) error {
	if _, known := c.known[p]; known {
		c.unchanged++
		return nil
	}
	there, err := c.survey.look(p)
	if err != nil {
		return err
	}
	if there.kind == regular {
		c.unchanged++
		return nil
	}
	c.report = append(c.report, c.at.at(diag.New(diag.KeptMissing, p+" has to be kept as it is, and is not there"), p).
		Hinting("restore it from git, or correct the errors because of which it is kept"))
	return nil
}
