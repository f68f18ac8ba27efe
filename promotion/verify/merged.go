package verify

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// GateBypass is a proposal that somebody merged although the newest status of its gates was against
// it.
type GateBypass struct {
	Gate   string // the gate that was against it; "gates" if that is not known
	Reason string // the status
	By     string // the author of the merge; "" for a push of the proposal itself, which has no merge
}

// MergedAgainst returns how a commit of an environment's branch was merged although its gates
// were against it. It returns nil if it was not. The gates are the gates of the last run before.
// Gates that closed since then are not known.
func (r *Records) MergedAgainst(ctx context.Context, env *session.Environment,
	p session.Past) (*GateBypass, error) {
	heads := slices.Concat([]git.Hash{p.ID}, p.Parents[min(1, len(p.Parents)):])
	by := ""
	if p.Author.Name != p.Committer.Name || len(p.Parents) > 1 || !env.IsOwn(p) {
		by = terminal.Line(p.Author.Name + " <" + p.Author.Email + ">")
	}
	if by != "" && len(p.Parents) == 1 { // a forge squashed it, or made it again
		if f, ok := env.Repository.Forge.(forge.Commenter); ok {
			change, err := f.ChangeOf(ctx, p.ID, env.Branch)
			if err != nil {
				return nil, err
			}
			if change != nil {
				heads = append(heads, change.Head)
			}
		}
	}
	statuses := env.Repository.Statuses()
	if err := statuses.Load(ctx, heads...); err != nil {
		return nil, err
	}
	for _, head := range heads {
		last := forge.Newest(statuses.Loaded(head), ledger.GatesStatus, func(string) bool { return true })
		if last == nil || last.State == forge.Success {
			continue
		}
		out := &GateBypass{"gates", terminal.Line(last.Description), by}
		if name, rest, ok := strings.Cut(out.Reason, ": "); ok && !strings.Contains(name, " ") {
			out.Gate, out.Reason = name, rest
		}
		if out.Gate == model.GateApprovals { // they may have come since
			continue
		}
		return out, nil
	}
	return nil, nil
}

// mergedAgainst adds a problem if the source of a stage was merged against its gates.
func (r *Records) mergedAgainst(ctx context.Context, st *session.Stage, v *Verification) error {
	run, err := st.Environment.History.Deployed(ctx, st.RingName())
	if err != nil || len(run) == 0 || st.Has() == (tree.Source{}) {
		return err
	}
	p, there, err := st.Environment.History.At(ctx, 0)
	for i := 0; err == nil && there && p.ID != run[len(run)-1]; {
		i++
		p, there, err = st.Environment.History.At(ctx, i)
	}
	if err != nil || !there {
		return err
	}
	merged, err := r.MergedAgainst(ctx, st.Environment, p)
	if merged != nil {
		v.problem("%s was merged against %s, by %s: %s", git.Short(p.ID), merged.Gate,
			cmp.Or(merged.By, "somebody who pushed it"), merged.Reason)
	}
	return err
}
