package tree

import (
	"bytes"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// plan is what a write has to do.
type plan struct {
	before    *state
	next      *Record
	nextBytes []byte
	recorded  bool // the record has to be written

	files     []backends.File // to be written, by path in the environment, sorted
	removed   []string        // paths of files to be removed, sorted
	unchanged int

	// first are those of removed that stand in the way of files, last are the
	// others. empty are the folders that stand where a file has to be.
	first, last []string
	empty       []string
}

// done says whether the folder is as it should be, and nothing is left in it of
// a write that was killed.
func (p *plan) done() bool {
	return len(p.files) == 0 && len(p.removed) == 0 && !p.recorded && p.before.journal == nil && len(p.before.litter) == 0
}

// written returns the paths of files.
func (p *plan) written() []string {
	var paths []string
	for _, f := range p.files {
		paths = append(paths, f.Path)
	}
	return paths
}

func (p *plan) changes() *Changes {
	return &Changes{
		Written:     p.written(),
		Removed:     p.removed,
		Unchanged:   p.unchanged,
		Assignments: compareAssignments(p.before.record, p.next),
		Recorded:    p.recorded,
		Record:      p.next,
	}
}

// plan compares the folder with a tree. With diagnostics, the plan is nil.
func (d *Dir) plan(t *Tree, o Options) (*plan, []diag.Diagnostic, error) {
	s := newSurvey(d.root)
	before, problems, err := d.load(s)
	if err != nil {
		return nil, nil, err
	}
	problems = append(problems, d.belongs(before, o)...)
	if report := unsolved(problems, o.Adopt); len(report) > 0 {
		return nil, report, nil
	}
	out, err := outcomeOf(t, before.record, o)
	if err != nil {
		return nil, nil, err
	}
	p := &plan{before: before, next: out.record}
	if p.nextBytes, err = p.next.Encode(); err != nil {
		return nil, nil, err
	}
	p.recorded = !bytes.Equal(p.nextBytes, before.recordBytes)

	c := &comparison{dir: d, survey: s, plan: p, owned: before.owned(), adopt: o.Adopt, refused: map[string]bool{}}
	if err := c.compare(out); err != nil || len(c.report) > 0 {
		return nil, c.report, err
	}
	return p, nil, nil
}

// unsolved returns the diagnostics of the problems that are left.
func unsolved(problems []problem, adopt bool) []diag.Diagnostic {
	var report []diag.Diagnostic
	for _, p := range problems {
		if !adopt || !p.adoptable {
			report = append(report, p.Diagnostic)
		}
	}
	return report
}
