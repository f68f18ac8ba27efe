package application

import (
	"context"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
)

// Lock pins the chart that an application renders, unless the chart is in its own folder.
// renew is as in compiler.Lock, and so are errors in the lock.
func Lock(ctx context.Context, r Request, f dependency.Fetcher,
	renew func(dependency.Use) bool) ([]dependency.Result, []diag.Diagnostic, error) {
	app, ds, err := evaluate.Application(ctx, r.Dir, r.Supervisor)
	if app == nil || err != nil {
		return nil, ds, err
	}
	release, err := dependency.Alone(ctx, r.Dir, r.Store)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	contents, more, err := dependency.Open(r.Dir, r.Store)
	if err != nil {
		return nil, nil, err
	}
	if unreadable := dependency.UnreadableLock(more); len(unreadable) > 0 {
		return nil, unreadable, nil
	}
	ds = append(ds, more...)
	var uses []dependency.Use
	if source, ok := lockSource(app); ok {
		uses = append(uses, dependency.Use{Source: source, By: []string{app.Name},
			At: app.Positions.Of(manifestsRef.At("helm"))})
	}
	_, sources, err := dependency.Update(ctx, dependency.UpdateRequest{
		Root: r.Dir, Lock: contents.Lock, Store: contents.Store, Uses: uses, Fetcher: f, Renew: renew,
		Prune: true,
	})
	return sources, ds, err
}
