package promotion

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// Status is where the commits are.
type Status struct {
	Stops []*Stop `json:"stops"`
	// Commits are the newest base commits, newest first.
	Commits []CommitStatus `json:"commits"`
}

// CommitStatus is where a base commit is.
type CommitStatus struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
	Author  string `json:"author"`
	// Stops says of each stop by its ID what became of the commit there: "here" and the
	// state of its rollout, "was here", or nothing.
	Stops map[string]string `json:"stops"`
}

// Status asks everything and writes nothing. most is how many of the newest base commits
// it is about, beside those that stops have.
func (pl *planner) Status(ctx context.Context, most int) (*Status, error) {
	plan, err := pl.Plan(ctx, Intent{})
	if err != nil {
		return nil, err
	}
	out := &Status{Stops: plan.Stops, Commits: []CommitStatus{}}
	bases, err := pl.state.platform.bases.newest(max(most, 0))
	if err != nil {
		return nil, err
	}
	held := map[*stop]map[string]bool{}
	for _, st := range pl.state.asked() {
		held[st] = map[string]bool{}
		if st.out.repository == nil || st.out.record == nil {
			continue
		}
		had, err := st.out.history.hadSince(ctx, st.ringName(), bases)
		if err != nil {
			return nil, err
		}
		for r := range had {
			held[st][string(r)] = true
		}
	}
	for _, b := range bases {
		c := CommitStatus{Commit: b.Commit.String(), Subject: firstLine(b.Message), Author: terminal.Line(b.Author), Stops: map[string]string{}}
		for i, st := range pl.state.asked() {
			switch {
			case string(st.has().Base) == c.Commit:
				c.Stops[st.id()] = "here" + rolloutWord(out.Stops[i].Rollout)
			case held[st][c.Commit]:
				c.Stops[st.id()] = "was here"
			}
		}
		out.Commits = append(out.Commits, c)
	}
	return out, nil
}

func rolloutWord(r *Rollout) string {
	if r == nil {
		return ""
	}
	return ", " + string(map[forge.State]string{forge.Success: "healthy", forge.Failure: "failed", forge.Pending: "rolling out"}[r.State])
}

// CheckSkip says what is wrong with gates that are to be passed over: that the policy of
// a stop that was asked for does not let it.
func (pl *planner) CheckSkip(skip gate.Skip) error {
	if len(skip.Gates) == 0 {
		return nil
	}
	for _, st := range pl.state.asked() {
		if err := gate.CheckSkip(st.policy(), skip); err != nil {
			return fmt.Errorf("%s: %w", st.id(), err)
		}
	}
	return nil
}
