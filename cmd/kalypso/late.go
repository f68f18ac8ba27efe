package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/internal/again"
)

// trialShares are the parts of its bounds within which an environment that was put off is
// tried, first and then: what needs little comes before what needs much.
var trialShares = []int64{8, 1}

// write compiles environments and writes them. Those that take long are put off: the others
// are written first. Before it goes on with one, a process below this one tries it, since what
// is beyond a bound takes the process with it, and this one has results to print.
func (g *global) write(ctx context.Context, r compiler.Request, o compiler.Output) (*compiler.Build, *compiler.Written, error) {
	if o.Dir == "" && o.Git == "" || o.Strict || o.TreeOnly || o.Flat {
		return compiler.Write(ctx, r, o) // of all at once, or of one
	}
	g.supervisor.Defer(true)
	late := g.supervisor.Late()
	r.Except = late
	b, written, err := compiler.Write(ctx, r, o)
	if err != nil {
		return nil, nil, err
	}
	r.Except = nil
	for n, share := range trialShares {
		if n == 0 && len(late) == 1 {
			continue // it takes more: that is why it was put off
		}
		var beyond []string
		for _, name := range late {
			trips, err := g.trial(ctx, name, share)
			if err != nil {
				return nil, nil, errors.Join(err, b.Close())
			}
			if share > 1 && len(trips) > len(g.supervisor.Trips()) {
				beyond = append(beyond, name)
				continue
			}
			g.supervisor.Learn(trips)
			r.Environments = []string{name}
			other, more, err := compiler.Write(ctx, r, o)
			if err != nil {
				return nil, nil, errors.Join(err, b.Close())
			}
			b.Join(other)
			maps.Copy(written.Changes, more.Changes)
			written.Commits = append(written.Commits, more.Commits...)
			written.Tree = more.Tree
		}
		late = beyond
	}
	return b, written, nil
}

// trial has a process below this one compile an environment, within a share-th of its bounds,
// and returns all trips that are known then.
func (g *global) trial(ctx context.Context, environment string, share int64) (trips []supervisor.Trip, err error) {
	out, err := again.Below(ctx, g.supervisor.TrialOf(environment, share))
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return trips, json.Unmarshal(out, &trips)
}

// try is what that process does. What else is wrong is found again.
func (g *global) try(ctx context.Context, r compiler.Request) error {
	r.Environments = []string{g.supervisor.Trial()}
	b, err := compiler.Compile(ctx, r)
	if err != nil {
		return err
	}
	trips := g.supervisor.Trips()
	return errors.Join(b.Close(), json.NewEncoder(g.streams.out).Encode(trips))
}
