package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/internal/again"
)

// write compiles environments and writes them. It puts off environments that take long, and writes the
// others first. A child process tries each of the late ones before write goes on with it: an
// environment that goes beyond a bound ends its process, and this process has results to print.
func (g *global) write(
	ctx context.Context, r compiler.Request, o compiler.Output,
) (*compiler.Build, *compiler.Written, error) {
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
	l := &lateWrite{g.supervisor, r, o, b, written}
	// Of several, one may have been put off for what another took: what needs little goes first.
	if len(late) > 1 {
		late, err = l.write(ctx, late, true)
	}
	if err == nil {
		_, err = l.write(ctx, late, false)
	}
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	return b, written, nil
}

// lateWrite writes environments that were put off, and adds them to what is built and written.
type lateWrite struct {
	supervisor *supervisor.Supervisor
	request    compiler.Request
	output     compiler.Output
	build      *compiler.Build
	written    *compiler.Written
}

// write tries environments, each within little of its bounds or within all of them, and
// adds what it writes to a build. It returns those that need more than little.
func (l *lateWrite) write(ctx context.Context, late []string, little bool) (beyond []string, err error) {
	for _, name := range late {
		trips, err := l.trial(ctx, name, little)
		if err != nil {
			return nil, err
		}
		if little && len(trips) > len(l.supervisor.Trips()) {
			beyond = append(beyond, name)
			continue
		}
		l.supervisor.Learn(trips)
		r := l.request
		r.Environments = []string{name}
		b, written, err := compiler.Write(ctx, r, l.output)
		if err != nil {
			return nil, err
		}
		l.build.Join(b)
		maps.Copy(l.written.Changes, written.Changes)
		l.written.Commits = append(l.written.Commits, written.Commits...)
		l.written.Tree = written.Tree
	}
	return beyond, nil
}

// trial compiles an environment in a child process, and returns all trips, old and new.
func (l *lateWrite) trial(ctx context.Context, environment string, little bool) (trips []supervisor.Trip, err error) {
	out, err := again.Below(ctx, l.supervisor.TrialOf(environment, little))
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return trips, json.Unmarshal(out, &trips)
}

// try compiles one environment in the child process, and prints its trips. It ends when the parent does.
// The parent finds other errors itself.
func (g *global) try(ctx context.Context, r compiler.Request) error {
	go func() {
		_, _ = io.Copy(io.Discard, g.in)
		os.Exit(int(exitFailure))
	}()
	r.Environments = []string{g.supervisor.Trial()}
	b, err := compiler.Compile(ctx, r)
	if err != nil {
		return err
	}
	trips := g.supervisor.Trips()
	return errors.Join(b.Close(), json.NewEncoder(g.streams.out).Encode(trips))
}
