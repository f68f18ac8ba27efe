package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

func approvals(_ context.Context, p Policy, f ChangeFacts) (vs []Verdict) {
	for _, g := range p.Gates {
		if g.Approvals != nil {
			vs = append(vs, approval(g.Approvals, f).verdict(""))
		}
		if g.OwnApprovals != nil && f.OwnFiles {
			vs = append(vs, approval(g.OwnApprovals, f).verdict(OwnFiles))
		}
	}
	return vs
}

// approval reports whether enough people have approved the change request as it is.
func approval(g *model.ApprovalsGate, f ChangeFacts) answer {
	wanted := fmt.Sprintf("0 of %d", g.Count)
	switch {
	case f.NoReviews != "":
		return answer{State: Blocked,
			reason: wanted + ": nobody can approve, as " + printable(f.NoReviews)}
	case f.Reviews == nil:
		return answer{State: Pending, reason: wanted + ": there is no change request yet"}
	case f.Head == git.Hash{}:
		return answer{State: Pending, reason: wanted + ": the head of the change request is not known"}
	case f.Author == "":
		return answer{State: Pending, reason: wanted + ": the author of the change request is not " +
			"known, whose approval does not count"}
	}
	t := count(g, f)
	parts := []string{fmt.Sprintf("%d of %d on the present head", len(t.counted), g.Count)}
	say := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	say(t.stale, "stale")
	say(t.own, "by the author")
	say(t.others, "by others than "+list(g.From, ", "))
	a := answer{State: Passed, since: t.newest}
	if len(t.counted) < g.Count {
		a.State = Pending
		if teams := slices.DeleteFunc(slices.Clone(g.From), isUser); t.others > 0 && len(teams) > 0 {
			parts = append(parts, "who is in "+list(teams, " and ")+" is not known here")
		}
	}
	if f.Reviews.Required == forge.Unsatisfied {
		a.State = Pending
		parts = append(parts, "the forge's own rules want more")
	}
	if len(t.against) > 0 {
		a.State = Blocked
		parts = append(parts, "changes requested by "+list(t.against, ", "))
	}
	a.reason = strings.Join(parts, "; ")
	return a
}

// tally is the sum of reviews.
type tally struct {
	counted            map[string]bool // who, in lower case
	stale, own, others int
	against            []string // sorted
	newest             time.Time
}

// count counts the approvals of the present head by people who may approve. Each person counts
// once. If no approval has a commit, the forge does not report commits. Then all approvals count
// for the present head.
func count(g *model.ApprovalsGate, f ChangeFacts) tally {
	t := tally{counted: map[string]bool{}}
	says := slices.ContainsFunc(f.Reviews.Reviews,
		func(r forge.Review) bool { return r.Commit != git.Hash{} })
	for _, r := range f.Reviews.Reviews {
		switch {
		case !r.Approved:
			t.against = append(t.against, printable(r.By))
		case r.By == "":
		case r.Commit != f.Head && (says || r.Commit != git.Hash{}):
			t.stale++
		case strings.EqualFold(r.By, f.Author):
			t.own++
		case g.From != nil && !slices.ContainsFunc(g.From,
			func(from string) bool { return isUser(from) && strings.EqualFold(from, r.By) }):
			t.others++
		default:
			t.counted[strings.ToLower(r.By)] = true
			if r.At.After(t.newest) {
				t.newest = r.At
			}
		}
	}
	slices.Sort(t.against)
	return t
}

// isUser reports whether a name is a user's. The others are teams, as
// ORGANISATION/TEAM, whose members only a forge knows.
func isUser(name string) bool { return !strings.Contains(name, "/") }
