package tree

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// comparison fills a plan.
type comparison struct {
	dir    *Dir
	survey *survey
	*plan
	adopt    bool
	owned    map[string]bool
	obsolete map[string]bool // owned, and neither desired nor kept
	refused  map[string]bool // paths that were reported
	report   []diag.Diagnostic
}

func (c *comparison) compare(out *outcome) error {
	c.obsolete = maps.Clone(c.owned)
	for _, f := range out.files {
		delete(c.obsolete, f.Path)
	}
	for _, p := range out.kept {
		delete(c.obsolete, p)
	}
	for _, f := range out.files {
		if err := c.file(f); err != nil {
			return err
		}
	}
	slices.SortFunc(c.files, func(a, b backends.File) int { return strings.Compare(a.Path, b.Path) })
	for _, p := range out.kept {
		if err := c.keep(p); err != nil {
			return err
		}
	}
	if err := c.remove(); err != nil {
		return err
	}
	c.sortOut()
	return nil
}

// remove finds which obsolete files are there.
func (c *comparison) remove() error {
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
	return nil
}

// file decides what has to be done for a file to be there.
func (c *comparison) file(f backends.File) error {
	there, err := c.survey.look(f.Path)
	if err != nil {
		return err
	}
	mine := c.owned[f.Path] || c.adopt
	switch there.kind {
	case nothing:
		c.unblock(there.blocker)
	case regular:
		equal, err := c.survey.holds(f.Path, there.info, f.Data)
		if err != nil {
			return err
		}
		if equal {
			c.unchanged++
			return nil
		}
		if !mine {
			c.refuse(f.Path, "is not kalypso's and has other content", adoptHint)
		}
	case other:
		// Renaming a file over a link replaces the link, not what it points to.
		if !mine {
			c.refuse(f.Path, "is not kalypso's, and not a file", adoptHint)
		}
	case folder:
		if err := c.replaceFolder(f.Path, mine); err != nil {
			return err
		}
	}
	c.files = append(c.files, f)
	return nil
}

const (
	adoptHint = "move it away, or let kalypso take it over with --adopt"
	moveHint  = "move it away"
)

// refuse reports what stands in the way, once.
func (c *comparison) refuse(p, what, hint string) {
	if !c.refused[p] {
		c.refused[p] = true
		c.report = append(c.report, c.dir.foreign(p, what).Hinting(hint))
	}
}

// unblock looks at what stands where a folder has to be. What is not kalypso's
// is never removed for it: there would be nothing left of it.
func (c *comparison) unblock(blocker string) {
	if blocker != "" && !c.obsolete[blocker] {
		c.refuse(blocker, "is not a folder, and kalypso has to write into it", moveHint)
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
	there, err := c.survey.look(p)
	if err != nil {
		return err
	}
	if there.kind == regular {
		c.unchanged++
		return nil
	}
	c.report = append(c.report, c.dir.at(diag.New(diag.KeptMissing, p+" has to be kept as it is, and is not there"), p).
		Hinting("restore it from git, or correct the errors because of which it is kept"))
	return nil
}

// sortOut finds which of the files to remove stand in the way: where a folder
// has to be, or in a folder that stands where a file has to be.
func (c *comparison) sortOut() {
	around := map[string]bool{}
	for _, dir := range folders(c.written()) {
		around[dir] = true
	}
	for _, p := range c.removed {
		inTheWay := around[p]
		for dir := path.Dir(p); dir != "." && !inTheWay; dir = path.Dir(dir) {
			inTheWay = slices.Contains(c.empty, dir)
		}
		if inTheWay {
			c.first = append(c.first, p)
		} else {
			c.last = append(c.last, p)
		}
	}
}
