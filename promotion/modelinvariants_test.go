package promotion

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// errNever is that something is in the repositories that must never be there.
var errNever = errors.New("this must never be")

// invariants checks the new commits of the branches since its last call. It uses only the
// repositories: records, notes, and the times in them.
func (w *modelWorld) invariants() error {
	tips := w.gitops.refs()
	for _, e := range w.rules.policy().Environments {
		tip := tips[session.BranchRef(e.branch())]
		since := w.seen[e.branch()]
		w.seen[e.branch()] = tip
		for _, c := range w.branch(tip, since) {
			if err := w.checkCommit(&e, c); err != nil {
				return err
			}
		}
	}
	for _, st := range w.rules.stages {
		if w.event == "run" || w.event == "race" || w.event == "crash" {
			if err := w.checkProposal(st); err != nil {
				return err
			}
		}
		if err := w.checkWords(st); err != nil {
			return err
		}
	}
	return nil
}

// modelCommit is a commit of an environment's branch, with the records before and after.
type modelCommit struct {
	byHand        bool
	before, after *tree.Record
}

// branch returns the commits from one to another, the oldest first.
func (w *modelWorld) branch(tip, since git.Hash) []modelCommit {
	var out []modelCommit
	for tip != since {
		_, parent, text := w.gitops.parsed(tip)
		out = append(out, modelCommit{text == "by hand", w.record(parent), w.record(tip)})
		tip = parent
	}
	slices.Reverse(out)
	return out
}

// checkCommit checks the changes of a commit in each ring.
func (w *modelWorld) checkCommit(e *modelEnvironment, c modelCommit) error {
	if c.byHand {
		return nil
	}
	if slices.Contains(w.edited, e.Name) && w.event != "overwrite" && c.before.Tree != c.after.Tree {
		return fmt.Errorf("%w: edits by hand in %s were written over", errNever, e.Name)
	}
	for _, st := range w.rules.of(e.Name) {
		before, after := sourceIn(c.before, st.ring), sourceIn(c.after, st.ring)
		if before == after || w.event == "rollback" {
			continue
		}
		if err := w.checkStep(e, st, c, before, after); err != nil {
			return fmt.Errorf("%w: %s got %s after %s: %w", errNever, st.id(), w.name(after), w.name(before), err)
		}
	}
	return nil
}

func (w *modelWorld) checkStep(e *modelEnvironment, st *ruleStage, c modelCommit, before, after tree.Source) error {
	from, to := w.number(before.Base), w.number(after.Base)
	frozen, isFrozen := w.rules.frozen[e.Name]
	hold := holdIn(c.before, st.ring)
	switch {
	case to < from:
		return errors.New("that is back")
	case w.rules.rejected[to]:
		return errors.New("it was rejected")
	case isFrozen && frozen.stands(w.rules.now):
		return errors.New("it is frozen")
	case w.event == "named" || w.event == "force":
		return nil
	case hold != nil && (hold.Until == "" || hold.Until > w.rules.now.Format(time.RFC3339)):
		return errors.New("it is held")
	}
	groups, any, rings := w.rules.before(st)
	if rings && before.Environment != after.Environment && !through(groups, false, func(up *ruleStage) bool { return w.hadPair(up, after) }) {
		return errors.New("the rings before never had it with these own files")
	}
	if to == from {
		return nil
	}
	if e.Advance == model.Queue && from >= 0 {
		for n := from + 1; n < to; n++ {
			came := through(groups, any, func(up *ruleStage) bool { return w.had(up, n) })
			if w.rules.commits[n].isBase && !w.rules.rejected[n] && came && !rings {
				return fmt.Errorf("%d was passed over", n)
			}
		}
	}
	if !through(groups, any, func(up *ruleStage) bool {
		return w.had(up, to) && slices.ContainsFunc(w.sameFiles(up, to), func(base int) bool { _, ok := w.proven(up, base); return ok })
	}) {
		return errors.New("nothing proves that it went well before")
	}
	for _, g := range w.rules.gates(st) {
		if g.Soak == nil {
			continue
		}
		in, some := groups, any
		if g.Soak.Environment != "" {
			in, some = [][]*ruleStage{w.rules.of(g.Soak.Environment)}, false
		}
		if !through(in, some, func(up *ruleStage) bool {
			return slices.ContainsFunc(w.sameFiles(up, to), func(base int) bool {
				at, ok := w.proven(up, base)
				return ok && w.rules.now.Sub(at) >= g.Soak.For
			})
		}) {
			return fmt.Errorf("nothing proves that it soaked for %s", g.Soak.For)
		}
	}
	return nil
}

// had reports whether the history of a stage's branch has a base commit.
func (w *modelWorld) had(st *ruleStage, base int) bool {
	all := w.branch(w.gitops.refs()[session.BranchRef(w.rules.environment(st.environment).branch())], git.Hash{})
	return slices.ContainsFunc(all, func(c modelCommit) bool { return w.number(sourceIn(c.after, st.ring).Base) == base })
}

// hadPair reports whether the history of a stage's branch has a base commit with certain own
// files.
func (w *modelWorld) hadPair(st *ruleStage, of tree.Source) bool {
	all := w.branch(w.gitops.refs()[session.BranchRef(w.rules.environment(st.environment).branch())], git.Hash{})
	return slices.ContainsFunc(all, func(c modelCommit) bool { return sourceIn(c.after, st.ring) == of })
}

// sameFiles returns a base commit and the base commits with the same files in a stage right
// before or after it.
func (w *modelWorld) sameFiles(st *ruleStage, base int) (out []int) {
	var run []int
	are := ""
	for _, c := range append(w.branch(w.gitops.refs()[session.BranchRef(w.rules.environment(st.environment).branch())], git.Hash{}), modelCommit{}) {
		files := ""
		if c.after != nil {
			for _, e := range c.after.ClusterTypes {
				if e.Ring == st.ring {
					files += e.Name + " " + string(e.Record) + "\n"
				}
			}
		}
		if files != are {
			if slices.Contains(run, base) {
				out = append(out, run...)
			}
			run, are = nil, files
		}
		run = append(run, w.number(sourceIn(c.after, st.ring).Base))
	}
	return out
}

// proven returns the time since which the notes show a base commit's success in a stage.
func (w *modelWorld) proven(st *ruleStage, base int) (at time.Time, ok bool) {
	for _, word := range w.words(st, base) {
		if ok = word.state == forge.Success; ok {
			at = word.at
		}
	}
	return at, ok
}

type modelWord struct {
	state forge.State
	at    time.Time
}

// words returns the reports about a stage in the note of a base commit.
func (w *modelWorld) words(st *ruleStage, base int) []modelWord {
	var out []modelWord
	entries := map[string]bool{}
	add := func(name string, state forge.State, description string, at time.Time) {
		named := slices.ContainsFunc(append(w.rules.environment(st.environment).Formerly, st.environment), func(environment string) bool {
			return name == "kalypso/"+session.StageID(environment, st.ring)
		})
		if !named || state == forge.Pending && entries[description] {
			return // the same stay
		}
		entries[description] = true
		out = append(out, modelWord{state, at})
	}
	if w.forges != nil {
		for _, s := range w.forges[w.platform.url].said[w.ids[base]] {
			add(s.Name, s.State, s.Description, s.At)
		}
		return out
	}
	w.gitops.mu.Lock()
	defer w.gitops.mu.Unlock()
	tip, there := w.gitops.list()["refs/notes/kalypso"]
	if !there {
		return nil
	}
	root, _, _ := w.gitops.parsed(tip)
	id, there := w.gitops.find(root, w.ids[base].String())
	if !there {
		return nil
	}
	for line := range strings.Lines(string(w.gitops.content(id, git.BlobKind))) {
		var statuses struct {
			Name, Description string
			State             forge.State
			At                time.Time
		}
		if json.Unmarshal([]byte(line), &statuses) == nil {
			add(statuses.Name, statuses.State, statuses.Description, statuses.At)
		}
	}
	return out
}

// checkWords checks that a success stays one, and is based on a report.
func (w *modelWorld) checkWords(st *ruleStage) error {
	if st.has == ruleNothing {
		return nil
	}
	last := forge.State("")
	for _, word := range w.words(st, st.has.base) {
		if last == forge.Success && word.state == forge.Failure {
			return fmt.Errorf("%w: %d failed in %s after it went well", errNever, st.has.base, st.id())
		}
		last = word.state
	}
	if last != forge.Success || w.rules.rolloutGate(st).Source == "none" {
		return nil
	}
	w.clusters.mu.Lock()
	defer w.clusters.mu.Unlock()
	e := *w.rules.environment(st.environment)
	for _, name := range append(slices.Clip(e.Formerly), e.Name) { // it may have come before it was renamed
		e.Name = name
		for _, id := range e.assignments(st.ring) {
			if _, there := w.clusters.reports[id]; there {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: %d went well in %s, and nobody has reported", errNever, st.has.base, st.id())
}

// checkProposal checks that a change request that shows that all gates are passed may be merged.
func (w *modelWorld) checkProposal(st *ruleStage) error {
	if w.forges == nil {
		return nil
	}
	f := w.forges[w.gitops.url]
	w.gitops.mu.Lock()
	c := f.open("kalypso/promote/"+st.id(), w.rules.environment(st.environment).branch())
	passes := c != nil && f.passes(c.Head)
	w.gitops.mu.Unlock()
	if !passes {
		return nil
	}
	record := w.record(c.Head)
	if hold := holdIn(record, st.ring); hold != nil {
		return nil // somebody brings the stage back
	}
	has := sourceIn(record, st.ring)
	to := ruleSource{w.number(has.Base), w.number(has.Environment)}
	var skip []string
	if st.named != nil {
		skip = st.named.skip
	}
	if to != st.has && (w.rules.drifts(st.environment) || !w.rules.mayCome(st, to, st.named) || !w.rules.fits(st, to, skip)) {
		return fmt.Errorf("%w: the change request of %s to %s says that all gates are passed", errNever, w.name(has), st.id())
	}
	return nil
}
