package session

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// TakesPairs reports whether the stage takes own files only as a pair with a base commit that the
// rings before it had.
func (st *Stage) TakesPairs() bool {
	return st.Ring != nil && len(st.Ring.After) > 0 && !st.Policy.Promotion.OwnChanges.AtOnce
}

// line is the main line of a branch. It is read as far as it is needed.
type line struct {
	ages map[git.Hash]int
	next func() (git.Link, error, bool)
	stop func()
}

// age returns the number of commits between a commit and the head. It returns false if the branch
// does not have the commit. The zero Hash, for no own files at all, is older than all others.
func (l *line) age(commit git.Hash) (int, bool, error) {
	if commit.IsZero() {
		return math.MaxInt, true, nil
	}
	for {
		if age, known := l.ages[commit]; known {
			return age, true, nil
		}
		at, err, more := l.next()
		if err != nil || !more {
			return 0, false, err
		}
		l.ages[at.ID] = len(l.ages)
	}
}

// ownLine returns the main line of the branch with the own files of a stage's environment.
func (s *State) ownLine(ctx context.Context, st *Stage) (*line, error) {
	branch := s.Platform.Branch
	if from := st.Policy.Promotion.Source; from != nil {
		branch = from.Branch
	}
	if known := s.lines[branch]; known != nil {
		return known, nil
	}
	head, err := s.Platform.historyOf(ctx, branch)
	if err != nil {
		return nil, err
	}
	l := &line{ages: map[git.Hash]int{}}
	l.next, l.stop = iter.Pull2(s.Platform.Repository.Remote.Objects().Mainline(head))
	s.lines[branch] = l
	return l, nil
}

// OwnNewer reports whether own files of the environment of a stage are newer than others. Own
// files that the branch does not have are neither newer nor older.
func (s *State) OwnNewer(ctx context.Context, st *Stage, a, b tree.Revision) (bool, error) {
	l, err := s.ownLine(ctx, st)
	if err != nil {
		return false, err
	}
	at, known, err := l.age(a.Hash())
	if err != nil || !known {
		return false, err
	}
	other, known, err := l.age(b.Hash())
	return known && at < other, err
}

// NewestOwn returns the newer one of two commits of own files of a stage's environment; false if
// their branch has neither.
func (s *State) NewestOwn(ctx context.Context, st *Stage, a, b tree.Revision) (newest tree.Revision,
	found bool, err error) {
	l, err := s.ownLine(ctx, st)
	if err != nil {
		return "", false, err
	}
	least := math.MaxInt
	for _, own := range []tree.Revision{a, b} {
		age, known, err := l.age(own.Hash())
		if err != nil {
			return "", false, err
		}
		if known && age < least {
			newest, found, least = own, true, age
		}
	}
	return newest, found, nil
}

// Pairs returns the pairs of a base commit and own files that all rings before a stage have or
// had, by base commit. It returns only pairs that are newer than the present pair of the stage.
// The pairs of a base commit are sorted, newest own files first. bases are the base commits to
// look for. The result may lack a pair that was there long before.
func (s *State) Pairs(ctx context.Context, st *Stage,
	bases []source.Base) (map[tree.Revision][]tree.Source, error) {
	l, err := s.ownLine(ctx, st)
	if err != nil {
		return nil, err
	}
	has := st.Has()
	newest, known := math.MaxInt, false
	if has != (tree.Source{}) {
		if newest, known, err = l.age(has.Environment.Hash()); err != nil {
			return nil, err
		}
	}
	bounded := known
	wanted := map[tree.Revision]bool{}
	for _, b := range bases {
		wanted[tree.RevisionOf(b.Commit)] = true
	}
	ages := map[tree.Revision]int{}
	isNew := func(of tree.Source) bool {
		if !wanted[of.Base] || of == has {
			return false
		}
		age, known, failed := l.age(of.Environment.Hash())
		ages[of.Environment] = age
		if failed != nil {
			err = failed
		}
		return known && (!bounded || age <= newest)
	}
	var common map[tree.Source]bool
	for _, up := range s.Upstream(st) {
		if up.Environment.Repository == nil || up.Environment.Record == nil {
			return nil, nil
		}
		had, failed := up.Environment.History.pairs(ctx, up.RingName(), isNew)
		if err = cmp.Or(err, failed); err != nil {
			return nil, err
		}
		if common == nil {
			common = had
		}
		maps.DeleteFunc(common, func(of tree.Source, _ bool) bool { return !had[of] })
	}
	out := map[tree.Revision][]tree.Source{}
	for of := range common {
		out[of.Base] = append(out[of.Base], of)
	}
	for _, pairs := range out {
		slices.SortFunc(pairs,
			func(a, b tree.Source) int { return cmp.Compare(ages[a.Environment], ages[b.Environment]) })
	}
	return out, nil
}

// pairs returns the pairs that a ring has or had, as far as they are wanted. It may miss some that
// the ring had long before.
func (h *History) pairs(ctx context.Context, ring string,
	wanted func(tree.Source) bool) (map[tree.Source]bool, error) {
	out := map[tree.Source]bool{}
	unwanted := 0
	var last tree.Source
	err := h.Each(ctx, func(p Past) bool {
		is := h.of.SourceIn(p.Record, ring)
		switch {
		case wanted(is):
			out[is], unwanted = true, 0
		case is != last: // others may be in the branch as well
			unwanted++
		}
		last = is
		return unwanted < firstDepth
	})
	return out, err
}

// VisitOfPair returns the last visit of a pair in a stage. It continues with newer own files and
// the same base commit, because they contain its changes. Each of them begins a run of its own.
func (s *State) VisitOfPair(ctx context.Context, st *Stage, of tree.Source) (Visit, error) {
	return st.Environment.History.visit(ctx, st.RingName(),
		func(l landing) bool { return l.source == of }, func(later landing) (bool, error) {
			if later.source.Base != of.Base {
				return false, nil
			}
			return s.OwnNewer(ctx, st, later.source.Environment, of.Environment)
		})
}
