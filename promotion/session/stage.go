package session

import (
	"context"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/ledger"
)

// Stage is one ring of an environment, or an environment without rings. Questions,
// compilations and writes always concern one of them.
type Stage struct {
	Policy      *model.Declaration // of the environment
	Ring        *model.Ring        // nil if the environment has no rings
	Environment *Environment
}

// In returns the stage with another state of its environment.
func (st *Stage) In(env *Environment) *Stage {
	return &Stage{Policy: st.Policy, Ring: st.Ring, Environment: env}
}

// RingName returns the name of the ring, or "".
func (st *Stage) RingName() string {
	if st.Ring == nil {
		return ""
	}
	return st.Ring.Name
}

// StageID returns environment, or environment/ring.
func StageID(environment, ring string) string {
	if ring == "" {
		return environment
	}
	return environment + "/" + ring
}

// ID returns environment, or environment/ring.
func (st *Stage) ID() string { return StageID(st.Policy.Name, st.RingName()) }

// Has returns the stage's source by the record, or the zero Source.
func (st *Stage) Has() tree.Source { return st.Environment.has(st.RingName()) }

// GatePolicy returns the requirements of the stage's gates.
func (st *Stage) GatePolicy() gate.Policy {
	p := &st.Policy.Promotion
	out := gate.Policy{
		Environment: st.Policy.Name, Ring: st.RingName(),
		After: st.Policy.After, Any: p.Any, Gates: []model.Gates{p.Gates},
		AllowErrors: p.AllowErrors, AllowKept: p.AllowKept, Skippable: p.Skippable,
		OwnAtOnce: p.OwnChanges.AtOnce,
	}
	if st.Ring != nil {
		out.Gates = append(out.Gates, st.Ring.Gates)
		if len(st.Ring.After) > 0 {
			out.After, out.Rings, out.Any = st.Ring.After, true, false
		}
	}
	return out
}

// RolloutGate returns when a commit counts as having run in the stage.
func (st *Stage) RolloutGate() model.RolloutGate {
	if st.Ring != nil && st.Ring.Gates.Rollout != nil {
		return *st.Ring.Gates.Rollout
	}
	if g := st.Policy.Promotion.Gates.Rollout; g != nil {
		return *g
	}
	return model.RolloutGate{Source: "any", Min: "100%"}
}

// Had returns which of some base commits the stage has or had. It may miss commits that were
// there long before.
func (st *Stage) Had(ctx context.Context, of []source.Base) (map[tree.Revision]bool, error) {
	if st.Environment.Repository == nil || st.Environment.Record == nil {
		return nil, nil
	}
	return st.Environment.History.had(ctx, st.RingName(), of)
}

// SourceWith returns a base commit with the environment's own files as they are now.
func (st *Stage) SourceWith(b source.Base) tree.Source {
	return tree.Source{Base: tree.RevisionOf(b.Commit),
		Environment: tree.RevisionOf(st.Environment.Own.Commit)}
}

// Aborted returns the order that calls off a candidate of the stage, or nil.
func (st *Stage) Aborted(commit git.Hash) *ledger.Order {
	return st.Environment.Orders.Aborted[st.RingName()][commit]
}

// AbortName returns how orders that call off a candidate of the stage name it.
func (st *Stage) AbortName() string {
	if st.Ring == nil {
		return st.Policy.Name
	}
	return st.Policy.Name + "." + st.RingName()
}

// Writes returns how the stage's tree gets into its branch. The first tree of a branch is pushed,
// because a change request needs an existing branch. If the tree needs approvals, the branch
// starts without a tree.
func (st *Stage) Writes() model.Write {
	w := st.Policy.Promotion.Write
	if w == model.WriteDefault {
		w = model.WritePullRequest
		if st.Environment.Repository.Plain {
			w = model.WritePush
		}
	}
	if st.Environment.Tip.IsZero() && !st.WantsApprovals() {
		return model.WritePush
	}
	return w
}

// WantsApprovals reports whether a gate requires approvals.
func (st *Stage) WantsApprovals() bool {
	return slices.ContainsFunc(st.GatePolicy().Gates,
		func(g model.Gates) bool { return g.Approvals != nil || g.OwnApprovals != nil })
}

// PromotionBranch returns the branch that proposes the stage's next tree.
func (st *Stage) PromotionBranch() string { return "kalypso/promote/" + st.ID() }

// ProposalHead returns the head of that branch, or the zero Hash.
func (st *Stage) ProposalHead() git.Hash {
	return st.Environment.Repository.Refs[BranchRef(st.PromotionBranch())]
}

// Covers reports whether a cluster type is of the stage: it was built for the ring, or for
// no ring of the policy.
func (st *Stage) Covers(clusterType string) bool {
	of := st.Environment.Record.RingOf(clusterType)
	return st.Ring == nil || of == st.Ring.Name || st.Policy.Promotion.Ring(of) == nil
}

// CoversFile reports the same of a path in the environment's folder. An entry of a cluster
// belongs to the stage of the folder that it names.
func (st *Stage) CoversFile(path string) bool {
	part := tree.PartOf(path)
	if tree.IsShard(part) {
		cluster, _, _ := strings.Cut(strings.TrimPrefix(path, part+"/"), "/")
		part = st.Environment.Record.FolderOf(cluster)
	}
	return st.Covers(part)
}

// OwnHold returns the hold of only this stage: the environment's if it has no rings.
func (st *Stage) OwnHold() *tree.Hold {
	if hold := st.Environment.ringIn(st.Environment.Record, st.RingName()).Hold; hold != nil ||
		st.Ring != nil || st.Environment.Record == nil {
		return hold
	}
	return st.Environment.Record.Hold
}

// OwnNamed returns the person who promoted the stage's commit by name, or nil.
func (st *Stage) OwnNamed() *tree.NamedPromotion {
	return st.Environment.NamedIn(st.Environment.Record, st.RingName())
}

// SetHold sets the hold of the stage in a record, in which there may be rings that are not in
// the policy any more.
func (st *Stage) SetHold(r *tree.Record, hold *tree.Hold) {
	if st.Ring == nil {
		for i := range r.Rings {
			r.Rings[i].Hold = nil
		}
		r.Hold = hold
		return
	}
	if r.Hold != nil || r.Ring(st.Ring.Name) == nil {
		r.Rings, r.Hold = st.Environment.ringsIn(r), nil
	}
	if ring := r.Ring(st.Ring.Name); ring != nil {
		ring.Hold = hold
	}
}

// RecordRings returns the rings of the record after a step, sorted by name: this one has
// its next source, and the others their present ones. nil for an environment without
// rings.
func (st *Stage) RecordRings(gets tree.Source, hold *tree.Hold,
	named *tree.NamedPromotion) []tree.Ring {
	if st.Ring == nil {
		return nil
	}
	out := slices.DeleteFunc(st.Environment.ringsIn(st.Environment.Record),
		func(r tree.Ring) bool { return r.Name == st.Ring.Name })
	out = append(out, tree.Ring{Name: st.Ring.Name, Source: gets, Hold: hold, Named: named})
	slices.SortFunc(out, func(a, b tree.Ring) int { return strings.Compare(a.Name, b.Name) })
	return out
}
