package store

import (
	"context"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

const (
	assignmentColumns = "environment, cluster, target, folder, state, changed, reported, ran, " +
		"digest, revision, applied, repository, branch, path, message, reporter, observed, since, change"
	transitionColumns = "change, at, environment, workload, cluster, target, cluster_type, folder, " +
		"was, state, version, wanted, ran, revision, message"
)

// gone is the state in a transition of what is wanted no more.
const gone = -1

// changed is a change, and the assignment after it.
type changed struct {
	state.Change
	state.Row
}

// place tells assignments on clusters apart.
func (c *changed) place() [3]string { return [3]string{c.Environment, c.Cluster, c.Target} }

// changesAtOnce is how many changes are in memory as they are written.
const changesAtOnce = 10_000

// Changes writes changes: the rows as they are now, and a transition for each change of a state
// or of what runs.
func (t *Tx) Changes(ctx context.Context, now time.Time, changes *state.Changes) error {
	batch := make([]changed, 0, min(changes.Len(), changesAtOnce))
	err := changes.Each(func(c state.Change, r state.Row) error {
		if batch = append(batch, changed{c, r}); len(batch) < changesAtOnce {
			return nil
		}
		err := t.changes(ctx, now, batch)
		batch = batch[:0]
		return err
	})
	if err == nil {
		err = t.changes(ctx, now, batch)
	}
	if err != nil {
		return t.store.problem(err)
	}
	t.rows += changes.Len()
	return nil
}

func (t *Tx) changes(ctx context.Context, now time.Time, batch []changed) error {
	texts := map[string]int64{}
	latest := map[[3]string]int{} // a statement may not have a row twice
	for i := range batch {
		c := &batch[i]
		for _, text := range []string{c.Environment, c.Cluster, c.Target, c.ClusterType, c.Folder,
			c.Workload, c.Version, c.Digest, c.Running, c.Given, c.Commit, c.Applied, c.Repository, c.Branch,
			c.Path, c.Message, c.Said, c.By} {
			texts[text] = 0
		}
		latest[c.place()] = i
	}
	if err := t.ids(ctx, texts); err != nil {
		return err
	}
	var added, replaced, removed []any
	transitions := make([]any, 0, len(batch)*(1+strings.Count(transitionColumns, ",")))
	for i := range batch {
		c := &batch[i]
		number := t.next()
		if c.Moved || c.Ran || c.Other || c.New || c.Gone {
			transitions = c.transition(transitions, number, now, texts)
		}
		if latest[c.place()] != i {
			continue
		}
		if c.Gone {
			removed = append(removed, texts[c.Environment], texts[c.Cluster], texts[c.Target])
			continue
		}
		if isNew, err := t.isNew(ctx, c, texts[c.Environment]); err != nil {
			return err
		} else if isNew {
			added = c.row(added, number, texts)
		} else {
			replaced = c.row(replaced, number, texts)
		}
	}
	err := t.store.each(ctx, t.tx, "DELETE FROM assignment WHERE (environment, cluster, target) IN (", ")", 3, removed)
	if err == nil {
		err = t.add(ctx, "assignment", assignmentColumns, added)
	}
	if err == nil {
		err = t.store.insert(ctx, t.tx, "assignment", assignmentColumns,
			onConflict("environment, cluster, target", assignmentColumns), replaced)
	}
	if err == nil {
		err = t.add(ctx, "transition", transitionColumns, transitions)
	}
	return err
}

// isNew reports whether the database has no row of an assignment for sure: it is new in an
// environment that had none.
func (t *Tx) isNew(ctx context.Context, c *changed, environment int64) (bool, error) {
	if !c.New {
		return false, nil
	}
	empty, known := t.empty[environment]
	if !known {
		if err := t.tx.QueryRowContext(ctx,
			t.store.query(`SELECT NOT EXISTS (SELECT 1 FROM assignment WHERE environment = ?)`), environment).Scan(&empty); err != nil {
			return false, err
		}
		t.empty[environment] = empty
	}
	return empty, nil
}

// row adds the values of assignmentColumns.
func (c *changed) row(to []any, number int64, texts map[string]int64) []any {
	reported, _ := state.ParseReported(c.Reported)
	return append(to,
		texts[c.Environment], texts[c.Cluster], texts[c.Target], texts[c.Folder], int(c.State),
		c.Changed.UnixMilli(), int(reported), texts[c.Running], texts[c.Given], texts[c.Commit],
		texts[c.Applied], texts[c.Repository], texts[c.Branch], texts[c.Path], texts[c.Said],
		texts[c.By], milliseconds(c.At), milliseconds(c.Since), number)
}

// transition adds the values of transitionColumns.
func (c *changed) transition(to []any, number int64, now time.Time, texts map[string]int64) []any {
	was, is, at := int(c.Was), int(c.State), c.Changed
	if c.New {
		was = gone // it was not wanted
	}
	if c.Gone {
		is = gone
	}
	if !c.Moved {
		at = now
	}
	return append(to,
		number, at.UnixMilli(), texts[c.Environment], texts[c.Workload], texts[c.Cluster],
		texts[c.Target], texts[c.ClusterType], texts[c.Folder],
		was, is, texts[c.Version], texts[c.Digest], texts[c.Running], texts[c.Commit], texts[c.Message])
}
