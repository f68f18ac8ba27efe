package application

import (
	"context"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/library"
	"github.com/kalypso-io/kalypso/compiler/lock"
	"github.com/kalypso-io/kalypso/compiler/locking"
)

// Lock pins the chart that an application renders, unless it is in its own folder.
// renew, and a lock that something is wrong with, are as in compiler.Lock.
func Lock(ctx context.Context, r Request, f locking.Fetcher, renew func(locking.Use) bool) ([]locking.Source, []diag.Diagnostic, error) {
	app, ds, err := evaluate.Application(ctx, r.Dir)
	if app == nil || err != nil {
		return nil, ds, err
	}
	release, err := library.Alone(ctx, r.Dir, r.Store)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	contents, more, err := library.Open(r.Dir, r.Store)
	if err != nil {
		return nil, nil, err
	}
	if unreadable := lock.Unreadable(more); len(unreadable) > 0 {
		return nil, unreadable, nil
	}
	ds = append(ds, more...)
	var uses []locking.Use
	if source, ok := lockSource(app); ok {
		uses = append(uses, locking.Use{Source: source, By: []string{app.Name}, At: app.Positions.Of(manifestsRef.At("helm"))})
	}
	_, sources, err := locking.Update(ctx, locking.Request{
		Root: r.Dir, Lock: contents.Lock, Store: contents.Store, Uses: uses, Fetcher: f, Renew: renew, Prune: true,
	})
	return sources, ds, err
}
