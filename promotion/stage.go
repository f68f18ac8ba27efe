package promotion

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// stop is one ring of an environment, or an environment without rings.
type stop struct {
	stage *evaluate.Stage
	ring  *model.Ring // nil where there are none
	out   *output
}

func (s *stop) ringName() string {
	if s.ring == nil {
		return ""
	}
	return s.ring.Name
}

func stopID(environment, ring string) string {
	if ring == "" {
		return environment
	}
	return environment + "/" + ring
}

func (s *stop) id() string { return stopID(s.stage.Name, s.ringName()) }

// has returns what the record says that the stop has; the zero Source for nothing.
func (s *stop) has() tree.Source { return s.out.has(s.ringName()) }

// policy is what the gates of a stop ask.
func (st *stop) policy() gate.Policy {
	p := &st.stage.Promotion
	out := gate.Policy{
		Environment: st.stage.Name, Ring: st.ringName(),
		After: st.stage.After, Any: p.Any, Gates: []model.Gates{p.Gates},
		AllowErrors: p.AllowErrors, AllowKept: p.AllowKept, Skippable: p.Skippable,
	}
	if st.ring != nil {
		out.Gates = append(out.Gates, st.ring.Gates)
		if len(st.ring.After) > 0 {
			out.After, out.Rings, out.Any = st.ring.After, true, false
		}
	}
	return out
}

// rolloutGate is when a commit counts as having run in the stop.
func (st *stop) rolloutGate() model.RolloutGate {
	if st.ring != nil && st.ring.Gates.Rollout != nil {
		return *st.ring.Gates.Rollout
	}
	if g := st.stage.Promotion.Gates.Rollout; g != nil {
		return *g
	}
	return model.RolloutGate{Source: "any", Min: "100%"}
}

// with is a base commit with the environment's own files as they are now.
func (st *stop) with(b source.Base) tree.Source {
	return tree.Source{Base: tree.RevisionOf(b.Commit), Environment: tree.RevisionOf(st.out.own.Commit)}
}

// aborted is the order that calls off a candidate of the stop; nil for none.
func (st *stop) aborted(commit git.Hash) *order { return st.out.orders.aborted[st.ringName()][commit] }

// abortName is what the order that calls off a candidate of the stop is about.
func (st *stop) abortName() string {
	if st.ring == nil {
		return st.stage.Name
	}
	return st.stage.Name + "." + st.ringName()
}

// writes says how the stop's tree gets into its branch. The first tree of a branch is
// pushed: nothing can be merged into a branch that is not there. Where it needs
// approvals, the branch is begun without a tree.
func (st *stop) writes() model.Write {
	w := st.stage.Promotion.Write
	if w == model.WriteDefault {
		w = model.WritePullRequest
		if st.out.repository.plain {
			w = model.WritePush
		}
	}
	if st.out.tip.IsZero() && !st.wantsApprovals() {
		return model.WritePush
	}
	return w
}

func (st *stop) wantsApprovals() bool {
	return slices.ContainsFunc(st.policy().Gates, func(g model.Gates) bool { return g.Approvals != nil })
}

// promotionBranch is the branch that proposes a stop's next tree.
func (st *stop) promotionBranch() string { return "kalypso/promote/" + st.id() }

// covers says whether a cluster type is of the stop: it was built for the ring, or for
// none that the policy has.
func (st *stop) covers(clusterType string) bool {
	of := st.out.record.RingOf(clusterType)
	return st.ring == nil || of == st.ring.Name || st.stage.Promotion.Ring(of) == nil
}

// coversFile says it of a path in the environment's folder.
func (st *stop) coversFile(path string) bool {
	clusterType, _, _ := strings.Cut(path, "/")
	return st.covers(clusterType)
}

// ownHold returns the hold of the stop alone: the environment's where it has no rings.
func (st *stop) ownHold() *tree.Hold {
	if hold := st.out.ringIn(st.out.record, st.ringName()).Hold; hold != nil || st.ring != nil || st.out.record == nil {
		return hold
	}
	return st.out.record.Hold
}

// setHold sets the hold of a stop in a record, in which there may be rings that are not in
// the policy any more.
func (st *stop) setHold(r *tree.Record, hold *tree.Hold) {
	if st.ring == nil {
		for i := range r.Rings {
			r.Rings[i].Hold = nil
		}
		r.Hold = hold
		return
	}
	if r.Hold != nil || r.Ring(st.ring.Name) == nil {
		r.Rings, r.Hold = st.out.ringsIn(r), nil
	}
	if ring := r.Ring(st.ring.Name); ring != nil {
		ring.Hold = hold
	}
}

// rings are those of the record after a step: this one has what it gets, and the others
// what they have.
func (st *stop) rings(gets tree.Source, hold *tree.Hold) []tree.Ring {
	if st.ring == nil {
		return nil
	}
	out := slices.DeleteFunc(st.out.ringsIn(st.out.record), func(r tree.Ring) bool { return r.Name == st.ring.Name })
	out = append(out, tree.Ring{Name: st.ring.Name, Source: gets, Hold: hold})
	slices.SortFunc(out, func(a, b tree.Ring) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func sameHold(a, b *tree.Hold) bool { return a == b || a != nil && b != nil && *a == *b }
