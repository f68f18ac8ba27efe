package session

import (
	"errors"
	"iter"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
)

// Bases are the base commits of the platform's branch, newest first. They are read as far
// as they are needed.
type Bases struct {
	history source.History
	known   []source.Base
	merged  map[git.Hash]*mergedBase
	cut     error // why no more can be read; nil if it can
	next    func() (source.Base, error, bool)
	stop    func()
}

// basesOf returns the base commits of a history. stop ends the reading.
func basesOf(h source.History) *Bases {
	b := &Bases{history: h, merged: map[git.Hash]*mergedBase{}}
	b.next, b.stop = iter.Pull2(h.Bases())
	return b
}

// Newest returns the newest base commits, at most a number of them. Of a shallow history,
// it returns the existing ones.
func (b *Bases) Newest(most int) ([]source.Base, error) {
	for len(b.known) < most {
		more, err := b.more()
		if shallow := (*remote.ShallowError)(nil); errors.As(err, &shallow) && len(b.known) > 0 {
			return b.known, nil
		}
		if err != nil || !more {
			return b.known, err
		}
	}
	return b.known[:most], nil
}

// Until returns the base commits back to a commit, which is the last of them. It returns false if
// the history does not have the commit, or if it is the zero Hash. If the commit came with a
// merge and is not in the main line, it follows the commits that do not have it as an ancestor.
func (b *Bases) Until(commit git.Hash) ([]source.Base, bool, error) {
	if commit.IsZero() {
		return nil, false, nil
	}
	for i := 0; ; i++ {
		if i == len(b.known) {
			more, err := b.more()
			if err != nil {
				return nil, false, err
			}
			if !more {
				if known := b.merged[commit]; known != nil {
					return known.until, known.found, nil
				}
				newer, found, err := mergedInto(b.history.Repository, b.history.Head, commit)
				if err != nil {
					return nil, false, err
				}
				out := &mergedBase{found: found}
				if found {
					for _, known := range b.known {
						if newer[known.Commit] {
							out.until = append(out.until, known)
						}
					}
					out.until = append(out.until, source.Base{Commit: commit})
				}
				b.merged[commit] = out
				return out.until, out.found, nil
			}
		}
		if b.known[i].Commit == commit {
			return b.known[:i+1], true, nil
		}
	}
}

// mergedBase is the result of Until for a commit that is not in the main line.
type mergedBase struct {
	until []source.Base
	found bool
}

// mergedInto reports whether a commit outside of the main line of a head is an ancestor of the
// head. newer are the commits of the main line that have it as an ancestor.
func mergedInto(objects *git.Repository, head, commit git.Hash) (newer map[git.Hash]bool,
	found bool, err error) {
	line := map[git.Hash]int{}
	var links []git.Link
	for l, err := range objects.Mainline(head) {
		if err != nil {
			return nil, false, err
		}
		line[l.ID] = len(links)
		links = append(links, l)
	}
	// The newest commit of the main line that it has: the others that it has are older.
	has := len(links)
	err = eachAncestor(objects, []git.Hash{commit}, line, func(git.Hash) {},
		func(at int) { has = min(has, at) })
	if errors.As(err, new(*git.MissingError)) || errors.As(err, new(*remote.NotFoundError)) {
		return nil, false, nil // it is nowhere here
	}
	if err != nil || has == len(links) {
		return nil, false, err
	}
	oldest := has // the oldest commit that has it
	for oldest--; oldest >= 0 && !found; oldest-- {
		if others := links[oldest].Parents; len(others) > 1 {
			if err := eachAncestor(objects, others[1:], line,
				func(id git.Hash) { found = found || id == commit }, func(int) {}); err != nil {
				return nil, false, err
			}
		}
	}
	newer = map[git.Hash]bool{}
	for _, l := range links[:oldest+2] {
		newer[l.ID] = found
	}
	return newer, found, nil
}

// eachAncestor calls beside for commits and all their ancestors outside of a main line, and begin
// for the positions where they meet it.
func eachAncestor(objects *git.Repository, from []git.Hash, line map[git.Hash]int,
	beside func(git.Hash), begin func(at int)) error {
	seen := map[git.Hash]bool{}
	for todo := from; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		if at, there := line[id]; there {
			begin(at)
			continue
		}
		beside(id)
		parents, err := objects.Parents(id)
		if err != nil {
			return err
		}
		todo = append(todo, parents...)
	}
	return nil
}

func (b *Bases) more() (bool, error) {
	if b.cut != nil {
		return false, b.cut
	}
	next, err, more := b.next()
	if err != nil || !more {
		b.cut = err
		return false, err
	}
	b.known = append(b.known, next)
	return true, nil
}
