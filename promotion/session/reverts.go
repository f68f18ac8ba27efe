package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// reverting describes a base commit that others may take back, or that takes others back.
type reverting struct {
	named         []string // beginnings of the ids of commits that it reverts, by its message
	edits, undoes string   // its change, and the change that would undo it; "" if that is not known
}

// revertForm matches the text of git revert, and of forges, that names the reverted commit.
var revertForm = lazyregexp.New(`(?i)\bThis reverts (?:merge )?(?:commit )?([0-9a-f]{7,64})\b`)

// TakenBack returns the base commits that newer ones in bases revert, with the reverting commits.
// bases are sorted newest first and have no gaps. A commit reverts another one if its message has
// the text of git revert, or if its change is exactly the inverse. A reverted commit does not
// revert others.
func (s *State) TakenBack(bases []source.Base) (map[git.Hash]git.Hash, error) {
	out := map[git.Hash]git.Hash{}
	// newer commits that are not reverted, by the edits that they undo, oldest last
	undone := map[string][]git.Hash{}
	var named []git.Hash // newer commits that stand, and name what they revert
	for i, b := range bases {
		known, err := s.reverting(b, i)
		if err != nil {
			return nil, err
		}
		by := git.Hash{}
		for _, commit := range named {
			if slices.ContainsFunc(s.reverts[commit].named,
				func(id string) bool { return strings.HasPrefix(b.Commit.String(), id) }) {
				by = commit
			}
		}
		if same := undone[known.edits]; known.edits != "" && len(same) > 0 && by.IsZero() {
			by = same[len(same)-1]
			undone[known.edits] = same[:len(same)-1]
		}
		if !by.IsZero() {
			out[b.Commit] = by
			continue
		}
		if len(known.named) > 0 {
			named = append(named, b.Commit)
		}
		if known.undoes != "" {
			undone[known.undoes] = append(undone[known.undoes], b.Commit)
		}
	}
	return out, nil
}

// reverting reads a base commit, once. If the commit is not among the newest, only its message
// counts.
func (s *State) reverting(b source.Base, at int) (*reverting, error) {
	if known := s.reverts[b.Commit]; known != nil {
		return known, nil
	}
	out := &reverting{}
	for _, found := range revertForm.FindAllStringSubmatch(b.Message, -1) {
		out.named = append(out.named, strings.ToLower(found[1]))
	}
	if at < MaxJudged {
		edits, err := s.Platform.history(s.Platform.Head).Edits(b.Commit)
		// a shallow clone
		if missing := (*git.MissingError)(nil); err != nil && !errors.As(err, &missing) {
			return nil, err
		}
		for _, e := range edits {
			out.edits += fmt.Sprintf("%s\x00%s\x00%s\x00", e.Path, e.Was, e.Is)
			out.undoes += fmt.Sprintf("%s\x00%s\x00%s\x00", e.Path, e.Is, e.Was)
		}
	}
	s.reverts[b.Commit] = out
	return out, nil
}

// ContainedBase is a base commit that another one contains.
type ContainedBase struct {
	Commit git.Hash
	By     git.Hash // the commit of the branch that reverts it, or zero
}

// Brings returns the base commits that a stage would get with a base commit that it does not
// have, newest first. Commits that this base commit itself reverts are left out. It returns nil
// if the stage has the base commit. The field By has the newer commits of the branch that revert
// some of them.
func (s *State) Brings(st *Stage, base git.Hash) (out []ContainedBase, err error) {
	newer, err := s.Newer(s.had(st))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(newer, func(b source.Base) bool { return b.Commit == base })
	if i < 0 {
		return nil, nil
	}
	now, err := s.TakenBack(newer)
	if err != nil {
		return nil, err
	}
	then, err := s.TakenBack(newer[i:])
	if err != nil {
		return nil, err
	}
	for _, b := range newer[i:] {
		if _, undone := then[b.Commit]; !undone {
			out = append(out, ContainedBase{b.Commit, now[b.Commit]})
		}
	}
	return out, nil
}
