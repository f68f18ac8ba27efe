package plain

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// held is what was said and waits to be pushed: the commits of the notes that say it, on
// top of the one that the ref was at.
type held struct {
	statuses []heldStatus // in their order, for those who have to say them anew
	objects  map[git.Hash]git.Object
	old, tip git.Hash
}

type heldStatus struct {
	commit git.Hash
	status forge.Status
}

// Hold lets SetStatus say things to this Forge alone, until Flush pushes all of them at
// once.
func (f *Forge) Hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = newHeld()
	}
}

func newHeld() *held { return &held{objects: map[git.Hash]git.Object{}} }

// Flush pushes what is held, and ends Hold. Where another process was faster it is said
// anew, on top of what that said. The error is git.ErrLostRace where other processes were
// faster five times: what was held is not said then.
func (f *Forge) Flush(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.held = nil }()
	if f.held == nil || len(f.held.statuses) == 0 {
		return nil
	}
	said, late := f.held.statuses, false
	err := f.again(ctx, func() error {
		if late {
			f.held = newHeld()
			for _, s := range said {
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
		return fmt.Errorf("set the status %s of %s: %w", said[0].status.Name, git.Short(said[0].commit), err)
	}
	return nil
}

// tip returns the commit of the notes: that of what is held, or the one that they have.
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
