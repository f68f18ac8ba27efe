package plain

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// held has the statuses that wait to be pushed: the commits of the notes that add them, on
// top of the one that the ref was at.
type held struct {
	statuses []heldStatus // in their order, to add them again
	objects  map[git.Hash]git.Object
	old, tip git.Hash
}

type heldStatus struct {
	commit git.Hash
	status forge.Status
}

// Hold makes SetStatus collect statuses, until Flush pushes all of them at once.
func (f *Forge) Hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = newHeld()
	}
}

func newHeld() *held { return &held{objects: map[git.Hash]git.Object{}} }

// Flush pushes what is held, and ends Hold. After a lost race, it adds the statuses again
// to the new notes. The error is git.ErrLostRace after five lost races: nothing was pushed
// then.
func (f *Forge) Flush(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.held = nil }()
	if f.held == nil || len(f.held.statuses) == 0 {
		return nil
	}
	statuses, late := f.held.statuses, false
	err := f.retry(ctx, func() error {
		if late {
			f.held = newHeld()
			for _, s := range statuses {
				if err := f.setStatus(ctx, s.commit, s.status); err != nil {
					return err
				}
			}
		}
		late = true
		if f.held.tip == f.held.old {
			return nil
		}
		return f.send(ctx, notesRef, f.held.old, f.held.tip, f.held.objects)
	})
	if err != nil {
		return fmt.Errorf("set the status %s of %s: %w", statuses[0].status.Name, git.Short(statuses[0].commit), err)
	}
	return nil
}

// tip returns the commit of the notes: that of what is held, or the one of the ref.
func (f *Forge) tip(ctx context.Context, ref string) (git.Hash, error) {
	refs, err := f.repository.Refs(ctx)
	if err != nil || f.held == nil || f.held.tip.IsZero() || ref != notesRef {
		return refs[ref], err
	}
	return f.held.tip, nil
}

// Object implements objects.
func (f *Forge) Object(id git.Hash) (git.Object, error) {
	if f.held != nil {
		if o, ok := f.held.objects[id]; ok {
			return o, nil
		}
	}
	return f.repository.Object(id)
}
