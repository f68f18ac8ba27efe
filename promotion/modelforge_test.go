package promotion

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// modelForge is the forge of both repositories of a world. Nobody makes mistakes on it: it merges
// a change request if its branch has the base's tip.
type modelForge struct {
	of  *modelRepo
	now func() time.Time

	mu       sync.Mutex
	said     map[git.Hash][]forge.Status
	requests []*forge.Change
	heads    []string // of the requests
}

// step is a point at which a run may stop.
func (f *modelForge) step(ctx context.Context, write bool, do func() error) error {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.of.fault != nil && f.of.fault(write, false) {
		return fmt.Errorf("the forge breaks off: %w", ctx.Err())
	}
	f.mu.Lock()
	err := do()
	f.mu.Unlock()
	if f.of.fault != nil && f.of.fault(write, true) {
		return fmt.Errorf("the forge breaks off: %w", ctx.Err())
	}
	return err
}

func (f *modelForge) Kind() string { return "model" }

func (f *modelForge) Repository() string { return "https://forge.example.com" }

func (f *modelForge) Limits() forge.Limits {
	return forge.Limits{Title: 80, Body: 4000, StatusDescription: 140}
}

func (f *modelForge) Viewer(context.Context) (string, error) { return "kalypso[bot]", nil }

// open returns the open request from a branch to another.
func (f *modelForge) open(head, base string) *forge.Change {
	for i, c := range f.requests {
		if c.State == forge.ChangeOpen && f.heads[i] == head && c.Base == base {
			c.Head = f.of.list()[session.BranchRef(head)]
			return c
		}
	}
	return nil
}

func (f *modelForge) FindChange(ctx context.Context, head, base string) (out *forge.Change, err error) {
	err = f.step(ctx, false, func() error {
		if c := f.open(head, base); c != nil {
			there := *c
			out = &there
		}
		return nil
	})
	return out, err
}

func (f *modelForge) SaveChange(ctx context.Context, spec forge.ChangeSpec) (out *forge.Change, err error) {
	err = f.step(ctx, true, func() error {
		c := f.open(spec.Head, spec.Base)
		if c == nil {
			c = &forge.Change{Number: len(f.requests) + 1, Base: spec.Base, Author: "kalypso[bot]", State: forge.ChangeOpen, Head: f.of.list()[session.BranchRef(spec.Head)]}
			f.requests, f.heads = append(f.requests, c), append(f.heads, spec.Head)
		}
		c.Title, c.Body, c.Labels = spec.Title, spec.Body, spec.Labels
		there := *c
		out = &there
		return nil
	})
	return out, err
}

func (f *modelForge) CloseChange(ctx context.Context, number int, _ string) error {
	return f.step(ctx, true, func() error {
		if c := f.requests[number-1]; c.State == forge.ChangeOpen {
			c.State = forge.ChangeClosed
		}
		return nil
	})
}

func (f *modelForge) Comment(ctx context.Context, _ int, _ string) error {
	return f.step(ctx, true, func() error { return nil })
}

func (f *modelForge) Merge(ctx context.Context, number int, head git.Hash, o forge.MergeOptions) (forge.MergeState, error) {
	err := f.step(ctx, true, func() error { return f.merge(number, head, o.Title+"\n\n"+o.Message) })
	return forge.MergeDone, err
}

func (f *modelForge) CancelMerge(ctx context.Context, _ int) error {
	return f.step(ctx, true, func() error { return nil })
}

func (f *modelForge) merge(number int, head git.Hash, text string) error {
	c := f.requests[number-1]
	refs := f.of.list()
	if c.State != forge.ChangeOpen || refs[session.BranchRef(f.heads[number-1])] != head {
		return git.ErrLostRace
	}
	root, parent, _ := f.of.parsed(head)
	if parent != refs[session.BranchRef(c.Base)] {
		return git.ErrLostRace
	}
	c.Merged = f.of.move(c.Base, root, []git.Hash{parent}, f.now(), text)
	c.State = forge.ChangeMerged
	return nil
}

func (f *modelForge) Reviews(context.Context, int) (*forge.Reviews, error) {
	return &forge.Reviews{}, nil
}

func (f *modelForge) Statuses(ctx context.Context, commits []git.Hash) (out map[git.Hash][]forge.Status, err error) {
	out = map[git.Hash][]forge.Status{}
	err = f.step(ctx, false, func() error {
		for _, c := range commits {
			out[c] = slices.Clone(f.said[c])
		}
		return nil
	})
	return out, err
}

func (f *modelForge) SetStatus(ctx context.Context, commit git.Hash, s forge.Status) error {
	return f.step(ctx, true, func() error {
		for _, old := range slices.Backward(f.said[commit]) {
			if old.Name == s.Name {
				if old.State == s.State && old.Description == s.Description {
					return nil
				}
				break
			}
		}
		s.By, s.At = "kalypso[bot]", f.now()
		f.said[commit] = append(f.said[commit], s)
		return nil
	})
}

func (f *modelForge) Deploy(context.Context, forge.Deployment) error { return forge.ErrUnsupported }

// ChangeOf lets whoever verifies find the change request that a commit merged.
func (f *modelForge) ChangeOf(ctx context.Context, commit git.Hash, _ string) (out *forge.Change, err error) {
	err = f.step(ctx, false, func() error {
		for _, c := range f.requests {
			if c.Merged == commit {
				there := *c
				out = &there
			}
		}
		return nil
	})
	return out, err
}

func (f *modelForge) SaveComment(ctx context.Context, _ int, _, _ string) error {
	return f.step(ctx, true, func() error { return nil })
}

// passes reports whether the newest status of a commit shows that all gates are passed.
func (f *modelForge) passes(commit git.Hash) bool {
	ok := false
	for _, s := range f.said[commit] {
		if s.Name == ledger.GatesStatus {
			ok = s.State == forge.Success
		}
	}
	return ok
}

// state returns everything that can change, to be compared.
func (f *modelForge) state() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var requests []forge.Change
	for _, c := range f.requests {
		requests = append(requests, *c)
	}
	return fmt.Sprint(f.said, requests)
}
