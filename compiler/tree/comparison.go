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
	known    map[string]entry // of files that match the index
	owned    map[string]bool  // paths that kalypso wrote
	obsolete map[string]bool  // owned paths that are neither desired nor kept
	refused  map[string]bool  // paths that were reported
}

// compare compares a cluster type's folder with its desired content.
func (pl *planner) compare(ctx context.Context, p *typePlan) error {
	if p.wanted != nil && p.wanted.Outside && (p.before == nil || !p.before.corrected) {
		if p.before != nil {
			p.next = p.before
			p.section = pl.index.section(p.name)
			return nil
		}
		p.wanted = nil // only the changes of an unfinished write
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

// reusable reports whether the desired folder equals the recorded one.
func (pl *planner) reusable(p *typePlan) bool {
	return p.wanted != nil && p.before != nil && p.wanted.Digest != "" &&
		p.wanted.Digest == p.before.Digest &&
		p.before.Kept == 0 && !p.before.corrected
}

// asRecorded reports whether the folder matches the record, and therefore its desired content.
func (pl *planner) asRecorded(s surveyor, p *typePlan, seen *statResult) (bool, error) {
	if seen == nil {
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

// compareContent compares the folder with its desired content.
func (pl *planner) compareContent(ctx context.Context, s surveyor, p *typePlan,
	seen *statResult) error {
	before, out, err := pl.sides(ctx, s, p)
	if err != nil {
		return err
	}
	if err := out.check(); err != nil {
		return err
	}
	if p.wanted != nil {
		next := out.entry // the outcome itself does not stay in memory
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
	c := &comparison{planner: pl, survey: s, typePlan: p, known: seen.matching(p.name), owned: owned,
		refused: map[string]bool{}}
	return c.compare(out, before)
}

// sides returns the previous record of the folder, and its outcome. For a git tree, both omit
// assignments that are known to be the same.
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

// compare finds the files to write and to remove, and the files and folders that block them.
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
		lacking := missingFile{folder: g.folder, dir: g.dir}
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
		// A folder in the place of a removed file does not belong to kalypso.
		if there.kind == regular || there.kind == other {
			c.removed = append(c.removed, p)
		}
	}
	c.changes = changesOf(c.typePlan, func(target string) bool {
		return before.Assignment(target) != nil || out.record.Assignment(target) != nil
	})
	return nil
}

// group reports whether the id of an assignment's folder shows that its files exist, and notes them
// if so. If one assignment of a cluster type changes, most others do not.
func (c *comparison) group(out *outcome, g group) (same bool, err error) {
	if g.folder < 0 {
		return false, nil // there are other folders around them
	}
	if same, err = c.survey.holdsTree(g.dir, out.record.Assignments[g.folder].Tree); !same ||
		err != nil {
		return false, err
	}
	for _, f := range g.files {
		c.unchanged++
		c.section.add((g.dir + "/" + f.Path)[len(c.name)+1:], f.Blob(), stat{}, compared)
	}
	return true, nil
}

// file reports whether a file must be written to p. If not, it returns the properties of the file
// before the comparison.
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
		// Never remove a foreign file for a folder: nothing of it would be left.
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
		// Renaming a file over a link replaces the link, not its target.
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

// refuse reports a file or folder that blocks a new file, once.
func (c *comparison) refuse(p, what, hint string) {
	if !c.refused[p] {
		c.refused[p] = true
		c.report = append(c.report, c.at.foreign(p, what).Hinting(hint))
	}
}

// replaceFolder checks a folder in the place of a new file. The folder can be removed if everything
// in it is obsolete; an empty folder can be removed if the path belongs to kalypso.
func (c *comparison) replaceFolder(dir string, mine bool) error {
	content, err := c.survey.pathsIn(dir)
	if err != nil {
		return err
	}
	for _, p := range content {
		if !c.obsolete[p] && !isTemp(p) {
			c.refuse(dir,
				"is a folder with files that are not kalypso's, and kalypso has to write a file there",
				moveHint)
			return nil
		}
	}
	if !mine && !slices.ContainsFunc(content, func(p string) bool { return !isTemp(p) }) {
		c.refuse(dir, "is a folder, and kalypso has to write a file there", adoptHint)
	}
	c.empty = append(c.empty, dir)
	return nil
}

// keep reports a kept file that is missing. The index of the cluster type lists
// the folder of that file. With the folder in the index, the reconciler would fail
// for the whole cluster type. Without it, an error would delete a running
// workload. So kalypso writes nothing.
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
	c.report = append(c.report,
		c.at.pointTo(diag.New(diag.KeptMissing, p+" has to be kept as it is, and is not there"), p).
			Hinting("restore it from git, or correct the errors because of which it is kept"))
	return nil
}
