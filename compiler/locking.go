package compiler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/address"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

// Uses returns the sources that the platform needs from outside: its registrations, its
// inventories, and the manifests that kalypso renders or examines.
func (b *Build) Uses() []dependency.Use {
	var out []dependency.Use
	add := func(m model.Manifests, u dependency.Use, r *model.Registration) {
		if source, ok := dependency.SourceOf(m); ok {
			u.Source, u.Reach = source, reachOf(r, source)
			out = append(out, u)
		}
	}
	modules := func(of []cuemodule.Dependency, at []model.Position, by string) {
		for _, d := range of {
			out = append(out, dependency.Use{Source: moduleSource(d), By: []string{by}, At: at})
		}
	}
	modules(dependencies(b.Platform.Files()),
		[]model.Position{{File: cuemodule.File, Line: 1, Column: 1}}, cuemodule.File)
	for _, e := range b.Environments {
		if e.Model == nil {
			continue
		}
		for i := range e.Model.Registrations {
			r := &e.Model.Registrations[i]
			at := e.Model.Positions.Of(model.Ref{Collection: "registrations", Name: r.Name, Path: "git"})
			add(model.Manifests{Git: &r.Git}, dependency.Use{By: []string{"registration " + r.Name}, At: at},
				r)
			if tree := (registry{b.library}).tree(r); tree != nil {
				modules(dependenciesOf(r, tree), at, "registration "+r.Name)
			}
		}
		for i := range e.Model.Inventories {
			if inv := &e.Model.Inventories[i]; inv.From != nil {
				at := e.Model.Positions.Of(model.Ref{Collection: "inventories", Name: inv.Name, Path: "from"})
				add(inv.From.Manifests(), dependency.Use{By: []string{"inventory " + inv.Name}, At: at}, nil)
			}
		}
		for i := range e.Model.Workloads {
			w := &e.Model.Workloads[i]
			for _, t := range w.Targets {
				if t.Render { // even if no policy selects it yet
					add(t.Manifests, useOf(e, w, &t, t.Manifests), broughtBy(e.Model, w, &t, t.Manifests))
				}
			}
		}
		for i := range e.Schedule.Assignments {
			if a := &e.Schedule.Assignments[i]; e.NeedsContent(i) {
				add(a.Manifests, useOf(e, a.Workload, a.Target, a.Manifests),
					broughtBy(e.Model, a.Workload, a.Target, a.Manifests))
			}
		}
	}
	return out
}

// useOf returns the users of a deployment target's manifests, and the positions of the manifests.
func useOf(e *engine.Environment, w *model.Workload, t *model.DeploymentTarget,
	m model.Manifests) dependency.Use {
	at := e.Model.Positions.Of(w.TargetRef(t.Name).At("manifests." + string(m.Kind())))
	return dependency.Use{By: []string{t.FullName}, Also: []string{w.Name}, At: at}
}

// broughtBy returns the registration that names the source of a deployment target. It returns nil
// if the platform names the source, in its own workload or in a pin.
func broughtBy(m *model.Environment, w *model.Workload, t *model.DeploymentTarget,
	from model.Manifests) *model.Registration {
	brought, _ := dependency.SourceOf(t.Manifests)
	if source, _ := dependency.SourceOf(from); source.URL != brought.URL {
		return nil
	}
	for i := range m.Registrations {
		if r := &m.Registrations[i]; r.Name == w.Registration {
			return r
		}
	}
	return nil
}

// reachOf returns the servers that a source may be on. A source of a registration must not be on
// this machine or on its own link, except on the server that the platform registers. If r is nil,
// the source is the platform's own, which has no restrictions.
func reachOf(r *model.Registration, s dependency.Source) address.Reach {
	if r == nil {
		return address.Reach{}
	}
	out := address.Reach{Remote: true}
	registered, ok := address.Parse(r.Git.Repo)
	if a, _ := address.Parse(s.URL); ok && a.Host != "" && a.Server() == registered.Server() {
		out.But = a.Server()
	}
	return out
}

// LockResult is a platform with pinned sources.
type LockResult struct {
	Build   *Build
	Sources []dependency.Result
}

// maxRounds is the maximum number of times that Lock reads the platform to find all its sources.
// The content of registrations, and the modules that it imports, are known only when the
// registrations are locked.
const maxRounds = 4

// Lock pins the sources of all environments, and adds their content to the store. renew, which
// may be nil, reports whether to resolve a source again. Lock removes unused sources from the
// lock, unless errors may hide their users.
//
// If the lock file has errors, Lock returns only the diagnostics about it, and does not fetch or
// write anything, because it could lose pins. Only one process at a time can lock a platform; the
// others wait.
func Lock(ctx context.Context, r Request, f dependency.Fetcher,
	renew func(dependency.Use) bool) (*LockResult, error) {
	root, err := source.Root(r.Dir)
	if err != nil {
		return nil, err
	}
	release, err := dependency.Alone(ctx, root, r.Store)
	if err != nil {
		return nil, err
	}
	defer release()
	r.Environments = nil
	var out *LockResult
	first := map[dependency.Source]dependency.Result{} // from the first round that knew it
	for range maxRounds {
		b, err := plan(ctx, r)
		if err != nil {
			return nil, err
		}
		defer b.Close() //nolint:errcheck // a temporary folder is left
		if unreadable := dependency.UnreadableLock(b.Diagnostics); len(unreadable) > 0 {
			b.Diagnostics = unreadable
			return &LockResult{Build: b}, nil
		}
		fresh := func(u dependency.Use) bool {
			_, seen := first[u.Source]
			return !seen && renew != nil && renew(u)
		}
		r.Supervisor.MayBeginAgain(false)
		_, sources, err := dependency.Update(ctx, dependency.UpdateRequest{
			Root: b.Platform.Root, Lock: b.library.Lock, Store: b.library.Store,
			Uses: b.Uses(), Fetcher: f, Renew: fresh, Prune: b.certain(),
		})
		if err != nil {
			return nil, fmt.Errorf("lock the sources of %s: %w", b.Platform.Root, err)
		}
		more := false
		for i, s := range sources {
			if before, seen := first[s.Source]; seen {
				sources[i].Status, sources[i].Before = before.Status, before.Before
				continue
			}
			first[s.Source], more = s, more || s.Status == dependency.Added ||
				s.Status == dependency.Updated || s.Status == dependency.Fetched
		}
		out = &LockResult{b, sources}
		if !more {
			break
		}
	}
	out.Sources = withRemoved(out.Sources, first)
	out.Build.gather()
	return out, nil
}

// withRemoved adds the sources that an earlier round removed, because later rounds do not know
// them.
func withRemoved(sources []dependency.Result,
	first map[dependency.Source]dependency.Result) []dependency.Result {
	there := map[dependency.Source]bool{}
	for _, s := range sources {
		there[s.Source] = true
	}
	for source, s := range first {
		if s.Status == dependency.Removed && !there[source] {
			sources = append(sources, s)
		}
	}
	slices.SortFunc(sources, func(a,
		b dependency.Result) int {
		return strings.Compare(a.Source.String(), b.Source.String())
	})
	return sources
}

// certain reports whether all sources of the platform are known.
func (b *Build) certain() bool {
	for _, e := range b.Environments {
		if e.Model == nil || e.Model.Incomplete {
			return false
		}
	}
	return b.Declarations != nil
}
