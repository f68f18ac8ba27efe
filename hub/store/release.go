package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
)

// ReleasesOf returns the commits of a branch that changed the content of a ring, newest first.
func ReleasesOf(w *state.DesiredState) []api.Release {
	var out []api.Release
	for i, c := range w.Commits {
		before := map[string]state.Ring{}
		if i+1 == len(w.Commits) && w.Older {
			break // the commits before this one are not known
		}
		if i+1 < len(w.Commits) {
			for _, r := range w.Commits[i+1].Rings {
				before[r.Name] = r
			}
		}
		for _, r := range c.Rings {
			was, there := before[r.Name]
			if there && was.Base == r.Base && was.Own == r.Own {
				continue
			}
			out = append(out,
				api.Release{Environment: w.Environment, Ring: r.Name, Commit: c.ID, Base: r.Base,
					Own: r.Own, Author: c.Author, Subject: c.Subject, Committed: committed(c.Time, &was, &r),
					At: c.Time})
		}
	}
	inOrder(out)
	return out
}

// committed returns the Committed of a release, given the ring's content before and after it, and
// the time of the commit.
func committed(at time.Time, was, is *state.Ring) time.Time {
	var newest time.Time
	back := is.Base == was.Base && is.OwnTime.Before(was.OwnTime)
	if is.Base != was.Base {
		newest, back = is.BaseTime, is.BaseTime.Before(was.BaseTime)
	}
	if is.Own != was.Own && is.OwnTime.After(newest) {
		newest = is.OwnTime
	}
	if back || newest.IsZero() || newest.After(at) {
		return at
	}
	return newest
}

// ReadAt is ReleasesOf for a hub that has read an earlier state of the branch, or nil if it has
// read none before. Newer releases have the time now.
func ReadAt(now time.Time, before, w *state.DesiredState) []api.Release {
	out := ReleasesOf(w)
	if before == nil {
		return out
	}
	known := len(w.Commits) // the place of the newest known commit, or the end
	if len(before.Commits) > 0 {
		if in := w.IndexOf(before.Commits[0].ID); in >= 0 {
			known = in
		}
	}
	for i := range out {
		if w.IndexOf(out[i].Commit) >= known {
			break
		}
		out[i].At = now
	}
	inOrder(out)
	return out
}

// inOrder adjusts the times of releases to their order, the newest first, because git has whole
// seconds.
func inOrder(releases []api.Release) {
	for i := len(releases) - 2; i >= 0; i-- {
		r, older := &releases[i], &releases[i+1]
		if r.Commit != older.Commit && r.At.Truncate(time.Second).Equal(older.At.Truncate(time.Second)) &&
			!r.At.After(older.At) {
			r.At = older.At.Add(time.Millisecond)
		} else if r.Commit == older.Commit {
			r.At = older.At
		}
	}
}

// Releases adds the releases that are not stored yet.
func (t *Tx) Releases(ctx context.Context, releases []api.Release) error {
	var values []any
	for _, r := range releases {
		values = append(values, r.Environment, r.Ring, r.Commit, r.Base, r.Own, r.Author, r.Subject,
			r.Committed.UnixMilli(), r.At.UnixMilli())
	}
	if len(values) == 0 {
		return nil
	}
	err := t.store.insert(ctx, t.tx, "release", "environment, ring, revision, base, own, author, "+
		"subject, committed, at", "ON CONFLICT (environment, ring, revision) DO NOTHING", values)
	return t.store.problem(err)
}

// Complete records that a release was ok everywhere, and Fail that it failed. Only the first time
// counts. They return the number of new records: 1, or 0 if it was known.
func (t *Tx) Complete(ctx context.Context, environment, ring, commit string, at time.Time) (int,
	error) {
	return t.note(ctx, "completed", "revision = ?", environment, ring, at, commit)
}

// Fail is Complete for a failure.
func (t *Tx) Fail(ctx context.Context, environment, ring, commit string, at time.Time) (int,
	error) {
	return t.note(ctx, "failed", "revision = ?", environment, ring, at, commit)
}

// Restore records, for all earlier failed releases of a ring, that all of the ring is ok again.
// Only the first time counts. It returns the number of these releases.
func (t *Tx) Restore(ctx context.Context, environment, ring string, at time.Time) (int, error) {
	return t.note(ctx, "restored", "failed < ?", environment, ring, at, at.UnixMilli())
}

// note sets a column of a ring's releases that match a condition and do not have a value in it.
func (t *Tx) note(
	ctx context.Context, column, condition, environment, ring string, at time.Time, of any,
) (int, error) {
	n, err := t.store.exec(ctx, t.tx,
		`UPDATE release SET `+column+` = ? WHERE environment = ? AND ring = ? AND `+
			condition+` AND `+column+` IS NULL`, at.UnixMilli(), environment, ring, of)
	return int(n), t.store.problem(err)
}

// ReleasePosition is the position of a release in the list, the newest first.
type ReleasePosition struct {
	At                        int64 // in milliseconds
	Environment, Ring, Commit string
}

// PositionOf returns the position of a release.
func PositionOf(r *api.Release) ReleasePosition {
	return ReleasePosition{r.At.UnixMilli(), r.Environment, r.Ring, r.Commit}
}

// Valid reports whether p can be the position of a release.
func (p ReleasePosition) Valid() bool {
	return p.Environment != "" && p.Commit != "" && storable(p.Environment+p.Ring+p.Commit)
}

// releases reads the table of releases, which a Tx writes.
type releases struct{ *database }

// Releases returns at most so many releases of some environments, the newest first.
func (s *releases) Releases(ctx context.Context, of state.Environments,
	most int) ([]api.Release, error) {
	return s.ReleasesAfter(ctx, of, time.Time{}, ReleasePosition{}, most)
}

// ReleasesSince returns all releases of some environments whose At is a time or later, the newest
// first.
func (s *releases) ReleasesSince(ctx context.Context, of state.Environments,
	since time.Time) ([]api.Release, error) {
	return s.ReleasesAfter(ctx, of, since, ReleasePosition{}, 1<<30)
}

// ReleasesAfter returns, like Releases, the releases after a position, if their At is a time or
// later. The zero ReleasePosition is before all releases. The list is never nil.
func (s *releases) ReleasesAfter(
	ctx context.Context, of state.Environments, since time.Time, after ReleasePosition, most int,
) ([]api.Release, error) {
	out := []api.Release{}
	q := `SELECT environment, ring, revision, base, own, author, subject, committed, at, COALESCE(completed, 0), COALESCE(failed, 0), COALESCE(restored, 0) FROM release WHERE at >= ?`
	args := []any{max(since.UnixMilli(), 0)}
	if of != nil {
		in, names := isOneOf(s.database, "environment", storableOf(of))
		q, args = q+" AND "+in, append(args, names...)
	}
	order := s.inOrder("environment") + ", " + s.inOrder("ring") + ", " + s.inOrder("revision")
	if after != (ReleasePosition{}) {
		q += " AND (at < ? OR at = ? AND (" + order + ") > (?, ?, ?))"
		args = append(args, after.At, after.At, after.Environment, after.Ring, after.Commit)
	}
	err := s.rows(ctx, s.read, func(r *sql.Rows) error {
		var x api.Release
		err := r.Scan(&x.Environment, &x.Ring, &x.Commit, &x.Base, &x.Own, &x.Author, &x.Subject,
			milliseconds{&x.Committed}, milliseconds{&x.At}, milliseconds{&x.Completed},
			milliseconds{&x.Failed}, milliseconds{&x.Restored})
		out = append(out, x)
		return err
	}, q+` ORDER BY at DESC, `+order+` LIMIT ?`, append(args, most)...)
	return out, s.problem(err)
}
