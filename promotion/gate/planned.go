package gate

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Planned evaluates the gates that need the planned change. These are errors, kept and removals
// if the change has such, and budget, policy, http and approvals if the policy has them. Verdicts
// are in the order of the table of kinds. There is one for each gate, the environment's before the
// ring's. Planned calls Post and Satisfies, one after the other, and nothing else that takes time.
// If the context ends, the gates without an answer are pending.
func Planned(ctx context.Context, p Policy, f ChangeFacts, s Skip) []Verdict {
	f.document = sync.OnceValues(func() ([]byte, error) { return json.Marshal(f.Change) })
	var vs []Verdict
	for _, k := range table {
		if k.change != nil {
			vs = append(vs, k.name(k.change(ctx, p, f))...)
		}
	}
	return skip(p, s, vs)
}

const unplanned = "the change is not planned yet"

// failures returns the verdict on assignments with errors. If there is no change yet, its verdict
// also covers kept and removals.
func failures(_ context.Context, p Policy, f ChangeFacts) []Verdict {
	if f.Change == nil {
		return []Verdict{{State: Pending, Reason: unplanned}}
	}
	return tolerated(model.GateErrors, "assignment", "with errors", f.Change.Errors, p.AllowErrors)
}

// keptVerdicts returns the verdict on folders that stay as they were.
func keptVerdicts(_ context.Context, p Policy, f ChangeFacts) []Verdict {
	if f.Change == nil {
		return nil
	}
	return tolerated(model.GateKept, "folder", "kept from before", f.Change.Kept, p.AllowKept)
}

// tolerated returns the verdict on a property of a change that the policy must allow.
func tolerated(gate, what, how string, count int, allowed bool) []Verdict {
	if count > 1 {
		what += "s"
	}
	switch {
	case count == 0:
		return nil
	case allowed:
		return []Verdict{{State: Passed,
			Reason: fmt.Sprintf("%d %s %s, which the policy allows", count, what, how)}}
	}
	return blocked(fmt.Sprintf("%d %s %s; wanted are 0, or allow: [%q]", count, what, how, gate))
}

// removals returns the verdict on a change that removes too many assignments or clusters.
func removals(_ context.Context, _ Policy, f ChangeFacts) []Verdict {
	if f.Change == nil {
		return nil
	}
	if excess := f.Change.Removals.Excess(); excess != "" {
		return blocked(excess)
	}
	return nil
}

func budgets(_ context.Context, p Policy, f ChangeFacts) (vs []Verdict) {
	for _, g := range p.Gates {
		if g.Budget != nil {
			vs = append(vs, budget(g.Budget, f.Change).verdict(""))
		}
	}
	return vs
}

// budget reports whether a change is small enough.
func budget(g *model.BudgetGate, c *Change) answer {
	if c == nil {
		return answer{State: Pending, reason: unplanned}
	}
	types := slices.Compact(slices.Sorted(slices.Values(c.ClusterTypes)))
	assignments, fits := bounded("assignments", c.Counts.Added+c.Counts.Changed+c.Counts.Removed,
		g.Assignments)
	clusterTypes, fit := bounded("cluster types", len(types), g.ClusterTypes)
	a := answer{State: Passed, reason: assignments + ", " + clusterTypes}
	within := true
	if g.Clusters != nil {
		var clusters string
		clusters, within = bounded("clusters", c.Clusters, g.Clusters)
		a.reason += ", " + clusters
	}
	if !fits || !fit || !within {
		a.State = Blocked
	}
	return a
}

func bounded(what string, count int, most *int) (string, bool) {
	if most == nil {
		return fmt.Sprintf("%d %s", count, what), true
	}
	return fmt.Sprintf("%d of at most %d %s", count, *most, what), count <= *most
}

// consult passes the change as a document to ask, and returns its answer. If there is no change,
// the answer is pending.
func (f *ChangeFacts) consult(ask func(document json.RawMessage) answer) answer {
	if f.Change == nil {
		return answer{State: Pending, reason: unplanned}
	}
	document, err := f.document()
	if err != nil {
		return answer{State: Pending, reason: "the change cannot be shown: " + printable(err.Error())}
	}
	return ask(document)
}

func policies(ctx context.Context, p Policy, f ChangeFacts) (vs []Verdict) {
	for _, gates := range p.Gates {
		for _, g := range gates.Policy {
			ask := func(document json.RawMessage) answer { return policy(ctx, g, f, document) }
			vs = append(vs, f.consult(ask).verdict(g.Name))
		}
	}
	return vs
}

// policy reports whether a change satisfies a constraint.
func policy(ctx context.Context, g model.PolicyGate, f ChangeFacts,
	document json.RawMessage) answer {
	if f.Satisfies == nil {
		return answer{State: Pending, reason: "nothing here evaluates constraints"}
	}
	violations, err := f.Satisfies(ctx, g.Change, document)
	switch {
	case err != nil && ctx.Err() != nil:
		return answer{State: Pending, reason: "was not evaluated: " + printable(err.Error())}
	case err != nil:
		return answer{State: Blocked, reason: "cannot be evaluated: " + printable(err.Error())}
	case len(violations) == 0:
		return answer{State: Passed, reason: "the change is as it should be"}
	}
	texts := make([]string, len(violations))
	for i, v := range violations {
		texts[i] = printable(v)
	}
	reason := list(texts, "; ")
	if g.Hint != "" {
		reason += "; " + printable(g.Hint)
	}
	return answer{State: Blocked, reason: reason}
}

// MarshalJSON writes commits in hexadecimal. It also writes empty lists and counts, so that
// constraints and services find them.
func (c Change) MarshalJSON() ([]byte, error) {
	for _, l := range []*[]string{&c.Assignments.Added, &c.Assignments.Changed, &c.Assignments.Removed,
		&c.ClusterTypes, &c.Emptied} {
		if *l == nil {
			*l = []string{}
		}
	}
	for _, m := range []*map[string]int{&c.Created, &c.Updated, &c.Deleted} {
		if *m == nil {
			*m = map[string]int{}
		}
	}
	for _, l := range []*[]compare.Entry{&c.Removed, &c.Added, &c.Changed} {
		if *l == nil {
			*l = []compare.Entry{}
		}
	}
	type fields Change
	return json.Marshal(struct {
		fields
		Base string `json:"base"`
		Own  string `json:"own"`
	}{fields(c), c.Base.String(), c.Own.String()})
}

// UnmarshalJSON reads the JSON that MarshalJSON writes.
func (c *Change) UnmarshalJSON(data []byte) error {
	type fields Change
	in := struct {
		*fields
		Base string `json:"base"`
		Own  string `json:"own"`
	}{fields: (*fields)(c)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	for _, id := range []struct {
		text string
		to   *git.Hash
	}{{in.Base, &c.Base}, {in.Own, &c.Own}} {
		if len(id.text) != 2*len(id.to) {
			return fmt.Errorf("%q is not the id of a commit", id.text)
		}
		if _, err := hex.Decode(id.to[:], []byte(id.text)); err != nil {
			return fmt.Errorf("%q is not the id of a commit", id.text)
		}
	}
	return nil
}
