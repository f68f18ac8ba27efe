// Package all lists the backends that there are.
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

// Backends returns them by their key in #Reconciler.
func Backends() map[string]backends.Backend {
	out := map[string]backends.Backend{}
	for _, b := range []backends.Backend{
		ansible.New(),
		argocd.New(),
		cue.New(),
		fleet.New(),
		flux.New(),
		gotemplate.New(),
		zarf.New(),
	} {
		out[b.Name()] = b
	}
	return out
}
