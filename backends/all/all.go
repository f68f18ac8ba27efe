// Package all lists the backends.
package all

import (
	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/ansible"
	"github.com/kalypso-io/kalypso/backends/argocd"
	"github.com/kalypso-io/kalypso/backends/cue"
	"github.com/kalypso-io/kalypso/backends/fleet"
	"github.com/kalypso-io/kalypso/backends/flux"
	"github.com/kalypso-io/kalypso/backends/gotemplate"
	"github.com/kalypso-io/kalypso/backends/zarf"
)

// List returns the backends in the order in which the user can choose one. A new platform
// gets the first one by default.
func List() []backends.Backend {
	return []backends.Backend{
		flux.New(),
		argocd.New(),
		fleet.New(),
		zarf.New(),
		ansible.New(),
		gotemplate.New(),
		cue.New(),
	}
}

// Backends returns the backends by their key in #Reconciler.
func Backends() map[string]backends.Backend {
	out := map[string]backends.Backend{}
	for _, b := range List() {
		out[b.Name()] = b
	}
	return out
}
