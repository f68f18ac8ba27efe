package gate

import (
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

func TestApprovals(t *testing.T) {
	yes := func(by string, on git.Hash) forge.Review {
		return forge.Review{By: by, Approved: true, Commit: on, At: now}
	}
	no := func(by string, on git.Hash) forge.Review { return forge.Review{By: by, Commit: on, At: now} }
	old, unsaid := git.Hash{2}, git.Hash{}
	list := func(r ...forge.Review) []forge.Review { return r }
	two := model.ApprovalsGate{Count: 2}
	from := model.ApprovalsGate{Count: 1, From: []string{"Alice", "acme/sre"}}
	for name, c := range map[string]struct {
		gate    model.ApprovalsGate
		reviews []forge.Review
		want    want
	}{
		"none":              {two, nil, want{Pending, "0 of 2 on the present head", ""}},
		"enough":            {two, list(yes("alice", head), yes("bob", head)), want{Passed, "2 of 2 on the present head", ""}},
		"more":              {two, list(yes("alice", head), yes("bob", head), yes("carol", head)), want{Passed, "3 of 2 on the present head", ""}},
		"stale":             {two, list(yes("alice", head), yes("bob", old)), want{Pending, "1 of 2 on the present head; 1 stale", ""}},
		"the author's":      {two, list(yes("alice", head), yes("Promoter", head)), want{Pending, "1 of 2 on the present head; 1 by the author", ""}},
		"one person, twice": {two, list(yes("alice", head), yes("Alice", head)), want{Pending, "1 of 2 on the present head", ""}},
		"nobody's":          {two, list(yes("alice", head), yes("", head)), want{Pending, "1 of 2 on the present head", ""}},
		"no commits":        {two, list(yes("alice", unsaid), yes("bob", unsaid)), want{Passed, "2 of 2 on the present head", ""}},
		"some with commits": {two, list(yes("alice", head), yes("bob", unsaid)), want{Pending, "1 of 2 on the present head; 1 stale", ""}},
		"changes requested": {two, list(yes("alice", head), yes("bob", head), no("carol", old)), want{Blocked, "2 of 2 on the present head; changes requested by carol", ""}},
		"from":              {from, list(yes("alice", head)), want{Passed, "1 of 1 on the present head", ""}},
		"from a team, perhaps": {
			from, list(yes("bob", head)),
			want{Pending, "0 of 1 on the present head; 1 by others than Alice, acme/sre; who is in acme/sre is not known here", ""},
		},
		"a team is no user": {from, list(yes("acme/sre", head)), want{Pending, "0 of 1 on the present head; 1 by others than Alice, acme/sre; who is in acme/sre is not known here", ""}},
		"from nobody":       {model.ApprovalsGate{Count: 1, From: []string{}}, list(yes("bob", head)), want{Pending, "0 of 1 on the present head; 1 by others than ", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			f := ChangeFacts{Now: now, Change: change(0, 0, 0, 0), Reviews: &forge.Reviews{Reviews: c.reviews}, Head: head, Author: "promoter"}
			c.want.check(t, Planned(t.Context(), gates(model.Gates{Approvals: &c.gate}), f, Skip{}))
		})
	}

	both := &forge.Reviews{Reviews: list(yes("alice", head), yes("bob", head))}
	for name, c := range map[string]struct {
		facts ChangeFacts
		want  want
	}{
		"no change request": {ChangeFacts{}, want{Pending, "0 of 2: there is no change request yet", ""}},
		"nobody can":        {ChangeFacts{NoReviews: "the branch is written to directly"}, want{Blocked, "0 of 2: nobody can approve, as the branch is written to directly", ""}},
		"no head":           {ChangeFacts{Reviews: both, Author: "promoter"}, want{Pending, "0 of 2: the head of the change request is not known", ""}},
		"no author":         {ChangeFacts{Reviews: both, Head: head}, want{Pending, "0 of 2: the author of the change request is not known, whose approval does not count", ""}},
		"the forge wants more": {
			ChangeFacts{Reviews: &forge.Reviews{Reviews: both.Reviews, Required: forge.Unsatisfied}, Head: head, Author: "promoter"},
			want{Pending, "2 of 2 on the present head; the forge's own rules want more", ""},
		},
		"the forge is satisfied": {
			ChangeFacts{Reviews: &forge.Reviews{Required: forge.Satisfied}, Head: head, Author: "promoter"},
			want{Pending, "0 of 2 on the present head", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now, c.facts.Change = now, change(0, 0, 0, 0)
			c.want.check(t, Planned(t.Context(), gates(model.Gates{Approvals: &two}), c.facts, Skip{}))
		})
	}
}
