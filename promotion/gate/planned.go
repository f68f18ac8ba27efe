package gate

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Planned answers the gates that need the planned change: errors, kept and removals where
// the change has such, and budget, policy, http and approvals where the policy has them.
// Verdicts are in the order of Kinds, one for each gate, the environment's before the
// ring's. It calls Post and Satisfies, one after the other, and nothing else that takes
// time; where the context ends, what was not answered is pending.
func Planned(ctx context.Context, p Policy, f ChangeFacts, s Skip) []Verdict {
	var vs []Verdict
	if f.Change == nil {
		vs = append(vs, Verdict{Gate: "errors", State: Pending, Reason: unplanned})
	} else {
		vs = append(vs, tolerated("errors", "assignment", "with errors", f.Change.Errors, p.AllowErrors)...)
		vs = append(vs, tolerated("kept", "folder", "kept from before", f.Change.Kept, p.AllowKept)...)
		vs = append(vs, removals(f.Change.Removals)...)
	}
	for _, g := range p.Gates {
		if g.Budget != nil {
			vs = append(vs, budget(g.Budget, f.Change).verdict("budget", ""))
		}
	}
	document, err := json.Marshal(f.Change)
	for _, g := range p.Gates {
		for _, g := range g.Policy {
			vs = append(vs, asked(f.Change, err, func() answer { return policy(ctx, g, f, document) }).verdict("policy", g.Name))
		}
	}
	for _, g := range p.Gates {
		for _, g := range g.HTTP {
			vs = append(vs, asked(f.Change, err, func() answer { return service(ctx, g, f, document) }).verdict("http", g.Name))
		}
	}
	for _, g := range p.Gates {
		if g.Approvals != nil {
			vs = append(vs, approvals(g.Approvals, f).verdict("approvals", ""))
		}
	}
	return skip(p, s, vs)
}

const unplanned = "the change is not planned yet"

// tolerated returns the verdict on what a change may have only where the policy allows it.
func tolerated(gate, what, how string, count int, allowed bool) []Verdict {
	if count > 1 {
		what += "s"
	}
	switch {
	case count == 0:
		return nil
	case allowed:
		return []Verdict{{Gate: gate, State: Passed, Reason: fmt.Sprintf("%d %s %s, which the policy allows", count, what, how)}}
	}
	return []Verdict{{Gate: gate, State: Blocked, Reason: fmt.Sprintf("%d %s %s; wanted are 0, or allow: [%q]", count, what, how, gate)}}
}

// removals returns the verdict on a change that takes too many assignments or clusters away.
func removals(r Removals) []Verdict {
	switch {
	case r.Empties:
		return []Verdict{{Gate: "removals", State: Blocked, Reason: fmt.Sprintf("all %d assignments are removed, and nothing is left", r.Recorded)}}
	case r.Removed > r.Most:
		return []Verdict{{Gate: "removals", State: Blocked, Reason: fmt.Sprintf("%d of %d assignments are removed; wanted are %d at most", r.Removed, r.Recorded, r.Most)}}
	case r.Clusters > r.MostClusters:
		return []Verdict{{Gate: "removals", State: Blocked, Reason: fmt.Sprintf("%d of %d clusters are removed; wanted are %d at most", r.Clusters, r.RecordedClusters, r.MostClusters)}}
	}
	return nil
}

// budget reports whether a change is small enough.
func budget(g *model.BudgetGate, c *Change) answer {
	if c == nil {
		return answer{State: Pending, reason: unplanned}
	}
	types := slices.Compact(slices.Sorted(slices.Values(c.ClusterTypes)))
	assignments, fits := bounded("assignments", len(c.Assignments.Added)+len(c.Assignments.Changed)+len(c.Assignments.Removed), g.Assignments)
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

// asked returns the answer of somebody who gets the change as a document, where there is
// one.
func asked(c *Change, err error, ask func() answer) answer {
	switch {
	case c == nil:
		return answer{State: Pending, reason: unplanned}
	case err != nil:
		return answer{State: Pending, reason: "the change cannot be shown: " + printable(err.Error())}
	}
	return ask()
}

// policy reports whether a change satisfies a constraint.
func policy(ctx context.Context, g model.PolicyGate, f ChangeFacts, document json.RawMessage) answer {
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

// MarshalJSON writes commits in hexadecimal, and lists and counts where they are
// empty as well, so that constraints and services find them.
func (c Change) MarshalJSON() ([]byte, error) {
	for _, l := range []*[]string{&c.Assignments.Added, &c.Assignments.Changed, &c.Assignments.Removed, &c.ClusterTypes} {
		if *l == nil {
			*l = []string{}
		}
	}
	for _, m := range []*map[string]int{&c.Created, &c.Updated, &c.Deleted} {
		if *m == nil {
			*m = map[string]int{}
		}
	}
	type fields Change
	return json.Marshal(struct {
		fields
		Base string `json:"base"`
		Own  string `json:"own"`
	}{fields(c), c.Base.String(), c.Own.String()})
}

// UnmarshalJSON reads what MarshalJSON writes.
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
