// Package ledger reads and writes the records about commits outside of the trees: statuses of
// commits, on a forge or in git notes, and orders in refs of GitOps repositories.
//
// The inputs are a repository and commits. The results are statuses, the course of a rollout, and
// orders in force. The package caches everything that it reads, so that all decisions of a run
// depend on one state. It does not depend on environments and policies.
package ledger

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/message"
)

// Statuses are the statuses of commits on one forge, or in git notes, which report rollouts. The
// forge sets the time of a status. Statuses is for one goroutine, and caches everything that it
// reads.
type Statuses struct {
	Forge forge.Forge
	known map[git.Hash][]forge.Status
	names Names
}

// NewStatuses returns the statuses of a forge. Those about environments that were renamed have the
// names of now.
func NewStatuses(f forge.Forge, names Names) *Statuses {
	return &Statuses{Forge: f, names: names, known: map[git.Hash][]forge.Status{}}
}

// Of returns the statuses of a commit, oldest first.
func (l *Statuses) Of(ctx context.Context, commit git.Hash) ([]forge.Status, error) {
	if err := l.Load(ctx, commit); err != nil {
		return nil, err
	}
	return l.known[commit], nil
}

// Loaded returns the statuses of a commit that Load has read, oldest first.
func (l *Statuses) Loaded(commit git.Hash) []forge.Status { return l.known[commit] }

// Load reads the statuses of some commits, in one request.
func (l *Statuses) Load(ctx context.Context, commits ...git.Hash) error {
	var ask []git.Hash
	for _, c := range commits {
		if _, known := l.known[c]; !known && !c.IsZero() && !slices.Contains(ask, c) {
			ask = append(ask, c)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	statuses, err := l.Forge.Statuses(ctx, ask)
	if err != nil {
		return err
	}
	for _, c := range ask {
		l.known[c] = slices.Clone(statuses[c])
		for i := range l.known[c] {
			s := &l.known[c][i]
			if id, own := strings.CutPrefix(s.Name, StatusName("")); own {
				s.Name = StatusName(l.names.currentName(id, "/:"))
			}
		}
	}
	return nil
}

// Report writes a status of a commit.
func (l *Statuses) Report(ctx context.Context, commit git.Hash, status forge.Status) error {
	status.Description = message.Clip(status.Description, l.Forge.Limits().StatusDescription)
	if err := l.Forge.SetStatus(ctx, commit, status); err != nil {
		return err
	}
	delete(l.known, commit)
	return nil
}

// GatesStatus is the name of the status of a proposal's head that sums up the gates. Rules of the
// branch can require it.
const GatesStatus = "kalypso/gates"

// StatusName returns the name of the commit statuses in which the rollout of a stage is
// reported: kalypso/<environment>[/<ring>].
func StatusName(id string) string { return "kalypso/" + id }

// Course is the course of a commit's rollout in a stage, as statuses report it.
type Course struct {
	Entered time.Time // when its newest rollout was first reported
	State   forge.State
	Since   time.Time // of state
	Reason  string
}

// CourseOver returns the course of some commits that brought a stage the same files, oldest first,
// by their statuses, which are loaded: only the first of them begins a rollout.
func (l *Statuses) CourseOver(commits []git.Hash, id string, by []string) (Course, bool) {
	var all []forge.Status
	for _, commit := range commits {
		begun := len(all) > 0
		for _, s := range l.known[commit] {
			if s.Name == StatusName(id) && (!begun || s.State != forge.Pending) {
				all = append(all, s)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b forge.Status) int { return a.At.Compare(b.At) })
	return CourseOf(all, id, by)
}

// HealthName returns the name of the statuses of GitOps commits that report whether a stage fails
// although the rollout succeeded, while another stage counts the time since. No name of a ring
// has a colon.
func HealthName(id string) string { return StatusName(id) + ":health" }

// Health is the newest report about a stage after its rollout succeeded.
type Health struct {
	Failing bool
	Since   time.Time // of Failing, or since when it is ok again; zero if it never failed
	Reason  string
}

// HealthOver returns the newest health of a stage over runs of commits, oldest first, from their
// loaded statuses. Each run has the same files, and a successful rollout of other files ends a
// failure. by lists the logins whose statuses count; all count if it is empty.
func (l *Statuses) HealthOver(runs [][]git.Hash, id string, by []string) (h Health) {
	for _, run := range runs {
		if c, _ := l.CourseOver(run, id, by); c.State == forge.Success && h.Failing {
			h = Health{Since: c.Since}
		}
		var all []forge.Status
		for _, commit := range run {
			for _, s := range l.known[commit] {
				if s.Name == HealthName(id) && (len(by) == 0 || slices.Contains(by, s.By)) {
					all = append(all, s)
				}
			}
		}
		slices.SortStableFunc(all, func(a, b forge.Status) int { return a.At.Compare(b.At) })
		for _, s := range all {
			failing := s.State == forge.Failure
			if failing != h.Failing || h.Since.IsZero() {
				h.Failing, h.Since = failing, s.At
			}
			h.Reason = s.Description
		}
	}
	return h
}

// CourseOf returns the course of a commit in a stage, by its statuses. It returns false if no
// status is about it. Success is latched. Only another stay of the commit ends it, which begins
// with a pending status with a new description, as the description names the GitOps commit. A
// pending status with an earlier description comes from a late runner. CourseOf ignores statuses
// of other authors than by; by is empty for any author.
func CourseOf(statuses []forge.Status, id string, by []string) (Course, bool) {
	var c Course
	found := false
	entries := map[string]bool{}
	for _, s := range statuses {
		if s.Name != StatusName(id) || len(by) > 0 && !slices.Contains(by, s.By) {
			continue
		}
		enters := s.State == forge.Pending
		if enters && entries[s.Description] {
			continue
		}
		if !found || enters {
			c.Entered = s.At
		}
		if !found || enters || s.State != c.State {
			c.State, c.Since = s.State, s.At
		}
		if enters {
			entries[s.Description] = true
		}
		c.Reason, found = s.Description, true
	}
	return c, found
}
