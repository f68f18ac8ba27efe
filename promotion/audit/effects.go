package audit

import (
	"context"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/changes"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// changesTree reports whether events of a kind change a tree.
func changesTree(what string) bool {
	return slices.Contains([]string{"promoted", "rolled back", "configured", "changed", "removed"},
		what) || strings.HasPrefix(what, "merged against ")
}

// step is a commit that changes a tree, and the number of its event.
type step struct {
	changes.Step
	event int
}

// MaxCounted is the number of commits of a branch, the newest, for which an audit counts the
// changes on clusters. Counting reads the records of all folders that the commits change.
const MaxCounted = 1000

// stepsAtOnce is the number of commits whose records are fetched in one request.
const stepsAtOnce = 100

// effects are the changes of an environment's commits. Several rings share a branch, and
// therefore these counts.
type effects struct {
	*changes.Reader
	known map[git.Hash]*effect.Counts // by commit; nil if it is unknown
}

// count sets Event.Change of the steps' events. If a record cannot be read, the change stays
// unknown. That is not an error.
func (au *Auditor) count(ctx context.Context, env *session.Environment, steps []step,
	events []Event) error {
	if au.state.Platform.Subject.Form().Targets {
		return nil // an application's targets are files, and no assignments
	}
	of := au.effects[env]
	if of == nil {
		of = &effects{changes.NewReader(env), map[git.Hash]*effect.Counts{}}
		au.effects[env] = of
	}
	for some := range slices.Chunk(steps[max(0, len(steps)-MaxCounted):], stepsAtOnce) {
		var next []changes.Step
		for i := range some {
			if _, known := of.known[some[i].Now.ID]; !known {
				next = append(next, some[i].Step)
			}
		}
		if err := of.Prefetch(ctx, next); err != nil {
			return err
		}
		for i := range next {
			counts, err := of.counts(ctx, next[i])
			if err != nil {
				return err
			}
			of.known[next[i].Now.ID] = counts
		}
		for i := range some {
			events[some[i].event].Change = of.known[some[i].Now.ID]
		}
	}
	return nil
}

// counts returns the counts of a step. It returns nil if they are unknown, for example because a
// person edited files and not the record.
func (e *effects) counts(ctx context.Context, s changes.Step) (*effect.Counts, error) {
	if s.Before.RecordID == s.Now.RecordID {
		return nil, nil
	}
	of, err := e.Effect(ctx, s)
	if err != nil || of == nil {
		return nil, err
	}
	counts := of.Counts()
	return &counts, nil
}
